"""The keyed table of an operator of groups, with its memory, its snapshots, and the keys of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import OperatorContext, OperatorSnapshot

from ..aggregates.grouping import grouped
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_table import IndexForm, KeyedTable
from ..keyed_state.stored_table import StoredTable, StoredTables
from ..keyed_state.table_operator import KeyedTableOperator
from ..ranks.first_of_key import EXPIRED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .segments import Numbers

_NO_KEY = pa.array([0], pa.int8())
"""The key of all rows, where there are no columns to group by."""


class FoundKeys(NamedTuple):
    """The keys of some rows, each once, and what is stored of them.

    Args:
        codes: the key of each row: intp[n].
        keys: in the form in which they are compared.
        rows: their rows in the table: int64[m]; -1: there is none.
        stored: the columns of those that have one, in their order.
    """

    codes: NDArray[np.intp]
    keys: Columns
    rows: Numbers
    stored: Columns


class TableState:
    """A keyed table that belongs to an operator, and further tables whose rows have the same partition keys.

    Args:
        keys: types of the columns by which rows are partitioned; none: all rows have one key.
        more: types of further columns of the key.
        values: types of the columns that are stored.
        ttl_ms: how long a key is known of which no row comes; 0: for ever.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
        form: how rows are found.
    """

    def __init__(
        self, keys: Sequence[pa.DataType], more: Sequence[pa.DataType], values: Sequence[pa.DataType], ttl_ms: int,
        state_identity: str, form: IndexForm = IndexForm.KEY,
    ) -> None:  # fmt: skip
        self._has_key, self._kinds, self._values = bool(keys), list(keys) or [_NO_KEY.type], list(values)
        self.table = KeyedTable([*self._kinds, *more], values, ttl_ms, len(self._kinds), form)
        self._others: dict[str, KeyedTable] = {}
        self._expires, self._state_identity = ttl_ms > 0, state_identity

    @property
    def partition_types(self) -> list[pa.DataType]:
        """Return the types of the columns of the partition key."""
        return self._kinds

    def put_beside(self, tables: Mapping[str, KeyedTable]) -> None:
        """Let further tables, by their names, be part of the state; called before `open`."""
        self._others |= tables

    def open(self, ctx: OperatorContext) -> None:
        """Take memory, clock and metrics."""
        self._clock = ctx.clock
        self._memory = FrameMemory(ctx)
        tables = [StoredTable(table, self._state_identity, ctx, name) for name, table in self._others.items()]
        for table in (self.table, *self._others.values()):
            table.open(self._memory)
        self.stored = StoredTable(self.table, self._state_identity, ctx)
        self.all_stored: StoredTable | StoredTables = StoredTables([self.stored, *tables]) if tables else self.stored
        if ctx.metrics is not None and self._expires:
            self.table.expired = ctx.metrics.counter(EXPIRED).inc

    @property
    def now_ms(self) -> int:
        """Return processing time, by which keys expire."""
        return int(self._clock.now_ms())

    def keys_of(self, columns: Columns, rows: int) -> Columns:
        """Return the columns of the partition key of rows.

        Args:
            columns: of the rows; none where all have one key.
            rows: how many.
        """
        if not self._has_key:
            return [_NO_KEY.take(pa.array(np.zeros(rows, dtype=np.int64)))]
        return [column if column.type == kind else column.cast(kind)
                for column, kind in zip(columns, self._kinds, strict=True)]  # fmt: skip

    def find(self, keys: Columns, rows: int, now_ms: int) -> FoundKeys:
        """Return the keys of rows, and what is stored of them."""
        groups = grouped(self.table.comparable(keys), rows)
        places = self.table.find(groups.keys, now_ms)
        known = places[places >= 0]
        stored = self.table.take(known) if len(known) else [pa.nulls(0, kind) for kind in self._values]
        return FoundKeys(groups.codes, groups.keys, places, stored)

    def share_memory(self) -> None:
        """Let each table know what the others take of the memory."""
        sizes = {name: table.size for name, table in self._others.items()}
        total = sum(sizes.values())
        self.table.beside = total
        for name, table in self._others.items():
            table.beside = self.table.size + total - sizes[name]

    def store(self, entries: FoundKeys, is_present: NDArray[np.bool_], columns: Columns, now_ms: int) -> None:
        """Store columns for the keys that are present, and remove the others."""
        table, rows = self.table, entries.rows
        known, new = np.flatnonzero((rows >= 0) & is_present), np.flatnonzero((rows < 0) & is_present)
        gone = rows[(rows >= 0) & ~is_present]
        if len(known):
            table.put(rows[known], take_rows(columns, known), now_ms)
        if len(gone):
            table.remove(gone)
        if len(new):
            table.add(take_rows(entries.keys, new), take_rows(columns, new), now_ms)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()


class TableOperator(KeyedTableOperator):
    """An operator whose state is one keyed table.

    Args:
        state: the table.
    """

    def __init__(self, state: TableState) -> None:
        self._state = state

    @property
    def stored(self) -> StoredTable | StoredTables:
        return self._state.all_stored

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        """Called for each batch with rows. Return what they emit."""
        raise NotImplementedError(type(self).__name__)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        return self.add(batch.data) if len(batch) else ()

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self._state.open(self.ctx)
        super().initialize_state(snapshots)

    def close(self) -> None:
        self._state.close()


__all__ = ["FoundKeys", "TableOperator", "TableState"]
