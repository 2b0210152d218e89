"""Counts, sums and moments that run from row to row, where rows may be taken back as well."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..aggregates.accumulators import Sum
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from .segments import Segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .segments import Numbers

_ROOM = np.int64(1 << 32)


class GroupRows(NamedTuple):
    """The rows that an accumulator takes, group by group.

    Args:
        values: of the argument; None: it has none.
        weights: int64[n]: 1 where a row is added, -1 where it is taken back, 0 where it does not count.
        segments: the groups.
        is_folded: results are wanted behind the last row of each segment only, else behind each row.
    """

    values: pa.Array
    weights: Numbers
    segments: Segments
    is_folded: bool


@dataclass(frozen=True)
class RunningValue(ABC):
    """An accumulator of a group that goes on from row to row.

    Its state is a row of columns for each group; a row of nulls is the state of no rows at all.

    Args:
        argument: number of the input's column; None: it needs none.
        filter: number of a boolean column; None: all rows.
        is_distinct: each value counts once.
        retracts: whether rows may be taken back.
    """

    argument: int | None
    filter: int | None
    is_distinct: bool
    retracts: bool
    keeps_nulls: ClassVar[bool] = False
    """True if a null is a value."""
    is_listed: ClassVar[bool] = False
    """True if a result contains all values of a group."""

    def describe(self) -> str:
        """Describe the accumulator without the columns that it reads."""
        flags = [name for name in ("is_distinct", "retracts") if getattr(self, name)]
        return " ".join((type(self).__name__, *flags))

    @abstractmethod
    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        """Return the types of the columns of its state, for an argument of that type."""

    @abstractmethod
    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        """Return the columns of the aggregate's accumulators behind each row, and the state behind each segment.

        Args:
            base: the state before each segment.
        """

    @abstractmethod
    def shown(self, state: Columns) -> Columns:
        """Return the columns of the aggregate's accumulators for a state."""


class Stepwise(RunningValue):
    """An accumulator whose state behind each row is at hand as columns."""

    @abstractmethod
    def states(self, base: Columns, rows: GroupRows) -> Columns:
        """Return the state behind each row."""

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        states = self.states(base, rows)
        final = behind_segments(states, rows.segments)
        return self.shown(final if rows.is_folded else states), final

    def merge(self, base: Columns, partials: Columns, segments: Segments) -> Columns:
        """Return the state behind each segment, whose rows are states of parts of the rows.

        Args:
            base: the state before each segment.
            partials: rows of state, segment by segment, each from `run` with a base of nulls.
        """
        has_value = partials[0].is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        return behind_segments(self.states(base, GroupRows(partials[0], has_value, segments, True)), segments)


def behind_segments(states: Columns, segments: Segments) -> Columns:
    """Return the states behind the last rows of segments."""
    lasts = pa.array(segments.lasts)
    return [column.take(lasts) for column in states]


def numbers_or_zero(column: pa.Array) -> NDArray[Any]:
    """Return the numbers of a column, 0 in place of null."""
    return to_numpy(column.fill_null(0) if column.null_count else column)


