"""The values of a group beyond the best ones, for the least or greatest of values that may be taken back.

The state of a group has its best values as lists, up to `MOST_LISTED` of them. Those beyond are rows of a keyed table
with the number of times that each came, so that a change of one of them costs the same however many there are. The
worst value in the lists is the bound: values that are better are in the lists, and the others in the table. When rows
of a batch could take back all values in the lists, the best ones of the table come back; when the lists are too long,
their worst values go.

Source: apache/flink MinWithRetractAggFunction, which stores all values in one map.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.accumulators import flattened, listed
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import has_numpy_type, to_arrow, to_numpy
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from . import overflow_table
from .overflow_table import BatchGroups, ListOverflow
from .running_choices import comparable_ranks
from .running_sums import GroupRows
from .segments import Segments, first_of_runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .present_values import PresentExtreme
    from .segments import Numbers

_ALL = np.int64(1 << 62)


class ValueOverflow(ListOverflow):
    """Finds the least or greatest value behind rows, and stores the values that are beyond the best ones.

    Args:
        extreme: which value is wanted.
        keys: types of the group's key.
        value: type of the values.
    """

    def __init__(self, extreme: PresentExtreme, keys: Sequence[pa.DataType], value: pa.DataType) -> None:
        how_often = pa.int64()  # a value came, less the times it was taken back
        super().__init__(extreme, keys, [value], [how_often])
        self._extreme, self._forms = extreme, KeyForms([value])

    def _change(self, rows: GroupRows, beyond: Numbers, groups: BatchGroups) -> None:
        owners = np.searchsorted(groups.last_segments, rows.segments.codes[beyond])
        keys = self._keys(groups, owners, rows.values.take(pa.array(beyond)))
        self._count(keys, rows.weights[beyond], groups.now_ms)

    def _keys(self, groups: BatchGroups, owners: Numbers, values: pa.Array) -> Columns:
        """Return the keys of values of groups in the form in which they are compared."""
        return [*take_rows(groups.keys, owners), *self._forms.encode([values])]

    def _refilled(self, base: Columns, rows: GroupRows, groups: BatchGroups, hot: Numbers) -> Columns:
        segments, firsts = rows.segments, groups.first_segments[hot]
        taken_back = np.bincount(segments.codes[rows.weights < 0], minlength=len(segments))[firsts]
        wanted = np.where(groups.is_emptied[hot], _ALL, taken_back + 1)
        while True:
            values, parents = flattened(base[0])
            times = to_numpy(base[1].flatten())
            present = np.bincount(parents[times > 0], minlength=len(segments))[firsts]
            short = np.flatnonzero(present < wanted)
            if not len(short):
                return base
            amounts = (wanted - present)[short] + overflow_table.FEWEST_LISTED
            drawn, drawn_times, owners = self._draw(take_rows(groups.keys, hot[short]), amounts)
            if not len(owners):
                return base
            codes = np.concatenate([parents, firsts[short[owners]]])
            base = [
                listed(concatenated([[values], [drawn]])[0], codes, len(segments)),
                listed(to_arrow(np.concatenate([times, drawn_times]), pa.int64()), codes, len(segments)),
            ]

    def _draw(self, keys: Columns, amounts: Numbers) -> tuple[pa.Array, Numbers, Numbers]:
        """Remove the best values of groups, and return them, how often each came, and its place in `keys`."""
        stored = self.table.find_partitions(keys)
        chosen: list[Numbers] = []
        for place in np.flatnonzero(stored.count).tolist():
            first, count, amount = int(stored.first[place]), int(stored.count[place]), int(amounts[place])
            rows = stored.order[first : first + count].astype(np.int64)
            chosen.append(rows if amount >= count else rows[self._best(self._values(rows), amount)])
        owners = np.repeat(np.flatnonzero(stored.count), [len(rows) for rows in chosen])
        numbers = np.concatenate([np.zeros(0, dtype=np.int64), *chosen])
        if not len(numbers):
            return pa.nulls(0, self.table.key_types[-1]), numbers, owners
        values, times = self._values(numbers), self.table.numbers(numbers, 0)
        self.table.remove(numbers)
        return values, times, owners

    def _values(self, rows: Numbers) -> pa.Array:
        """Return the values of rows of the table, at least one."""
        table = self.table
        records = table.records.take(rows)
        return table.keys_of(records, table.key_heap.take)[-1]

    def _best(self, values: pa.Array, amount: int) -> Numbers:
        """Return the places of the best values."""
        if has_numpy_type(values.type):
            ranks = comparable_ranks(values, self._extreme.greatest)
            best: Numbers = np.argpartition(ranks, len(ranks) - amount)[len(ranks) - amount :]
            return best
        order = "descending" if self._extreme.greatest else "ascending"
        places: Numbers = pc.select_k_unstable(values, amount, [("", order)]).to_numpy().astype(np.int64)
        return places

    def _beyond(self, base: Columns, rows: GroupRows, groups: BatchGroups) -> Numbers:
        """Return the rows whose values are worse than the bound of their group."""
        segments = rows.segments
        is_bounded = np.zeros(len(segments), dtype=np.bool_)
        is_bounded[groups.first_segments[self.hot(groups)]] = True
        if not is_bounded.any():
            return np.zeros(0, dtype=np.int64)
        values, parents = flattened(base[0])
        chosen = np.flatnonzero(is_bounded[parents])
        changed = np.flatnonzero(is_bounded[segments.codes] & (rows.weights != 0))
        both = concatenated([[values.take(pa.array(chosen))], [rows.values.take(pa.array(changed))]])[0]
        ranks = comparable_ranks(both, self._extreme.greatest)
        bounds = np.full(len(segments), np.iinfo(np.int64).max)
        np.minimum.at(bounds, parents[chosen], ranks[: len(chosen)])
        beyond: Numbers = changed[ranks[len(chosen) :] < bounds[segments.codes[changed]]]
        return beyond

    def _count(self, keys: Columns, weights: Numbers, now_ms: int) -> None:
        """Count values: each came, or was taken back, as often as its weight says."""
        table = self.table
        codes, firsts = distinct_keys(keys, fingerprints(keys))
        changes = np.zeros(len(firsts), dtype=np.int64)
        np.add.at(changes, codes, weights)
        changed = np.flatnonzero(changes)
        keys, changes = take_rows(keys, firsts[changed]), changes[changed]
        rows = table.find(keys, now_ms)
        known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if len(known):
            times = table.numbers(rows[known], 0) + changes[known]
            table.put_numbers(rows[known], 0, times, now_ms)
            table.remove(rows[known][times == 0])
        if len(new):
            table.add(take_rows(keys, new), [to_arrow(changes[new], pa.int64())], now_ms)

    def _shortened(self, state: Columns, groups: BatchGroups) -> Columns:
        """Return the lists behind segments, of which long ones have their best values; the others go to the table."""
        lengths = pc.list_value_length(state[0]).to_numpy()
        owners = np.flatnonzero(groups.is_left & (lengths[groups.last_segments] > overflow_table.MOST_LISTED))
        if not len(owners):
            return state
        long = groups.last_segments[owners]
        values, parents = flattened(state[0].take(pa.array(long)))
        times = to_numpy(state[1].take(pa.array(long)).flatten())
        ranks = comparable_ranks(values, self._extreme.greatest)
        order = np.lexsort((~ranks, parents))
        is_present = (times[order] > 0).astype(np.int64)
        lists = Segments(first_of_runs(parents[order]))
        better = lists.sums(is_present, np.zeros(len(lists), dtype=np.int64)) - is_present
        worst, best = order[better >= overflow_table.FEWEST_LISTED], order[better < overflow_table.FEWEST_LISTED]
        if not len(worst):
            return state
        keys = self._keys(groups, owners[parents[worst]], values.take(pa.array(worst)))
        self.table.add(keys, [to_arrow(times[worst], pa.int64())], groups.now_ms)
        places = np.arange(len(lengths))
        places[long] = len(lengths) + np.arange(len(long))
        shorter = [
            listed(values.take(pa.array(best)), parents[best], len(long)),
            listed(to_arrow(times[best], pa.int64()), parents[best], len(long)),
        ]
        return take_rows(concatenated([state, shorter]), places)


__all__ = ["ValueOverflow"]
