"""The rescaling of a running job: from the request to the moment at which all tasks run again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.graph.job_graph import JobGraph

from ..messages.states import JobStatus
from .job_checkpoints import JobCheckpoints


@dataclass
class Rescale:
    """One rescaling under way.

    The job takes a checkpoint first, while it runs. Only when that is complete are the tasks cancelled; the new ones
    begin with it. So the pause includes no snapshot, and only the records since the checkpoint are processed again.

    Args:
        request_id: of who asked.
        graph: the job as it shall be.
        asked_ms: when it was asked for.
        after: number of the first checkpoint that may be the one before it.
    """

    request_id: str
    graph: JobGraph
    asked_ms: int
    after: int
    cancelled_ms: int | None = None
    """The time at which the old tasks were cancelled; None before that."""
    former: JobGraph | None = None
    """The job as it was; None before the new tasks are asked for."""

    @property
    def takes_over(self) -> bool:
        """Return whether the old tasks are being cancelled for it, and the new ones are not requested yet."""
        return self.cancelled_ms is not None and self.former is None

    def is_ready(self, checkpoint_id: int) -> bool:
        """Return whether this completed checkpoint lets it begin."""
        return self.cancelled_ms is None and checkpoint_id >= self.after


def refused(status: JobStatus, checkpoints: JobCheckpoints) -> str:
    """Return why a job cannot be rescaled now; "" where it can."""
    if status is not JobStatus.RUNNING:
        return f"the job is {status.value}: ask again when it runs"
    if checkpoints.is_stopping:
        return "it stops with a savepoint"
    plan = checkpoints.plan()
    return f"it has to take a checkpoint first, and cannot: {plan}" if isinstance(plan, str) else ""


__all__ = ["Rescale", "refused"]
