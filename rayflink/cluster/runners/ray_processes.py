"""The processes of jobs on Ray: each slot of each job has one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from rayflink.actors.on_ray.driver.slot_calls import SlotCalls, SlotGone

from ..jobs.cluster_job import Document
from ..jobs.cluster_process import ClusterProcess, LogFile, ThreadDump, UnknownProcess, process_of

__all__ = ["RayProcesses"]

T = TypeVar("T")
_MANAGED, _NETWORK = "Status.Flink.Memory.Managed.Total", "Status.Shuffle.Netty.TotalMemory"
_REMAINING = "rayflink.Status.Memory.Remaining"
_ENDED = ("FINISHED", "CANCELED", "FAILED")


class RayProcesses:
    """The processes that the statuses of jobs name, each asked by a call of its actor.

    Args:
        statuses: of the jobs that run.
        calls: of the process in which an attempt of a job runs: takes the ids of both; None: it is gone.
    """

    def __init__(
        self, statuses: Callable[[], Sequence[Document]], calls: Callable[[str, str], SlotCalls | None]
    ) -> None:
        self._statuses, self._calls = statuses, calls

    def list(self) -> Sequence[ClusterProcess]:
        """Return the processes that run tasks now."""
        processes: dict[str, ClusterProcess] = {}
        for job_id, subtask in self._subtasks():
            metrics = subtask["metrics"]
            process_id = process_of(metrics)
            heard_ms = max(int(metrics.get("reportedMs", 0)), getattr(processes.get(process_id), "heard_ms", 0))
            processes[process_id] = ClusterProcess(
                process_id, str(metrics["host"]), int(metrics["pid"]), str(metrics.get("node", "")), job_id,
                **_memory(metrics), heard_ms=heard_ms,
            )  # fmt: skip
        return [processes[key] for key in sorted(processes)]

    def log_files(self, process_id: str) -> Sequence[LogFile]:
        return [LogFile(*facts) for facts in self._asked(process_id, SlotCalls.log_files)]

    def log(self, process_id: str, name: str, most_bytes: int) -> bytes:
        data = self._asked(process_id, lambda calls: calls.log(name, most_bytes))
        if data is None:
            raise FileNotFoundError(name)
        return data

    def threads(self, process_id: str) -> Sequence[ThreadDump]:
        return [ThreadDump(name, stack) for name, stack in self._asked(process_id, SlotCalls.threads)]

    def figures(self, process_id: str) -> Mapping[str, float]:
        return self._asked(process_id, SlotCalls.figures)

    def profile(self, process_id: str, duration_s: float, with_idle: bool = False) -> Sequence[tuple[str, int]]:
        return self._asked(process_id, lambda calls: calls.profile(duration_s, with_idle))

    def _subtasks(self) -> Iterator[tuple[str, Document]]:
        """Yield the subtasks that run, with the ids of their jobs."""
        for status in self._statuses():
            for vertex in status["vertices"]:
                for subtask in vertex["subtasks"]:
                    if subtask["state"] not in _ENDED and process_of(subtask["metrics"]):
                        yield str(status["jid"]), subtask

    def _asked(self, process_id: str, ask: Callable[[SlotCalls], T]) -> T:
        for job_id, subtask in self._subtasks():
            if process_of(subtask["metrics"]) != process_id:
                continue
            calls = self._calls(job_id, str(subtask["id"]))
            if calls is None:
                break
            try:
                return ask(calls)
            except SlotGone as error:
                raise UnknownProcess(process_id) from error
        raise UnknownProcess(process_id)


def _memory(metrics: Document) -> dict[str, int]:
    """Return the memory of a slot, in bytes, as one of its subtasks reports it."""
    managed, network = int(metrics.get(_MANAGED, 0)), int(metrics.get(_NETWORK, 0))
    whole = managed + network + int(metrics.get(_REMAINING, 0))
    return {"memory_bytes": whole, "managed_bytes": managed, "network_bytes": network}
