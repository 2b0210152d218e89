"""The result of a bounded stream, kept so that later jobs read it instead of computing it again."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from typing import Protocol

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.errors import NotSerializable, shorten
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.common.user_code.unpicklable import cause, failure_of
from rayflink.common.user_code.value_bytes import from_bytes, to_bytes

BLOCK_BYTES = 1 << 20
"""About the size of one block."""


class BlockStore(Protocol):
    """Blocks of bytes, in partitions; pickles as the way to them."""

    def append(self, partition: int, block: bytes) -> None:
        """Put a block behind those that the partition has."""

    def read(self, partition: int, position: int) -> tuple[bytes, int] | None:
        """Return the block at a position, which is 0 for the first, and the position behind it; None behind the
        last.
        """

    def clear(self) -> None:
        """Give up all blocks."""


class FileBlocks:
    """Blocks in one file a partition, below a folder of this machine.

    Args:
        folder: exists, and is removed by `clear`.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def append(self, partition: int, block: bytes) -> None:
        """Put a block behind those that the partition has.

        Raises:
            OSError: the file cannot be written; names it and the remedy.
        """
        path = self._path(partition)
        try:
            with open(path, "ab") as file:
                file.write(len(block).to_bytes(8, "little") + block)
        except OSError as error:
            remedy = "free space there, or set io.tmp.dirs to a larger disk"
            raise OSError(f"cached result {path} cannot be written ({error}); {remedy}") from error

    def read(self, partition: int, position: int) -> tuple[bytes, int] | None:
        """Return the block at a position, which is 0 for the first, and the position behind it; None behind the
        last.
        """
        if not os.path.exists(self._path(partition)):
            return None
        with open(self._path(partition), "rb") as file:
            file.seek(position)
            head = file.read(8)
            if not head:
                return None
            block = file.read(int.from_bytes(head, "little"))
        return block, position + 8 + len(block)

    def clear(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, partition: int) -> str:
        return os.path.join(self._folder, f"{partition}.blocks")


@dataclass
class CachePlace:
    """The place of a cached result, present or future; a job takes it along as it is when the job starts.

    Args:
        store: None while there is none.
        partitions: subtasks that have written it.
    """

    store: BlockStore | None = None
    partitions: int = 1

    def there(self) -> BlockStore:
        """Return the store."""
        assert self.store is not None, "a cache is given its store before its job starts"
        return self.store


class CacheSink(Sink):
    """Writes a cached result; each subtask a partition.

    Args:
        place: where.
    """

    name = "Sink: Cache"

    def __init__(self, place: CachePlace) -> None:
        self._place = place

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _CacheWriter(self._place.there(), ctx.subtask)


class _CacheWriter(SinkWriter):
    def __init__(self, store: BlockStore, partition: int) -> None:
        self._store, self._partition = store, partition
        self._held: list[bytes] = []

    def write(self, batch: Batch) -> None:
        stamps = batch.timestamps
        if isinstance(batch, RowBatch):
            plain: Batch = RowBatch(list(batch.values), None if stamps is None else list(stamps))
        else:
            plain = ArrowBatch(batch.data, stamps)
        self._held.append(_dumped(plain))
        if sum(map(len, self._held)) >= BLOCK_BYTES:
            self.flush(False)

    def flush(self, end_of_input: bool) -> None:
        if self._held:
            self._store.append(self._partition, to_bytes(self._held))
            self._held = []

    def close(self) -> None:
        self._held = []


def _dumped(batch: Batch) -> bytes:
    """Return the batch as bytes.

    Raises:
        NotSerializable: a record cannot be pickled; names it.
    """
    try:
        return to_bytes(batch)
    except NotSerializable as error:
        for record in rows_of(batch):
            failure = failure_of(record)
            if failure is not None:
                what = f"a record of a cached stream, {shorten(record)}"
                raise NotSerializable(what, cause(record, failure)) from error
        raise


@dataclass(frozen=True)
class CacheSplit:
    """A partition from a position on, without a number of its first batches and records.

    Args:
        batches: to pass over in the block at the position.
        records: to pass over in the batch behind those.
    """

    partition: int
    position: int = 0
    batches: int = 0
    records: int = 0

    @property
    def split_id(self) -> str:
        """Return the partition."""
        return f"partition {self.partition}"


class CacheSource(Source):
    """Reads a cached result; records of one partition keep their order and their timestamps, watermarks are not kept.

    Args:
        place: where it is.
    """

    def __init__(self, place: CachePlace) -> None:
        self._place = place

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, [CacheSplit(partition) for partition in range(self._place.partitions)])

    def restore_enumerator(self, ctx: EnumeratorContext, state: object) -> SplitEnumerator:
        return PendingSplits(ctx, state)  # type: ignore[arg-type]

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _CacheReader(self._place.there())


class _CacheReader(OneByOneReader):
    def __init__(self, store: BlockStore) -> None:
        super().__init__()
        self._store = store

    def open_split(self, split: CacheSplit) -> SplitCursor:
        return _CacheCursor(self._store, split)


class _CacheCursor:
    def __init__(self, store: BlockStore, split: CacheSplit) -> None:
        self._store, self._split = store, split
        self._block: tuple[list[bytes], int] | None = None
        self._batch: Batch | None = None

    def read(self, max_records: int) -> Batch | None:
        while True:
            split = self._split
            if self._block is None:
                entry = self._store.read(split.partition, split.position)
                if entry is None:
                    return None
                self._block = from_bytes(entry[0]), entry[1]
            batches, behind = self._block
            if split.batches == len(batches):
                self._block, self._split = None, CacheSplit(split.partition, behind)
                continue
            if self._batch is None:
                self._batch = from_bytes(batches[split.batches])
            if split.records >= len(self._batch):
                self._batch, self._split = None, replace(split, batches=split.batches + 1, records=0)
                continue
            stop = min(len(self._batch), split.records + max_records)
            self._split = replace(split, records=stop)
            return self._batch.slice(split.records, stop)

    def position(self) -> CacheSplit:
        return self._split

    def close(self) -> None:
        pass


__all__ = ["BlockStore", "CachePlace", "CacheSink", "CacheSource", "FileBlocks"]
