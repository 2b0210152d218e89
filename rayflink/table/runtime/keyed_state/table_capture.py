"""A keyed table as it was at a barrier, which another thread writes as a segment while the table changes."""

from __future__ import annotations

import shutil
import tempfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from rayflink.state.private_folders import make_private
from rayflink.state.snapshots import Blob, DatabaseFiles, FileSlice, KeyedParts, SnapshotWriter

from .changes_by_barrier import Base, Changes, changed_rows, vacated_rows
from .keyed_table import KeyedTable
from .table_segments import AboutTable, Segment, SegmentWriter
from .table_sizes import SegmentGroups

SHARED_BYTES = 1 << 20
"""All rows of a table are a file to which later checkpoints refer when they take more than this."""
Files = Mapping[str, Blob]


@dataclass(frozen=True, slots=True)
class TablePlace:
    """Describes what the snapshots of a table have in common.

    Args:
        identity: which rows of the query the state belongs to.
        key_groups: those of the subtask.
        max_parallelism: key groups in all.
        schema: of the segments.
        folder: for files on this machine; "": one of the system's.
        name: of the table among those of its operator; "": it is the only one.
    """

    identity: str
    key_groups: range
    max_parallelism: int
    schema: pa.Schema
    folder: str
    name: str = ""

    def new_folder(self) -> Path:
        """Make a folder for files of one snapshot."""
        if not self.folder:
            return Path(tempfile.mkdtemp(prefix="rayflink-"))
        make_private(Path(self.folder))
        return Path(tempfile.mkdtemp(prefix="table-", dir=self.folder))

    def database(self, segments: tuple[Segment, ...], files: Files, shared: frozenset[str]) -> DatabaseFiles:
        """Return segments as the value that a checkpoint stores."""
        about = AboutTable(self.identity, self.max_parallelism, segments, self.name).encode()
        return DatabaseFiles(self.key_groups.start, self.key_groups.stop, files, shared, about)


class TableCapture:
    """A keyed table as it was at a barrier; a `KeyedCapture`.

    Args:
        table: the table, at the barrier.
        place: of its snapshots.
        base: what the checkpoint may go on from.
        written: called with the segments, and the files to which later checkpoints may refer, once all are written.
        groups: of the table's segments.
    """

    def __init__(
        self,
        table: KeyedTable,
        place: TablePlace,
        base: Base,
        written: Callable[[tuple[Segment, ...], Files], None],
        groups: SegmentGroups,
    ) -> None:
        self._place, self._base, self._written, self._groups = place, base, written, groups
        self._live, self._view = len(table), table.records.view()
        heaps = table.key_heap.view(), table.value_heap.view()
        self._rows = SegmentWriter(table, place.schema, heaps)
        self._folder: Path | None = None

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        """Store the rows that changed since the last segment that is shared; for a savepoint, all rows.

        Raises:
            StorageError: they cannot be stored.
            OSError: they cannot be written on this machine.
        """
        if not self._live:
            if not writer.is_savepoint:
                self._written((), {})
            return KeyedParts()
        count = 0 if writer.is_savepoint else self._base.reusable(self._live)
        segments = self._base.segments[:count]
        files: dict[str, Blob] = {segment.name: self._base.files[segment.name] for segment in segments}
        new, blob, is_shared = self._write_segment(writer, self._base.behind(count) if count else None)
        if new.rows:
            segments, files[new.name] = (*segments, new), blob
        if not writer.is_savepoint:
            self._written(segments, files if is_shared else {})
        shared = frozenset(files) if is_shared else frozenset()
        written = [new.name] if new.rows else []
        size = self._groups.size(self._place.name, segments, files, written, self._live)
        return KeyedParts({}, (self._place.database(segments, files, shared),), (size,))

    def _write_segment(self, writer: SnapshotWriter, changes: list[Changes] | None) -> tuple[Segment, Blob, bool]:
        """Write the changes, all rows if None, and return the segment, its file and whether it may be shared."""
        wanted, vacated = None, (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint16))
        if changes is not None:
            wanted, vacated = changed_rows(changes), vacated_rows(changes)
        self._folder = self._place.new_folder()
        local = self._folder / "segment"
        rows = self._rows.write(local, vacated, self._view.slices(wanted))
        if changes is not None and not rows:
            return Segment("", self._base.upto, 0), b"", True
        is_shared = not writer.is_savepoint and (changes is not None or local.stat().st_size > SHARED_BYTES)
        blob = writer.put_file(local, is_shared)
        checksum = blob.checksum if isinstance(blob, FileSlice) else zlib.crc32(blob)
        segment = Segment(f"{self._base.upto}-{checksum:08x}.arrow", self._base.upto, rows)
        self._groups.add(segment.name, self._rows.group_rows)
        return segment, blob, is_shared

    def release(self) -> None:
        """Let go of the rows, and remove the file on this machine."""
        self._view.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


class TableCaptures:
    """Several tables of one operator as they were at a barrier; a `KeyedCapture`.

    Args:
        captures: of the tables.
    """

    def __init__(self, captures: Sequence[TableCapture]) -> None:
        self._captures = captures

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        """Store the tables, see `TableCapture.write`."""
        parts = [capture.write(writer) for capture in self._captures]
        databases = tuple(database for part in parts for database in part.databases)
        return KeyedParts({}, databases, tuple(size for part in parts for size in part.sizes))

    def release(self) -> None:
        """Let go of all rows."""
        for capture in self._captures:
            capture.release()


__all__ = ["SHARED_BYTES", "TableCapture", "TableCaptures", "TablePlace"]
