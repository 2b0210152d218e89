"""Windows of the Table API, with PyFlink's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from .dsl.expression_text import field_tree, tree_of
from .errors import SqlError
from .expression import Expression
from .parsing.program_nodes import RowInterval
from .parsing.statements import Tree
from .plan.logical import WindowKind


@dataclass(frozen=True)
class GroupWindow:
    """Windows of a table's rows, under a name.

    Args:
        lengths: as the window's function in SQL takes them.
        time: the time attribute.
    """

    kind: WindowKind
    lengths: tuple[Any, ...]
    time: Any
    name: str

    def tree(self) -> Tree:
        """Return the window as GROUP BY has it.

        Raises:
            SqlError: it is a window of rows.
        """
        lengths = [tree_of(length) for length in self.lengths]
        for length in lengths:
            if isinstance(length, RowInterval):
                remedy = "call its functions by select, or give it a duration, such as lit(5).minutes"
                raise SqlError(f"a window of {length.this} rows is not supported here", remedy)
        return exp.Anonymous(this=self.kind.value, expressions=[field_tree(self.time), *lengths])


@dataclass(frozen=True)
class _Named:
    kind: WindowKind
    lengths: tuple[Any, ...]
    time: Any

    def alias(self, alias: str) -> GroupWindow:
        """Return the name by which `group_by` and `select` know it."""
        return GroupWindow(self.kind, self.lengths, self.time, alias)


class TumbleWithSizeOnTime(_Named):
    """Windows of a length by a time attribute."""


class SessionWithGapOnTime(_Named):
    """Sessions by a time attribute."""


class SlideWithSizeAndSlideOnTime(_Named):
    """Windows that overlap by a time attribute."""


class Tumble:
    """Windows of a length, one behind the other.

    >>> from rayflink.table.expressions import col, lit
    >>> Tumble.over(lit(10).minutes).on(col("rowtime")).alias("w").name
    'w'
    """

    @classmethod
    def over(cls, size: Expression[Any]) -> TumbleWithSize:
        """Set the length."""
        return TumbleWithSize(size)


class TumbleWithSize:
    """Windows of a length."""

    def __init__(self, size: Expression[Any]) -> None:
        self._size = size

    def on(self, time_field: Expression[Any]) -> TumbleWithSizeOnTime:
        """Use a time attribute."""
        return TumbleWithSizeOnTime(WindowKind.TUMBLE, (self._size,), time_field)


class Session:
    """Windows that end when nothing comes for a while."""

    @classmethod
    def with_gap(cls, gap: Expression[Any]) -> SessionWithGap:
        """Return the time without a row that ends a session."""
        return SessionWithGap(gap)


class SessionWithGap:
    """Sessions with a gap."""

    def __init__(self, gap: Expression[Any]) -> None:
        self._gap = gap

    def on(self, time_field: Expression[Any]) -> SessionWithGapOnTime:
        """Use a time attribute."""
        return SessionWithGapOnTime(WindowKind.SESSION, (self._gap,), time_field)


class Slide:
    """Windows of a length that overlap."""

    @classmethod
    def over(cls, size: Expression[Any]) -> SlideWithSize:
        """Set the length."""
        return SlideWithSize(size)


class SlideWithSize:
    """Windows of a length that overlap."""

    def __init__(self, size: Expression[Any]) -> None:
        self._size = size

    def every(self, slide: Expression[Any]) -> SlideWithSizeAndSlide:
        """Set the distance from the start of one window to that of the next."""
        return SlideWithSizeAndSlide(self._size, slide)


class SlideWithSizeAndSlide:
    """Windows of a length, one after each slide."""

    def __init__(self, size: Expression[Any], slide: Expression[Any]) -> None:
        self._size, self._slide = size, slide

    def on(self, time_field: Expression[Any]) -> SlideWithSizeAndSlideOnTime:
        """Use a time attribute."""
        return SlideWithSizeAndSlideOnTime(WindowKind.HOP, (self._slide, self._size), time_field)


@dataclass(frozen=True)
class OverWindow:
    """The rows around each row, under a name.

    Args:
        partition: rows of equal values of these are together.
        order: the time attribute, or in batch mode any column.
        first, last: from which row on, and up to which; None: from the first one up to the row itself.
    """

    partition: tuple[Expression[Any], ...]
    order: Expression[Any]
    first: Expression[Any] | None = None
    last: Expression[Any] | None = None
    name: str = ""

    def tree(self, call: Tree) -> Tree:
        """Return a function over the window as SQL has it.

        Raises:
            SqlError: one bound is in rows, and the other one in time.
        """
        order = field_tree(self.order)
        key = order if isinstance(order, exp.Ordered) else exp.Ordered(this=order, nulls_first=True)
        first = exp.Var(this="UNBOUNDED RANGE") if self.first is None else tree_of(self.first)
        by_rows = _is_by_rows(first)
        last = exp.Var(this="CURRENT ROW" if by_rows else "CURRENT RANGE") if self.last is None else tree_of(self.last)
        if _is_by_rows(last) is not by_rows:
            problem = f"an over window begins with {_bound_text(first)} and ends with {_bound_text(last)}"
            raise SqlError(problem, "give both in rows, as CURRENT_ROW, or both in time, as CURRENT_RANGE")
        (start, start_side), (end, end_side) = _bound(first, "PRECEDING"), _bound(last, "FOLLOWING")
        spec = exp.WindowSpec(
            kind="ROWS" if by_rows else "RANGE", start=start, start_side=start_side, end=end, end_side=end_side
        )
        partition = [field_tree(expression) for expression in self.partition]
        window = exp.Window(this=call, partition_by=partition, order=exp.Order(expressions=[key]))
        if self.first is not None or self.last is not None:
            window.set("spec", spec)  # else the frame that SQL supposes; LAG and the like take none
        return window


def _is_by_rows(bound: Tree) -> bool:
    return isinstance(bound, RowInterval) or (isinstance(bound, exp.Var) and bound.name.endswith("ROW"))


def _bound_text(bound: Tree) -> str:
    return bound.name.replace(" ", "_") if isinstance(bound, exp.Var) else "a length"


def _bound(bound: Tree, side: str) -> tuple[Tree | str, str | None]:
    """Return a bound and its side as SQL has them."""
    if isinstance(bound, exp.Var):
        is_current = bound.name.startswith("CURRENT")
        return ("CURRENT ROW", None) if is_current else ("UNBOUNDED", side)
    return exp.Literal.number(bound.this) if isinstance(bound, RowInterval) else bound, side


class Over:
    """The rows around each row."""

    @classmethod
    def order_by(cls, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """Order by time, all rows together."""
        return OverWindowPartitionedOrdered(OverWindow((), order_by))

    @classmethod
    def partition_by(cls, *partition_by: Expression[Any]) -> OverWindowPartitioned:
        """Return rows of equal values together."""
        return OverWindowPartitioned(partition_by)


class OverWindowPartitioned:
    """Rows of equal values together."""

    def __init__(self, partition_by: Sequence[Expression[Any]]) -> None:
        self._partition = tuple(partition_by)

    def order_by(self, order_by: Expression[Any]) -> OverWindowPartitionedOrdered:
        """Order by time."""
        return OverWindowPartitionedOrdered(OverWindow(self._partition, order_by))


class OverWindowPartitionedOrderedPreceding:
    """Rows in the order of time, from one on."""

    def __init__(self, window: OverWindow) -> None:
        self._window = window

    def alias(self, alias: str) -> OverWindow:
        """Return the name by which `select` knows it."""
        return replace(self._window, name=alias)

    def following(self, following: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """Up to which row: CURRENT_ROW or CURRENT_RANGE."""
        return OverWindowPartitionedOrderedPreceding(replace(self._window, last=following))


class OverWindowPartitionedOrdered:
    """Rows in the order of time."""

    def __init__(self, window: OverWindow) -> None:
        self._window = window

    def alias(self, alias: str) -> OverWindow:
        """Return the name by which `select` knows it."""
        return replace(self._window, name=alias)

    def preceding(self, preceding: Expression[Any]) -> OverWindowPartitionedOrderedPreceding:
        """Set the first row: UNBOUNDED_ROW, UNBOUNDED_RANGE, `row_interval(2)` or `lit(2).minutes`."""
        return OverWindowPartitionedOrderedPreceding(replace(self._window, first=preceding))


__all__ = [
    "GroupWindow", "Over", "OverWindow", "OverWindowPartitioned", "OverWindowPartitionedOrdered",
    "OverWindowPartitionedOrderedPreceding", "Session", "SessionWithGap", "SessionWithGapOnTime", "Slide",
    "SlideWithSize", "SlideWithSizeAndSlide", "SlideWithSizeAndSlideOnTime", "Tumble", "TumbleWithSize",
    "TumbleWithSizeOnTime",
]  # fmt: skip
