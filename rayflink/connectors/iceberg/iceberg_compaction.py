"""Compaction of an Iceberg table: small files are read and written again as few, in a snapshot that replaces them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch

from ..lakes.lake_errors import LakeError, library
from .iceberg_committing import MOST_RACES, IcebergFile
from .iceberg_table import TableLoader
from .iceberg_writing import IcebergDataFiles, wanted_file_bytes

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile
    from pyiceberg.table import FileScanTask, Table
    from pyiceberg.table.snapshots import Snapshot


class IcebergCompaction:
    """Merges small files of a table, in one snapshot of the operation `replace`.

    Files with deletes, of an older partition spec, or of another format than Parquet are left as they are. Others may
    append meanwhile. If they delete or replace rows, nothing is committed, as a row could come back otherwise.

    Args:
        loader: of the table.
        file_bytes: the size that files are merged up to; None: as the table says, or 512 MiB.
    """

    def __init__(self, loader: TableLoader, file_bytes: int | None) -> None:
        self._loader, self._file_bytes = loader, file_bytes

    def merge(self) -> str:
        """Merge small files; return what was done.

        Raises:
            LakeError: nothing was committed, or the answer of the catalog was lost.
        """
        table = self._loader.load()
        if table.metadata.format_version > 2:
            problem = f"{self._loader} is of version {table.metadata.format_version} of the format, with ids of rows"
            raise LakeError(problem, "compact it with Spark, which keeps them, and leave compaction out of the sink")
        base = table.current_snapshot()
        if base is None:
            return "it has no rows"
        with self._loader.errors("compacted"):
            file_bytes = wanted_file_bytes(table, self._file_bytes)
            groups = _groups(table, file_bytes)
            removed = [task.file for group in groups for task in group]
            if not removed:
                return "no files are to be merged"
            added = [file for group in groups for file in _merged(table, group, file_bytes)]
            self._commit(table, base, removed, added)
        return f"{len(removed)} files merged into {len(added)}"

    def _commit(self, table: Table, base: Snapshot, removed: list[DataFile], added: list[IcebergFile]) -> None:
        errors = library("pyiceberg.exceptions", "iceberg")
        for _ in range(MOST_RACES):
            try:
                return _replace(table, removed, added)
            except errors.CommitFailedException:
                table = self._loader.load()
                if not _has_only_appends_since(table, base):
                    problem = f"rows of {self._loader} were deleted or replaced by others while it was compacted"
                    raise LakeError(problem, "the next compaction looks again") from None
        problem = f"{self._loader} was changed by others {MOST_RACES} times while a compaction was committed"
        raise LakeError(problem, "the next compaction looks again")


def merge_groups(sizes: Sequence[int], file_bytes: int) -> list[list[int]]:
    """Group files of a partition that are merged into one each; return their indices.

    Files below three quarters of the wanted size take part, from the smallest on. While the largest file of a group is
    larger than all others together it stays as it is: rows are written again only when their table has about doubled.

    Args:
        sizes: of the files.
        file_bytes: the most that a group has.

    >>> merge_groups([10, 10, 10, 90], 100)
    [[0, 1, 2]]
    >>> merge_groups([10, 20, 60], 100)
    []
    >>> merge_groups([70, 50, 50], 100)
    [[1, 2]]
    """
    small = sorted((index for index, size in enumerate(sizes) if 4 * size < 3 * file_bytes), key=sizes.__getitem__)
    groups: list[list[int]] = []
    room = 0
    for index in small:
        if sizes[index] > room:
            groups.append([])
            room = file_bytes
        groups[-1].append(index)
        room -= sizes[index]
    for group in groups:
        while len(group) > 1 and sizes[group[-1]] > sum(sizes[index] for index in group[:-1]):
            group.pop()
    return [group for group in groups if len(group) > 1]


def _groups(table: Table, file_bytes: int) -> list[list[FileScanTask]]:
    """Return the files of the current snapshot that are merged, those that go into one file together."""
    parquet = library("pyiceberg.manifest", "iceberg").FileFormat.PARQUET
    partitions: dict[object, list[FileScanTask]] = defaultdict(list)
    for task in table.scan().plan_files():
        file = task.file
        if file.spec_id == table.spec().spec_id and file.file_format == parquet and not task.delete_files:
            partitions[tuple(file.partition[index] for index in range(len(table.spec().fields)))].append(task)
    return [
        [tasks[index] for index in group]
        for tasks in partitions.values()
        for group in merge_groups([task.file.file_size_in_bytes for task in tasks], file_bytes)
    ]


def _merged(table: Table, tasks: Iterable[FileScanTask], file_bytes: int) -> list[IcebergFile]:
    """Write the rows of files into one."""
    reading = library("pyiceberg.io.pyarrow", "iceberg")
    every = library("pyiceberg.expressions", "iceberg").AlwaysTrue()
    scan = reading.ArrowScan(table.metadata, table.io, table.schema(), every)
    files = IcebergDataFiles(table, file_bytes, "compacted")
    try:
        for task in tasks:  # one file at a time is in memory
            for data in scan.to_record_batches([task]):
                files.write(ArrowBatch(data))
        return files.finish()
    finally:
        files.abandon()


def _replace(table: Table, removed: Iterable[DataFile], added: Iterable[IcebergFile]) -> None:
    """Commit a snapshot that has some files in the place of others, on top of the snapshot that the table shows.

    The library has the snapshot, but gives it the operation `overwrite`, by which readers of appends see rows that have
    changed.
    """
    from pyiceberg.table.snapshots import Operation, Summary
    from pyiceberg.table.update.snapshot import _OverwriteFiles

    class ReplaceFiles(_OverwriteFiles):
        def _summary(self, snapshot_properties: dict[str, Any] | None = None) -> Summary:
            summary = super()._summary(snapshot_properties or {})
            return Summary(Operation.REPLACE, **summary.additional_properties)

    # The library would repeat a refused commit, and accept deletes that it does not see.
    table.metadata.properties["commit.retry.num-retries"] = "0"
    with table.transaction() as transaction:
        with ReplaceFiles(Operation.OVERWRITE, transaction, table.io) as update:
            for old in removed:
                update.delete_data_file(old)
            for new in added:
                update.append_data_file(new.data_file(table.metadata.format_version))


def _has_only_appends_since(table: Table, base: Snapshot) -> bool:
    """Return whether all snapshots after one, which is an ancestor, append."""
    snapshot = table.current_snapshot()
    while snapshot is not None and snapshot.snapshot_id != base.snapshot_id:
        if snapshot.summary is None or snapshot.summary.operation.value != "append":
            return False
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.snapshot_by_id(parent)
    return snapshot is not None


__all__ = ["IcebergCompaction", "merge_groups"]
