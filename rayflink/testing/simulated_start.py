"""From which checkpoints of a simulated disk a job begins."""

from __future__ import annotations

from dataclasses import replace

from rayflink.actors.completed_checkpoints import CompletedCheckpoint
from rayflink.actors.job_checkpoints import JobStart
from rayflink.common import options
from rayflink.common.configuration import Configuration
from rayflink.graph.job_graph import JobGraph
from rayflink.state.manifest import METADATA
from rayflink.state.manifest_format import decode_manifest
from rayflink.state.stored_checkpoints import folder_above, latest_manifests

from .simulated_storage import SimulatedDisk


def first_start(graph: JobGraph, disk: SimulatedDisk, epoch: int = 0) -> JobStart:
    """From the checkpoint or savepoint that the job's options name, or from nothing.

    Raises:
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    path = (Configuration.from_dict(graph.configuration).get(options.RESTORE_PATH) or "").rstrip("/")
    if not path:
        return JobStart(epoch)
    folder = folder_above(path) if path.endswith(f"/{METADATA}") else path
    manifest = decode_manifest(disk.storage(folder).read(METADATA), f"{folder}/{METADATA}")
    base = folder if manifest.own_base else folder_above(folder)
    return JobStart(epoch, (CompletedCheckpoint(base, manifest, is_owned=False),))


def next_start(graph: JobGraph, disk: SimulatedDisk, base: str, epoch: int) -> JobStart:
    """How a coordinator begins that takes over a job.

    Args:
        base: of the job's checkpoints; "" where they were in the memory of the old coordinator.

    Raises:
        StorageError: nobody knows now which checkpoints there are.
    """
    start = first_start(graph, disk, epoch)
    if not base:
        return start
    own = reversed(latest_manifests(disk.storage(base)).manifests)
    return replace(start, completed=(*start.completed, *(CompletedCheckpoint(base, manifest) for manifest in own)))


__all__ = ["first_start", "next_start"]
