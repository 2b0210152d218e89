"""Stores for the blocks of DataFrames and Datasets, which Ray has, or the local machine."""

from __future__ import annotations

import sys
import tempfile
from typing import TYPE_CHECKING, Any

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError
from rayflink.common.options import registry as options
from rayflink.connectors.frames.frame_source import FrameFolder, FrameSource, FrameStore
from rayflink.state.storage.local_storage import folder_of

if TYPE_CHECKING:
    from rayflink.connectors.frames.frame_writing import Frame


def frame_store(configuration: Configuration, on_ray: bool = False) -> FrameStore:
    """Return the store for the blocks of a DataFrame: Ray's object stores; without Ray, a folder of the local machine.

    Args:
        on_ray: on Ray in any case.

    Raises:
        ConfigError, RayCannotStart: jobs run on Ray, and there is none.
        ConfigError: jobs run on a cluster that does not reach what lies with this program.
    """
    if not reaches_frames(configuration):
        remedy = "write it to files that the cluster reaches, as env.from_spark(df, path=...) or a FileSink does"
        raise ConfigError(options.TARGET.key, "remote, and blocks of a DataFrame lie with this program", "local or ray",
                          remedy)  # fmt: skip
    ray, target = sys.modules.get("ray"), configuration.get(options.TARGET)
    is_local = target is not None and target.name == "LOCAL" and not on_ray
    if is_local and not (ray is not None and ray.is_initialized()):
        folder = folder_of((configuration.get(options.TMP_DIRS) or [tempfile.gettempdir()])[0])
        return FrameFolder(tempfile.mkdtemp(prefix="rayflink-frame-", dir=folder))
    from rayflink.actors.on_ray.driver.ray_connection import connect  # slow: it loads Ray
    from rayflink.actors.on_ray.driver.ray_frames import RayFrames  # slow: it loads Ray

    namespace = configuration.get(options.RAY_NAMESPACE)
    connect(1, namespace)
    return RayFrames(namespace).open()


def reaches_frames(configuration: Configuration) -> bool:
    """Return whether jobs reach blocks that lie with this program: not those that a dispatcher lets run elsewhere."""
    return configuration.get(options.TARGET) is not options.Target.REMOTE


def ray_dataset(frame: Frame) -> Any:
    """Return a stream's result as a `ray.data.Dataset`."""
    from rayflink.actors.on_ray.driver.ray_dataset import dataset  # slow: it loads Ray

    return dataset(frame)


def dataset_source(dataset: Any, configuration: Configuration) -> FrameSource:
    """Return a source of what Ray Data computes now.

    Raises:
        TypeMismatch: it is no `ray.data.Dataset`.
    """
    from rayflink.actors.on_ray.driver.ray_dataset import ensure_dataset, written  # slow: it loads Ray

    ensure_dataset(dataset)
    return written(dataset, frame_store(configuration, on_ray=True))


__all__ = ["dataset_source", "frame_store", "ray_dataset", "reaches_frames"]
