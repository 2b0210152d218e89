"""Removes the remains of a lost coordinator from a cluster, and retries the storage on behalf of the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import ray
from ray.util.placement_group import get_placement_group, placement_group_table, remove_placement_group

from rayflink.common.text_output.logs import get_logger
from rayflink.state.storage.storage import MissingFileError, StorageError, StorageNotSupported

log = get_logger(__name__)
T = TypeVar("T")

PATIENCE_S = 120.0
"""A storage that refuses for so long keeps a job from going on."""
PAUSE_S = 1.0


def patiently(work: Callable[[], T]) -> T:
    """Call the function until the storage no longer refuses.

    Raises: what it raises, after `PATIENCE_S`; at once where it is no refusal of a storage.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            return work()
        except (MissingFileError, StorageNotSupported):
            raise
        except StorageError as error:
            if time.monotonic() > until:
                raise
            log.warning("the job cannot go on yet: %s", error)
            time.sleep(PAUSE_S)


def named(prefix: str, namespace: str) -> list[str]:
    """Return the names of the processes of a namespace that begin with `prefix`."""
    present = [actor for actor in ray.util.list_named_actors(all_namespaces=True) if actor["namespace"] == namespace]
    return [name for actor in present if (name := str(actor["name"])).startswith(prefix)]


def end_named(names: Iterable[str], namespace: str) -> None:
    """End processes of a namespace by their names."""
    for name in names:
        try:
            ray.kill(ray.get_actor(name, namespace=namespace))
        except ValueError:  # it is gone
            continue


def remove_remains(job_id: str, namespace: str) -> None:
    """End the processes of a job's slots, and free its resources: they belonged to a coordinator that is lost.

    Ray ends them as well, but takes its time.
    """
    end_named([name for name in named(f"{job_id}/", namespace) if not name.endswith("/coordinator")], namespace)
    for group in placement_group_table().values():
        if str(group["name"]).startswith(f"rayflink/{job_id}/") and group["state"] != "REMOVED":
            try:
                remove_placement_group(get_placement_group(group["name"]))
            except ValueError:  # it is gone
                continue


__all__ = ["end_named", "named", "patiently", "remove_remains"]
