"""The processes of jobs on Ray: each slot has one, or shares one with other slots, also of other jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from rayflink.actors.on_ray.driver.slot_calls import SlotCalls, SlotGone
from rayflink.common.metrics.metric_names import PROCESS_SLOTS

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
        described: dict[str, _Described] = {}
        for job_id, vertex, subtask in self._subtasks():
            process = described.setdefault(process_of(subtask["metrics"]), _Described(subtask["metrics"]))
            process.add(job_id, vertex, subtask["metrics"])
        return [described[key].process(key) for key in sorted(described)]

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

    def _subtasks(self) -> Iterator[tuple[str, int, Document]]:
        """Yield the subtasks that run, with the ids of their jobs and the numbers of their vertices."""
        for status in self._statuses():
            for number, vertex in enumerate(status["vertices"]):
                for subtask in vertex["subtasks"]:
                    if subtask["state"] not in _ENDED and process_of(subtask["metrics"]):
                        yield str(status["jid"]), number, subtask

    def _asked(self, process_id: str, ask: Callable[[SlotCalls], T]) -> T:
        for job_id, _, subtask in self._subtasks():
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


class _Described:
    """A process as its subtasks describe it.

    Args:
        metrics: of one of them.
    """

    def __init__(self, metrics: Document) -> None:
        self._metrics = metrics
        self._subtasks: Counter[tuple[str, int]] = Counter()
        self._heard_ms = 0

    def add(self, job_id: str, vertex: int, metrics: Document) -> None:
        """Note a subtask of a vertex of a job."""
        self._subtasks[job_id, vertex] += 1
        self._heard_ms = max(self._heard_ms, int(metrics.get("reportedMs", 0)))

    def process(self, process_id: str) -> ClusterProcess:
        """Return the process.

        A slot has at most one subtask of a vertex, so a job has at least as many slots as its widest one; one with
        several slot sharing groups may have more, which look free.
        """
        metrics, used = self._metrics, Counter[str]()
        for (job_id, _), number in self._subtasks.items():
            used[job_id] = max(used[job_id], number)
        has_others = PROCESS_SLOTS in metrics
        slots = int(metrics[PROCESS_SLOTS]) if has_others else 1
        memory = {name: slots * size for name, size in _memory(metrics).items()}
        return ClusterProcess(
            process_id, str(metrics["host"]), int(metrics["pid"]), str(metrics.get("node", "")),
            next(iter(used)) if len(used) == 1 else "", slots, max(slots - used.total(), 0) if has_others else 0,
            **memory, heard_ms=self._heard_ms,
        )  # fmt: skip


def _memory(metrics: Document) -> dict[str, int]:
    """Return the memory of a slot, in bytes, as one of its subtasks reports it."""
    managed, network = int(metrics.get(_MANAGED, 0)), int(metrics.get(_NETWORK, 0))
    whole = managed + network + int(metrics.get(_REMAINING, 0))
    return {"memory_bytes": whole, "managed_bytes": managed, "network_bytes": network}
