"""The rescaling of a running job: from the request to the moment at which all tasks run again. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rayflink.common.errors import PlanError
from rayflink.graph.job_graph import JobGraph

from ..messages.commands import AnswerRescale, Command, RescaleRequested
from ..messages.executions import Execution
from ..messages.states import ExecutionState, JobStatus
from .history.rescale_history import COMPLETED, FAILED, NO_SLOTS, SUCCEEDED, RescaleHistory
from .job_checkpoints import JobCheckpoints
from .rescaled_graph import rescaled_graph


@dataclass
class _Rescale:
    """One rescaling under way.

    Args:
        request_id: of the request, for the answer.
        graph: the job with its new parallelisms.
        first_checkpoint: id of the first checkpoint from which the rescaled job may start.
        cancelled_ms: when the old tasks were cancelled; None before that.
        former: the job with its old parallelisms; None before slots for the new tasks are requested.
    """

    request_id: str
    graph: JobGraph
    first_checkpoint: int
    cancelled_ms: int | None = None
    former: JobGraph | None = None


class JobRescale:
    """Rescales a job, once at a time.

    The job takes a checkpoint first, while it runs. Only when that is complete are the tasks cancelled; the new ones
    begin with it. So the pause includes no snapshot, and only the records since the checkpoint are processed again.

    Args:
        history: of the job.
    """

    def __init__(self, history: RescaleHistory) -> None:
        self._history = history
        self._current: _Rescale | None = None

    def request(
        self, event: RescaleRequested, graph: JobGraph, status: JobStatus, checkpoints: JobCheckpoints, now_ms: int
    ) -> AnswerRescale | None:
        """Begin a rescaling, which needs a checkpoint now; return the answer if there is nothing to do, or a refusal.

        Args:
            graph: the job as it runs.
        """
        try:
            after = rescaled_graph(graph, event.parallelism)
        except PlanError as error:
            return AnswerRescale(event.request_id, failure=str(error))
        refusal = refused(status, checkpoints)
        if self._current is not None:
            refusal = "its parallelism is being changed already"
        if refusal:
            return AnswerRescale(event.request_id, failure=refusal)
        if after == graph:  # parallelisms that it has already cost no pause
            self._history.ignore(event.request_id, graph, now_ms)
            return AnswerRescale(event.request_id)
        self._history.begin(event.request_id, graph, after, now_ms)
        self._current = _Rescale(event.request_id, after, checkpoints.next_id)
        return None

    def replace_at_once(self, graph: JobGraph, now_ms: int) -> None:
        """Let a job in another layout take over when the tasks have ended, from the newest checkpoint; no one asked."""
        self._current = _Rescale("", graph, 0, now_ms)

    @property
    def is_under_way(self) -> bool:
        """Return whether the parallelism is being changed."""
        return self._current is not None

    @property
    def awaits_checkpoint(self) -> bool:
        """Return whether a checkpoint has to be taken before the old tasks are cancelled."""
        return self._current is not None and self._current.cancelled_ms is None

    def cancels_tasks(self, checkpoint_id: int, now_ms: int) -> bool:
        """Return whether the old tasks are cancelled now that this checkpoint is complete."""
        rescale = self._current
        if rescale is None or rescale.cancelled_ms is not None or checkpoint_id < rescale.first_checkpoint:
            return False
        rescale.cancelled_ms = now_ms
        self._history.cancel(now_ms)
        return True

    def take_over(self, graph: JobGraph) -> JobGraph | None:
        """Return the rescaled job that takes the place of `graph`, whose tasks have ended; None if none does."""
        rescale = self._current
        if rescale is None or rescale.cancelled_ms is None or rescale.former is not None:
            return None
        rescale.former = graph
        return rescale.graph

    def go_back(self, now_ms: int) -> tuple[str, JobGraph] | None:
        """Give up a rescaled job that gets no slots; return the id of its request, and the job as it was before."""
        rescale = self._current
        if rescale is None or rescale.former is None:
            return None
        self._current = None
        self._history.end(FAILED, NO_SLOTS, now_ms)
        return rescale.request_id, rescale.former

    def answer_if_running(self, executions: Iterable[Execution], now_ms: int) -> list[Command]:
        """Return the answer with the length of the pause, once all tasks of the rescaled job run."""
        rescale = self._current
        if rescale is None or rescale.former is None:
            return []
        if any(e.state not in (ExecutionState.RUNNING, ExecutionState.FINISHED) for e in executions):
            return []
        self._current = None
        self._history.end(COMPLETED, SUCCEEDED, now_ms)
        assert rescale.cancelled_ms is not None
        if not rescale.request_id:
            return []
        return [AnswerRescale(rescale.request_id, now_ms - rescale.cancelled_ms)]

    def job_ended(self, status: JobStatus, now_ms: int) -> list[Command]:
        """Return the answer to a request that the end of the job overtook."""
        if self._current is None or not self._current.request_id:
            return []
        self._history.job_ended(status, now_ms)
        return [AnswerRescale(self._current.request_id, failure=f"the job is {status.value}")]


def refused(status: JobStatus, checkpoints: JobCheckpoints) -> str:
    """Return why a job cannot be rescaled now; "" where it can."""
    if status is not JobStatus.RUNNING:
        return f"the job is {status.value}: ask again when it runs"
    if checkpoints.is_stopping:
        return "it stops with a savepoint"
    plan = checkpoints.plan()
    return f"it has to take a checkpoint first, and cannot: {plan}" if isinstance(plan, str) else ""


__all__ = ["JobRescale", "refused"]
