"""Accumulators that contain the values of a group: lists in the order of arrival, and bags of values with frequencies.

A value is present from the row that brings it to the row that takes it back. From these spans follow the values behind
each row, and the greatest of them. The state of a group is rewritten when a row of the group comes: a change costs time
in the number of the group's values. Of least and greatest values the state has the best ones alone (`value_overflow`),
of first and last ones those next to the end (`sequence_overflow`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from ..aggregates.accumulators import distinct_pairs, flattened, listed
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns
from .running_choices import ranks_of
from .running_sums import GroupRows, RunningValue
from .segments import Segments, first_of_runs, greatest_in_spans

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .segments import Numbers


class Spans(NamedTuple):
    """The rows over which values are present.

    Args:
        values: of the spans.
        codes: their segments: int64[n].
        starts, stops: the first row of each, and the one behind its last.
        times: how often the value is present; None: once.
    """

    values: pa.Array
    codes: Numbers
    starts: Numbers
    stops: Numbers
    times: Numbers | None


def _lists_behind_rows(spans: Spans, rank: Numbers, rows: GroupRows) -> Columns:
    """Return the values that are present behind each row as lists, and the lists of their frequencies.

    Args:
        rank: the order of values within a list.
    """
    count = len(_shown_rows(rows))
    if rows.is_folded:
        chosen = np.flatnonzero(spans.stops == rows.segments.stops[spans.codes])
        chosen = chosen[spans.starts[chosen] < spans.stops[chosen]]
        places, behind = chosen, spans.codes[chosen]
    else:
        lengths = np.maximum(spans.stops - spans.starts, 0)
        places = np.repeat(np.arange(len(lengths)), lengths)
        within = np.arange(len(places)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        behind = spans.starts[places] + within
    order = np.lexsort((rank[places], behind))
    places, behind = places[order], behind[order]
    values = spans.values.take(pa.array(places))
    columns = [listed(values, behind, count)]
    if spans.times is not None:
        columns.append(listed(to_arrow(spans.times[places], pa.int64()), behind, count))
    return columns


def _shown_rows(rows: GroupRows) -> Numbers:
    return rows.segments.lasts if rows.is_folded else np.arange(rows.segments.rows)


def _best(spans: Spans, rank: Numbers, rows: GroupRows) -> pa.Array:
    """Return the value of the greatest rank behind each row; null where none is present."""
    best = greatest_in_spans(spans.starts, spans.stops, rank, rows.segments.rows)[_shown_rows(rows)]
    return _of_rank(spans.values, rank, best)


def _of_rank(values: pa.Array, ranks: Numbers, wanted: Numbers) -> pa.Array:
    """Return the values of some ranks; null where the rank is -1."""
    if not len(values):
        return pa.nulls(len(wanted), values.type)
    places = np.empty(len(ranks), dtype=np.int64)
    places[ranks] = np.arange(len(ranks))
    return values.take(pa.array(places[np.maximum(wanted, 0)], mask=wanted < 0))


class _Bags(RunningValue):
    """The distinct values, as they first came, and the frequency of each."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(argument), pa.large_list(pa.int64()))

    def _values(self, rows: GroupRows, chosen: Numbers) -> tuple[pa.Array, Numbers]:
        """Return the values of some rows, and their frequencies."""
        return rows.values.take(pa.array(chosen)), rows.weights[chosen]

    def spans(self, base: Columns, rows: GroupRows) -> tuple[Spans, Columns]:
        """Return the spans over which values are present, and the state behind each segment."""
        segments = rows.segments
        stored, parents = flattened(base[0])
        chosen = np.flatnonzero(rows.weights)
        values, weights = self._values(rows, chosen)
        everything = concatenated([[stored], [values]])[0]
        codes = np.concatenate([parents, segments.codes[chosen]]).astype(np.int64)
        starts = np.concatenate([segments.starts[parents], chosen])
        weights = np.concatenate([to_numpy(base[1].flatten()), weights])
        firsts, pairs = distinct_pairs(everything, codes)
        order = np.argsort(pairs, kind="stable")
        of_pair = pairs[order]
        is_first = first_of_runs(of_pair)
        counts = np.zeros(0, dtype=np.int64)
        if len(order):
            events = Segments(is_first)
            counts = events.sums(weights[order], np.zeros(len(events), dtype=np.int64))
        is_last = np.append(is_first[1:], True)[: len(order)]
        starts = starts[order]
        stops = np.where(is_last, segments.stops[codes[order]], np.append(starts[1:], 0)[: len(order)])
        left = np.flatnonzero(is_last)[counts[is_last] != 0]
        values = everything.take(pa.array(firsts[of_pair[left]]))
        owners = codes[order]
        state = [
            listed(values, owners[left], len(segments)),
            listed(to_arrow(counts[left], pa.int64()), owners[left], len(segments)),
        ]
        present = np.flatnonzero(counts > 0)
        values = everything.take(pa.array(firsts[of_pair[present]]))
        return Spans(values, owners[present], starts[present], stops[present], counts[present]), state


