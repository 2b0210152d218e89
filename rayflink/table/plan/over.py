"""Functions OVER the rows around each row, in the logical plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeAlias

from .aggregate_call import AggregateCall
from .logical import Relation, order_text

RANKS = ("ROW_NUMBER", "RANK", "DENSE_RANK")
"""Functions of the place of a row among those of its partition."""
NEIGHBORS = ("LAG", "LEAD")
"""Functions that read another row of the partition."""
OF_WHOLE_PARTITIONS = ("LEAD", "NTILE", "CUME_DIST", "PERCENT_RANK")
"""Functions that need all rows of a partition, so that a stream has no result."""
WITHOUT_FRAME = (*RANKS, *NEIGHBORS, "NTILE", "CUME_DIST", "PERCENT_RANK")
"""Functions whose result does not depend on the frame."""
Length: TypeAlias = int | float | Decimal
"""A number of rows or milliseconds, or a difference of numbers."""


@dataclass(frozen=True)
class Frame:
    """The rows around each row over which functions are computed.

    Args:
        by_rows: bounds are numbers of rows; else differences of the value by which rows are ordered, of times in
            milliseconds, and rows of equal values are in it together.
        first: how far behind the row the frame begins, before it where that is negative; None: with the partition.
        last: how far behind the row it ends; None: with the partition.
    """

    by_rows: bool
    first: Length | None
    last: Length | None

    @property
    def reach_ms(self) -> int | None:
        """Return how long before a row its frame begins, of frames of a stream; None: it is not bounded by time."""
        return None if self.by_rows or self.first is None else -int(self.first)

    @property
    def may_be_empty(self) -> bool:
        """Return whether there may be no row in it."""
        return (self.first is not None and self.first > 0) or (self.last is not None and self.last < 0)

    def __str__(self) -> str:
        unit = "ROWS" if self.by_rows else "RANGE"
        first = "UNBOUNDED PRECEDING" if self.first is None else _bound_text(self.first)
        last = "UNBOUNDED FOLLOWING" if self.last is None else _bound_text(self.last)
        return f"{unit} BETWEEN {first} AND {last}"


UNTIL_ROW = Frame(False, None, 0)
"""The frame where none is written and rows are ordered: all rows up to the row and those that are equal to it."""
ALL_ROWS = Frame(False, None, None)
"""The frame where rows have no order: the partition."""


def _bound_text(bound: Length) -> str:
    if not bound:
        return "CURRENT ROW"
    return f"{abs(bound)} {'PRECEDING' if bound < 0 else 'FOLLOWING'}"


def call_text(call: AggregateCall, names: Sequence[str]) -> str:
    """Return a call as EXPLAIN shows it."""
    if call.name not in (*WITHOUT_FRAME, "NTH_VALUE"):
        return call.describe(names)
    arguments = [names[column] for column in call.arguments]
    return f"{call.name}({', '.join([*arguments[:1], *map(str, call.options), *arguments[1:]])})"


@dataclass(frozen=True)
class OverAggregate(Relation):
    """Rows, and for each call a column with its result over the frame of each row.

    Args:
        partition: numbers of the columns whose values divide the rows.
        keys: the order in a partition: (number of a column, descending, nulls first) each.
        frame: of all calls that depend on one.
        calls: aggregates, and the functions of places in the order.
        is_whole: rows are those of a whole table, and results may wait for its end.
    """

    input: Relation
    partition: tuple[int, ...]
    keys: tuple[tuple[int, bool, bool], ...]
    frame: Frame
    calls: tuple[AggregateCall, ...]
    is_whole: bool = False

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Relation]) -> Relation:
        return replace(self, input=inputs[0])

    def required_distribution(self, input_index: int) -> tuple[int, ...] | None:
        return self.partition

    @property
    def width(self) -> int:
        """Return the number of columns of the input, behind which the results stand."""
        return len(self.input.schema)

    @property
    def columns_read(self) -> set[int]:
        """Return numbers of the columns that it reads."""
        ordered = {column for column, _, _ in self.keys}
        filters = {call.filter for call in self.calls if call.filter is not None}
        return {*self.partition, *ordered, *filters, *(column for call in self.calls for column in call.arguments)}

    @property
    def instead(self) -> str:
        return "take rows that only come, such as the results of windows"

    def explain_line(self) -> str:
        names = self.input.names
        parts = [f"partitionBy=[{', '.join(names[column] for column in self.partition)}]"] if self.partition else []
        if self.keys:
            parts.append(f"orderBy=[{order_text(names, self.keys)}]")
        results = zip(self.calls, self.names[self.width :], strict=True)
        shown = names + [f"{call_text(call, names)} AS {name}" for call, name in results]
        parts += [f"window=[{self.frame}]", f"select=[{', '.join(shown)}]"]
        return f"OverAggregate({', '.join(parts)})"


__all__ = [
    "ALL_ROWS", "NEIGHBORS", "OF_WHOLE_PARTITIONS", "RANKS", "UNTIL_ROW", "WITHOUT_FRAME", "Frame", "Length",
    "OverAggregate", "call_text",
]  # fmt: skip
