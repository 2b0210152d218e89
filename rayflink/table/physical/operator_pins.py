"""The ids of a plan's operators, which a compiled plan holds fast.

State is found by the ids of operators. They follow from what an operator computes, and from where it stands; a later
version may translate a relation to other steps, or name it otherwise. So a compiled plan lists the steps of each of
its relations with their ids, and these are set on the steps of the same relation and name when it is run.

Source: apache/flink ExecNodeBase.createTransformationMeta, which gives uids by node and kind of step.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.transformations import MultipleInput, OneInput, Sink, Source, Transformation, TwoInput
from rayflink.graph.uids import operator_ids

from ..plan.logical import Relation
from ..plan.logical import Sink as TableSink

_WITH_OPERATOR = (Source, OneInput, TwoInput, MultipleInput, Sink)


@dataclass(frozen=True)
class StoredOperator:
    """A step of a relation.

    Args:
        operator_id: 32 hex digits.
    """

    name: str
    operator_id: str


@dataclass(frozen=True)
class Span:
    """The steps that were added for a relation, those of its inputs included.

    Args:
        first: ids of steps are above it.
        last: and below it.
    """

    relation: Relation
    first: int
    last: int


def relation_key(relation: Relation) -> object:
    """Return a key of a relation: equal ones are translated once, but each sink by itself."""
    return id(relation) if isinstance(relation, TableSink) else relation


def steps_by_relation(spans: Sequence[Span], roots: Sequence[Transformation]) -> list[tuple[Relation, Transformation]]:
    """Return the steps of a program with the relations that they are for, in the order in which they were added.

    Args:
        spans: each behind those within it.
        roots: the last steps of the program.
    """
    pairs: list[tuple[Relation, Transformation]] = []
    for step in sorted(_upstream(roots), key=lambda step: step.id):
        relation = next((span.relation for span in spans if span.first < step.id < span.last), None)
        if relation is not None and isinstance(step, _WITH_OPERATOR):
            pairs.append((relation, step))
    return pairs


def stored_operators(
    steps: Sequence[tuple[Relation, Transformation]], graph: StreamGraph
) -> dict[object, list[StoredOperator]]:
    """Return the key of a relation -> its operators with the ids that they have in a program of these steps alone."""
    ids = operator_ids(graph)
    nodes = [node for node in sorted(graph.nodes, key=lambda node: node.id) if not node.name.endswith(_COMMITTER)]
    stored: dict[object, list[StoredOperator]] = defaultdict(list)
    for (relation, step), node in zip(steps, nodes, strict=True):
        stored[relation_key(relation)].append(StoredOperator(step.name, str(ids[node.id])))
    return stored


_COMMITTER = ": Global Committer"
"""End of the names of operators that a sink has beside its writers; their ids follow from those of these."""


def pin_operators(
    steps: Sequence[tuple[Relation, Transformation]], stored: Sequence[tuple[Relation, Sequence[StoredOperator]]]
) -> list[StoredOperator]:
    """Give steps the ids that are stored for those of the same relation and name; return those that no step got."""
    ids = {
        (relation_key(relation), operator.name, number): operator
        for relation, operators in stored
        for operator, number in _numbered(operators)
    }
    counts: Counter[tuple[object, str]] = Counter()
    for relation, step in steps:
        key = relation_key(relation), step.name
        operator = ids.pop((*key, counts[key]), None)
        counts[key] += 1
        if operator is not None:
            step.uid_hash = operator.operator_id
    return list(ids.values())


def _numbered(operators: Sequence[StoredOperator]) -> Iterator[tuple[StoredOperator, int]]:
    """Yield operators with their rank among those of one name."""
    counts: Counter[str] = Counter()
    for operator in operators:
        yield operator, counts[operator.name]
        counts[operator.name] += 1


def _upstream(roots: Sequence[Transformation]) -> set[Transformation]:
    known: set[Transformation] = set()
    waiting = list(roots)
    while waiting:
        step = waiting.pop()
        if step not in known:
            known.add(step)
            waiting += step.inputs
    return known


__all__ = ["Span", "StoredOperator", "pin_operators", "relation_key", "steps_by_relation", "stored_operators"]
