"""The entries of views in accumulators of groups: a keyed table beside that of the groups.

    key                                     column
    group, number of the view, the entry    its value

Of groups with few entries for the rows of a batch all are read at once; of others each when it is asked for. Behind a
batch the entries that it changed are written, for all groups together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.user_types import UserValue

from ...user_functions.stored_views import MARK, Change, Nothing, Views, has_views
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from ..keyed_state.record_layout import KEY_HEAP
from ..keyed_state.runs import ranges
from .overflow_table import BatchGroups, OverflowTable
from .running_sums import GroupRows
from .running_user_aggregates import RunningUserAggregate

if TYPE_CHECKING:
    from .segments import Numbers, Segments

MOST_AT_HAND = 1024
"""Entries of a group that are read at once for a batch, however few rows it has there."""
MOST_A_ROW = 128
"""The same for each row that the group has in the batch: to look up an entry costs what to read this number does."""
MOST_READ = 1 << 20
"""Entries of a group that are read at once in any case."""
_ENTRY = [pa.int32(), pa.large_binary()]
ByView = dict[int, dict[bytes, bytes]]
"""Entries by their view."""


class UserViews(OverflowTable):
    """Runs a user's aggregate function, and stores the entries of the views in its accumulators.

    Args:
        slot: the function.
        keys: types of the group's key.
    """

    def __init__(self, slot: RunningUserAggregate, keys: Sequence[pa.DataType]) -> None:
        super().__init__(keys, _ENTRY, [pa.large_binary()])
        self._slot, self._width, self._forms = slot, len(keys), KeyForms(_ENTRY)
        self._has_views: bool | None = None
        """None: no accumulator was made yet."""

    def run(self, base: Columns, rows: GroupRows, groups: BatchGroups) -> tuple[Columns, Columns]:
        """Return the results and the state behind each segment, as `RunningUserAggregate.run` does."""
        if self._has_views is None:
            self._has_views = has_views(self._slot.user.create())
        if not self._has_views and not len(self.table):
            return self._slot.run(base, rows)
        views = _BatchViews(self, self._slot, groups, rows.segments)
        results, state = self._slot.run_with(base, rows, views)
        views.write()
        return results, state

    def read(self, rows: Numbers) -> tuple[list[int], list[bytes], list[bytes]]:
        """Return the views, the entries and the values of rows of the table."""
        records = self.table.records.take(rows)
        keys = self.table.keys_of(records, lambda _: self.table.key_heap.take(records[KEY_HEAP]))
        views, entries = keys[self._width :]
        return views.to_pylist(), entries.to_pylist(), self.table.take(rows)[0].to_pylist()

    def keys(self, groups: Columns, views: Sequence[int], entries: Sequence[bytes]) -> Columns:
        """Return keys of the table in the form in which they are compared."""
        return [*groups, *self._forms.encode([pa.array(views, pa.int32()), pa.array(entries, pa.large_binary())])]


class _GroupEntries:
    """The stored entries of a group; a `ViewEntries`.

    Args:
        views: the table.
        key: of the group.
        now_ms: processing time.
        entries: all entries; None: they are read when they are asked for.
    """

    def __init__(self, views: UserViews, key: Columns, now_ms: int, entries: ByView | None) -> None:
        self._views, self._key, self._now_ms, self._entries = views, key, now_ms, entries

    @property
    def are_at_hand(self) -> bool:
        return self._entries is not None

    def entry(self, view: int, entry: bytes) -> bytes | None:
        if self._entries is not None:
            return self._entries.get(view, {}).get(entry)
        table = self._views.table
        rows = table.find(self._views.keys(self._key, [view], [entry]), self._now_ms)
        return None if rows[0] < 0 else bytes(table.take(rows)[0][0].as_py())

    def entries(self, view: int) -> Mapping[bytes, bytes]:
        if self._entries is None:
            stored = self._views.table.find_partitions(self._key)
            rows = stored.order[ranges(stored.first, stored.count)].astype(np.int64)
            self._entries = {}
            for number, entry, value in zip(*self._views.read(rows), strict=True):
                self._entries.setdefault(number, {})[entry] = value
        return self._entries.get(view, {})


class _BatchViews:
    """The accumulators of the segments of a batch, with their views; an `Accumulators`.

    Args:
        views: the table.
        slot: the function.
        groups: of the batch.
        segments: of its rows.
    """

    def __init__(
        self, views: UserViews, slot: RunningUserAggregate, groups: BatchGroups, segments: Segments
    ) -> None:  # fmt: skip
        self._views, self._user, self._groups = views, slot.user, groups
        self._owners = np.searchsorted(groups.last_segments, np.arange(len(segments))).tolist()
        self._sizes = segments.stops - segments.starts
        self._firsts = set(groups.first_segments.tolist())
        self._entries = self._stored_entries()
        self._open = Views(Nothing())
        self._changes: dict[int, list[Change]] = {}
        self._begins_anew: set[int] = set()

    def _stored_entries(self) -> list[_GroupEntries]:
        """Return the entries of each group."""
        views, groups = self._views, self._groups
        count = len(groups.last_segments)
        at_hand: list[ByView | None] = [{} for _ in range(count)]
        if len(views.table):
            stored = views.table.find_partitions(groups.keys)
            rows_of_groups = np.bincount(self._owners, self._sizes, count)
            most = np.clip(rows_of_groups * MOST_A_ROW, MOST_AT_HAND, MOST_READ)
            for group in np.flatnonzero(stored.count > most).tolist():
                at_hand[group] = None
            few = np.flatnonzero((stored.count > 0) & (stored.count <= most))
            rows = stored.order[ranges(stored.first[few], stored.count[few])].astype(np.int64)
            owners = np.repeat(few, stored.count[few]).tolist()
            for group, number, entry, value in zip(owners, *views.read(rows), strict=True):
                entries = at_hand[group]
                assert entries is not None, "a group has few entries, or many"
                entries.setdefault(number, {})[entry] = value
        return [_GroupEntries(views, take_rows(groups.keys, np.array([group])), groups.now_ms, entries)
                for group, entries in enumerate(at_hand)]  # fmt: skip

    def load(self, segment: int, data: bytes | None) -> UserValue:
        group = self._owners[segment]
        if segment not in self._firsts:
            self._begins_anew.add(group)
        self._open = Views(Nothing() if data is None else self._entries[group])
        if data is None or data[:1] != MARK:
            return self._user.load(data)
        return self._open.load(data)

    def dump(self, segment: int, accumulator: UserValue) -> bytes:
        data, self._changes[self._owners[segment]] = self._open.dump(accumulator)
        return data

    def write(self) -> None:
        """Write the entries that have changed, and remove those of groups that are gone."""
        table, groups = self._views.table, self._groups
        is_gone = ~groups.is_left
        is_gone[list(self._begins_anew)] = True
        if is_gone.any():
            self._views.forget(take_rows(groups.keys, np.flatnonzero(is_gone)))
        changes = {(group, change.view, change.entry): change.value for group, part in self._changes.items()
                   if groups.is_left[group] for change in part}  # fmt: skip
        if not changes:
            return
        owners, views, entries = zip(*changes, strict=True)
        keys = self._views.keys(take_rows(groups.keys, np.array(owners)), views, entries)
        values = pa.array(list(changes.values()), pa.large_binary())
        rows, is_present = table.find(keys, groups.now_ms), values.is_valid().to_numpy(zero_copy_only=False)
        known, new = np.flatnonzero((rows >= 0) & is_present), np.flatnonzero((rows < 0) & is_present)
        if len(known):
            table.put(rows[known], take_rows([values], known), groups.now_ms)
        table.remove(rows[(rows >= 0) & ~is_present])
        if len(new):
            table.add(take_rows(keys, new), take_rows([values], new), groups.now_ms)


__all__ = ["MOST_AT_HAND", "UserViews"]
