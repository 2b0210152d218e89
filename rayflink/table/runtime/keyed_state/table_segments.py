"""Segments: immutable files with rows of a keyed table, of which the checkpoints of a job share the older ones.

A segment has the rows that changed between two barriers, by their numbers, or all rows. A checkpoint is a list of
segments: the last one that has a number says what its row is. It is an Arrow file: first the numbers that were vacated,
with the key group of the row that was there, which come before the rows of the same segment; then rows, in batches
each of which is sorted by key group, so that the rows of some key groups are neighbours.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.state.errors import SnapshotMismatch, VersionMismatch
from rayflink.state.keys.key_groups import MAX_MAX_PARALLELISM
from rayflink.state.snapshots import DatabaseFiles

from ..aggregates.reductions import to_arrow, to_numpy
from .frame_memory import Columns
from .frame_snapshots import ABOUT, describe_schema
from .heap_columns import HeapView
from .keyed_table import KeyedTable
from .record_layout import ACCESSED, FLAGS, GROUP, IN_USE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .record_layout import Records

    Rows = NDArray[np.int64]

TABLE_FORMAT = b"T1"
"""Format of segments and of what is said about them: the first bytes of `DatabaseFiles.about`."""
_ROW, _GROUP = pa.field("$row", pa.uint32()), pa.field("$group", pa.uint16())
_ACCESSED = pa.field("$accessed", pa.int64())
_VACATED = b"rayflink.vacated"


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a checkpoint.

    Args:
        name: of its file.
        upto: the number of the barrier up to which it has the changes since the segment before it.
        rows: how many it has, vacated ones included.
    """

    name: str
    upto: int
    rows: int


@dataclass(frozen=True, slots=True)
class AboutTable:
    """The metadata needed to read the segments of a table.

    Args:
        identity: which rows of the query the state belongs to.
        max_parallelism: key groups in all.
        segments: the oldest first.
        name: of the table among those of its operator; "": it is the only one.
    """

    identity: str
    max_parallelism: int
    segments: tuple[Segment, ...]
    name: str = ""

    def encode(self) -> bytes:
        """Encode the metadata as bytes."""
        fields = asdict(self)
        if not self.name:
            del fields["name"]
        return TABLE_FORMAT + json.dumps(fields).encode()


def read_about(database: DatabaseFiles, operator: str) -> AboutTable:
    """Read the metadata of the files of a table.

    Raises:
        VersionMismatch: they are of a format that is not read here.
    """
    if database.about[: len(TABLE_FORMAT)] != TABLE_FORMAT:
        written = f"files of format {database.about[: len(TABLE_FORMAT)]!r}"
        raise VersionMismatch(written, f"files of format {TABLE_FORMAT!r}, of a keyed table", "(all)", operator)
    fields = json.loads(database.about[len(TABLE_FORMAT) :])
    segments = tuple(Segment(**segment) for segment in fields.pop("segments"))
    return AboutTable(segments=segments, **fields)


def segment_schema(table: KeyedTable, identity: str) -> pa.Schema:
    """Return the schema of a table's segments."""
    keys = [pa.field(f"k{number}", kind) for number, kind in enumerate(table.key_types)]
    values = [pa.field(f"v{number}", kind) for number, kind in enumerate(table.value_types)]
    accessed = [_ACCESSED] if table.ttl_ms else []
    return pa.schema([_ROW, _GROUP, *accessed, *keys, *values], {ABOUT: identity.encode()})


