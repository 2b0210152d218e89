"""The protocol of the processes of a cluster: those that run tasks, and the nodes on which they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rayflink.common.errors import RayflinkError

__all__ = [
    "TASK_MANAGER",
    "ClusterProcess",
    "ClusterProcesses",
    "LogFile",
    "ThreadDump",
    "UnknownProcess",
    "process_of",
]

TASK_MANAGER = "taskmanager"
"""A process writes TASK_MANAGER.log, which is its whole log, and TASK_MANAGER.out, which is what its tasks print."""


class UnknownProcess(RayflinkError):
    """No process of this id is known.

    Args:
        process_id: that was asked for.
    """

    def __init__(self, process_id: str) -> None:
        super().__init__(process_id)
        self.process_id = process_id

    def __str__(self) -> str:
        return f"process {self.process_id} is not known; the list of task managers shows those that are"


@dataclass(frozen=True, slots=True)
class ClusterProcess:
    """A process that runs tasks: what Flink calls a task manager.

    Args:
        process_id: the same for as long as it lives: "host:pid-begin".
        host: name or address of its machine.
        pid: of the operating system.
        node_id: of Ray's node; "": there is none.
        job_id: whose tasks it runs; "": it may run those of several jobs.
        slots: the subtasks of each vertex that it can run.
        free_slots: those that no job has.
        cpus: that the slots can use together.
        memory_bytes: that the slots may use together.
        managed_bytes: of those, the managed memory.
        network_bytes: of those, the network buffers.
        heard_ms: when it reported last, epoch milliseconds.
    """

    process_id: str
    host: str
    pid: int
    node_id: str = ""
    job_id: str = ""
    slots: int = 1
    free_slots: int = 0
    cpus: float = 1.0
    memory_bytes: int = 0
    managed_bytes: int = 0
    network_bytes: int = 0
    heard_ms: int = 0


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file that a process writes.

    Args:
        name: without a folder.
        size: bytes.
        changed_ms: epoch milliseconds.
    """

    name: str
    size: int
    changed_ms: int


@dataclass(frozen=True, slots=True)
class ThreadDump:
    """A thread and what it runs.

    Args:
        name: of the thread.
        stack: as Python prints it, the innermost call last.
    """

    name: str
    stack: str


def process_of(metrics: Mapping[str, object]) -> str:
    """Return the id of the process in which a subtask runs, from its metrics; "" where they do not name it.

    >>> process_of({"host": "10.0.0.3", "pid": 7, "begin": "123"})
    '10.0.0.3:7-123'
    """
    return f"{metrics['host']}:{metrics['pid']}-{metrics.get('begin', '')}" if "pid" in metrics else ""


class ClusterProcesses(Protocol):
    """The processes of a cluster that run tasks."""

    def list(self) -> Sequence[ClusterProcess]:
        """Return those that live, in order of their ids."""

    def log_files(self, process_id: str) -> Sequence[LogFile]:
        """Return the files that a process writes.

        Raises:
            UnknownProcess: it does not live.
        """

    def log(self, process_id: str, name: str, most_bytes: int) -> bytes:
        """Return the last bytes of one file, at most `most_bytes`.

        Raises:
            UnknownProcess: it does not live.
            FileNotFoundError: it writes no such file.
        """

    def threads(self, process_id: str) -> Sequence[ThreadDump]:
        """Return what every thread of a process runs now.

        Raises:
            UnknownProcess: it does not live.
        """

    def figures(self, process_id: str) -> Mapping[str, float]:
        """Return what a process uses now; the names are those of `ProcessInspection.figures`.

        Raises:
            UnknownProcess: it does not live.
        """

    def profile(self, process_id: str, duration_s: float, with_idle: bool = False) -> Sequence[tuple[str, int]]:
        """Sample the stacks of a process.

        Args:
            process_id: whose.
            duration_s: seconds for which samples are taken.
            with_idle: also of threads that wait; else only of those that run.

        Returns: (frames joined by ";", outermost first, number of samples), the thread's name as the first frame.
        Raises:
            UnknownProcess: it does not live.
            RayflinkError: the profiler is not installed or may not look.
        """
