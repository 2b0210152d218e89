"""Aggregate accumulators: columnar partial state with one row per group, from which the final value is computed.

An accumulator is made from rows and merged with others of its kind; both go from columns to columns. Aggregates that
need the same accumulator share it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from .grouping import encoded
from .reductions import counts, extremes, first_or_last, sums, to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .grouping import Codes


@dataclass(frozen=True)
class Accumulator:
    """Partial state of an aggregate over the rows where the argument is not null and the filter is true.

    Args:
        argument: number of the input's column; None: it needs none.
        filter: number of a boolean column; None: all rows.
    """

    argument: int | None
    filter: int | None
    keeps_nulls: ClassVar[bool] = False
    """True if a null is a value."""

    def describe(self) -> str:
        """Describe the accumulator without the columns that it reads."""
        flags = [flag.name for flag in fields(self) if flag.name not in ("argument", "filter")]
        return " ".join((type(self).__name__, *(flag for flag in flags if getattr(self, flag))))

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        """Return the types of its columns, for an argument of that type."""
        raise NotImplementedError

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        """Return its columns for rows in groups.

        Args:
            values: the argument's, without nulls.
            codes: their groups: intp[n].
            count: number of groups.
        """
        raise NotImplementedError

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        """Merge partial state by group, in the order in which rows came."""
        values, codes = without_nulls(columns[0], codes)
        return self.from_rows(values, codes, count)


def without_nulls(values: pa.Array, codes: Codes) -> tuple[pa.Array, Codes]:
    """Return the values that are not null, and their groups."""
    if not values.null_count:
        return values, codes
    is_valid = values.is_valid()
    return values.filter(is_valid), codes[is_valid.to_numpy(zero_copy_only=False)]


@dataclass(frozen=True)
class Count(Accumulator):
    """The number of rows; never null."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.int64(),)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        return [to_arrow(counts(codes, count), pa.int64())]

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        totals = np.zeros(count, dtype=np.int64)
        np.add.at(totals, codes, to_numpy(columns[0]))
        return [to_arrow(totals, pa.int64())]


@dataclass(frozen=True)
class Sum(Accumulator):
    """The sum: of whole numbers in 64 bits, of decimals in more digits than they can reach."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        assert argument is not None
        if types.is_decimal(argument):
            wide = argument.precision > _SAFE_DIGITS
            return (pa.decimal256(76, argument.scale) if wide else pa.decimal128(38, argument.scale),)
        return (pa.float64() if types.is_floating(argument) else pa.int64(),)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        if types.is_decimal(values.type) and values.type.precision > _SAFE_DIGITS:
            values = values.cast(pa.decimal256(76, values.type.scale))
        return [sums(values, codes, count)]

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        return [sums(*without_nulls(columns[0], codes), count)]


_SAFE_DIGITS = 27
"""Decimals of this many digits need 10**11 rows to exceed the 38 of a decimal128."""


@dataclass(frozen=True)
class Extreme(Accumulator):
    """The least value, or the greatest."""

    greatest: bool

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (argument,)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        return [extremes(values, codes, count, self.greatest)]


@dataclass(frozen=True)
class Ordered(Accumulator):
    """An accumulator that depends on the order in which rows came.

    Args:
        has_arrival: whether values come as structs with the number of their arrival; else in the order of arrival.
    """

    has_arrival: bool

    def stored(self, argument: pa.DataType | None) -> pa.DataType:
        """Return the type in which values are stored."""
        return pa.struct([("arrival", pa.int64()), ("value", argument)]) if self.has_arrival else argument

    def in_order(self, values: pa.Array, codes: Codes) -> tuple[pa.Array, Codes]:
        """Sort values and their groups by arrival."""
        if not self.has_arrival:
            return values, codes
        order = np.argsort(to_numpy(values.field(0)), kind="stable")
        return values.take(pa.array(order)), codes[order]

    def bare(self, values: pa.Array) -> pa.Array:
        """Remove the numbers of arrival from values."""
        return values.field(1) if self.has_arrival else values


@dataclass(frozen=True)
class Earliest(Ordered):
    """The value that came first, or last."""

    last: bool

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (self.stored(argument),)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        return [first_or_last(*self.in_order(values, codes), count, self.last)]


@dataclass(frozen=True)
class Moments(Accumulator):
    """Count, mean, and the sum of squares of differences from the mean, as float64.

    Source: Chan, Golub and LeVeque (1979), how the variances of two samples are merged.
    """

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.float64(), pa.float64(), pa.float64())

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        numbers = to_numpy(values.cast(pa.float64(), safe=False))
        return self._moments(np.ones(len(numbers)), numbers, np.zeros(len(numbers)), codes, count)

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        ns, means, squares = map(to_numpy, columns)
        return self._moments(ns, means, squares, codes, count)

    def _moments(
        self, ns: NDArray[Any], means: NDArray[Any], squares: NDArray[Any], codes: Codes, count: int
    ) -> list[pa.Array]:
        total = np.bincount(codes, ns, count)
        mean = np.divide(np.bincount(codes, ns * means, count), total, out=np.zeros(count), where=total > 0)
        away = means - mean[codes]
        away *= away
        away *= ns
        away += squares
        return [to_arrow(part, pa.float64()) for part in (total, mean, np.bincount(codes, away, count))]


@dataclass(frozen=True)
class Listed(Ordered):
    """All values, in the order in which they came."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(self.stored(argument)),)

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        return [listed(*self.in_order(values, codes), count)]

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        values, parents = flattened(columns[0])
        return self.from_rows(values, codes[parents], count)


