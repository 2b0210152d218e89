"""A job with a keyed table in several subtasks, and its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import count
from typing import Protocol

import numpy as np
import pyarrow as pa

from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.operators.rescaling import rescale
from rayflink.state.clock import ManualClock
from rayflink.state.snapshots import FileSlice, KeyedCapture, StoredSnapshot, loaded
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.snapshot_files import SnapshotFileReader, SnapshotFileWriter, SnapshotPlace
from rayflink.table.runtime.keyed_state.frame_snapshots import key_groups_of_rows
from rayflink.table.runtime.keyed_state.stored_table import StoredTable
from rayflink.user_types import UserValue

MAX_PARALLELISM = 8
IDENTITY = "rows of the laws"
KEYS = (pa.int64(), pa.string())
VALUES = (pa.int64(), pa.string(), pa.bool_(), pa.decimal128(20, 2), pa.list_(pa.int32()))
Row = tuple[UserValue, ...]


class MakeTable(Protocol):
    """A factory of new, empty tables, open and with the memory of their operator's context."""

    def __call__(
        self,
        keys: Sequence[pa.DataType],
        values: Sequence[pa.DataType],
        ttl_ms: int,
        identity: str,
        ctx: OperatorContext,
    ) -> StoredTable: ...


class Job:
    """Subtasks with a table each, which has the rows of their key groups.

    Args:
        make_table: makes the tables under test.
        parallelism: how many subtasks there are.
        ttl_ms: time to live of the rows; 0: for ever.
        clock: of the job.
        snapshots: of each subtask, to restore.
    """

    def __init__(
        self,
        make_table: MakeTable,
        parallelism: int,
        ttl_ms: int,
        clock: ManualClock,
        snapshots: Sequence[Sequence[OperatorSnapshot]] = (),
    ) -> None:
        self.clock = clock
        self.subtasks: list[StoredTable] = []
        for subtask in range(parallelism):
            self.subtasks.append(make_table(KEYS, VALUES, ttl_ms, IDENTITY, context_of(clock, subtask, parallelism)))
            if snapshots:
                self.subtasks[-1].restore(snapshots[subtask])

    @property
    def now_ms(self) -> int:
        """Return the processing time."""
        return self.clock.now_ms()

    def upsert(self, rows: Mapping[Row, Row]) -> None:
        """Put rows by their keys, and add those that are new."""
        for subtask, keys in self._hash_partitioned(list(rows)):
            table = subtask.table
            columns = table.comparable(key_columns(keys))
            numbers = table.find(columns, self.now_ms)
            known, new = np.flatnonzero(numbers >= 0), np.flatnonzero(numbers < 0)
            values = value_columns([rows[key] for key in keys])
            if len(known):
                table.put(numbers[known], [column.take(pa.array(known)) for column in values], self.now_ms)
            if len(new):
                chosen = pa.array(new)
                added = table.add(
                    [column.take(chosen) for column in columns], [column.take(chosen) for column in values], self.now_ms
                )
                assert len(np.unique(added)) == len(new), f"rows of new keys have numbers of their own, found {added}"

    def remove(self, keys: Sequence[Row]) -> None:
        """Remove the rows with these keys, where there are any."""
        for subtask, some in self._hash_partitioned(keys):
            table = subtask.table
            numbers = table.find(table.comparable(key_columns(some)), self.now_ms)
            table.remove(numbers[numbers >= 0])

    def rows(self, keys: Sequence[Row]) -> dict[Row, Row]:
        """Return the rows with these keys."""
        rows: dict[Row, Row] = {}
        for subtask, some in self._hash_partitioned(keys):
            numbers = subtask.table.find(subtask.table.comparable(key_columns(some)), self.now_ms)
            known = np.flatnonzero(numbers >= 0)
            values = [column.to_pylist() for column in subtask.table.take(numbers[known])]
            stored = zip(*values, strict=True)
            rows.update((some[place], _plain(row)) for place, row in zip(known.tolist(), stored, strict=True))
        return rows

    def count(self) -> int:
        """Return the number of rows, those included whose time is over and that were not swept."""
        return sum(len(subtask.table) for subtask in self.subtasks)

    def sweep(self) -> None:
        """Sweep the slices that are due."""
        for subtask in self.subtasks:
            while (due := subtask.table.sweep_at) is not None and due <= self.now_ms:
                subtask.table.sweep(self.now_ms)

    def _hash_partitioned(self, keys: Sequence[Row]) -> Iterator[tuple[StoredTable, list[Row]]]:
        groups = key_groups_of_rows(key_columns(keys), len(keys), MAX_PARALLELISM) if keys else np.zeros(0, np.int16)
        owners = groups.astype(np.int64) * len(self.subtasks) // MAX_PARALLELISM
        for number, subtask in enumerate(self.subtasks):
            some = [key for key, owner in zip(keys, owners.tolist(), strict=True) if owner == number]
            if some:
                yield subtask, some


