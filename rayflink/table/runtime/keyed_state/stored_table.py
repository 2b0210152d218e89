"""The snapshots of an operator's keyed table: taken, confirmed and restored."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.rocksdb.rocksdb_files import owned_part
from rayflink.state.snapshots import DatabaseFiles, SnapshotReader

from .changes_by_barrier import Changes, ChangesByBarrier
from .keyed_table import KeyedTable
from .table_capture import Files, TableCapture, TableCaptures, TablePlace
from .table_segments import AboutTable, Segment, SegmentReader, SegmentRows, read_about, segment_schema
from .table_sizes import SegmentGroups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_LEAST_DENSE = 4
"""Later checkpoints go on from restored segments if this part of the row numbers is in use."""


class StoredTable:
    """Takes and restores the snapshots of an operator's keyed table.

    Args:
        table: the table.
        identity: which rows of the query the state belongs to; other state is refused on restore.
        ctx: of the operator.
        name: of the table among those of the operator, see `StoredTables`; "": it is the only one.
    """

    def __init__(self, table: KeyedTable, identity: str, ctx: OperatorContext, name: str = "") -> None:
        self.table = table
        """The table."""
        self.name = name
        """The name of the table among those of the operator."""
        self._ctx = ctx
        self._owned = key_group_range(ctx.subtask, ctx.parallelism, ctx.max_parallelism)
        schema = segment_schema(table, identity)
        self._place = TablePlace(identity, self._owned, ctx.max_parallelism, schema, ctx.spill_folder, name)
        self._changes = ChangesByBarrier()
        self._groups = SegmentGroups(self._owned)

    @property
    def tables(self) -> tuple[KeyedTable, ...]:
        """Return the table, as `StoredTables` does several."""
        return (self.table,)

    def capture(self, checkpoint_id: int) -> TableCapture:
        """Capture the rows as they are now."""
        base = self._changes.begin(checkpoint_id, self.table.records.take_changed(), self.table.take_vacated())

        def stored(segments: tuple[Segment, ...], files: Files) -> None:
            self._changes.stored(checkpoint_id, segments, files)
            self._groups.keep([segment.name for segment in segments])

        return TableCapture(self.table, self._place, base, stored, self._groups)

    def confirm(self, checkpoint_id: int) -> None:
        """Note that a checkpoint is complete: later ones may refer to its files."""
        self._changes.confirm(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """Note that a checkpoint will never be complete."""
        self._changes.abort(checkpoint_id)

    def restore(self, snapshots: Sequence[OperatorSnapshot], others: Collection[str] = ()) -> None:
        """Restore the rows of the key groups that the subtask owns; the table is empty.

        Those of the part that has most of them stay under their numbers, so that later checkpoints may go on from its
        segments, where it had all key groups of the subtask. The others are added.

        Args:
            others: names of other tables of the operator, whose parts are left alone.

        Raises:
            StorageError, DamagedFileError: a file is missing or not what was written.
            SnapshotMismatch, VersionMismatch: the state is of another table, or of a format that is not read here.
        """
        parts = [(database, snapshot) for snapshot in snapshots for database in snapshot.databases]
        parts = [part for part in parts if owned_part(part[0], self._owned) and self._is_of(part[0], others)]
        parts.sort(key=lambda part: -len(owned_part(part[0], self._owned)))
        for number, (database, snapshot) in enumerate(parts):
            assert snapshot.reader is not None, "files of a snapshot come with their reader"
            about = self._read_about(database)
            files = _Files(database, about, snapshot.reader, owned_part(database, self._owned))
            if number:
                self._fill(files, False)
                continue
            changes, is_like_now = self._fill(files, True)
            self.table.has_restored()
            is_dense = _LEAST_DENSE * len(self.table) >= self.table.records.top
            # Segments that are older than a rescale may have rows of key groups that others owned since.
            has_gained = owned_part(database, self._owned) != self._owned
            if snapshot.reusable and database.shared and is_dense and is_like_now and not has_gained:
                self._changes.start_from(about.segments, database.files, changes)

    def _is_of(self, database: DatabaseFiles, others: Collection[str]) -> bool:
        """Return whether files are those of this table, and not of another one of the operator."""
        name = read_about(database, self._ctx.label).name
        if name != self.name and name not in others:
            written, declared = (f"a table {name!r}" if name else "one table" for name in (name, self.name))
            remedy = "the operator had other tables; keep the query, or start without this state"
            raise SnapshotMismatch("keyed table", self._ctx.label, written, declared, remedy)
        return name == self.name

    def _read_about(self, database: DatabaseFiles) -> AboutTable:
        about = read_about(database, self._ctx.label)
        if about.max_parallelism != self._ctx.max_parallelism:
            written = f"max parallelism {about.max_parallelism}"
            declared = f"max parallelism {self._ctx.max_parallelism}"
            raise SnapshotMismatch("keyed table", self._ctx.label, written, declared, "the key groups differ")
        return about

    def _fill(self, files: _Files, keeps_numbers: bool) -> tuple[list[Changes], bool]:
        """Add the rows of files, the newest first, each number once.

        Returns: the changes of each segment, the oldest first, and whether rows have their times as rows do now.
        """
        is_known = np.zeros(0, dtype=np.bool_)
        changes: list[Changes] = []
        is_like_now = True
        for segment, parts in files.segments(self._place, self.table, self._ctx.label):
            stored, vacated = np.zeros(len(is_known), dtype=np.bool_), [_NONE_VACATED]
            for part in parts:
                top = int(part.rows.max()) + 1
                if top > len(is_known):
                    is_known, stored = _longer(is_known, 2 * top), _longer(stored, 2 * top)
                if part.columns is None:
                    vacated.append((part.rows, part.groups))
                else:
                    is_like_now &= (part.columns[0] is None) == (self.table.ttl_ms == 0)
                    stored[part.rows] = True
                    self._add(part, ~is_known[part.rows], keeps_numbers)
                is_known[part.rows] = True
            rows, groups = zip(*vacated, strict=True)
            changes.append(Changes.of(segment.upto, stored, (np.concatenate(rows), np.concatenate(groups))))
        if keeps_numbers:
            self.table.records.forget_changes()
        return changes[::-1], is_like_now

    def _add(self, part: SegmentRows, is_new: NDArray[np.bool_], keeps_numbers: bool) -> None:
        assert part.columns is not None, "vacated rows are not added"
        accessed, keys, values = part.columns
        if accessed is None:
            accessed = np.full(len(part.rows), self._ctx.clock.now_ms())
        rows, groups = part.rows, part.groups
        if not is_new.all():
            chosen = pa.array(is_new)
            rows, groups, accessed = rows[is_new], groups[is_new], accessed[is_new]
            keys, values = ([column.filter(chosen) for column in columns] for columns in (keys, values))
        if len(rows):
            comparable = self.table.comparable(keys)
            self.table.add_restored(comparable, values, accessed, groups, rows if keeps_numbers else None)


class StoredTables:
    """Takes and restores the snapshots of several tables of an operator, by their names.

    Args:
        tables: with names that differ.
    """

    def __init__(self, tables: Sequence[StoredTable]) -> None:
        self._tables = tables

    @property
    def tables(self) -> tuple[KeyedTable, ...]:
        """Return the tables."""
        return tuple(stored.table for stored in self._tables)

    def capture(self, checkpoint_id: int) -> TableCaptures:
        """Capture the rows of all tables as they are now."""
        return TableCaptures([stored.capture(checkpoint_id) for stored in self._tables])

    def confirm(self, checkpoint_id: int) -> None:
        """Note that a checkpoint is complete."""
        for stored in self._tables:
            stored.confirm(checkpoint_id)

    def abort(self, checkpoint_id: int) -> None:
        """Note that a checkpoint will never be complete."""
        for stored in self._tables:
            stored.abort(checkpoint_id)

    def restore(self, snapshots: Sequence[OperatorSnapshot]) -> None:
        """Restore the rows of all tables, see `StoredTable.restore`."""
        names = [stored.name for stored in self._tables]
        for stored in self._tables:
            stored.restore(snapshots, names)


_NONE_VACATED = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint16))


class _Files:
    """The files of one part of a snapshot.

    Args:
        database: the files.
        about: what they are.
        reader: of the files.
        owned: key groups of which rows are wanted.
    """

    def __init__(self, database: DatabaseFiles, about: AboutTable, reader: SnapshotReader, owned: range) -> None:
        self._database, self._about, self._reader, self._owned = database, about, reader, owned

    def segments(
        self, place: TablePlace, table: KeyedTable, operator: str
    ) -> Iterator[tuple[Segment, Iterator[SegmentRows]]]:
        """Yield (segment, its rows), the newest first; one file is on this machine at a time."""
        reads = SegmentReader(table, place.schema, operator)
        folder = place.new_folder()
        try:
            for segment in reversed(self._about.segments):
                blob, local = self._database.files[segment.name], folder / segment.name
                if isinstance(blob, bytes):
                    yield segment, reads.read(pa.BufferReader(blob), self._owned)
                    continue
                self._reader.copy(blob, local)
                with pa.memory_map(str(local)) as source:
                    yield segment, reads.read(source, self._owned)
                local.unlink()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _longer(flags: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    return np.concatenate([flags, np.zeros(size - len(flags), dtype=np.bool_)])


__all__ = ["StoredTable", "StoredTables"]
