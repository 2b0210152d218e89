"""Joins of several streams in one step: none of the results between them is stored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TypeAlias

from .changelog import Change
from .joins import JoinKind, KeyedJoin, Keys, joined_schema
from .logical import Relation, Schema
from .typed import Column, Expr

Links: TypeAlias = tuple[tuple[int, int], ...]
"""(number of an input, place in the common key) of each value that must be equal to that of a further input."""


@dataclass(frozen=True)
class JoinStep:
    """The join of a further input with those before it.

    Args:
        kind: INNER or LEFT.
        links: earlier inputs whose value of the common key is equal to that of this one, at least one for each column
            of the key.
        condition: what else must hold, over the columns of all inputs up to this one; None: nothing.
    """

    kind: JoinKind
    links: Links
    condition: Expr | None = None

    @cached_property
    def required(self) -> tuple[int, ...]:
        """Return the inputs whose row must be there; a row that is missing is equal to nothing."""
        return tuple(sorted({number for number, _ in self.links}))


@dataclass(frozen=True)
class MultiJoin(Relation):
    """Inner and left joins of streams, one after the other, that have a key in common.

    The rows of each input stay in its state for ever, or until their time to live is over. They are partitioned by the
    common key, so all rows that can meet are in one subtask.

    Args:
        relations: the inputs, at least three.
        steps: how the second input is joined with the first one, the third with the result of that, and so on.
        keys: of each input the numbers of its columns of the common key, in one order.
        ttls: of each input, see `StreamJoin`.
        unique: of each input, see `StreamJoin`.
        is_upsert: rows that replace others by their unique key may come without the row before.

    Source: apache/flink StreamPhysicalMultiJoin, FLIP-516.
    """

    relations: tuple[Relation, ...]
    steps: tuple[JoinStep, ...]
    keys: tuple[tuple[int, ...], ...]
    ttls: tuple[tuple[str, str] | None, ...]
    unique: tuple[tuple[int, ...], ...]
    is_upsert: bool = False

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.relations

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, relations=tuple(inputs))

    @property
    def exprs_of_rows(self) -> tuple[Expr, ...]:
        return tuple(step.condition for step in self.steps if step.condition is not None)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Return the number of the first column of each input, and of all columns."""
        return tuple(accumulate((len(relation.schema) for relation in self.relations), initial=0))

    def input_of(self, column: int) -> int:
        """Return the number of the input that has a column of the result."""
        return next(number for number, (_, stop) in enumerate(pairwise(self.starts)) if column < stop)

    @property
    def is_inner(self) -> bool:
        """Return whether all joins are inner ones."""
        return all(step.kind is JoinKind.INNER for step in self.steps)

    def has_key_as_unique(self, index: int) -> bool:
        """Return whether the columns of the common key identify the rows of an input."""
        return bool(self.unique[index]) and set(self.unique[index]) <= set(self.keys[index])

    def cascade(self) -> KeyedJoin:
        """Return the same rows as joins of two sides."""
        below = self.relations[0]
        for number, step in enumerate(self.steps, start=1):
            right, places = self.relations[number], [*step.links]
            left_keys = tuple(self.starts[source] + self.keys[source][place] for source, place in places)
            keys = Keys(left_keys, tuple(self.keys[number][place] for _, place in places), (False,) * len(places))
            schema = joined_schema(below.schema, right.schema, step.kind)
            below = KeyedJoin(schema, below, right, step.kind, keys, step.condition)
        assert isinstance(below, KeyedJoin)
        return below

    # changes

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.keys[input_index]

    def takes_changes(self) -> Change:
        return Change.ALL

    def gives_changes(self, inputs: Sequence[Change]) -> Change:
        changes = Change.NONE if self.is_inner else Change.ALL
        for change in inputs:
            changes |= change
        return changes

    def requires_update_before(self, is_wanted: bool) -> bool:
        return is_wanted or not self.is_upsert

    # explain

    def explain_line(self) -> str:
        names = self.names
        parts = [
            f"commonJoinKey=[{', '.join(self.relations[0].names[column] for column in self.keys[0])}]",
            f"joinTypes=[{', '.join(step.kind.name for step in self.steps)}]",
            f"inputUniqueKeys=[{', '.join(map(self._unique_key, range(len(self.relations))))}]",
            f"joinConditions=[{', '.join(self._condition(number) for number in range(1, len(self.relations)))}]",
            f"select=[{', '.join(names)}]",
        ]
        hints = ["=".join(ttl) for ttl in self.ttls if ttl is not None]
        hinted = [f"stateTtlHints=[[[STATE_TTL options:{{{', '.join(hints)}}}]]]"] if hints else []
        return f"MultiJoin({', '.join([*parts, *hinted])})"

    def _unique_key(self, index: int) -> str:
        unique, names = self.unique[index], self.relations[index].names
        return f"({', '.join(names[column] for column in unique)})" if unique else "noUniqueKey"

    def _condition(self, number: int) -> str:
        """Return the condition by which an input is joined, with the names that columns have in the result."""
        names, step = self.names, self.steps[number - 1]

        def named(part: Expr) -> Expr:
            return replace(part, name=names[part.index]) if isinstance(part, Column) else part

        def name_of(source: int, place: int) -> str:
            return names[self.starts[source] + self.keys[source][place]]

        shown = [f"{name_of(source, place)} = {name_of(number, place)}" for source, place in step.links]
        return " AND ".join([*shown, *([] if step.condition is None else [str(step.condition.mapped(named))])])


def multi_joined_schema(relations: Iterable[Relation], steps: Iterable[JoinStep]) -> Schema:
    """Return the columns of joins, one after the other, each with a name of its own; none of them is a time."""
    first, *others = relations
    schema = first.schema
    for relation, step in zip(others, steps, strict=True):
        schema = joined_schema(schema, relation.schema, step.kind)
    return tuple(replace(attribute, part=None, windowing=None) for attribute in schema)


__all__ = ["JoinStep", "MultiJoin", "multi_joined_schema"]
