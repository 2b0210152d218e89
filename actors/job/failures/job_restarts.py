"""Collects the tasks of a job that restart, and decides when. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

from rayflink.common.text_output.logs import get_logger
from rayflink.graph.job_graph import JobGraph

from ...messages.executions import Execution
from ...messages.messages import TaskFailure
from ...messages.states import ExecutionState
from .failover import Failover, Place
from .restarts import NoRestart, RestartStrategy
from .same_failures import SameFailures

MOST_NOTICES = 16
log = get_logger(__name__)


class JobRestarts:
    """The subtasks that have to restart, and when they may.

    Args:
        graph: the job.
        config: of the job, option key -> value.
        checkpointing: whether the job takes checkpoints.
        chance: for the jitter of delays.
    """

    def __init__(self, graph: JobGraph, config: Mapping[str, Any], checkpointing: bool, chance: Random) -> None:
        self._strategy = RestartStrategy.of(config, checkpointing, chance)
        self._same = SameFailures.of(config)
        self.adopt(graph)
        self.places: tuple[Place, ...] = ()
        """The subtasks that are to restart, in the order of vertices and indexes."""
        self.due_ms = 0
        """The time at which they may restart."""
        self.ended_ms: int | None = None
        """The time at which the last of the latest restarted attempts had ended."""
        self.count = 0
        """Restarts so far."""
        self.notices: deque[str] = deque(maxlen=MOST_NOTICES)
        """Notices for the user that were not shown yet."""
        self.are_over = False
        """Nothing restarts any more, whatever the strategy says: the job is another coordinator's."""
        self._is_final = self._is_same = False

    def adopt(self, graph: JobGraph) -> None:
        """Adopt the graph of a rescaled job."""
        self._failover = Failover.of(graph)
        self._everything: tuple[Place, ...] = tuple(
            (vertex.id, subtask) for vertex in graph.vertices for subtask in range(vertex.parallelism)
        )

    @property
    def is_whole(self) -> bool:
        """Return whether all subtasks restart."""
        return len(self.places) == len(self._everything)

    @property
    def are_possible(self) -> bool:
        """Return whether tasks that fail run again."""
        return not isinstance(self._strategy, NoRestart)

    def failed(self, failed: Execution | None, failure: TaskFailure, now_ms: int) -> bool:
        """Record a failure of one attempt or of the whole job; return whether there is a restart, which is also
        announced.

        Results of tasks that have finished count as lost: each can be read once.
        """
        self._is_final = not failure.recoverable
        self._is_same = self.are_possible and self._same.is_last(failure, self.count, _ran_ms(failed, now_ms))
        is_over = self.are_over or self._is_final or self._is_same
        delay = None if is_over else self._strategy.failed(now_ms)
        if delay is None:
            return False
        involved: Iterable[Place] = self._everything
        if failed is not None:
            involved = self._failover.restarting((failed.vertex.id, failed.subtask), lambda dataset, subtask: True)
        together = {*self.places, *involved}
        self.places = tuple(place for place in self._everything if place in together)
        self.due_ms, self.ended_ms = max(self.due_ms, now_ms + delay), None
        who = "the job" if failed is None else failed.name
        notice = f"{who} failed, and restarts in {delay / 1000:g} s (restart {self.count + 1}): {failure.message}"
        log.warning("%s", notice)
        self.notices.append(notice)
        return True

    def progressed(self) -> None:
        """Forget the failures before a complete checkpoint: they are no reason to end the job."""
        self._same.progressed()

    def restart_whole(self, now_ms: int) -> None:
        """Restart everything at once, though nothing failed."""
        self.places, self.due_ms, self.ended_ms = self._everything, now_ms, None

    def is_due(self, executions: Iterable[Execution], now_ms: int) -> bool:
        """Return whether all that restart have ended, and the delay is over."""
        waiting = set(self.places)
        left = (e for e in executions if (e.vertex.id, e.subtask) in waiting and not e.state.is_terminal)
        if not waiting or next(left, None) is not None:
            return False
        self.ended_ms = now_ms if self.ended_ms is None else self.ended_ms
        return now_ms >= self.due_ms

    def begun(self) -> None:
        """Note that they are being deployed."""
        self.places, self.due_ms = (), 0
        self.count += 1

    @property
    def refusal(self) -> str:
        """Return why there is no restart; "" where none was asked for."""
        if not self.are_possible or self.are_over:
            return ""
        if self._is_final:
            return "the failure is not recoverable"
        return self._same.refusal if self._is_same else self._strategy.refusal


def _ran_ms(failed: Execution | None, now_ms: int) -> int:
    began = None if failed is None else failed.timestamps.get(ExecutionState.RUNNING.value)
    return 0 if began is None else now_ms - began


__all__ = ["JobRestarts"]