@dataclass(frozen=True)
class Distinct(Listed):
    """The distinct values, as they first came."""

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        values, codes = self.in_order(values, codes)
        firsts, _ = distinct_pairs(self.bare(values), codes)
        return [listed(values.take(pa.array(firsts)), codes[firsts], count)]


@dataclass(frozen=True)
class ListedWithNulls(Listed):
    """All values and nulls, in the order in which they came."""

    keeps_nulls: ClassVar[bool] = True


@dataclass(frozen=True)
class DistinctWithNulls(Distinct):
    """The distinct values and null, as they first came."""

    keeps_nulls: ClassVar[bool] = True


@dataclass(frozen=True)
class Bag(Ordered):
    """The distinct values, as they first came, and the frequency of each."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(self.stored(argument)), pa.large_list(pa.int64()))

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        return self._bags(values, np.ones(len(values), dtype=np.int64), codes, count)

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        values, parents = flattened(columns[0])
        times, _ = flattened(columns[1])
        return self._bags(values, to_numpy(times), codes[parents], count)

    def _bags(self, values: pa.Array, times: NDArray[np.int64], codes: Codes, count: int) -> list[pa.Array]:
        if self.has_arrival:
            times = times[np.argsort(to_numpy(values.field(0)), kind="stable")]
            values, codes = self.in_order(values, codes)
        firsts, pairs = distinct_pairs(self.bare(values), codes)
        totals = np.zeros(len(firsts), dtype=np.int64)
        np.add.at(totals, pairs, times)
        groups = codes[firsts]
        values = values.take(pa.array(firsts))
        return [listed(values, groups, count), listed(to_arrow(totals, pa.int64()), groups, count)]


def _pair_numbers(values: pa.Array, codes: Codes) -> NDArray[np.int64]:
    """Return the same number for rows of equal value and group, and no others."""

    if len(values) and types.is_integer(values.type):
        numbers = to_numpy(values).astype(np.int64, copy=False)
        least = int(numbers.min())
        span = int(numbers.max()) - least + 1
        if span * (int(codes.max()) + 1) < 1 << 62:
            return codes * span + (numbers - least)
    value_codes, distinct = encoded(values)
    return codes * max(len(distinct), 1) + value_codes


def distinct_pairs(values: pa.Array, codes: Codes) -> tuple[NDArray[np.int64], Codes]:
    """Return the first row of each value and group, int64[m] ascending, and for each row the place of its equal."""

    pairs, distinct = encoded(pa.array(_pair_numbers(values, codes)))
    firsts = np.empty(len(distinct), dtype=np.int64)
    firsts[pairs[::-1]] = np.arange(len(pairs) - 1, -1, -1)
    return firsts, pairs.astype(np.intp, copy=False)


def listed(values: pa.Array, codes: Codes, count: int) -> pa.Array:
    """Return a list of each group's values, in their order."""
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=count), out=offsets[1:])
    order = np.argsort(codes, kind="stable")
    return pa.LargeListArray.from_arrays(pa.array(offsets), values.take(pa.array(order)))


def flattened(lists: pa.Array) -> tuple[pa.Array, NDArray[np.int64]]:
    """Return the values of lists, and the number of each value's list."""
    return lists.flatten(), pc.list_parent_indices(lists).to_numpy()


__all__ = [
    "Accumulator", "Bag", "Count", "Distinct", "DistinctWithNulls", "Earliest", "Extreme", "Listed", "ListedWithNulls",
    "Moments", "Ordered", "Sum", "flattened", "listed", "without_nulls",
]  # fmt: skip
