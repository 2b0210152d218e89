"""A table of rows by their keys, updated in place: columnar state that grows with the keys.

A row is a record (`record_layout.py`) with a number, which an index finds by the key (`key_index.py`). Columns of types
that no record has are in heaps (`heap_columns.py`): those of the values are replaced by new rows of the heap. Numbers
are used again after their row was removed. Where rows expire, one whose time is over counts as absent at once, and a
sweep removes it. State beyond the managed memory goes to files: first the heaps, then the records, then the index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .comparable_keys import KeyForms, equal_keys, fingerprints
from .frame_memory import Columns, FrameMemory
from .frame_snapshots import key_groups_of_rows
from .heap_columns import HeapColumns
from .key_index import KeyIndex
from .record_layout import ACCESSED, FLAGS, GROUP, IN_USE, KEY_HEAP, PRINT, VALUE_HEAP, RecordLayout
from .secondary_index import RowsOfKeys, SecondaryIndex
from .table_records import TableRecords
from .vacated_numbers import VacatedNumbers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .record_layout import Records

    Rows = NDArray[np.int64]
    Truths = NDArray[np.bool_]

EXPIRED = "numStateEntriesExpired"
"""Metric: entries of a table that were removed since their time was over."""
SWEEP_MS = 100
"""Milliseconds between two slices of the sweep."""
_MOST_TTL_MS = 1 << 62
"""A longer time than any clock reaches; its sum with the time of an access is within 64 bits."""
_MAX_PARALLELISM = 128


class IndexForm(Enum):
    """The indexes of a table: by the whole key, of which each row has another, and by the partition key."""

    KEY = "each key has one row"
    KEY_AND_PARTITION = "each key has one row, and all rows of a partition key are found"
    PARTITION = "a key may have many rows, and all rows of a partition key are found"


class KeyedTable:
    """A table of rows by their keys.

    The rows that `find`, `add` and the others take and return are numbers, each of one row until it is removed; a call
    of `sweep`, `find` or `remove` may remove rows, and `add` uses their numbers again.

    Args:
        keys: types of the key's columns.
        values: types of the other columns.
        ttl_ms: how long a row is known that is not written; 0: for ever.
        partition_width: number of the key's columns by which rows are partitioned, the first ones; None: all.
        form: which indexes find rows.

    >>> table = KeyedTable([pa.int64()], [pa.int64(), pa.string()])
    >>> keys = table.comparable([pa.array([7, 8])])
    >>> rows = table.add(keys, [pa.array([1, 2]), pa.array(["a", "b"])], now_ms=0)
    >>> table.put(rows[:1], [pa.array([5]), pa.array(["c"])], now_ms=0)
    >>> [column.to_pylist() for column in table.take(table.find(keys, now_ms=0))]
    [[5, 2], ['c', 'b']]
    """

    def __init__(
        self, keys: Sequence[pa.DataType], values: Sequence[pa.DataType], ttl_ms: int = 0,
        partition_width: int | None = None, form: IndexForm = IndexForm.KEY,
    ) -> None:  # fmt: skip
        self._partition_width = partition_width
        self.key_types, self.value_types = list(keys), list(values)
        self.ttl_ms = min(ttl_ms, _MOST_TTL_MS)
        self.forms = KeyForms(keys)
        encoded = self.forms.encode([pa.array([], kind) for kind in keys])
        self.layout = RecordLayout([column.type for column in encoded], values, ttl_ms > 0)
        self.records = TableRecords(self.layout.dtype)
        self.key_heap, self.value_heap = HeapColumns(), HeapColumns()
        self.index = KeyIndex()
        self._has_index = form is not IndexForm.PARTITION
        partition = self.forms.encode([pa.array([], kind) for kind in self.key_types[:partition_width]])
        self._partition_layout = RecordLayout([column.type for column in partition], [], False)
        self._secondary = None if form is IndexForm.KEY else SecondaryIndex(self._has_partition, self._wanted_partition)
        self._max_parallelism = _MAX_PARALLELISM
        self._memory: FrameMemory | None = None
        self._swept, self._round_began_ms = 0, 0
        self._vacated = VacatedNumbers()
        self.sweep_at: int | None = None
        """Epoch milliseconds at which the next slice of the sweep is due; None: no row could expire."""
        self.beside = 0
        """Bytes that the operator stores in addition."""
        self.expired: Callable[[int], None] = lambda count: None
        """Report the number of rows that were removed since their time was over."""
        self.expiring: Callable[[Rows], None] = lambda rows: None
        """Called with rows whose time is over, before they are removed."""

    def __len__(self) -> int:
        return self.records.count

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
        self._memory = memory
        self._max_parallelism = memory.max_parallelism

    def comparable(self, columns: Sequence[pa.Array]) -> Columns:
        """Return columns of keys in the form in which they are compared, which the other methods take."""
        return self.forms.encode(columns)

    def find(self, keys: Columns, now_ms: int) -> Rows:
        """Return the row of each key, no two of them equal: int64[n], -1 where there is none."""
        rows = self.lookup(keys)
        if self.ttl_ms and len(rows):
            known = np.flatnonzero(rows >= 0)
            over = known[self.records.take(rows[known])[ACCESSED] + self.ttl_ms <= now_ms]
            if len(over):
                self._expire(rows[over])
                rows[over] = -1
        return rows

    def lookup(self, keys: Columns) -> Rows:
        """Return the row of each key, int64[n], one whose time is over, too; keys may be equal. -1: there is none."""
        wanted = self.layout.keys(keys), keys
        return self.index.find(fingerprints(keys), partial(self._is_equal, self.layout, wanted))

    def find_partitions(self, keys: Columns) -> RowsOfKeys:
        """Return the rows of each partition key, those included whose time is over; keys may be equal."""
        assert self._secondary is not None, "the form of the table has no rows by partition key"
        return self._secondary.find(keys)

    def is_over(self, rows: Rows, now_ms: int) -> Truths:
        """Return of which rows the time is over: bool[n]."""
        if not self.ttl_ms:
            return np.zeros(len(rows), dtype=np.bool_)
        over: Truths = self.records.room[ACCESSED][rows] + self.ttl_ms <= now_ms
        return over

    def _is_equal(
        self, layout: RecordLayout, wanted: tuple[Records, Columns], which: NDArray[np.int64], rows: Rows
    ) -> Truths:
        """Return whether some keys, whose columns are the first ones or all, are those of rows."""
        stored = self.records.take(rows)
        is_equal = layout.is_same_key(stored, wanted[0].take(which))
        if layout.heap_keys and len(rows):
            chosen = pa.array(which)
            columns = self.key_heap.take(stored[KEY_HEAP], len(layout.heap_keys))
            for number, column in zip(layout.heap_keys, columns, strict=True):
                is_equal &= equal_keys(wanted[1][number].take(chosen), column)
        return is_equal

    def _wanted_partition(self, keys: Columns) -> tuple[Records, Columns]:
        return self._partition_layout.keys(keys), keys

    def _has_partition(self, wanted: tuple[Records, Columns], which: NDArray[np.int64], rows: Rows) -> Truths:
        return self._is_equal(self._partition_layout, wanted, which, rows)

    def _partition_keys(self, records: Records) -> Columns:
        """Return the partition keys of records in the form in which they are compared."""
        layout = self._partition_layout
        take = partial(self.key_heap.take, width=len(layout.heap_keys))
        return _filled(layout.key_columns(records), layout.heap_keys, layout.key_types, records, KEY_HEAP, take)

    def add(self, keys: Columns, values: Columns, now_ms: int) -> Rows:
        """Add rows with keys that are not in the table, no two of them equal, and return them: int64[n]."""
        partition = self.forms.decode(keys)[: self._partition_width]
        groups = key_groups_of_rows(partition, len(keys[0]), self._max_parallelism)
        return self.add_restored(keys, values, np.full(len(groups), now_ms), groups)

    def add_restored(
        self, keys: Columns, values: Columns, accessed: Rows, groups: NDArray[Any], rows: Rows | None = None
    ) -> Rows:
        """Add rows with the time of their last access and the key group of each.

        Args:
            rows: their numbers; `has_restored` is called then when all rows were added.
        """
        prints, has_numbers = fingerprints(keys), rows is not None
        records = self.layout.keys(keys)
        records[PRINT], records[GROUP] = prints, groups
        self.layout.put_values(records, values)
        if self.ttl_ms:
            records[ACCESSED] = accessed
        rows = self.records.add(records, rows)
        if self.layout.heap_keys:
            self.records.change(KEY_HEAP, rows, self.key_heap.add(rows, [keys[n] for n in self.layout.heap_keys]))
        self._link_values(rows, values)
        if not has_numbers:
            if self._has_index:
                self.index.add(prints, rows)
            if self._secondary is not None:
                self._secondary.add(keys[: len(self._partition_layout.key_types)], rows)
        if self.ttl_ms and self.sweep_at is None and len(rows):
            self._round_began_ms = int(accessed.max())
            self.sweep_at = int(accessed.min()) + self.ttl_ms
        self.keep_to_memory()
        return rows

    def has_restored(self) -> None:
        """Index the rows that were added under numbers of the caller's choice; there are no others."""
        self.records.free_the_rest()
        self.index.expect(len(self) if self._has_index else 0)
        for rows in self.records.in_use():
            records = self.records.take(rows)
            if self._has_index:
                self.index.add_many(records[PRINT], rows)
            if self._secondary is not None:
                self._secondary.add(self._partition_keys(records), rows)
        self.keep_to_memory()

    def _link_values(self, rows: Rows, values: Columns) -> None:
        if self.layout.heap_values:
            chosen = [values[number] for number in self.layout.heap_values]
            self.records.change(VALUE_HEAP, rows, self.value_heap.add(rows, chosen))

    def take(self, rows: Rows) -> Columns:
        """Return the values of rows, in their order."""
        return self.values_of(self.records.take(rows), self.value_heap.take)

    def values_of(self, records: Records, heap: Callable[[Rows], Columns]) -> Columns:
        """Return the values of records, the columns of the heap as `heap` gives them."""
        columns = self.layout.value_columns(records)
        return _filled(columns, self.layout.heap_values, self.value_types, records, VALUE_HEAP, heap)

    def keys_of(self, records: Records, heap: Callable[[Rows], Columns]) -> Columns:
        """Return the keys of records in their original form, the columns of the heap as `heap` gives them."""
        columns = self.layout.key_columns(records)
        kinds = self.layout.key_types
        return self.forms.decode(_filled(columns, self.layout.heap_keys, kinds, records, KEY_HEAP, heap))

    def put(self, rows: Rows, values: Columns, now_ms: int) -> None:
        """Replace the values of rows, no two of them equal."""
        records = self.records.take(rows)
        if self.layout.heap_values:
            self.value_heap.remove(records[VALUE_HEAP])
        self.layout.put_values(records, values)
        if self.ttl_ms:
            records[ACCESSED] = now_ms
        self.records.replace(rows, records)
        self._link_values(rows, values)
        if self.layout.heap_values:
            self._tidy(self.value_heap, VALUE_HEAP)
            self.keep_to_memory()

    def numbers(self, rows: Rows, value: int) -> NDArray[Any]:
        """Return a column of the values of rows, of a type with a fixed width and without nulls."""
        numbers: NDArray[Any] = self.records.room[self.layout.value_field(value)][rows]
        return numbers

    def put_numbers(self, rows: Rows, value: int, numbers: NDArray[Any], now_ms: int) -> None:
        """Replace such a column of the values of rows, no two of them equal."""
        records = self.records.take(rows)
        records[self.layout.value_field(value)] = numbers
        if self.ttl_ms:
            records[ACCESSED] = now_ms
        self.records.replace(rows, records)

    def remove(self, rows: Rows) -> None:
        """Remove rows, no two of them equal."""
        if len(rows):
            records = self.records.take(rows)
            if self._has_index:
                self.index.remove(records[PRINT], rows)
            if self._secondary is not None:
                self._secondary.remove(rows)
            self._vacated.add(rows, records[GROUP].copy(), self.records.top)
            if self.layout.heap_keys:
                self.key_heap.remove(records[KEY_HEAP])
            if self.layout.heap_values:
                self.value_heap.remove(records[VALUE_HEAP])
            self.records.remove(rows)
            self._tidy(self.key_heap, KEY_HEAP)
            self._tidy(self.value_heap, VALUE_HEAP)

    def _tidy(self, heap: HeapColumns, field: str) -> None:
        """Free blocks of a heap of which few rows are left."""
        while (sparse := heap.sparse()) is not None:
            rows, owners = sparse
            records = self.records.take(owners)
            is_left = (records[FLAGS] & IN_USE != 0) & (records[field] == rows)
            owners = owners[is_left]
            if len(owners):
                columns = heap.take(rows[is_left])
                self.records.change(field, owners, heap.add(owners, columns))
            heap.drop(int(rows.min()))

    def take_vacated(self) -> tuple[Rows, NDArray[np.uint16]]:
        """Return the numbers that rows had at the last call and that were removed since, and their key groups."""
        return self._vacated.take()

    # memory

    def keep_to_memory(self) -> None:
        """Write state to files if it exceeds the memory."""
        memory = self._memory
        if memory is None or memory.reserve(self.size + self.beside):
            return
        self.key_heap.file(memory)
        self.value_heap.file(memory)
        if not memory.reserve(self.size + self.beside) and not self.records.is_filed:
            self.records.file(memory.mapped)
        if not memory.reserve(self.size + self.beside) and self.index.size:
            self.index.file(memory.mapped)
        if self._secondary is not None and not memory.reserve(self.size + self.beside) and self._secondary.size:
            self._secondary.file(memory.mapped)
        memory.reserve(self.size + self.beside)

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        heaps = self.key_heap.size + self.value_heap.size
        indexes = self.index.size + (0 if self._secondary is None else self._secondary.size)
        return self.records.size + indexes + heaps

    # expiry

    def _expire(self, rows: Rows) -> None:
        self.expiring(rows)
        self.remove(rows)
        self.expired(len(rows))

    def sweep(self, now_ms: int) -> None:
        """Sweep a slice, and set when the next is due: a round takes half of the time to live."""
        slices = max(self.ttl_ms // (2 * SWEEP_MS), 1)
        top = self.records.top
        stop = min(self._swept + max(-(-top // slices), 1), top)
        in_use = self.records.field(FLAGS, self._swept, stop) & IN_USE != 0
        is_over = self.records.field(ACCESSED, self._swept, stop) + self.ttl_ms <= now_ms
        over = self._swept + np.flatnonzero(in_use & is_over)
        if len(over):
            self._expire(over)
        self._swept = stop
        self.keep_to_memory()
        self.sweep_at = now_ms + SWEEP_MS
        if self._swept >= top:
            self._swept = 0
            self.index.shrink()
            pause = self.ttl_ms // 2
            self.sweep_at = max(self._round_began_ms + pause, self.sweep_at) if len(self) else None
            self._round_began_ms = max(now_ms, self._round_began_ms)


def _filled(
    columns: list[pa.Array | None],
    missing: list[int],
    kinds: Sequence[pa.DataType],
    records: Records,
    field: str,
    heap: Callable[[Rows], Columns],
) -> Columns:
    """Return columns with those of a heap among them."""
    if not missing:
        return [column for column in columns if column is not None]
    stored = heap(records[field]) if len(records) else [pa.array([], kinds[number]) for number in missing]
    rest = iter(stored)
    return [next(rest) if column is None else column for column in columns]


__all__ = ["EXPIRED", "SWEEP_MS", "IndexForm", "KeyedTable"]
