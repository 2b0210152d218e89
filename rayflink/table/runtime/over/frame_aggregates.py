"""Aggregates over a frame of rows for each row, by columns.

Counts, and sums of whole numbers and of decimals, are differences of running ones, which is exact. Other sums, moments,
extremes and choices are folded over the spans of the frames (`fold_spans`), so that a value that has left a frame
leaves no error in it. What remains, such as DISTINCT and lists, is aggregated over the rows of all frames.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import types

from ..aggregates.accumulators import Sum
from ..aggregates.aggregate_results import accumulators, result
from ..aggregates.aggregates import MOMENTS, Aggregate, AggregateKind
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..groups.group_accumulators import GroupAccumulators
from ..groups.group_rows import Argument, DistinctArgument, counting_weights
from ..groups.running_choices import ranks_of
from ..groups.segments import Segments, first_of_runs
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from .frame_spans import Parts, Spans, fold_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .frame_spans import Numbers

    Truths: TypeAlias = "NDArray[np.bool_]"

MOST_ROWS = 1 << 20
"""Rows of frames that are aggregated together."""
_FEW = 4
"""How often a row is in a frame on average, so that it is aggregated for each of them."""
_HALF = np.int64(1 << 32)
_EXTREMES = (AggregateKind.MIN, AggregateKind.MAX)
_CHOICES = (AggregateKind.FIRST_VALUE, AggregateKind.LAST_VALUE)
_SUMS = (AggregateKind.COUNT, AggregateKind.SUM, AggregateKind.AVG, *MOMENTS)


class FrameAggregates:
    """Computes aggregates over frames.

    Args:
        aggregates: over columns by their numbers.
        kinds: types of the columns.
    """

    def __init__(self, aggregates: Sequence[Aggregate], kinds: Sequence[pa.DataType]) -> None:
        self._aggregates, self._kinds = tuple(aggregates), list(kinds)
        rest = [aggregate for aggregate in aggregates if not _is_by_spans(aggregate)]
        self._rest = _RowsOfFrames(rest, kinds) if rest else None

    def results(self, columns: Columns, codes: Numbers, spans: Spans) -> Columns:
        """Return a column for each aggregate, with a result for each span.

        Args:
            columns: of the rows.
            codes: the partition of each row, ascending.
            spans: of rows of one partition each.
        """
        schema = pa.schema([(f"c{index}", kind) for index, kind in enumerate(self._kinds)])
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        rest = iter(() if self._rest is None else self._rest.results(rows, codes, spans))
        return [_by_spans(aggregate, rows, spans) if _is_by_spans(aggregate) else next(rest)
                for aggregate in self._aggregates]  # fmt: skip


def _is_by_spans(aggregate: Aggregate) -> bool:
    kind = aggregate.kind
    return kind in _EXTREMES or kind in _CHOICES or (kind in _SUMS and not aggregate.distinct)


def _by_spans(aggregate: Aggregate, rows: pa.RecordBatch, spans: Spans) -> pa.Array:
    kind = aggregate.kind
    weights = counting_weights(rows, Argument(aggregate.argument, aggregate.filter), np.ones(rows.num_rows, np.int64))
    counts = _differences(weights, spans)
    if kind is AggregateKind.COUNT:
        return to_arrow(counts, pa.int64())
    assert aggregate.argument is not None, "COUNT alone takes rows"
    values = rows.column(aggregate.argument)
    if kind in _CHOICES:
        columns = [[_chosen(values, weights != 0, spans, counts > 0, kind is AggregateKind.LAST_VALUE)]]
    elif kind in _EXTREMES:
        columns = [[_extremes(values, weights != 0, spans, counts > 0, kind is AggregateKind.MAX)]]
    elif kind in MOMENTS:
        columns = [_moments(values, weights != 0, spans)]
    else:
        total = _totals(values, weights, spans, Sum(aggregate.argument, None).types(values.type)[0], counts > 0)
        columns = [[total], [to_arrow(counts, pa.int64())]][: len(accumulators(aggregate, False))]
    return result(aggregate, accumulators(aggregate, False), columns)


def _differences(numbers: Numbers, spans: Spans) -> Numbers:
    """Return the sums of whole numbers over spans, which wrap."""
    running = np.zeros(len(numbers) + 1, dtype=np.int64)
    np.cumsum(numbers, out=running[1:])
    totals: Numbers = running[spans.stops] - running[spans.starts]
    return totals


def _totals(values: pa.Array, weights: Numbers, spans: Spans, kind: pa.DataType, has_any: Truths) -> pa.Array:
    """Return sums in the type of sums."""
    if types.is_decimal(kind):
        return _decimal_totals(values.cast(kind), weights, spans, has_any)
    if types.is_integer(kind):
        numbers = to_numpy(values).astype(np.int64, copy=False) * weights
        return to_arrow(_differences(numbers, spans), kind, has_any)
    with np.errstate(invalid="ignore", over="ignore"):
        numbers = np.where(weights != 0, to_numpy(values).astype(np.float64), 0.0)
        [totals] = fold_spans(spans, (numbers,), (0.0,), _sums)
    return to_arrow(totals, kind, has_any)


def _sums(first: Parts, second: Parts) -> Parts:
    return (first[0] + second[0],)


def _decimal_totals(values: pa.Array, weights: Numbers, spans: Spans, has_any: Truths) -> pa.Array:
    """Return sums of decimals, which wrap, by their parts of 32 bits."""
    kind, rows, width = values.type, len(values), values.type.bit_width // 32
    data = values.buffers()[1]
    parts = np.frombuffer(data, np.uint32, rows * width, values.offset * width * 4).reshape(-1, width)
    totals = np.empty((len(has_any), width), dtype=np.uint32)
    carried = np.zeros(len(has_any), dtype=np.int64)
    for number in range(width):
        sums = _differences(parts[:, number].astype(np.int64) * weights, spans) + carried
        totals[:, number] = (sums % _HALF).astype(np.uint32)
        carried = sums >> 32
    bits = pa.py_buffer(np.packbits(has_any, bitorder="little"))
    return pa.Array.from_buffers(kind, len(has_any), [bits, pa.py_buffer(totals)])


def _chosen(values: pa.Array, counts: Truths, spans: Spans, has_any: Truths, last: bool) -> pa.Array:
    """Return the first or the last value of each span of those that count."""
    rows = np.arange(len(values))
    if last:
        newest = np.maximum.accumulate(np.where(counts, rows, -1))
        places = newest[np.maximum(spans.stops - 1, 0)]
    else:
        nearest = np.minimum.accumulate(np.where(counts, rows, len(rows))[::-1])[::-1]
        places = nearest[np.minimum(spans.starts, len(rows) - 1)]
    return values.take(pa.array(np.where(has_any, places, 0), mask=~has_any))


def _extremes(values: pa.Array, counts: Truths, spans: Spans, has_any: Truths, greatest: bool) -> pa.Array:
    order, ranks = ranks_of(values, greatest)
    [best] = fold_spans(spans, (np.where(counts, ranks, -1),), (-1,), _greater)
    return values.take(pa.array(order[np.maximum(best, 0)], mask=~has_any))


def _greater(first: Parts, second: Parts) -> Parts:
    return (np.maximum(first[0], second[0]),)


def _moments(values: pa.Array, counts: Truths, spans: Spans) -> list[pa.Array]:
    """Return numbers of values, means, and sums of the squares of differences from them."""
    numbers = to_numpy(values.cast(pa.float64(), safe=False)).astype(np.float64)
    is_odd = counts & ~np.isfinite(numbers)
    odd = _differences(is_odd.astype(np.int64), spans) > 0
    weights = (counts & ~is_odd).astype(np.float64)
    numbers = np.where(weights != 0, numbers, 0.0)
    totals, means, squares = fold_spans(spans, (weights, numbers, np.zeros(len(numbers))), (0.0, 0.0, 0.0), _merged)
    totals = np.where(odd, _differences(counts.astype(np.int64), spans).astype(np.float64), totals)
    columns = (totals, np.where(odd, np.nan, means), np.where(odd, np.nan, squares))
    return [to_arrow(column, pa.float64()) for column in columns]


def _merged(first: Parts, second: Parts) -> Parts:
    """Merge moments.

    Source: Chan, Golub and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances.
    """
    counts = first[0] + second[0]
    away = second[1] - first[1]
    share = np.divide(second[0], counts, out=np.zeros(len(counts)), where=counts > 0)
    means = np.where(first[0] > 0, first[1] + away * share, second[1])
    both = (first[0] > 0) & (second[0] > 0)
    return counts, means, first[2] + second[2] + np.where(both, away * away * first[0] * share, 0.0)


class _RowsOfFrames:
    """Aggregates the rows of frames, each row as often as it is in one.

    Args:
        aggregates: over columns by their numbers.
        kinds: types of the columns.
    """

    def __init__(self, aggregates: Sequence[Aggregate], kinds: Sequence[pa.DataType]) -> None:
        self._accumulators = GroupAccumulators(aggregates, kinds, False)
        self._forms = {argument: KeyForms([kinds[argument.column]]) for argument in self._accumulators.distinct}

    def results(self, rows: pa.RecordBatch, codes: Numbers, spans: Spans) -> Columns:
        """Return a column for each aggregate, with a result for each span."""
        previous = [self._previous(rows, codes, argument) for argument in self._accumulators.distinct]
        is_new = np.ones(len(spans.starts), dtype=np.bool_)
        is_new[1:] = (np.diff(spans.starts) != 0) | (np.diff(spans.stops) != 0)
        numbers, spans = np.cumsum(is_new) - 1, spans.take(np.flatnonzero(is_new))
        if int(spans.sizes.sum()) > _FEW * len(codes) and _are_of_partitions(codes, spans):
            return take_rows(self._running(rows, codes, previous), (spans.stops - 1)[numbers])
        parts = [self._results(rows, spans.take(chosen), previous) for chosen in _divided(spans.sizes)]
        return take_rows(concatenated(parts), numbers)

    def _running(self, rows: pa.RecordBatch, codes: Numbers, previous: Sequence[Numbers]) -> Columns:
        """Return the results of all rows of a partition up to each."""
        columns = [*rows.columns, *(to_arrow((before < 0).astype(np.int8), pa.int8()) for before in previous)]
        batch = pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))])
        segments = Segments(first_of_runs(codes))
        nothing = [pa.nulls(len(segments), kind) for kind in self._accumulators.types]
        results, _ = self._accumulators.run(nothing, batch, np.ones(len(codes), dtype=np.int64), segments, False)
        return results

    def _results(self, rows: pa.RecordBatch, spans: Spans, previous: Sequence[Numbers]) -> Columns:
        sizes = np.maximum(spans.sizes, 1)  # one without rows has one that does not count
        frames = np.repeat(np.arange(len(sizes)), sizes)
        begins = np.cumsum(sizes) - sizes
        places = np.arange(len(frames)) - np.repeat(begins - spans.starts, sizes)
        weights = (np.repeat(spans.sizes, sizes) > 0).astype(np.int64)
        places = np.where(weights != 0, places, 0)
        columns = take_rows(rows.columns, places)
        for before in previous:
            is_new = before[places] < np.repeat(spans.starts, sizes)
            columns.append(to_arrow(is_new.astype(np.int8), pa.int8()))
        batch = pa.RecordBatch.from_arrays(columns, names=[str(index) for index in range(len(columns))])
        segments = Segments(first_of_runs(frames))
        nothing = [pa.nulls(len(segments), kind) for kind in self._accumulators.types]
        results, _ = self._accumulators.run(nothing, batch, weights, segments, True)
        return results

    def _previous(self, rows: pa.RecordBatch, codes: Numbers, argument: DistinctArgument) -> Numbers:
        """Return the row before each with the same value in its partition, -1 where there is none.

        One that does not count has itself, so that it is in no frame for the first time.
        """
        count = rows.num_rows
        previous = np.arange(count)
        counting = np.flatnonzero(counting_weights(rows, argument, np.ones(count, dtype=np.int64)))
        values = self._forms[argument].encode([rows.column(argument.column).take(pa.array(counting))])
        numbers = grouped([pa.array(codes[counting]), *values], len(counting)).codes
        order = np.argsort(numbers, kind="stable")
        is_first = first_of_runs(numbers[order])
        places = counting[order]
        previous[places] = np.where(is_first, -1, np.append(-1, places[:-1])[: len(places)])
        return previous


def _are_of_partitions(codes: Numbers, spans: Spans) -> bool:
    """Return whether all spans have a row, and begin with their partition."""
    firsts = np.searchsorted(codes, codes[np.minimum(spans.starts, len(codes) - 1)])
    return bool((spans.sizes > 0).all() and (spans.starts == firsts).all())


def _divided(sizes: Numbers) -> Iterator[Numbers]:
    """Yield places of spans that have about `MOST_ROWS` rows together."""
    numbers = np.cumsum(np.maximum(sizes, 1)) // MOST_ROWS
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(sizes)]
    for first, stop in zip(bounds, bounds[1:], strict=False):
        yield np.arange(first, stop)


__all__ = ["FrameAggregates"]