class RunningCount(Stepwise):
    """The number of rows."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.int64(),)

    def states(self, base: Columns, rows: GroupRows) -> Columns:
        return [to_arrow(rows.segments.sums(rows.weights, numbers_or_zero(base[0])), pa.int64())]

    def merge(self, base: Columns, partials: Columns, segments: Segments) -> Columns:
        return behind_segments([_running_counts(base[0], partials[0], segments)], segments)

    def shown(self, state: Columns) -> Columns:
        return [pc.fill_null(state[0], 0)]


def _running_counts(base: pa.Array, counts: pa.Array, segments: Segments) -> pa.Array:
    return to_arrow(segments.sums(numbers_or_zero(counts), numbers_or_zero(base)), pa.int64())


class RunningSum(Stepwise):
    """The sum, and the number of its values; of floating point numbers also of those that are not finite."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        assert argument is not None
        [total] = Sum(self.argument, self.filter).types(argument)
        odd = 3 if types.is_floating(argument) and self.retracts else 0
        return (total, *[pa.int64()] * (1 + odd))

    def states(self, base: Columns, rows: GroupRows) -> Columns:
        segments, weights = rows.segments, rows.weights
        count = to_arrow(segments.sums(weights, numbers_or_zero(base[1])), pa.int64())
        kind = base[0].type
        if types.is_decimal(kind):
            return [_running_decimals(rows, base[0]), count]
        if types.is_integer(kind):
            numbers = to_numpy(rows.values).astype(np.int64, copy=False) * weights
            return [to_arrow(segments.sums(numbers, numbers_or_zero(base[0])), pa.int64()), count]
        numbers = to_numpy(rows.values).astype(np.float64)
        odd: Columns = []
        if self.retracts:
            for column, is_such in zip(base[2:], _oddities(numbers), strict=True):
                running = segments.sums(np.where(is_such, weights, 0), numbers_or_zero(column))
                odd.append(to_arrow(running, pa.int64()))
            numbers = np.where(np.isfinite(numbers), numbers, 0.0)
        with np.errstate(invalid="ignore", over="ignore"):
            numbers = np.where(weights == 0, 0.0, numbers * weights)
            totals = segments.accumulated(np.add, numbers, numbers_or_zero(base[0]))
        return [to_arrow(totals, pa.float64()), count, *odd]

    def merge(self, base: Columns, partials: Columns, segments: Segments) -> Columns:
        kind = base[0].type
        counts = [_running_counts(*both, segments) for both in zip(base[1:], partials[1:], strict=True)]
        if types.is_decimal(kind):
            ones = np.ones(segments.rows, dtype=np.int64)
            total = _running_decimals(GroupRows(partials[0], ones, segments, True), base[0])
        elif types.is_integer(kind):
            total = _running_counts(base[0], partials[0], segments)
        else:
            numbers = numbers_or_zero(partials[0]), numbers_or_zero(base[0])
            with np.errstate(invalid="ignore", over="ignore"):
                total = to_arrow(segments.accumulated(np.add, *numbers), pa.float64())
        return behind_segments([total, *counts], segments)

    def shown(self, state: Columns) -> Columns:
        total, count, *odd = state
        numbers = numbers_or_zero(count)
        if odd:
            nans, ups, downs = (numbers_or_zero(column) > 0 for column in odd)
            totals = np.where(ups, np.inf, np.where(downs, -np.inf, numbers_or_zero(total)))
            total = to_arrow(np.where(nans | (ups & downs), np.nan, totals), pa.float64())
        total = pc.if_else(pa.array(numbers != 0), total, pa.scalar(None, total.type))
        return [total, to_arrow(numbers, pa.int64())]


def _oddities(numbers: NDArray[Any]) -> tuple[NDArray[np.bool_], ...]:
    return np.isnan(numbers), numbers == np.inf, numbers == -np.inf


def _running_decimals(rows: GroupRows, base: pa.Array) -> pa.Array:
    """Return running sums of decimals, which wrap, by their parts of 32 bits."""
    kind = base.type
    values, width = rows.values.cast(kind), kind.bit_width // 32
    parts, stored = _parts_of(values, width), _parts_of(base, width)
    is_stored = base.is_valid().to_numpy(zero_copy_only=False)
    results = np.empty((len(values), width), dtype=np.uint32)
    carried = np.zeros(len(values), dtype=np.int64)
    for number in range(width):
        begin = np.where(is_stored, stored[:, number].astype(np.int64), 0)
        totals = rows.segments.sums(parts[:, number].astype(np.int64) * rows.weights, begin) + carried
        results[:, number] = (totals % _ROOM).astype(np.uint32)
        carried = totals >> 32
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(results)])


def _parts_of(decimals: pa.Array, width: int) -> NDArray[np.uint32]:
    data = decimals.buffers()[1]
    if data is None or not len(decimals):
        return np.zeros((len(decimals), width), dtype=np.uint32)
    parts = np.frombuffer(data, np.uint32, len(decimals) * width, decimals.offset * width * 4)
    return parts.reshape(-1, width)


