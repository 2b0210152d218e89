"""From accumulators to the results of aggregates."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...functions.decimals import divided
from ...types import DataTypes
from .accumulators import (
    Accumulator,
    Bag,
    Count,
    Distinct,
    DistinctWithNulls,
    Earliest,
    Extreme,
    Listed,
    ListedWithNulls,
    Moments,
    Ordered,
    Sum,
    flattened,
)
from .aggregates import MOMENTS, Aggregate, AggregateKind
from .percentiles import Weighted, as_arrays, percentiles
from .reductions import to_arrow, to_numpy

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEVER_DISTINCT = (AggregateKind.MIN, AggregateKind.MAX, AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)
"""Kinds to which it makes no difference how often a value is there."""


def accumulators(aggregate: Aggregate, has_arrival: bool) -> tuple[Accumulator, ...]:
    """Return the accumulators of an aggregate.

    Args:
        has_arrival: whether rows carry the number of their arrival, for partial rows that may be joined in any order.
    """
    if aggregate.distinct and aggregate.kind not in _NEVER_DISTINCT:
        distinct = DistinctWithNulls if aggregate.kind is AggregateKind.ARRAY_AGG else Distinct
        return (distinct(aggregate.argument, aggregate.filter, has_arrival),)
    return _plain_accumulators(aggregate, has_arrival)


def _plain_accumulators(aggregate: Aggregate, has_arrival: bool) -> tuple[Accumulator, ...]:
    kind, argument, only = aggregate.kind, aggregate.argument, aggregate.filter
    if kind is AggregateKind.COUNT:
        return (Count(argument, only),)
    if kind is AggregateKind.SUM:
        return (Sum(argument, only),)
    if kind is AggregateKind.AVG:
        return Sum(argument, only), Count(argument, only)
    if kind in (AggregateKind.MIN, AggregateKind.MAX):
        return (Extreme(argument, only, kind is AggregateKind.MAX),)
    if kind in (AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE):
        return (Earliest(argument, only, has_arrival, kind is AggregateKind.LAST_VALUE),)
    if kind in MOMENTS:
        return (Moments(argument, only),)
    if kind is AggregateKind.PERCENTILE:
        return (Weighted(argument, only),)
    if kind is AggregateKind.ARRAY_AGG:
        return (ListedWithNulls(argument, only, has_arrival),)
    made = Bag if kind is AggregateKind.COLLECT else Listed
    return (made(argument, only, has_arrival),)


def result(aggregate: Aggregate, slots: Sequence[Accumulator], columns: list[list[pa.Array]]) -> pa.Array:
    """Return the aggregate's result for each group.

    Args:
        slots: its `accumulators`.
        columns: those of each of them.
    """
    first = slots[0]
    if isinstance(first, Ordered) and first.has_arrival:
        columns = [[_without_arrival(columns[0][0]), *columns[0][1:]]]
    if isinstance(first, Distinct):
        lists = columns[0][0]
        values, codes = flattened(lists)
        columns = [part.from_rows(values, codes, len(lists)) for part in _plain_accumulators(aggregate, False)]
    found = _result(aggregate, columns)
    wanted = aggregate.result.to_arrow()
    return found if found.type == wanted else as_type(found, wanted)


def _without_arrival(kept: pa.Array) -> pa.Array:
    """Values, or lists of values, without the numbers of their arrival."""
    if not types.is_large_list(kept.type):
        return pc.struct_field(kept, 1)
    offsets = np.zeros(len(kept) + 1, dtype=np.int64)
    np.cumsum(to_numpy(pc.list_value_length(kept)), out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), kept.flatten().field(1))


def _result(aggregate: Aggregate, columns: list[list[pa.Array]]) -> pa.Array:
    kind, first = aggregate.kind, columns[0]
    if kind is AggregateKind.AVG:
        return _averages(first[0], columns[1][0], aggregate.result.to_arrow())
    if kind in MOMENTS:
        return _of_moments(kind, *map(to_numpy, first))
    if kind is AggregateKind.LISTAGG:
        joined = pc.binary_join(first[0], pa.scalar(aggregate.separator, first[0].type.value_type))
        return pc.if_else(pc.greater(pc.list_value_length(first[0]), 0), joined, pa.scalar(None, joined.type))
    if kind is AggregateKind.ARRAY_AGG:
        return pc.if_else(pc.greater(pc.list_value_length(first[0]), 0), first[0], pa.scalar(None, first[0].type))
    if kind is AggregateKind.PERCENTILE:
        found = percentiles(first[0], first[1], aggregate.percentages)
        return found[0] if not aggregate.result.items else as_arrays(found, len(first[0]))
    if kind is AggregateKind.COLLECT:
        values, times = first[0].flatten(), first[1].flatten().cast(pa.int32())
        offsets = np.zeros(len(first[0]) + 1, dtype=np.int32)
        np.cumsum(to_numpy(pc.list_value_length(first[0])), out=offsets[1:])
        return pa.MapArray.from_arrays(pa.array(offsets), values, times)
    return first[0]


def _averages(sums: pa.Array, counts: pa.Array, wanted: pa.DataType) -> pa.Array:
    ns = to_numpy(counts)
    if types.is_decimal(sums.type):
        at_least_one = to_arrow(np.maximum(ns, 1), pa.int64()).cast(pa.decimal128(19, 0))
        return divided(sums, at_least_one, DataTypes.DECIMAL(wanted.precision, wanted.scale))
    valid, totals = ns > 0, to_numpy(sums)
    if types.is_floating(sums.type):
        return to_arrow(np.divide(totals, ns, out=np.zeros(len(ns)), where=valid), pa.float64(), valid)
    some = np.maximum(ns, 1)
    means = totals // some
    means += (totals < 0) & (means * some != totals)  # cut towards zero
    return to_arrow(means, pa.int64(), valid)


def _of_moments(kind: AggregateKind, ns: NDArray[Any], means: NDArray[Any], squares: NDArray[Any]) -> pa.Array:
    is_sample = kind in (AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP)
    over = ns - 1 if is_sample else ns
    valid = over > 0
    found = np.divide(squares, over, out=np.zeros(len(ns)), where=valid)
    if kind in (AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP):
        found = np.sqrt(found)
    return to_arrow(found, pa.float64(), valid)


def as_type(found: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Results in the type they are declared with: whole numbers wrap, decimals that have too many digits are null."""
    if types.is_integer(wanted) and types.is_floating(found.type):
        return pc.trunc(found).cast(wanted, safe=False)
    if types.is_decimal256(found.type) and types.is_decimal128(wanted):
        limit = pa.scalar(Decimal(10) ** (wanted.precision - wanted.scale), found.type)
        fits = pc.less(pc.abs(found), limit)
        return pc.if_else(fits, found, pa.scalar(None, found.type)).cast(wanted)
    if types.is_decimal(wanted) and types.is_floating(found.type):
        fits = pc.less(pc.abs(found), 10.0 ** (wanted.precision - wanted.scale))
        found = pc.if_else(fits, pc.round(found, min(wanted.scale, 15)), pa.scalar(None, found.type))
        return found.cast(wanted, safe=False)
    return found.cast(wanted, safe=False)


__all__ = ["accumulators", "as_type", "result"]
