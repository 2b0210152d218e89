"""The submission of a job graph to the runner that `execution.target` names."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Protocol

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.common.configuration import Configuration
from rayflink.common.errors import PlanError
from rayflink.common.job_client import JobClient
from rayflink.common.options import registry as options
from rayflink.common.options.ignored_options import warn_of_unheeded
from rayflink.common.options.log_levels import LogLevels
from rayflink.connectors.frames.cached import BlockStore, FileBlocks
from rayflink.graph.checks import warn_without_checkpoints, warn_without_sink
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storage.local_storage import folder_of

from .local_job import LocalJobClient
from .python_dependencies import PythonDependencies
from .ray_jobs import RayJobClient
from .remote_job import RemoteJobClient
from .submitted_job import SubmittedJob


class KeptResult(Protocol):
    """A cached result that a job writes; see `rayflink.datastream.streams.cached.CachedResult`."""

    def begin(self, store: BlockStore, partitions: int) -> None:
        """Note that a job is about to write the result."""

    def written_by(self, job: JobClient) -> None:
        """Note that the job has been submitted."""


def submit(
    graph: JobGraph, configuration: Configuration, cached_results: Sequence[tuple[KeptResult, int]] = ()
) -> SubmittedJob:
    """Start a job on the runner that `execution.target` names.

    It is `local` in this process, `ray` (the default) on Ray, or `remote` where a dispatcher lets it run.

    Args:
        cached_results: those that the job writes, each with the parallelism of its writer.
    """
    warn_of_unheeded(configuration)
    warn_without_sink(graph)
    warn_without_checkpoints(graph)
    target = configuration.get(options.TARGET)
    is_local = target is not None and target.name == "LOCAL"
    is_remote = target is options.Target.REMOTE
    if is_remote and cached_results:
        problem = "cache() keeps records with the program, which a cluster does not reach (execution.target: remote)"
        remedy = "leave it out, or write the stream to files and read those; or set execution.target: ray"
        raise PlanError(problem, remedy)
    dependencies = PythonDependencies.of(configuration, is_local, is_remote)
    client: SubmittedJob
    if is_local:
        apply_log_levels(configuration.to_dict())
        for result, partitions in cached_results:
            folder = folder_of((configuration.get(options.TMP_DIRS) or [tempfile.gettempdir()])[0])
            result.begin(FileBlocks(tempfile.mkdtemp(prefix="rayflink-cache-", dir=folder)), partitions)
        client = LocalJobClient(graph)
    elif is_remote:
        LogLevels.of(configuration.to_dict())  # what is wrong there is said here
        client = RemoteJobClient(graph, configuration, dependencies)
    else:
        LogLevels.of(configuration.to_dict())  # what is wrong there is said here
        client = _on_ray(graph, configuration, dependencies, cached_results)
    for result, _ in cached_results:
        result.written_by(client)
    client.shows_progress = bool(configuration.get(options.TERMINAL_PROGRESS))
    return client


def _on_ray(
    graph: JobGraph, configuration: Configuration, dependencies: PythonDependencies,
    cached_results: Sequence[tuple[KeptResult, int]],
) -> RayJobClient:  # fmt: skip
    stores = []
    if cached_results:
        from rayflink.actors.on_ray.driver.ray_cache import RayBlocks  # slow: it loads Ray

        for result, partitions in cached_results:
            stores.append(RayBlocks(configuration.get(options.RAY_NAMESPACE)))
            result.begin(stores[-1], partitions)
    return RayJobClient(graph, configuration, dependencies, stores)


__all__ = ["KeptResult", "submit"]
