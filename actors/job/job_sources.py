"""The sources of one job, as far as the job decides for them: splits, watermark alignment and stops."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.graph.job_graph import JobGraph

from ..messages.commands import Command, EnumeratorAnswered, SendToTask
from ..messages.executions import Execution
from ..messages.messages import (
    OperatorsSatisfied,
    SourceEvent,
    SplitRequest,
    TaskFailure,
    WatermarkAnnounced,
    WatermarkReported,
)
from ..messages.states import ExecutionState
from .attempts import Attempts
from .enumeration import Consequences, Enumerators, enumerator_failed
from .source_stops import SourceStops
from .watermark_groups import WatermarkGroups


class JobSources:
    """Answers the source readers of a job; exceptions of a user's enumerator are returned as failures.

    Args:
        graph: the job.
        attempts: the present ones.
    """

    def __init__(self, graph: JobGraph, attempts: Attempts) -> None:
        self.enumerators = Enumerators(graph)
        """The split enumerators, whose state is part of checkpoints."""
        self._attempts = attempts
        self._watermarks = WatermarkGroups()
        self._stops = SourceStops(attempts)

    def assign(self, execution: Execution, event: SplitRequest | SourceEvent) -> list[Command] | TaskFailure:
        """Answer a reader that has nothing left to read, or sends an event: with splits for it, and for others."""
        enumerators = self.enumerators
        try:
            if isinstance(event, SplitRequest):
                consequences = enumerators.request(execution.vertex, event.operator_id, execution.subtask)
            else:
                consequences = enumerators.deliver(execution.vertex, event, execution.subtask)
        except (Exception, SystemExit) as error:  # whatever a user's enumerator raises
            return enumerator_failed(execution.vertex.head, error)
        return self._commands(consequences)

    def answer(self, event: EnumeratorAnswered, now_ms: int) -> list[Command] | TaskFailure:
        """Give an enumerator the answer to work that it asked for; one that is closed needs none."""
        source = self.enumerators.source_of(event)
        if source is None:
            return []
        try:
            consequences = self.enumerators.answer(event, now_ms)
        except (Exception, SystemExit) as error:  # whatever a user's enumerator raises
            return enumerator_failed(source, error)
        return self._commands(consequences)

    @property
    def next_call_ms(self) -> int | None:
        """Return when work of an enumerator is due again, in epoch milliseconds; None: none is."""
        return self.enumerators.next_call_ms

    def calls_due(self, now_ms: int) -> list[Command]:
        """Repeat the work of enumerators that is due again."""
        return [*self.enumerators.calls_due(now_ms)]

    def _commands(self, consequences: Consequences) -> list[Command]:
        readers = {e.subtask: e.attempt for e in self._attempts if e.vertex.id == consequences.vertex_id}
        sent = [SendToTask(readers[subtask], message) for subtask, message in consequences.assigned]
        return [*sent, *consequences.calls]

    def align(self, execution: Execution, event: WatermarkReported) -> list[Command]:
        """Answer the watermark of an aligned source with the greatest one with which it may read on."""
        self._watermarks.keep({e.attempt for e in self._attempts.live})
        allowed = self._watermarks.reported(event.attempt, event.operator_id, event.alignment, event.watermark)
        if execution.state is ExecutionState.CANCELING or event.watermark == MAX_TIMESTAMP:
            return []
        return [SendToTask(event.attempt, WatermarkAnnounced(event.operator_id, allowed))]

    def stop_all(self) -> list[Command]:
        """End all sources, also those that start later."""
        return self._stops.stop_all()

    def satisfied(self, event: OperatorsSatisfied) -> list[Command]:
        """End the sources all of whose records go to operators that use none of them."""
        return self._stops.report(event)

    def started(self) -> list[Command]:
        """End the sources that have to end and began after that was decided."""
        return self._stops.due()

    def restore(self, states: Mapping[str, bytes]) -> list[TaskFailure]:
        """Restart the enumerators with the states of a checkpoint; return how closing the present ones failed."""
        return self.enumerators.restore(states)

    def take_back(self, executions: Iterable[Execution]) -> None:
        """Return the splits that readers got since the newest checkpoint to their enumerators.

        Raises: whatever a user's enumerator raises.
        """
        for execution in executions:
            if execution.vertex.is_input:
                self.enumerators.take_back(execution.vertex.head.operator_id, execution.subtask)

    def checkpoint_completed(self, checkpoint_id: int) -> None:
        """Forget the splits that a durable checkpoint contains."""
        self.enumerators.complete(checkpoint_id)

    def close(self) -> list[TaskFailure]:
        """Close all enumerators, and return their failures."""
        return self.enumerators.close()


__all__ = ["JobSources"]
