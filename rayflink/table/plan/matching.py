"""Row pattern matching in the logical plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from rayflink.cep.nfa.row_patterns import RowPattern
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy, SkipTo

from ..types import DataType
from .logical import Relation, length_text, order_text
from .typed import Expr


class Pick(Enum):
    """The row of a variable that is meant."""

    CURRENT = "CURRENT"
    FIRST = "FIRST"
    LAST = "LAST"


@dataclass(frozen=True)
class RowField:
    """A column of a row, or of a row before it.

    Args:
        column: of the input.
        back: how many rows before the row, in the order of its partition.
    """

    column: int
    back: int = 0

    def describe(self, name: str) -> str:
        """Return how the field of a column of that name is shown."""
        return f"PREV({name}, {self.back})" if self.back else name


@dataclass(frozen=True)
class RowReference:
    """A field of one row of a match; NULL where the match has no such row.

    Args:
        type: of the field.
        name: how it is shown.
        variables: indexes of the variables of whose rows it is one; none: of all rows.
        field: number of the field.
        pick: the first or the last of these rows, or the row whose variable is being decided.
        offset: rows behind the first, or before the last.
        is_final: whether all rows of the match count where a result is one of its rows, not only those up to it.
    """

    type: DataType
    name: str
    variables: tuple[int, ...]
    field: int
    pick: Pick = Pick.LAST
    offset: int = 0
    is_final: bool = False


@dataclass(frozen=True)
class AggregateReference:
    """An aggregate of rows of a match.

    Args:
        type: of the result.
        name: how it is shown.
        kind: the function: COUNT, SUM, AVG, MIN or MAX.
        variables: see `RowReference`.
        field: number of the field that is aggregated; None: rows are counted.
        is_final: see `RowReference`.
    """

    type: DataType
    name: str
    kind: str
    variables: tuple[int, ...]
    field: int | None
    is_final: bool = False


@dataclass(frozen=True)
class ClassifierReference:
    """The name of the variable of a row.

    Args:
        type: a string.
        name: how it is shown.
        variables: see `RowReference`.
        is_final: see `RowReference`.
    """

    type: DataType
    name: str
    variables: tuple[int, ...] = ()
    is_final: bool = False


Reference: TypeAlias = RowReference | AggregateReference | ClassifierReference
"""What a query says about the rows of a match."""


@dataclass(frozen=True)
class Definition:
    """The condition of a variable.

    Args:
        row_condition: over the fields of the row alone; None: there is none.
        match_condition: over the references of the conditions; None: there is none.
    """

    row_condition: Expr | None = None
    match_condition: Expr | None = None

    def mapped(self, change: Callable[[Expr], Expr]) -> Definition:
        """Return the same with its conditions changed."""
        row, match = self.row_condition, self.match_condition
        return Definition(None if row is None else change(row), None if match is None else change(match))

    def over_fields(self, change: Callable[[Expr], Expr]) -> Definition:
        """Return the same with the condition on the row alone changed."""
        return self if self.row_condition is None else replace(self, row_condition=change(self.row_condition))

    def __str__(self) -> str:
        return " AND ".join(str(item) for item in (self.row_condition, self.match_condition) if item is not None)


@dataclass(frozen=True)
class MatchRecognize(Relation):
    """The matches of a row pattern in each partition.

    The columns are those of `row_columns`, of the last row of a match or of each of its rows; then one for each of
    `measures`. What a query computes from these is a projection on top.

    Args:
        partition: numbers of the columns by which rows are divided.
        order: (number of a column, descending, nulls first) each; in a stream the first is the time attribute.
        pattern: over the variables.
        variables: their names.
        definitions: their conditions.
        fields: what conditions and references read of rows.
        conditions: the references of the definitions.
        measures: the references of the result.
        row_columns: numbers of the columns of the input that are columns of the result.
        skip: where matching goes on after a match.
        within_ms: the time of a match, from its first row; None: any.
        is_all_rows: each row of a match is a row of the result.
        is_whole: rows are those of a whole table.
    """

    input: Relation
    partition: tuple[int, ...]
    order: tuple[tuple[int, bool, bool], ...]
    pattern: RowPattern
    variables: tuple[str, ...]
    definitions: tuple[Definition, ...]
    fields: tuple[RowField, ...]
    conditions: tuple[Reference, ...]
    measures: tuple[Reference, ...]
    row_columns: tuple[int, ...]
    skip: AfterMatchSkipStrategy
    within_ms: int | None = None
    is_all_rows: bool = False
    is_whole: bool = False

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    @property
    def exprs_of_row(self) -> tuple[Expr, ...]:
        """Return the conditions on the row alone, over the fields."""
        return tuple(item.row_condition for item in self.definitions if item.row_condition is not None)

    def with_exprs(self, change: Callable[[Expr], Expr]) -> Relation:
        return replace(self, definitions=tuple(item.mapped(change) for item in self.definitions))

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.partition

    @property
    def is_event_time(self) -> bool:
        """Return whether rows wait for the watermark."""
        return not self.is_whole and self.input.schema[self.order[0][0]].is_event_time

    @property
    def is_processing_time(self) -> bool:
        """Return whether rows are matched as they come."""
        return not self.is_whole and not self.is_event_time

    def describe_skip(self) -> str:
        """Return where matching goes on after a match, as plans show it."""
        if self.skip.skip_to is SkipTo.PAST_LAST:
            return "SKIP PAST LAST ROW"
        return f"{self.skip.skip_to.value} {self.skip.pattern_name}".rstrip()

    def explain_line(self) -> str:
        names = self.input.names
        parts = [f"partitionBy=[{', '.join(names[index] for index in self.partition)}]"] if self.partition else []
        parts.append(f"orderBy=[{order_text(names, self.order)}]")
        parts.append(f"measures=[{', '.join(item.name for item in self.measures)}]")
        parts.append(f"rowsPerMatch=[{'ALL ROWS' if self.is_all_rows else 'ONE ROW'} PER MATCH]")
        parts.append(f"after=[{self.describe_skip()}]")
        parts.append(f"pattern=[{self.pattern}]")
        if self.within_ms is not None:
            parts.append(f"within=[{length_text(self.within_ms)}]")
        pairs = zip(self.variables, self.definitions, strict=True)
        defined = [f"{name} AS {definition}" for name, definition in pairs if str(definition)]
        if defined:
            parts.append(f"define=[{', '.join(defined)}]")
        return f"Match({', '.join(parts)})"


__all__ = [
    "AggregateReference", "ClassifierReference", "Definition", "MatchRecognize", "Pick", "Reference", "RowField",
    "RowReference",
]  # fmt: skip
