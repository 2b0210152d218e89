"""PERCENTILE: values with their frequencies, and interpolation between them.

Source: apache/flink PercentileAggFunction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from .accumulators import Accumulator, flattened, listed
from .reductions import to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .grouping import Codes


@dataclass(frozen=True)
class Weighted(Accumulator):
    """The distinct values in order, as float64, and the frequency of each.

    The argument is a number, or a row of a number and its weight.
    """

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(pa.float64()), pa.large_list(pa.int64()))

    def from_rows(self, values: pa.Array | None, codes: Codes, count: int) -> list[pa.Array]:
        assert values is not None
        if types.is_struct(values.type):
            numbers, times = values.flatten()
            return _weighted(to_numpy(numbers), to_numpy(times), codes, count)
        numbers = to_numpy(values.cast(pa.float64(), safe=False))
        return _weighted(numbers, np.ones(len(numbers), dtype=np.int64), codes, count)

    def merge(self, columns: list[pa.Array], codes: Codes, count: int) -> list[pa.Array]:
        numbers, parents = flattened(columns[0])
        times, _ = flattened(columns[1])
        return _weighted(to_numpy(numbers), to_numpy(times), codes[parents], count)


def _weighted(numbers: NDArray[Any], times: NDArray[Any], codes: Codes, count: int) -> list[pa.Array]:
    order, keys = _in_order(numbers, codes)
    codes, keys = codes[order], keys[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (keys[1:] != keys[:-1]) | (codes[1:] != codes[:-1])
    firsts = np.flatnonzero(is_first)
    totals = np.add.reduceat(times[order], firsts) if len(firsts) else np.zeros(0, dtype=np.int64)
    groups = codes[firsts]
    values = to_arrow(numbers[order][firsts], pa.float64())
    return [listed(values, groups, count), listed(to_arrow(totals.astype(np.int64), pa.int64()), groups, count)]


def _in_order(numbers: NDArray[Any], codes: Codes) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return the order of groups and values, and numbers in the order of values: -0.0 before 0.0, and NaN last."""
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    keys: NDArray[np.int64] = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))
    return np.lexsort((keys, codes)), keys


def percentiles(values: pa.Array, times: pa.Array, percentages: Sequence[float]) -> list[pa.Array]:
    """Return the percentiles of each group as float64, null where a group has no value.

    >>> values, times = pa.array([[1.0, 2.0, 4.0], []]), pa.array([[1, 1, 2], []])
    >>> [column.to_pylist() for column in percentiles(values, times, [0.5, 1.0])]
    [[3.0, None], [4.0, None]]

    Args:
        values: lists of distinct values, ascending.
        times: the frequency of each.
        percentages: within [0, 1].
    """
    numbers, until = to_numpy(values.flatten()), np.cumsum(to_numpy(times.flatten()))
    stops = np.cumsum(pc.list_value_length(values).to_numpy(zero_copy_only=False)).astype(np.int64)
    reached = np.concatenate([[0], until])[np.concatenate([[0], stops])]
    before, totals = reached[:-1], np.diff(reached)
    has_values = totals > 0
    if not has_values.any():
        return [pa.nulls(len(values), pa.float64()) for _ in percentages]
    columns = []
    for percentage in percentages:
        position = percentage * (totals - 1) + 1
        lower, higher = np.floor(position), np.ceil(position)
        index = np.searchsorted(until, before + np.where(has_values, lower, 1).astype(np.int64))
        index = np.minimum(index, len(numbers) - 1)  # groups without values become null
        following = np.minimum(index + 1, len(numbers) - 1)
        with np.errstate(invalid="ignore"):  # infinite values beside one another
            between = (higher - position) * numbers[index] + (position - lower) * numbers[following]
        results = np.where(until[index] - before >= higher, numbers[index], between)
        columns.append(to_arrow(results, pa.float64(), has_values))
    return columns


def as_arrays(columns: Sequence[pa.Array], count: int) -> pa.Array:
    """Return arrays of a value of each column; null where all values are, and where there are no columns."""
    if not columns:
        return pa.nulls(count, pa.list_(pa.float64()))
    width = len(columns)
    values = pa.concat_arrays(list(columns)).take(pa.array(np.arange(width * count).reshape(width, count).T.ravel()))
    offsets = np.arange(0, width * count + 1, width, dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), values, mask=columns[0].is_null())


__all__ = ["Weighted", "as_arrays", "percentiles"]
