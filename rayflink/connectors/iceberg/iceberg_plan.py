"""The data files that an Iceberg source reads: those of a snapshot, and those that later snapshots append."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserValue

from ..formats.parquet_pruning import Wanted
from ..lakes.data_file_reading import DataFileSplit
from ..lakes.lake_errors import LakeError, library
from ..lakes.lake_source import Discovered, of_schema
from .iceberg_table import TableLoader, open_data_file

if TYPE_CHECKING:
    import pyarrow
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

MOST_SNAPSHOTS = 100
"""Snapshots that one look for new ones reads."""


class StreamingStartingStrategy(Enum):
    """The place where a source that reads appends begins."""

    TABLE_SCAN_THEN_INCREMENTAL = "table scan, then increments"
    INCREMENTAL_FROM_LATEST_SNAPSHOT = "appends after the snapshot at the start"
    INCREMENTAL_FROM_EARLIEST_SNAPSHOT = "appends from the oldest snapshot on"
    INCREMENTAL_FROM_SNAPSHOT_ID = "appends from a snapshot on, which is included"
    INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP = "appends from a time on"


@dataclass(frozen=True)
class IcebergPlan:
    """The choice of files of an Iceberg table.

    Args:
        columns: names of those that are read; None: all.
        snapshot_id: that is read; None: the newest.
        timestamp_ms: the newest snapshot at this time is read, in epoch milliseconds.
        reference: the branch or tag that is read.
        start: of a source that reads appends.
        start_snapshot_id, start_timestamp_ms: for the strategies that need one.
        skip_overwrites, skip_deletes: snapshots that replace or delete rows are passed over; else they are an error.
        wanted: conditions by which files are passed over.
    """

    loader: TableLoader
    columns: tuple[str, ...] | None = None
    snapshot_id: int | None = None
    timestamp_ms: int | None = None
    reference: str | None = None
    start: StreamingStartingStrategy = StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL
    start_snapshot_id: int | None = None
    start_timestamp_ms: int | None = None
    skip_overwrites: bool = False
    skip_deletes: bool = False
    wanted: tuple[Wanted, ...] = ()

    def first(self) -> Discovered:
        """Return the files of the snapshot, or the snapshot after which appends are read."""
        table = self.loader.load()
        if self.start is not StreamingStartingStrategy.TABLE_SCAN_THEN_INCREMENTAL:
            return Discovered(self._position_before(table))
        snapshot = self._snapshot(table)
        if snapshot is None:
            return Discovered(None)
        with self.loader.errors("planned"):
            tasks = list(table.scan(self._row_filter(), snapshot_id=snapshot.snapshot_id).plan_files())
        splits = [
            DataFileSplit(
                task.file.file_path,
                snapshot.snapshot_id,
                _constants(table, task.file),
                tuple(sorted((file.file_path, str(file.file_format.value)) for file in task.delete_files)) or None,
            )
            for task in tasks
        ]
        return Discovered(snapshot.snapshot_id, tuple(splits))

    def after(self, position: int | None) -> Discovered:
        """Return the files that later snapshots appended.

        Raises:
            LakeError: a snapshot is no append, or the one of the position is no longer an ancestor of the current one.
        """
        table = self.loader.load()
        splits: list[DataFileSplit] = []
        skipped = 0
        for snapshot in self._later(table, position)[:MOST_SNAPSHOTS]:
            position = snapshot.snapshot_id
            operation = "append" if snapshot.summary is None else str(snapshot.summary.operation.value)
            if operation == "replace":
                continue  # the same rows in other files
            if operation != "append":
                self._check_skipped(snapshot, operation)
                skipped += 1
                continue
            with self.loader.errors("planned"):
                for file in _added_files(table, snapshot):
                    constants = _constants(table, file)
                    splits.append(DataFileSplit(file.file_path, position, constants, None, skipped))
                    skipped = 0
        return Discovered(position, tuple(splits), skipped)

    def schema(self) -> pyarrow.Schema:
        """Return names and types of the columns that are read.

        Raises:
            LakeError: the table lacks one.
        """
        import pyarrow

        table = self.loader.load()
        schema = library("pyiceberg.io.pyarrow", "iceberg").schema_to_pyarrow(table.schema(), include_field_ids=False)
        columns = schema.names if self.columns is None else self.columns
        of_schema(columns, schema.names, str(self.loader))
        return pyarrow.schema([schema.field(name) for name in columns])

    def _snapshot(self, table: Table) -> Snapshot | None:
        """Return the snapshot that is read; None: the table is empty.

        Raises:
            LakeError: it is gone, or never was.
        """
        if self.snapshot_id is not None:
            snapshot = table.snapshot_by_id(self.snapshot_id)
            what = f"snapshot {self.snapshot_id}"
        elif self.timestamp_ms is not None:
            snapshot = table.snapshot_as_of_timestamp(self.timestamp_ms)
            what = f"snapshot as of {self.timestamp_ms} ms"
        elif self.reference is not None:
            snapshot = table.snapshot_by_name(self.reference)
            what = f"branch or tag {self.reference!r}"
        else:
            return table.current_snapshot()
        if snapshot is None:
            raise LakeError(f"{self.loader} has no {what}", "use one that its metadata lists and that is not expired")
        return snapshot

    def _position_before(self, table: Table) -> int | None:
        """Return the snapshot after which appends are read.

        Raises:
            LakeError: the table has no such snapshot.
        """
        current = table.current_snapshot()
        newest = None if current is None else current.snapshot_id
        if self.start is StreamingStartingStrategy.INCREMENTAL_FROM_LATEST_SNAPSHOT:
            return newest
        if self.start is StreamingStartingStrategy.INCREMENTAL_FROM_EARLIEST_SNAPSHOT:
            return None
        lineage = list(_lineage(table))
        if self.start is StreamingStartingStrategy.INCREMENTAL_FROM_SNAPSHOT_TIMESTAMP:
            before = [snapshot for snapshot in lineage if snapshot.timestamp_ms < (self.start_timestamp_ms or 0)]
            return before[0].snapshot_id if before else None
        first = next((snapshot for snapshot in lineage if snapshot.snapshot_id == self.start_snapshot_id), None)
        if first is None:
            problem = f"{self.loader} has no snapshot {self.start_snapshot_id} among those that led to the current one"
            raise LakeError(problem, "use one that is not expired and not rolled back")
        return first.parent_snapshot_id

    def _later(self, table: Table, position: int | None) -> list[Snapshot]:
        """Return the snapshots after a position, oldest first.

        Raises:
            LakeError: the position is no longer among them.
        """
        later: list[Snapshot] = []
        for snapshot in _lineage(table):
            if snapshot.snapshot_id == position:
                return later[::-1]
            later.append(snapshot)
            if snapshot.parent_snapshot_id == position:  # also where that one is expired
                return later[::-1]
        if position is None or (not later and table.current_snapshot() is None):
            return later[::-1]
        problem = f"snapshot {position}, up to which {self.loader} was read, is expired or rolled back"
        raise LakeError(problem, "start again from a snapshot, and expire snapshots later than a job may stop")

    def _check_skipped(self, snapshot: Snapshot, operation: str) -> None:
        """Check that a snapshot that is no append may be passed over.

        Raises:
            LakeError: no option says so.
        """
        if self.skip_deletes if operation == "delete" else self.skip_overwrites:
            return
        option = "skip-delete-snapshots" if operation == "delete" else "skip-overwrite-snapshots"
        what = "deletes rows" if operation == "delete" else "replaces rows"
        problem = f"snapshot {snapshot.snapshot_id} of {self.loader} {what} (operation {operation!r})"
        method = option.replace("-", "_")
        remedy = f"pass such snapshots over with {method}(True) (in SQL: '{option}' = 'true'), or start again"
        raise LakeError(problem, remedy)

    def _row_filter(self) -> Any:
        """Return the conditions as an expression of the library; those that it cannot express are left out."""
        expressions = library("pyiceberg.expressions", "iceberg")
        kinds = {
            "=": expressions.EqualTo,
            "<": expressions.LessThan,
            "<=": expressions.LessThanOrEqual,
            ">": expressions.GreaterThan,
            ">=": expressions.GreaterThanOrEqual,
        }
        row_filter = expressions.AlwaysTrue()
        for wanted in self.wanted:
            try:
                if wanted.sign == "IN":
                    term = expressions.In(wanted.column, wanted.values)
                elif wanted.sign in ("IS NULL", "IS NOT NULL"):
                    is_null = wanted.sign == "IS NULL"
                    term = (expressions.IsNull if is_null else expressions.NotNull)(wanted.column)
                else:
                    term = kinds[wanted.sign](wanted.column, wanted.values[0])
            except (TypeError, ValueError):  # a value of a type without literals
                continue
            row_filter = expressions.And(row_filter, term)
        return row_filter


def _lineage(table: Table) -> Iterator[Snapshot]:
    """Yield the current snapshot and its ancestors, newest first."""
    snapshot = table.current_snapshot()
    while snapshot is not None:
        yield snapshot
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)


def _added_files(table: Table, snapshot: Snapshot) -> Iterator[DataFile]:
    manifest_module = library("pyiceberg.manifest", "iceberg")
    for manifest in snapshot.manifests(table.io):
        is_data = manifest.content == manifest_module.ManifestContent.DATA
        if not is_data or manifest.added_snapshot_id != snapshot.snapshot_id:
            continue
        for entry in manifest.fetch_manifest_entry(table.io, discard_deleted=True):
            is_added = entry.status == manifest_module.ManifestEntryStatus.ADDED
            if is_added and entry.snapshot_id == snapshot.snapshot_id:
                yield entry.data_file


def _constants(table: Table, file: DataFile) -> tuple[tuple[str, UserValue], ...]:
    """Return the values of identity partitions, for files that lack their columns, as migrated ones do."""
    constants = []
    spec = table.specs().get(file.spec_id)
    for position, field in enumerate(() if spec is None else spec.fields):
        name = table.schema().find_column_name(field.source_id)
        value = file.partition[position]
        if str(field.transform) == "identity" and name is not None and isinstance(value, (str, int)):
            constants.append((name, value))
    return tuple(constants)


def deleted_rows(table: Table, path: str, files: tuple[tuple[str, str], ...]) -> pyarrow.BooleanArray | None:
    """Return the deleted rows of a data file, true for each.

    Args:
        files: location and format of the files that list them.

    Raises:
        LakeError: a format is not supported.
    """
    import numpy
    import pyarrow
    from pyarrow import parquet

    position_arrays = [numpy.empty(0, numpy.int64)]
    for location, form in files:
        if form.upper() == "PUFFIN":
            puffin = library("pyiceberg.table.puffin", "iceberg")
            vectors = library("pyiceberg.table.deletion_vector", "iceberg")
            with open_data_file(table, location) as file:
                blobs = puffin.PuffinFile(file.read())
            for vector in vectors.deletion_vectors_from_puffin_file(blobs):
                if vector.referenced_data_file == path:
                    position_arrays.append(vector.to_vector().to_numpy())
        elif form.upper() == "PARQUET":
            with open_data_file(table, location) as file:
                rows = parquet.read_table(file, columns=["file_path", "pos"], filters=[("file_path", "=", path)])
            position_arrays.append(rows["pos"].to_numpy())
        else:
            problem = f"the deleted rows of {path!r} are in the {form} file {location!r}"
            raise LakeError(problem, "compact the table, or write deletes as Parquet or deletion vectors")
    positions = numpy.concatenate(position_arrays)
    if not len(positions):
        return None
    deleted = numpy.zeros(int(positions.max()) + 1, bool)
    deleted[positions] = True
    return pyarrow.array(deleted)


__all__ = ["IcebergPlan", "StreamingStartingStrategy", "deleted_rows"]
