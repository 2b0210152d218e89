"""The chunks of an incremental snapshot, and which changes of the log they contain already.

A table is read in chunks of its key while others write to it, without locks. Each chunk is read in one snapshot of the
database, and a mark says which transactions that snapshot contains. Afterwards the log is read from a position before
the first snapshot. A change is left out if the snapshot of its row's chunk contains its transaction. So each chunk goes
on exactly where its snapshot ended, and no chunk needs to know of another.

Source: Andreakis and Papapanagiotou, "DBLog: A Watermark Based Change-Data-Capture Framework", 2020, and
apache/flink-cdc, whose marks are positions in the log. Positions do not suffice where a transaction is visible to
others somewhat later than it is in the log, as in PostgreSQL; therefore a mark is asked about a transaction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

from rayflink.common.types import RowKind


@dataclass(frozen=True)
class Chunk:
    """The rows of a table whose key is in [lower, upper).

    Args:
        table: its full name.
        number: counted from zero in the order of keys.
        lower: the first key, in the database's notation; None: from the first row.
        upper: the key behind the last; None: to the last row.
    """

    table: str
    number: int
    lower: str | None = None
    upper: str | None = None

    @property
    def chunk_id(self) -> tuple[str, int]:
        """Return what no other chunk of the snapshot has."""
        return self.table, self.number


def chunks_between(table: str, bounds: Iterable[str]) -> list[Chunk]:
    """Return the chunks of a table that some keys divide, in order.

    >>> [(chunk.number, chunk.lower, chunk.upper) for chunk in chunks_between("t", ["10", "20"])]
    [(0, None, '10'), (1, '10', '20'), (2, '20', None)]
    >>> chunks_between("t", [])
    [Chunk(table='t', number=0, lower=None, upper=None)]
    """
    edges = [None, *bounds, None]
    return [Chunk(table, index, edges[index], edges[index + 1]) for index in range(len(edges) - 1)]


class SnapshotMark(ABC):
    """The mark of one snapshot: the transactions that it contains."""

    @property
    @abstractmethod
    def high(self) -> int:
        """Return a position of the log: transactions that commit there or later are not contained."""

    @abstractmethod
    def contains(self, transaction: int) -> bool:
        """Return whether the snapshot shows what a transaction has written."""


@dataclass(frozen=True)
class FinishedChunk:
    """A chunk whose rows have all been emitted.

    Args:
        mark: of the snapshot that the rows are from.
    """

    chunk: Chunk
    mark: SnapshotMark


def surviving(kind: RowKind, before_contained: bool, after_contained: bool) -> RowKind | None:
    """Return what a change of a row does beyond the snapshots of its chunks; None: they contain all of it.

    An update may move a row from one chunk to another, and only one of their snapshots may contain it.

    >>> surviving(RowKind.UPDATE_AFTER, before_contained=True, after_contained=False).name
    'INSERT'

    Args:
        kind: INSERT, DELETE, or UPDATE_AFTER for an update.
        before_contained: the snapshot of the chunk that had the row contains the change.
        after_contained: the snapshot of the chunk that has the row now contains it.
    """
    if kind is RowKind.INSERT:
        return None if after_contained else kind
    if kind is RowKind.DELETE:
        return None if before_contained else kind
    if before_contained and after_contained:
        return None
    if before_contained:
        return RowKind.INSERT
    return RowKind.DELETE if after_contained else kind


class ChunkMarks:
    """The marks of the chunks of one table, by the number of the chunk.

    Args:
        finished: all chunks of the table, in any order.

    Raises:
        ValueError: a chunk is missing.
    """

    def __init__(self, finished: Iterable[FinishedChunk]) -> None:
        ordered = sorted(finished, key=lambda done: done.chunk.number)
        if [done.chunk.number for done in ordered] != list(range(len(ordered))):
            raise ValueError(f"chunks are missing, found {[done.chunk.number for done in ordered]}")
        self._marks = [done.mark for done in ordered]
        self.bounds = [done.chunk.lower for done in ordered if done.chunk.lower is not None]
        """The keys that divide the chunks, in order: a key in chunk n is not less than the first n of them."""
        self.high = max((mark.high for mark in self._marks), default=0)
        """Changes of transactions that commit there or later are in no chunk."""

    def contains(self, number: int, transaction: int) -> bool:
        """Return whether the snapshot of chunk `number` contains a transaction."""
        return self._marks[number].contains(transaction)

    def all_contain(self, transaction: int) -> bool:
        """Return whether the snapshots of all chunks contain a transaction."""
        return all(mark.contains(transaction) for mark in self._marks)


def marks_by_table(finished: Iterable[FinishedChunk]) -> dict[str, ChunkMarks]:
    """Return the marks of the chunks of each table, by its full name."""
    tables: dict[str, list[FinishedChunk]] = {}
    for done in finished:
        tables.setdefault(done.chunk.table, []).append(done)
    return {table: ChunkMarks(chunks) for table, chunks in tables.items()}


__all__ = ["Chunk", "ChunkMarks", "FinishedChunk", "SnapshotMark", "chunks_between", "marks_by_table", "surviving"]