def context_of(clock: ManualClock, subtask: int = 0, parallelism: int = 1) -> OperatorContext:
    """Return the surroundings of a subtask."""
    return OperatorContext(
        f"{subtask:032x}", "table", subtask=subtask, parallelism=parallelism, max_parallelism=MAX_PARALLELISM,
        clock=clock,
    )  # fmt: skip


def key_columns(keys: Sequence[Row]) -> list[pa.Array]:
    """Return keys as columns."""
    return [pa.array([key[number] for key in keys], kind) for number, kind in enumerate(KEYS)]


def value_columns(rows: Sequence[Row]) -> list[pa.Array]:
    """Return the values of rows as columns."""
    columns = list(zip(*rows, strict=True))
    decimals = [None if number is None else Decimal(number) / 100 for number in columns[3]]
    columns[3] = tuple(decimals)
    return [pa.array(list(column), kind) for column, kind in zip(columns, VALUES, strict=True)]


def _plain(row: Row) -> Row:
    number = None if row[3] is None else int(row[3] * 100)
    return (*row[:3], number, None if row[4] is None else tuple(row[4]))


class JobCheckpoints:
    """The checkpoints of a job, of which only the newest complete one is retained; other files are deleted."""

    def __init__(self) -> None:
        self.storage = MemoryStorage()
        self._numbers, self._names = count(1), map(str, count())
        self._own: dict[int, set[str]] = {}

    def next_number(self) -> int:
        """Return the number of the next checkpoint."""
        return next(self._numbers)

    def write(self, number: int, captures: Sequence[KeyedCapture]) -> list[StoredSnapshot]:
        """Write what was captured, and release it."""
        before = set(self.storage.list())
        place = SnapshotPlace.of_checkpoint(number, 0)
        snapshots = [self._written(self.storage, place, capture) for capture in captures]
        self._own[number] = set(self.storage.list()) - before
        return snapshots

    def savepoint(self, captures: Sequence[KeyedCapture]) -> tuple[MemoryStorage, list[StoredSnapshot]]:
        """Write what was captured to a storage of its own, and release it."""
        storage = MemoryStorage()
        return storage, [self._written(storage, SnapshotPlace.of_savepoint(1, 0), capture) for capture in captures]

    def _written(self, storage: MemoryStorage, place: SnapshotPlace, capture: KeyedCapture) -> StoredSnapshot:
        writer = SnapshotFileWriter(storage, place, uploads=0, new_name=lambda: next(self._names))
        try:
            parts = capture.write(writer)
            writer.finish()
        finally:
            capture.release()
        return StoredSnapshot(parts.groups, databases=parts.databases)

    def complete(self, number: int, snapshots: Sequence[StoredSnapshot]) -> None:
        """Retain this checkpoint, the newest complete one, and the files that later ones wrote."""
        self._own = {newer: own for newer, own in self._own.items() if newer > number}
        wanted = {path for snapshot in snapshots for path in paths_of(snapshot)}
        for path in set(self.storage.list()) - wanted.union(*self._own.values()):
            self.storage.delete(path)

    def abort(self, number: int) -> None:
        """Delete the files that this checkpoint wrote."""
        for path in self._own.pop(number, ()):
            self.storage.delete(path)


def paths_of(snapshot: StoredSnapshot) -> set[str]:
    """Return the files of a snapshot."""
    return {blob.path for blob in snapshot.blobs if isinstance(blob, FileSlice)}


def restored(
    storage: MemoryStorage, snapshots: Sequence[StoredSnapshot], parallelism: int, reusable: bool
) -> list[list[OperatorSnapshot]]:
    """Return what each subtask restores."""
    reader = SnapshotFileReader(storage)
    parts = rescale(snapshots, parallelism, MAX_PARALLELISM)
    return [[] if part is None else [loaded(part, reader, reusable)] for part in parts]


__all__ = [
    "IDENTITY", "KEYS", "VALUES", "Job", "JobCheckpoints", "MakeTable", "Row", "context_of", "paths_of", "restored",
]  # fmt: skip
