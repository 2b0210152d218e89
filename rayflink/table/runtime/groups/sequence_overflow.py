"""The values of a group behind the first ones, or before the last ones, for FIRST_VALUE and LAST_VALUE with rows that
may be taken back.

The state of a group has its first values as a list in the order of arrival, or its last ones, up to `MOST_LISTED` of
them. The others are in a keyed table, in which the equal values of a group are a queue, since of equal values the first
is taken back first:

    key                           columns
    group, value, its number      PLACED, its place in the order of arrival
    group, value, NULL            QUEUE, the number of its first row, and the number behind its last
    group, NULL,  NULL            ORDER, the first place, and the place behind the last

So a change of a value in the table costs the same however many there are. When rows of a batch could take back all
values of the list, the next ones of the table come back; when the list is too long, its other end goes to the table.

Source: apache/flink FirstValueWithRetractAggFunction, which stores two maps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..aggregates.accumulators import distinct_pairs, flattened, listed
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from . import overflow_table
from .overflow_table import BatchGroups, ListOverflow
from .running_sums import GroupRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .present_values import PresentEarliest
    from .segments import Numbers

PLACED, QUEUE, ORDER = 0, 1, 2
"""What a row of the table is."""
_ALL = np.int64(1 << 62)
_NOTHING = np.zeros(0, dtype=np.int64)


class SequenceOverflow(ListOverflow):
    """Finds the first or last value behind rows, and stores the values that are beyond those of the lists.

    Args:
        earliest: which value is wanted.
        keys: types of the group's key.
        value: type of the values.
    """

    def __init__(self, earliest: PresentEarliest, keys: Sequence[pa.DataType], value: pa.DataType) -> None:
        super().__init__(earliest, keys, [value, pa.int64()], [pa.int8(), pa.int64(), pa.int64()])
        self._earliest, self._value, self._forms = earliest, value, KeyForms([value, pa.int64()])

    def _change(self, rows: GroupRows, beyond: Numbers, groups: BatchGroups) -> None:
        for is_added in (True, False):
            chosen = beyond[(rows.weights[beyond] > 0) == is_added]
            if len(chosen):
                owners = np.searchsorted(groups.last_segments, rows.segments.codes[chosen])
                values, keys = rows.values.take(pa.array(chosen)), take_rows(groups.keys, owners)
                if is_added:
                    self._push(keys, values, False, groups.now_ms)
                else:
                    self._pop(keys, values, groups.now_ms)

    def _refilled(self, base: Columns, rows: GroupRows, groups: BatchGroups, hot: Numbers) -> Columns:
        segments, firsts = rows.segments, groups.first_segments[hot]
        taken_back = np.bincount(segments.codes[rows.weights < 0], minlength=len(segments))[firsts]
        wanted = np.where(groups.is_emptied[hot], _ALL, taken_back + 1)
        values, parents = flattened(base[0])
        present = np.bincount(parents, minlength=len(segments))[firsts]
        short = np.flatnonzero(present < wanted)
        if not len(short):
            return base
        amounts = (wanted - present)[short] + overflow_table.FEWEST_LISTED
        drawn, owners = self._draw(take_rows(groups.keys, hot[short]), amounts, groups.now_ms)
        pieces = [(values, parents), (drawn, firsts[short[owners]])]
        if self._earliest.last:
            pieces.reverse()
        both = concatenated([[piece] for piece, _ in pieces])[0]
        return [listed(both, np.concatenate([codes for _, codes in pieces]), len(segments))]

    def _draw(self, keys: Columns, amounts: Numbers, now_ms: int) -> tuple[pa.Array, Numbers]:
        """Remove the next values of groups; return them in the order of arrival, and the place of each in `keys`."""
        table, stored = self.table, self.table.find_partitions(keys)
        drawn: list[Numbers] = [_NOTHING]
        owners: list[Numbers] = [_NOTHING]
        whole: list[Numbers] = [_NOTHING]
        for owner in np.flatnonzero(stored.count).tolist():
            first, amount = int(stored.first[owner]), int(amounts[owner])
            rows = stored.order[first : first + int(stored.count[owner])].astype(np.int64)
            placed = rows[table.numbers(rows, 0) == PLACED]
            places = table.numbers(placed, 1)
            if amount < len(placed):
                border = len(placed) - amount if self._earliest.last else amount - 1
                order = np.argpartition(places, border)
                order = order[border:] if self._earliest.last else order[: border + 1]
                placed, places = placed[order], places[order]
            else:
                whole.append(np.setdiff1d(rows, placed))
            drawn.append(placed[np.argsort(places)])
            owners.append(np.full(len(placed), owner))
        numbers, owned = np.concatenate(drawn), np.concatenate(owners)
        if not len(numbers):
            table.remove(np.concatenate(whole))
            return pa.nulls(0, self._value), owned
        records = table.records.take(numbers)
        values = table.keys_of(records, table.key_heap.take)[-2]
        table.remove(np.concatenate([numbers, *whole]))
        self._shrink(take_rows(keys, owned), values, self._earliest.last, now_ms)
        return values, owned

    def _shrink(self, group_keys: Columns, values: pa.Array, at_end: bool, now_ms: int) -> None:
        """Leave out values at one end of their queues, whose rows are removed; queues that are gone are passed over."""
        codes, keys, queues = self._queues(group_keys, values, now_ms)
        counts, known = np.bincount(codes, minlength=len(queues)), np.flatnonzero(queues >= 0)
        first, stop = (self.table.numbers(queues[known], column) for column in (1, 2))
        first, stop = (first, stop - counts[known]) if at_end else (first + counts[known], stop)
        left = first < stop
        self._store(take_rows(keys, known[left]), queues[known[left]], QUEUE, first[left], stop[left], now_ms)
        self.table.remove(queues[known[~left]])

    def _beyond(self, base: Columns, rows: GroupRows, groups: BatchGroups) -> Numbers:
        """Return the rows that change values of the table.

        A row of a group with values in the table comes behind these. Of equal values the first goes first.
        """
        segments, hot = rows.segments, self.hot(groups)
        is_hot = np.zeros(len(segments), dtype=np.bool_)
        is_hot[groups.first_segments[hot]] = True
        changed = np.flatnonzero(is_hot[segments.codes] & (rows.weights != 0))
        if not len(changed):
            return _NOTHING
        removed = changed[rows.weights[changed] < 0]
        taken = rows.values.take(pa.array(removed))
        if self._earliest.last:
            owners = np.searchsorted(groups.last_segments, segments.codes[removed])
            codes, _, queues = self._queues(take_rows(groups.keys, owners), taken, groups.now_ms)
            lengths, known = np.zeros(len(queues), dtype=np.int64), np.flatnonzero(queues >= 0)
            lengths[known] = self.table.numbers(queues[known], 2) - self.table.numbers(queues[known], 1)
            return removed[_ordinals(codes) < lengths[codes]]
        values, parents = flattened(base[0])
        chosen = np.flatnonzero(is_hot[parents])
        both = concatenated([[values.take(pa.array(chosen))], [taken]])[0]
        _, pairs = distinct_pairs(both, np.concatenate([parents[chosen], segments.codes[removed]]))
        lengths = np.bincount(pairs[: len(chosen)], minlength=int(pairs.max(initial=-1)) + 1)
        pairs = pairs[len(chosen) :]
        is_beyond = _ordinals(pairs) >= lengths[pairs]
        return np.sort(np.concatenate([changed[rows.weights[changed] > 0], removed[is_beyond]]))

    def _queues(self, group_keys: Columns, values: pa.Array, now_ms: int) -> tuple[Numbers, Columns, Numbers]:
        """Return for each value the number of its queue, and for each queue its key and its row; -1: it has none."""
        keys = [*group_keys, *self._forms.encode([values, pa.nulls(len(values), pa.int64())])]
        codes, firsts = distinct_keys(keys, fingerprints(keys))
        keys = take_rows(keys, firsts)
        return codes.astype(np.int64, copy=False), keys, self.table.find(keys, now_ms)

    def _bounds(self, rows: Numbers) -> tuple[Numbers, Numbers]:
        """Return the two numbers of queues and orders, 0 where there are none."""
        first, stop = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        known = np.flatnonzero(rows >= 0)
        first[known], stop[known] = (self.table.numbers(rows[known], column) for column in (1, 2))
        return first, stop

    def _store(self, keys: Columns, rows: Numbers, kind: int, first: Numbers, stop: Numbers, now_ms: int) -> None:
        """Store numbers for keys, no two of them equal, whose rows are known where they have some."""
        columns = [pa.array(np.full(len(first), kind, dtype=np.int8)), to_arrow(first, pa.int64()),
                   to_arrow(stop, pa.int64())]  # fmt: skip
        known, new = np.flatnonzero(rows >= 0), np.flatnonzero(rows < 0)
        if len(known):
            self.table.put(rows[known], take_rows(columns, known), now_ms)
        if len(new):
            self.table.add(take_rows(keys, new), take_rows(columns, new), now_ms)

    def _push(self, group_keys: Columns, values: pa.Array, at_front: bool, now_ms: int) -> None:
        """Add values, in the order of arrival, behind all others of their groups, or before them."""
        codes, keys, queues = self._queues(group_keys, values, now_ms)
        orders = self._queues(group_keys, pa.nulls(len(values), self._value), now_ms)
        numbers: list[Numbers] = []
        for kind, (own, own_keys, rows) in ((QUEUE, (codes, keys, queues)), (ORDER, orders)):
            counts = np.bincount(own, minlength=len(rows))
            first, stop = self._bounds(rows)
            first, stop, begin = (first - counts, stop, first - counts) if at_front else (first, stop + counts, stop)
            numbers.append(begin[own] + _ordinals(own))
            self._store(own_keys, rows, kind, first, stop, now_ms)
        of_values = [*take_rows(keys[:-1], codes), to_arrow(numbers[0], pa.int64())]
        new = np.full(len(values), -1, dtype=np.int64)
        self._store(of_values, new, PLACED, numbers[1], np.zeros(len(values), dtype=np.int64), now_ms)

    def _pop(self, group_keys: Columns, values: pa.Array, now_ms: int) -> None:
        """Remove values, of equal ones those that came first; one that is not there is passed over."""
        codes, keys, queues = self._queues(group_keys, values, now_ms)
        first, stop = self._bounds(queues)
        counts = np.minimum(np.bincount(codes, minlength=len(queues)), stop - first)
        owners = np.repeat(np.arange(len(queues)), counts)
        numbers = first[owners] + _ordinals(owners)
        rows = self.table.find([*take_rows(keys[:-1], owners), to_arrow(numbers, pa.int64())], now_ms)
        self.table.remove(rows)
        first += counts
        known, left = queues >= 0, first < stop
        changed = np.flatnonzero(known & left)
        self._store(take_rows(keys, changed), queues[changed], QUEUE, first[changed], stop[changed], now_ms)
        self.table.remove(queues[known & ~left])

    def _shortened(self, state: Columns, groups: BatchGroups) -> Columns:
        """Return the lists behind segments, of which long ones have one end; the rest goes to the table."""
        lengths = pc.list_value_length(state[0]).to_numpy()
        owners = np.flatnonzero(groups.is_left & (lengths[groups.last_segments] > overflow_table.MOST_LISTED))
        if not len(owners):
            return state
        long = groups.last_segments[owners]
        values, parents = flattened(state[0].take(pa.array(long)))
        number = _ordinals(parents)
        if self._earliest.last:
            number = lengths[long][parents] - 1 - number
        near, far = (np.flatnonzero(is_chosen) for is_chosen in (
            number < overflow_table.FEWEST_LISTED, number >= overflow_table.FEWEST_LISTED))  # fmt: skip
        self._push(take_rows(groups.keys, owners[parents[far]]), values.take(pa.array(far)),
                   not self._earliest.last, groups.now_ms)  # fmt: skip
        places = np.arange(len(lengths))
        places[long] = len(lengths) + np.arange(len(long))
        return take_rows(concatenated([state, [listed(values.take(pa.array(near)), parents[near], len(long))]]), places)


def _ordinals(codes: Numbers) -> Numbers:
    """Return how many equal numbers stand before each number.

    >>> _ordinals(np.array([7, 3, 7])).tolist()
    [0, 0, 1]
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    ordinals = np.empty(len(codes), dtype=np.int64)
    ordinals[order] = np.arange(len(codes)) - np.searchsorted(ordered, ordered)
    return ordinals


__all__ = ["SequenceOverflow"]