class RunningMoments(Stepwise):
    """The number of values, a number near their mean, the sum of differences from it and that of their squares.

    Behind them the number of values that are not finite. Of whole numbers all sums are exact up to 2**53. The number
    near the mean is replaced where the mean is twice the standard deviation away from it.
    """

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (*[pa.float64()] * 4, pa.int64())

    def states(self, base: Columns, rows: GroupRows) -> Columns:
        segments = rows.segments
        numbers = to_numpy(rows.values.cast(pa.float64(), safe=False)).astype(np.float64)
        is_odd = ~np.isfinite(numbers)
        odd = segments.sums(np.where(is_odd, rows.weights, 0), numbers_or_zero(base[4]))
        weights = np.where(is_odd, 0, rows.weights).astype(np.float64)
        numbers = np.where(weights == 0, 0.0, numbers)
        before = _Moments(*(numbers_or_zero(column) for column in base[:4]))
        firsts = np.minimum(segments.first_rows(weights != 0), segments.rows - 1)
        fresh = numbers[firsts]  # later rows, which may be far away, must not change the results of earlier ones
        near = np.where(before.counts > 0, before.nearer(weights[segments.starts] != 0), fresh)
        if types.is_integer(rows.values.type):
            near = np.rint(near)
        away = np.where(weights == 0, 0.0, numbers - near[segments.codes])
        added = _Moments(weights, near[segments.codes], weights * away, weights * away * away)
        return [*_added(before.moved(near), added, segments), to_arrow(odd, pa.int64())]

    def merge(self, base: Columns, partials: Columns, segments: Segments) -> Columns:
        before = _Moments(*(numbers_or_zero(column) for column in base[:4]))
        parts = _Moments(*(numbers_or_zero(column) for column in partials[:4]))
        firsts = segments.first_rows(parts.counts != 0)
        fresh = parts.origins[np.minimum(firsts, segments.rows - 1)]
        nearer, is_whole = before.nearer(np.ones(len(fresh), dtype=np.bool_)), before.are_whole
        near = np.where(before.counts > 0, np.where(is_whole, np.rint(nearer), nearer), fresh)
        odd = _running_counts(base[4], partials[4], segments)
        states = _added(before.moved(near), parts.moved(near[segments.codes]), segments)
        return behind_segments([*states, odd], segments)

    def shown(self, state: Columns) -> Columns:
        counts, origins, first, second = (numbers_or_zero(column) for column in state[:4])
        odd = numbers_or_zero(state[4])
        shifts = _quotients(first, counts)
        squares = np.where(counts > 1, np.maximum(second - first * shifts, 0.0), 0.0)
        columns = (counts + odd, np.where(odd > 0, np.nan, origins + shifts), np.where(odd > 0, np.nan, squares))
        return [to_arrow(column, pa.float64()) for column in columns]


class _Moments(NamedTuple):
    """The number of values, a number near their mean, the sum of differences from it and that of their squares."""

    counts: NDArray[np.float64]
    origins: NDArray[np.float64]
    first: NDArray[np.float64]
    second: NDArray[np.float64]

    @property
    def are_whole(self) -> NDArray[np.bool_]:
        """Return which are of whole numbers, as far as can be seen; their sums are exact about a whole number."""
        parts = (self.origins, self.first, self.second)
        return np.asarray(np.logical_and.reduce([part == np.rint(part) for part in parts]))

    def nearer(self, may_move: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the mean where the origin is far away from it, else the origin."""
        shifts = _quotients(self.first, self.counts)
        is_far = may_move & (self.first * shifts > 4 * (self.second - self.first * shifts))
        return self.origins + np.where(is_far, shifts, 0.0)

    def moved(self, near: NDArray[np.float64]) -> _Moments:
        """Return the same moments about other origins."""
        is_empty = (self.counts == 0) & (self.first == 0)  # as many may have come as went, and others
        by = np.where(is_empty, 0.0, self.origins - near)
        first, second = self.first + self.counts * by, self.second + 2 * by * self.first + self.counts * by * by
        return _Moments(self.counts, near, first, second)


def _added(before: _Moments, added: _Moments, segments: Segments) -> Columns:
    """Return running moments about the same origins."""
    columns = [
        segments.accumulated(np.add, added.counts, before.counts),
        added.origins,
        segments.accumulated(np.add, added.first, before.first),
        segments.accumulated(np.add, added.second, before.second),
    ]
    return [to_arrow(column, pa.float64()) for column in columns]


def _quotients(numbers: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers divided by counts, 0 where nothing was counted."""
    return np.divide(numbers, counts, out=np.zeros(len(numbers)), where=counts > 0)


__all__ = [
    "GroupRows", "RunningCount", "RunningMoments", "RunningSum", "RunningValue", "Stepwise", "behind_segments",
    "numbers_or_zero",
]  # fmt: skip
