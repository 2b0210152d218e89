"""Calls to a process that runs tasks, about all of them: what runs there, what it uses, and what it has written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import ray

from ...task.process_inspection import ProcessInspection
from ..process_files import FileFacts, ProcessFiles

MAIN_LOG = "taskmanager"
"""The name of the whole log of a process, as Flink's."""
GROUPS = {"inspection": 1, "profile": 1}
"""Concurrency groups of these calls, with their threads."""


class ProcessCalls:
    """The base of Ray actors whose processes run tasks.

    Args:
        files: returns the files that the process writes now.
    """

    def __init__(self, files: Callable[[], ProcessFiles]) -> None:
        self._files, self._inspection = files, ProcessInspection()

    @ray.method(concurrency_group="inspection")
    def threads(self) -> list[tuple[str, str]]:
        """Return name and stack of every thread."""
        return self._inspection.threads()

    @ray.method(concurrency_group="inspection")
    def figures(self) -> dict[str, float]:
        """Return what the process uses."""
        return self._inspection.figures()

    @ray.method(concurrency_group="inspection")
    def log_files(self) -> list[FileFacts]:
        """Return the files that the process writes for the jobs that it has."""
        return self._files().list()

    @ray.method(concurrency_group="inspection")
    def log(self, name: str, most_bytes: int) -> bytes | None:
        """Return the end of a file; None: there is none of this name."""
        try:
            return self._files().read(name, most_bytes)
        except FileNotFoundError:
            return None

    @ray.method(concurrency_group="profile")
    def profile(self, duration_s: float, with_idle: bool) -> Sequence[tuple[str, int]]:
        """Sample the stacks of this process.

        Raises:
            ProfilerError: it cannot be profiled.
        """
        return self._inspection.profile(duration_s, with_idle)


__all__ = ["GROUPS", "MAIN_LOG", "ProcessCalls"]
