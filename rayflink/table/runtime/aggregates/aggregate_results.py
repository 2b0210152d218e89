"""Computes the results of aggregates from their accumulators."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ...functions.decimals import divide
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
from .user_accumulators import UserAccumulator, user_results

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NEVER_DISTINCT = (AggregateKind.MIN, AggregateKind.MAX, AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)
"""Kinds whose result does not depend on how often a value occurs."""


def accumulators(aggregate: Aggregate, has_arrival: bool) -> tuple[Accumulator, ...]:
    """Return the accumulators of an aggregate.

    Args:
        has_arrival: whether rows carry the number of their arrival, for partial rows that may be merged in any order.
    """
    if aggregate.distinct and aggregate.kind not in _NEVER_DISTINCT:
        keeps_nulls = aggregate.kind in (AggregateKind.ARRAY_AGG, AggregateKind.USER)
        distinct = DistinctWithNulls if keeps_nulls else Distinct
        return (distinct(aggregate.argument, aggregate.filter, has_arrival),)
    return _plain_accumulators(aggregate, has_arrival)


def _plain_accumulators(aggregate: Aggregate, has_arrival: bool) -> tuple[Accumulator, ...]:
    kind, argument, filter_ = aggregate.kind, aggregate.argument, aggregate.filter
    if kind is AggregateKind.COUNT:
        return (Count(argument, filter_),)
    if kind is AggregateKind.SUM:
        return (Sum(argument, filter_),)
    if kind is AggregateKind.AVG:
        return Sum(argument, filter_), Count(argument, filter_)
    if kind in (AggregateKind.MIN, AggregateKind.MAX):
        return (Extreme(argument, filter_, kind is AggregateKind.MAX),)
    if kind in (AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE):
        return (Earliest(argument, filter_, has_arrival, kind is AggregateKind.LAST_VALUE),)
    if kind in MOMENTS:
        return (Moments(argument, filter_),)
    if aggregate.user is not None and aggregate.user.kernel.merges:
        return (UserAccumulator(argument, filter_, has_arrival, aggregate.user),)
    if kind is AggregateKind.USER:
        return (ListedWithNulls(argument, filter_, has_arrival),)
    if kind is AggregateKind.PERCENTILE:
        return (Weighted(argument, filter_),)
    if kind is AggregateKind.ARRAY_AGG:
        return (ListedWithNulls(argument, filter_, has_arrival),)
    accumulator = Bag if kind is AggregateKind.COLLECT else Listed
    return (accumulator(argument, filter_, has_arrival),)


def result(aggregate: Aggregate, slots: Sequence[Accumulator], columns: list[list[pa.Array]]) -> pa.Array:
    """Return the aggregate's result for each group.

    Args:
        slots: its `accumulators`.
        columns: the columns of each accumulator.
    """
    first = slots[0]
    if isinstance(first, Ordered) and first.has_arrival:
        columns = [[_without_arrival(columns[0][0]), *columns[0][1:]]]
    if isinstance(first, Distinct):
        lists = columns[0][0]
        values, codes = flattened(lists)
        columns = [part.from_rows(values, codes, len(lists)) for part in _plain_accumulators(aggregate, False)]
    values = _result(aggregate, columns)
    declared = aggregate.result.to_arrow()
    return values if values.type == declared else as_type(values, declared)


def _without_arrival(values: pa.Array) -> pa.Array:
    """Return values, or lists of values, without the numbers of their arrival."""
    if not types.is_large_list(values.type):
        return pc.struct_field(values, 1)
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(to_numpy(pc.list_value_length(values)), out=offsets[1:])
    return pa.LargeListArray.from_arrays(pa.array(offsets), values.flatten().field(1))


def _result(aggregate: Aggregate, columns: list[list[pa.Array]]) -> pa.Array:
    kind, first = aggregate.kind, columns[0]
    if aggregate.user is not None:
        return user_results(aggregate.user, first[0])
    if kind is AggregateKind.AVG:
        return _averages(first[0], columns[1][0], aggregate.result.to_arrow())
    if kind in MOMENTS:
        return _moment_results(kind, *map(to_numpy, first))
    if kind is AggregateKind.LISTAGG:
        joined = pc.binary_join(first[0], pa.scalar(aggregate.separator, first[0].type.value_type))
        return pc.if_else(pc.greater(pc.list_value_length(first[0]), 0), joined, pa.scalar(None, joined.type))
    if kind is AggregateKind.ARRAY_AGG:
        return pc.if_else(pc.greater(pc.list_value_length(first[0]), 0), first[0], pa.scalar(None, first[0].type))
    if kind is AggregateKind.PERCENTILE:
        columns_of_percentiles = percentiles(first[0], first[1], aggregate.percentages)
        is_array = bool(aggregate.result.items)
        return as_arrays(columns_of_percentiles, len(first[0])) if is_array else columns_of_percentiles[0]
    if kind is AggregateKind.COLLECT:
        values, times = first[0].flatten(), first[1].flatten().cast(pa.int32())
        offsets = np.zeros(len(first[0]) + 1, dtype=np.int32)
        np.cumsum(to_numpy(pc.list_value_length(first[0])), out=offsets[1:])
        return pa.MapArray.from_arrays(pa.array(offsets), values, times)
    return first[0]


def _averages(sums: pa.Array, counts: pa.Array, declared: pa.DataType) -> pa.Array:
    ns = to_numpy(counts)
    if types.is_decimal(sums.type):
        at_least_one = to_arrow(np.maximum(ns, 1), pa.int64()).cast(pa.decimal128(19, 0))
        return divide(sums, at_least_one, DataTypes.DECIMAL(declared.precision, declared.scale))
    valid, totals = ns > 0, to_numpy(sums)
    if types.is_floating(sums.type):
        return to_arrow(np.divide(totals, ns, out=np.zeros(len(ns)), where=valid), pa.float64(), valid)
    divisors = np.maximum(ns, 1)
    means = totals // divisors
    means += (totals < 0) & (means * divisors != totals)  # cut towards zero
    return to_arrow(means, pa.int64(), valid)


def _moment_results(kind: AggregateKind, ns: NDArray[Any], means: NDArray[Any], squares: NDArray[Any]) -> pa.Array:
    is_sample = kind in (AggregateKind.VAR_SAMP, AggregateKind.STDDEV_SAMP)
    divisors = ns - 1 if is_sample else ns
    valid = divisors > 0
    results = np.divide(squares, divisors, out=np.zeros(len(ns)), where=valid)
    if kind in (AggregateKind.STDDEV_POP, AggregateKind.STDDEV_SAMP):
        results = np.sqrt(results)
    return to_arrow(results, pa.float64(), valid)


def as_type(values: pa.Array, declared: pa.DataType) -> pa.Array:
    """Cast results to the declared type: whole numbers wrap, decimals that have too many digits become null."""
    if types.is_integer(declared) and types.is_floating(values.type):
        return pc.trunc(values).cast(declared, safe=False)
    if types.is_decimal256(values.type) and types.is_decimal128(declared):
        limit = pa.scalar(Decimal(10) ** (declared.precision - declared.scale), values.type)
        fits = pc.less(pc.abs(values), limit)
        return pc.if_else(fits, values, pa.scalar(None, values.type)).cast(declared)
    if types.is_decimal(declared) and types.is_floating(values.type):
        fits = pc.less(pc.abs(values), 10.0 ** (declared.precision - declared.scale))
        values = pc.if_else(fits, pc.round(values, min(declared.scale, 15)), pa.scalar(None, values.type))
    return values.cast(declared, safe=False)


__all__ = ["accumulators", "as_type", "result"]