class RunningBag(_Bags):
    """The distinct values, as they first came, and the frequency of each: those of COLLECT."""

    is_listed: ClassVar[bool] = True

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        spans, state = self.spans(base, rows)
        return _lists_behind_rows(spans, self.rank(spans), rows), state

    def rank(self, spans: Spans) -> Numbers:
        """Return the order of values in a list."""
        return np.arange(len(spans.codes))

    def shown(self, state: Columns) -> Columns:
        return [_empty_lists(column) for column in state]


class RunningWeights(RunningBag):
    """The distinct values in their order, as float64, and the frequency of each: those of PERCENTILE."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(pa.float64()), pa.large_list(pa.int64()))

    def _values(self, rows: GroupRows, chosen: Numbers) -> tuple[pa.Array, Numbers]:
        values, weights = rows.values.take(pa.array(chosen)), rows.weights[chosen]
        if types.is_struct(values.type):
            numbers, times = values.flatten()
            return numbers.cast(pa.float64(), safe=False), to_numpy(times) * weights
        return values.cast(pa.float64(), safe=False), weights

    def rank(self, spans: Spans) -> Numbers:
        indices = pc.array_sort_indices(spans.values).to_numpy()
        ranks = np.empty(len(indices), dtype=np.int64)
        ranks[indices] = np.arange(len(indices))
        return ranks

    def shown(self, state: Columns) -> Columns:
        numbers, parents = flattened(state[0])
        times, _ = flattened(state[1])
        order = np.lexsort((to_numpy(numbers), parents))
        parents = parents[order]
        count, taken = len(state[0]), pa.array(order)
        return [listed(numbers.take(taken), parents, count), listed(times.take(taken), parents, count)]


@dataclass(frozen=True)
class PresentExtreme(_Bags):
    """The least value that is present, or the greatest; NaN only where a group has no other value."""

    greatest: bool

    def describe(self) -> str:
        return f"{super().describe()} {'greatest' if self.greatest else 'least'}"

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        spans, state = self.spans(base, rows)
        return [_best(spans, ranks_of(spans.values, self.greatest)[1], rows)], state

    def shown(self, state: Columns) -> Columns:
        values, parents = flattened(state[0])
        times = to_numpy(state[1].flatten())
        present = np.flatnonzero(times > 0)
        values, parents = values.take(pa.array(present)), parents[present]
        _, ranks = ranks_of(values, self.greatest)
        return [_chosen_of_lists(values, parents, ranks, len(state[0]))]


def _chosen_of_lists(values: pa.Array, parents: NDArray[np.int64], ranks: Numbers, count: int) -> pa.Array:
    """Return the value of the greatest rank of each list; null where it is empty."""
    best = np.full(count, -1, dtype=np.int64)
    np.maximum.at(best, parents, ranks)
    return _of_rank(values, ranks, best)


class _Sequences(RunningValue):
    """All values in the order in which they came; of equal ones the first is taken back first."""

    def types(self, argument: pa.DataType | None) -> tuple[pa.DataType, ...]:
        return (pa.large_list(argument),)

    def spans(self, base: Columns, rows: GroupRows) -> tuple[Spans, Columns]:
        """Return the spans over which values are present, and the state behind each segment."""
        segments = rows.segments
        stored, parents = flattened(base[0])
        added = np.flatnonzero(rows.weights > 0)
        values = concatenated([[stored], [rows.values.take(pa.array(added))]])[0]
        codes = np.concatenate([parents, segments.codes[added]]).astype(np.int64)
        starts = np.concatenate([segments.starts[parents], added])
        stops = segments.stops[codes]
        removed = np.flatnonzero(rows.weights < 0)
        if len(removed):
            partners = _partners(values, codes, rows.values.take(pa.array(removed)), segments.codes[removed])
            has_partner = partners >= 0
            stops = stops.copy()
            stops[partners[has_partner]] = removed[has_partner]
            is_left = np.ones(len(codes), dtype=np.bool_)
            is_left[partners[has_partner]] = False
            left = np.flatnonzero(is_left)
            state = [listed(values.take(pa.array(left)), codes[left], len(segments))]
        else:
            state = [listed(values, codes, len(segments))]
        return Spans(values, codes, starts, stops, None), state


def _partners(added: pa.Array, added_codes: Numbers, removed: pa.Array, removed_codes: Numbers) -> Numbers:
    """Return the place of the added value that each removed one takes back, int64[n]; -1: none is left of it."""
    everything = concatenated([[added], [removed]])[0]
    _, pairs = distinct_pairs(everything, np.concatenate([added_codes, removed_codes]))
    of_added, of_removed = pairs[: len(added_codes)].astype(np.int64), pairs[len(added_codes) :].astype(np.int64)
    added_order, removed_order = np.argsort(of_added, kind="stable"), np.argsort(of_removed, kind="stable")
    sorted_added, sorted_removed = of_added[added_order], of_removed[removed_order]
    number = np.arange(len(sorted_removed)) - np.searchsorted(sorted_removed, sorted_removed)
    places = np.searchsorted(sorted_added, sorted_removed) + number
    is_there = places < np.searchsorted(sorted_added, sorted_removed, side="right")
    partners = np.full(len(of_removed), -1, dtype=np.int64)
    partners[removed_order[is_there]] = added_order[places[is_there]]
    return partners


class RunningList(_Sequences):
    """All values, in the order in which they came: those of LISTAGG and ARRAY_AGG."""

    is_listed: ClassVar[bool] = True

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        spans, state = self.spans(base, rows)
        return _lists_behind_rows(spans, np.arange(len(spans.codes)), rows), state

    def shown(self, state: Columns) -> Columns:
        return [_empty_lists(state[0])]


class RunningListWithNulls(RunningList):
    """All values and nulls, in the order in which they came."""

    keeps_nulls: ClassVar[bool] = True


@dataclass(frozen=True)
class PresentEarliest(_Sequences):
    """The value that came first of those that are present, or last."""

    last: bool

    def describe(self) -> str:
        return f"{super().describe()} {'last' if self.last else 'first'}"

    def _rank(self, count: int) -> Numbers:
        return np.arange(count) if self.last else np.arange(count)[::-1]

    def run(self, base: Columns, rows: GroupRows) -> tuple[Columns, Columns]:
        spans, state = self.spans(base, rows)
        return [_best(spans, self._rank(len(spans.codes)), rows)], state

    def shown(self, state: Columns) -> Columns:
        values, parents = flattened(state[0])
        return [_chosen_of_lists(values, parents, self._rank(len(parents)), len(state[0]))]


def _empty_lists(lists: pa.Array) -> pa.Array:
    """Return the lists, an empty one in place of null."""
    if not lists.null_count:
        return lists
    values, parents = flattened(lists)
    return listed(values, parents, len(lists))


__all__ = ["PresentEarliest", "PresentExtreme", "RunningBag", "RunningList", "RunningListWithNulls", "RunningWeights"]
