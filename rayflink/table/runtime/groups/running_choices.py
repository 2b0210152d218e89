"""The least, greatest, first and last values of groups whose rows stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import has_numpy_type, to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from .running_sums import GroupRows, Stepwise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .segments import Numbers

_WORST = np.int64(np.iinfo(np.int64).min)
"""The rank of NaN, below that of any other number."""
_MANTISSA = np.int64(0x7FFF_FFFF_FFFF_FFFF)


@dataclass(frozen=True)
class RunningExtreme(Stepwise):
    """The least value so far, or the greatest; NaN only where a group has no other value."""

    greatest: bool

    def describe(self) -> str:
        return f"{super().describe()} {'greatest' if self.greatest else 'least'}"

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (argument,)

    def states(self, base: Columns, rows: GroupRows) -> Columns:
        values, segments = rows.values, rows.segments
        is_stored = base[0].is_valid().to_numpy(zero_copy_only=False)
        is_added = rows.weights != 0
        is_behind = np.arange(segments.rows) >= segments.first_rows(is_added)[segments.codes]
        has_value = is_stored[segments.codes] | is_behind
        if has_numpy_type(values.type):
            begin = np.where(is_stored, _ranks_of_numbers(base[0], self.greatest), _WORST)
            ranks = np.where(is_added, _ranks_of_numbers(values, self.greatest), _WORST)
            best = segments.accumulated(np.maximum, ranks, begin)
            return [_numbers_of_ranks(best, has_value, base[0].type, self.greatest)]
        everything = concatenated([[base[0]], [values]])[0]
        order, places = ranks_of(everything, self.greatest)
        begin = np.where(is_stored, places[: len(is_stored)], -1)
        best = segments.accumulated(np.maximum, np.where(is_added, places[len(is_stored) :], -1), begin)
        return [everything.take(pa.array(order[np.maximum(best, 0)], mask=~has_value))]

    def shown(self, state: Columns) -> Columns:
        return state


def ranks_of(values: pa.Array, greatest: bool) -> tuple[NDArray[np.int64], Numbers]:
    """Return the order of values, the worst first, and the place of each in it; NaN and null are the worst."""
    direction = "ascending" if greatest else "descending"
    indices = pc.array_sort_indices(values, direction, null_placement="at_start")
    order = indices.to_numpy().astype(np.int64)
    if types.is_floating(values.type):
        is_nan = pc.fill_null(pc.is_nan(values), True).to_numpy(zero_copy_only=False)[order]
        order = np.concatenate([order[is_nan], order[~is_nan]])
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return order, ranks


def comparable_ranks(values: pa.Array, greatest: bool) -> Numbers:
    """Return numbers that are greater where a value is better, equal ones for equal values; NaN is the worst."""
    if has_numpy_type(values.type):
        return _ranks_of_numbers(values, greatest)
    encoded = pc.dictionary_encode(values)
    order = pc.array_sort_indices(encoded.dictionary, "ascending" if greatest else "descending").to_numpy()
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    of_values: Numbers = ranks[encoded.indices.to_numpy(zero_copy_only=False)]
    return of_values


def _ranks_of_numbers(values: pa.Array, greatest: bool) -> Numbers:
    numbers = to_numpy(values)
    if numbers.dtype.kind != "f":
        ranks = numbers.astype(np.int64)
        return ranks if greatest else ~ranks
    bits = numbers.astype(np.float64).view(np.int64)
    ranks = bits ^ ((bits >> 63) & _MANTISSA)
    ranked: Numbers = np.where(np.isnan(numbers), _WORST, ranks if greatest else ~ranks)
    return ranked


def _numbers_of_ranks(ranks: Numbers, valid: NDArray[np.bool_], kind: pa.DataType, greatest: bool) -> pa.Array:
    numbers = ranks if greatest else ~ranks
    if types.is_floating(kind):
        floats = (numbers ^ ((numbers >> 63) & _MANTISSA)).view(np.float64)
        floats = np.where(ranks == _WORST, np.nan, floats)
        return to_arrow(floats.astype(np.dtype(f"f{kind.bit_width // 8}")), kind, valid)
    if types.is_boolean(kind):
        return to_arrow(numbers != 0, kind, valid)
    return to_arrow(numbers.astype(np.dtype(f"i{kind.bit_width // 8}")), kind, valid)


@dataclass(frozen=True)
class RunningEarliest(Stepwise):
    """The value that came first, or last."""

    last: bool

    def describe(self) -> str:
        return f"{super().describe()} {'last' if self.last else 'first'}"

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (argument,)

    def states(self, base: Columns, rows: GroupRows) -> Columns:
        segments, count = rows.segments, rows.segments.rows
        is_chosen = rows.weights != 0
        everything = concatenated([[base[0]], [rows.values]])[0]
        stored = np.where(base[0].is_valid().to_numpy(zero_copy_only=False), np.arange(len(base[0])), -1)
        stored = stored[segments.codes]
        if self.last:
            newest = segments.last_rows(is_chosen)
            places = np.where(newest >= 0, newest + len(base[0]), stored)
        else:
            first = segments.first_rows(is_chosen)[segments.codes]
            fresh = np.where(np.arange(count) >= first, first + len(base[0]), -1)
            places = np.where(stored >= 0, stored, fresh)
        return [everything.take(pa.array(np.maximum(places, 0), mask=places < 0))]

    def shown(self, state: Columns) -> Columns:
        return state


__all__ = ["RunningEarliest", "RunningExtreme", "comparable_ranks", "ranks_of"]
