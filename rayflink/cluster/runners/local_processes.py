"""The process of a local cluster, which runs the tasks of all its jobs itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rayflink.actors.on_ray.process_files import ProcessFiles
from rayflink.actors.task.process_inspection import ProcessInspection, process_place

from ..jobs.cluster_job import Document
from ..jobs.cluster_process import TASK_MANAGER, ClusterProcess, LogFile, ThreadDump, UnknownProcess, process_of

__all__ = ["LocalProcesses"]


class LocalProcesses:
    """This process, as the one that runs the tasks.

    Args:
        folder: with a folder for the log of each job.
        statuses: of the jobs that run here.
        inspection: of this process.
    """

    def __init__(
        self, folder: Path, statuses: Callable[[], Sequence[Document]], inspection: ProcessInspection
    ) -> None:
        self._folder, self._statuses, self._inspection = folder, statuses, inspection
        self._id = process_of(process_place())

    def list(self) -> Sequence[ClusterProcess]:
        """Return this process; each job has one slot."""
        figures, jobs = self._inspection.figures(), len(self._statuses())
        slots = max(jobs, os.cpu_count() or 1)
        memory = int(figures["machineBytes"])
        now_ms = int(time.time() * 1000)
        return [
            ClusterProcess(
                self._id, str(process_place()["host"]), os.getpid(), slots=slots, free_slots=slots - jobs,
                cpus=figures["cpus"], memory_bytes=memory, heard_ms=now_ms,
            )
        ]  # fmt: skip

    def log_files(self, process_id: str) -> Sequence[LogFile]:
        return [LogFile(*facts) for facts in self._files(process_id).list()]

    def log(self, process_id: str, name: str, most_bytes: int) -> bytes:
        return self._files(process_id).read(name, most_bytes)

    def threads(self, process_id: str) -> Sequence[ThreadDump]:
        return [ThreadDump(name, stack) for name, stack in self._known(process_id).threads()]

    def figures(self, process_id: str) -> Mapping[str, float]:
        return self._known(process_id).figures()

    def profile(self, process_id: str, duration_s: float, with_idle: bool = False) -> Sequence[tuple[str, int]]:
        return self._known(process_id).profile(duration_s, with_idle)

    def _known(self, process_id: str) -> ProcessInspection:
        if process_id != self._id:
            raise UnknownProcess(process_id)
        return self._inspection

    def _files(self, process_id: str) -> ProcessFiles:
        self._known(process_id)
        folders = [path for path in self._folder.iterdir() if path.is_dir()] if self._folder.is_dir() else []
        return ProcessFiles([(folder, "local") for folder in folders], TASK_MANAGER)
