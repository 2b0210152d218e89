"""Ends sources before their input does: all of a stopped job, or those whose records no operator uses. Pure."""

from __future__ import annotations

from rayflink.graph.job_graph import JobGraph, JobVertex

from ..exchange.frames import TaskAddress
from ..messages.commands import Command, SendToTask
from ..messages.messages import OperatorsSatisfied, StopTask
from ..messages.states import ExecutionState
from .attempts import Attempts


class SourceStops:
    """Ends the sources of a job that is stopped, and those all of whose records go to operators that use none of them.

    An operator is satisfied when all its subtasks have reported it, or when all operators that it gives records to are.
    What subtasks reported holds for their attempts alone: those that begin again report it again.

    Args:
        attempts: the present ones of the job.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        self._satisfied: dict[TaskAddress, frozenset[str]] = {}
        self._stopped: set[TaskAddress] = set()
        self._stops_all = False

    def stop_all(self) -> list[Command]:
        """Stop all sources, also those that start later."""
        self._stops_all = True
        return [SendToTask(e.attempt, StopTask()) for e in self._attempts.live if e.vertex.is_input]

    def report(self, message: OperatorsSatisfied) -> list[Command]:
        """Stop the sources that a report makes useless."""
        known = self._satisfied.get(message.attempt, frozenset())
        self._satisfied[message.attempt] = known | frozenset(message.operator_ids)
        return self.due()

    def due(self) -> list[Command]:
        """Stop the sources that have to end and were not asked to yet."""
        if self._stops_all:
            return self.stop_all()
        present = self._attempts.by_id
        self._satisfied = {attempt: ids for attempt, ids in self._satisfied.items() if attempt in present}
        self._stopped &= present.keys()
        if not self._satisfied:
            return []
        consumers = _Consumers(self._attempts, self._satisfied)
        unused = {v.id for v in self._attempts.graph.vertices if v.is_input and consumers.are_satisfied(v, 0)}
        stopping = [
            e.attempt
            for e in self._attempts.live
            if e.vertex.id in unused and e.attempt not in self._stopped and e.state is not ExecutionState.CANCELING
        ]
        self._stopped.update(stopping)
        return [SendToTask(attempt, StopTask()) for attempt in stopping]


class _Consumers:
    """Finds which operators of a job, from the sources on, use records."""

    def __init__(self, attempts: Attempts, satisfied: dict[TaskAddress, frozenset[str]]) -> None:
        self._graph: JobGraph = attempts.graph
        self._executions = list(attempts)
        self._reported = satisfied
        self._known: dict[tuple[str, int], bool] = {}

    def are_satisfied(self, vertex: JobVertex, index: int) -> bool:
        """Return whether operator `index` of a vertex uses none of the records it receives."""
        place = (vertex.id, index)
        if place not in self._known:
            self._known[place] = False  # operators of a loop give one another records
            self._known[place] = self._has_reported(vertex, index) or self._has_none(vertex, index)
        return self._known[place]

    def _has_reported(self, vertex: JobVertex, index: int) -> bool:
        """Return whether all subtasks of an operator have reported it, or have ended."""
        wanted = vertex.operators[index].operator_id
        mine = (e for e in self._executions if e.vertex.id == vertex.id)
        return all(e.state is ExecutionState.FINISHED or wanted in self._reported.get(e.attempt, ()) for e in mine)

    def _has_none(self, vertex: JobVertex, index: int) -> bool:
        """Return whether an operator has consumers, all of which use no records."""
        operator = vertex.operators[index]
        inside = [self.are_satisfied(vertex, output.target) for output in operator.chained_outputs]
        edges = [self._graph.consumer_of(vertex.outputs[output.dataset].id) for output in operator.network_outputs]
        outside = [self.are_satisfied(self._graph.vertex(edge.target), 0) for edge in edges]
        return bool(inside or outside) and all(inside) and all(outside)


__all__ = ["SourceStops"]