class SegmentWriter:
    """Writes rows of a table as a segment.

    Args:
        table: of which the types are used, not the rows.
        schema: of the segment.
        heaps: views of the heaps of keys and values.
    """

    def __init__(self, table: KeyedTable, schema: pa.Schema, heaps: tuple[HeapView, HeapView]) -> None:
        self._table, self._schema, self._heaps = table, schema, heaps
        self.group_rows: Rows = np.zeros(MAX_MAX_PARALLELISM, dtype=np.int64)
        """The number of rows that were written of each key group, those that were vacated not included."""

    def write(
        self, path: Path, vacated: tuple[Rows, NDArray[np.uint16]], slices: Iterable[tuple[Rows, Records]]
    ) -> int:
        """Write a segment, and return the number of its rows.

        Args:
            vacated: numbers of rows that were removed, and their key groups.
            slices: numbers and records, of which those that are in use are written.

        Raises:
            OSError: it cannot be written.
        """
        total = len(vacated[0])
        metadata = {**self._schema.metadata, _VACATED: b"1" if total else b"0"}
        schema = self._schema.with_metadata(metadata)
        with pa.ipc.new_file(str(path), schema) as writer:
            if total:
                writer.write_batch(_vacated_batch(vacated, schema))
            for rows, records in slices:
                in_use = np.flatnonzero(records[FLAGS] & IN_USE)
                if len(in_use):
                    writer.write_batch(self._batch(rows[in_use], records.take(in_use), schema))
                    total += len(in_use)
        return total

    def _batch(self, rows: Rows, records: Records, schema: pa.Schema) -> pa.RecordBatch:
        order = np.argsort(records[GROUP], kind="stable")
        rows, records = rows[order], records.take(order)
        self.group_rows += np.bincount(records[GROUP], minlength=MAX_MAX_PARALLELISM)
        columns = [to_arrow(rows.astype(np.uint32), _ROW.type), to_arrow(records[GROUP], _GROUP.type)]
        if self._table.ttl_ms:
            columns.append(to_arrow(records[ACCESSED], _ACCESSED.type))
        columns += self._table.keys_of(records, self._heaps[0].take)
        columns += self._table.values_of(records, self._heaps[1].take)
        return pa.RecordBatch.from_arrays(columns, schema=schema)


def _vacated_batch(vacated: tuple[Rows, NDArray[np.uint16]], schema: pa.Schema) -> pa.RecordBatch:
    rows, groups = vacated
    order = np.argsort(groups, kind="stable")
    columns = [to_arrow(rows[order].astype(np.uint32), _ROW.type), to_arrow(groups[order], _GROUP.type)]
    columns += [pa.nulls(len(rows), field.type) for field in schema][2:]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


@dataclass(frozen=True, slots=True)
class SegmentRows:
    """Rows of some key groups in a segment.

    Args:
        rows: their numbers.
        groups: their key groups.
        columns: the times of their last accesses, where the segment has them, keys and values; None: they were
            vacated.
    """

    rows: Rows
    groups: NDArray[np.uint16]
    columns: tuple[Rows | None, Columns, Columns] | None


class SegmentReader:
    """Reads the rows of some key groups from segments.

    Args:
        table: of which the types are expected.
        schema: of the table's segments.
        operator: for errors.
    """

    def __init__(self, table: KeyedTable, schema: pa.Schema, operator: str) -> None:
        self._schema, self._operator = schema, operator
        self._width = len(table.key_types)

    def read(self, source: pa.NativeFile, owned: range) -> Iterator[SegmentRows]:
        """Yield the rows of a segment that belong to key groups, those that were vacated last.

        Args:
            source: the file, mapped or in memory.

        Raises:
            SnapshotMismatch: it has other columns, or is of something else.
        """
        with pa.ipc.open_file(source) as reader:
            has_time = self._check(reader.schema)
            for number in reversed(range(reader.num_record_batches)):
                batch = reader.get_batch(number)
                groups = to_numpy(batch.column(1))
                first, stop = np.searchsorted(groups, (owned.start, owned.stop))
                if first < stop:
                    is_vacated = not number and reader.schema.metadata[_VACATED] == b"1"
                    yield self._rows(batch.slice(first, stop - first), has_time, is_vacated)

    def _rows(self, batch: pa.RecordBatch, has_time: bool, is_vacated: bool) -> SegmentRows:
        rows, groups = to_numpy(batch.column(0)).astype(np.int64), to_numpy(batch.column(1))
        if is_vacated:
            return SegmentRows(rows, groups, None)
        accessed = to_numpy(batch.column(2)) if has_time else None
        columns = batch.columns[3 if has_time else 2 :]
        return SegmentRows(rows, groups, (accessed, list(columns[: self._width]), list(columns[self._width :])))

    def _check(self, written: pa.Schema) -> bool:
        """Return whether rows have the times of their last accesses."""
        has_time = _ACCESSED.name in written.names
        columns = [field for field in written if field.name != _ACCESSED.name]
        expected = [field for field in self._schema if field.name != _ACCESSED.name]
        if columns != expected or written.metadata[ABOUT] != self._schema.metadata[ABOUT]:
            raise SnapshotMismatch(
                "keyed table", self._operator, describe_schema(written), describe_schema(self._schema),
                "other keys or values; keep the query, or start without this state",
            )  # fmt: skip
        return has_time


__all__ = [
    "TABLE_FORMAT", "AboutTable", "Segment", "SegmentReader", "SegmentRows", "SegmentWriter", "read_about",
    "segment_schema",
]  # fmt: skip
