"""A table that lies in blocks of columns, in partitions, as a bounded source: how a DataFrame of Spark is read."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

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
from rayflink.common.errors import SuppressRestarts
from rayflink.common.records.batches import ArrowBatch, Batch

if TYPE_CHECKING:
    import pyarrow


class FrameLost(SuppressRestarts):
    """Blocks of a DataFrame are gone, which ends a job that reads them.

    Args:
        cause: what was seen of it.
    """

    def __init__(self, cause: str) -> None:
        remedy = "env.from_spark(df, path=...), or a FileSink for a stream's result, keeps them in files"
        super().__init__(f"blocks of a DataFrame are gone: {cause}", remedy)
        self.args = (cause,)


@dataclass(frozen=True)
class FramePart:
    """A partition as one attempt at it has written it.

    Args:
        attempt: of those that wrote the partition, the one that counts.
        place: where the store has put it; no other store has that place, so that a job that goes on from a savepoint
            does not read what a later DataFrame has put under the same numbers.
        blocks: their number.
        rows: of all blocks.
        size: of all blocks in bytes.
    """

    partition: int
    attempt: int
    place: str
    blocks: int
    rows: int
    size: int


class FrameStore(Protocol):
    """Blocks of partitions; pickles as the way to them, also in processes that have only just begun."""

    travels: bool
    """Whether it takes its blocks along where it is sent, so that they are wherever it is read."""

    @property
    def surroundings(self) -> Mapping[str, str]:
        """Return the environment variables that a process needs before the store is unpickled there."""

    def append(self, partition: int, attempt: int, number: int, block: pyarrow.RecordBatch) -> str:
        """Put a block of an attempt at a partition behind its others; where it is then, the same for all of them.

        Raises:
            OSError: there is no room for it, says where and the remedy; or what keeps it has ended.
        """

    def keep(self, parts: Sequence[FramePart]) -> None:
        """Keep these partitions; blocks that other attempts have written are discarded.

        Raises:
            FrameLost: blocks of them are gone.
        """

    def hold(self) -> None:
        """Keep the blocks until the end of the job that reads them, whose coordinator is this process."""

    def need_while(self, needed: Callable[[], bool]) -> None:
        """Keep the blocks for the program as long as the function returns True and `leave` has not been called."""

    def read(self, part: FramePart, number: int) -> pyarrow.RecordBatch:
        """Return a block of a partition, 0 for the first.

        Raises:
            FrameLost: it is gone.
        """

    def leave(self) -> None:
        """Release the blocks for the program: they are removed with the last job that uses them."""


class SentStore:
    """A store on its way to a process of another program, which may first need the settings to reach it.

    Args:
        store: to be opened there.
    """

    def __init__(self, store: FrameStore) -> None:
        self._surroundings, self._packed = dict(store.surroundings), pickle.dumps(store)

    def open(self) -> FrameStore:
        """Return the store, in the process that this was sent to."""
        for name, value in self._surroundings.items():
            os.environ.setdefault(name, value)
        store: FrameStore = pickle.loads(self._packed)
        return store


class FrameFolder:
    """Blocks as Arrow IPC files in a folder of this machine, for jobs in this process.

    Args:
        folder: exists, and is removed by `leave`.
    """

    travels = False

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.surroundings: Mapping[str, str] = {}

    def append(self, partition: int, attempt: int, number: int, block: pyarrow.RecordBatch) -> str:
        """Write a block to a file of its own."""
        from pyarrow import ipc

        path = os.path.join(self._folder, self._name(partition, attempt, number))
        try:
            with ipc.new_file(path, block.schema) as file:
                file.write_batch(block)
        except OSError as error:
            remedy = "free space there, or set io.tmp.dirs to a larger disk"
            raise OSError(f"block {path} of a DataFrame cannot be written ({error}); {remedy}") from error
        return self._folder

    def keep(self, parts: Sequence[FramePart]) -> None:
        """Remove the files of other attempts."""
        names = {self._name(part.partition, part.attempt, number) for part in parts for number in range(part.blocks)}
        there = set(os.listdir(self._folder))
        for name in there - names:
            os.remove(os.path.join(self._folder, name))
        if lost := sorted(names - there):
            raise FrameLost(f"{os.path.join(self._folder, lost[0])} is not there")

    def hold(self) -> None:
        """Do nothing: the program outlives its jobs."""

    def need_while(self, needed: Callable[[], bool]) -> None:
        """Do nothing: files stay until `leave`."""

    def read(self, part: FramePart, number: int) -> pyarrow.RecordBatch:
        """Return a block of a partition; its columns are the file's pages."""
        import pyarrow
        from pyarrow import ipc

        path = os.path.join(part.place, self._name(part.partition, part.attempt, number))
        try:
            with pyarrow.memory_map(path) as file:
                return ipc.open_file(file).get_batch(0)
        except OSError as error:
            raise FrameLost(str(error)) from error

    def leave(self) -> None:
        """Remove the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @staticmethod
    def _name(partition: int, attempt: int, number: int) -> str:
        return f"{partition}-{attempt}-{number}.arrow"


@dataclass(frozen=True)
class FrameSplit:
    """A partition from a block on, without a number of its first rows."""

    part: FramePart
    block: int = 0
    row: int = 0

    @property
    def split_id(self) -> str:
        """Return the partition."""
        return f"partition {self.part.partition}"


class FrameSource(Source):
    """Reads blocks of columns; rows of one partition keep their order, and partitions are assigned in theirs.

    Args:
        store: where the blocks are.
        parts: the partitions.
        schema: of the blocks.
        in_order: `parts` are in the order of the table, and their numbers are not.
    """

    def __init__(
        self, store: FrameStore, parts: Sequence[FramePart], schema: pyarrow.Schema, in_order: bool = False
    ) -> None:
        self.store, self.schema = store, schema
        self.parts = tuple(parts if in_order else sorted(parts, key=lambda part: part.partition))

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    @property
    def rows(self) -> int:
        """Return the number of rows of all partitions."""
        return sum(part.rows for part in self.parts)

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return self.restore_enumerator(ctx, [FrameSplit(part) for part in self.parts if part.rows])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Sequence[FrameSplit]) -> SplitEnumerator:
        self.store.hold()
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _FrameReader(self.store)


def hold_blocks(source: Source | None) -> None:
    """Let the job whose coordinator this process is read the blocks of a source, and of sources within it.

    Said when it begins: a source that is read after others, or when there is room, has no enumerator by then, and the
    program may end before there is one.
    """
    if isinstance(source, FrameSource):
        source.store.hold()
    for inner in getattr(source, "wrapped_functions", ()):
        hold_blocks(inner)


class _FrameReader(OneByOneReader):
    def __init__(self, store: FrameStore) -> None:
        super().__init__()
        self._store = store

    def open_split(self, split: FrameSplit) -> SplitCursor:
        return _FrameCursor(self._store, split)


class _FrameCursor:
    def __init__(self, store: FrameStore, split: FrameSplit) -> None:
        self._store, self._split = store, split
        self._block: pyarrow.RecordBatch | None = None

    def read(self, max_records: int) -> Batch | None:
        while self._split.block < self._split.part.blocks:
            split = self._split
            if self._block is None:
                self._block = self._store.read(split.part, split.block)
            if split.row >= self._block.num_rows:
                self._block, self._split = None, replace(split, block=split.block + 1, row=0)
                continue
            rows = self._block.slice(split.row, max_records)
            self._split = replace(split, row=split.row + rows.num_rows)
            return ArrowBatch(rows)
        return None

    def position(self) -> FrameSplit:
        return self._split

    def close(self) -> None:
        self._block = None


__all__ = [
    "FrameFolder",
    "FrameLost",
    "FramePart",
    "FrameSource",
    "FrameSplit",
    "FrameStore",
    "SentStore",
    "hold_blocks",
]
