"""The split enumerators of a job's sources, run where the job is decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rayflink.common.errors import described
from rayflink.common.source import SplitEnumerator
from rayflink.graph.job_graph import ChainedOperator, JobGraph, JobVertex

from .messages import AssignSplits, TaskFailure


class _Context:
    """Collects what an enumerator assigns while it answers."""

    def __init__(self, operator_id: str, parallelism: int) -> None:
        self._operator_id, self._parallelism = operator_id, parallelism
        self.assigned: list[tuple[int, AssignSplits]] = []

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        """Subtask -> splits."""
        for subtask, splits in assignment.items():
            self.assigned.append((subtask, AssignSplits(self._operator_id, tuple(splits))))

    def signal_no_more_splits(self, subtask: int) -> None:
        """The reader gets nothing more."""
        self.assigned.append((subtask, AssignSplits(self._operator_id, (), no_more=True)))

    def current_parallelism(self) -> int:
        """Number of readers."""
        return self._parallelism


class Enumerators:
    """One enumerator a source operator, made when the first reader asks."""

    def __init__(self, graph: JobGraph) -> None:
        self._graph = graph
        self._made: dict[str, tuple[_Context, SplitEnumerator, ChainedOperator]] = {}

    def request(self, vertex: JobVertex, operator_id: str, subtask: int) -> list[tuple[int, AssignSplits]]:
        """A reader wants a split; the messages for this and perhaps other readers of the vertex."""
        if operator_id not in self._made:
            self._made[operator_id] = self._make(vertex, operator_id)
        context, enumerator, _ = self._made[operator_id]
        enumerator.handle_split_request(subtask)
        assigned, context.assigned = context.assigned, []
        return assigned

    def close(self) -> list[TaskFailure]:
        """Close all enumerators, also when some raise; how those failed."""
        made, self._made = self._made, {}
        failures = []
        for _, enumerator, node in made.values():
            try:
                enumerator.close()
            except (Exception, SystemExit) as error:  # whatever a user's enumerator raises
                failures.append(enumerator_failed(node, error, " when it was closed"))
        return failures

    @staticmethod
    def _make(vertex: JobVertex, operator_id: str) -> tuple[_Context, SplitEnumerator, ChainedOperator]:
        node = next(node for node in vertex.operators if node.operator_id == operator_id)
        assert node.factory is not None
        operator = node.factory()
        context = _Context(operator_id, vertex.parallelism)
        enumerator = operator.source.create_enumerator(context)
        enumerator.start()
        return context, enumerator, node


def enumerator_failed(source: ChainedOperator, error: BaseException, when: str = "") -> TaskFailure:
    """What the enumerator of a source raised, as the failure of the source."""
    message = f"the enumerator of source {source.name!r} failed{when}: {described(error)}"
    return TaskFailure(type(error).__name__, message, "", source.name, source.call_site)
