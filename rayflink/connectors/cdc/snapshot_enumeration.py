"""The enumerator of an incremental snapshot: chunks first, in parallel, and then one reader of the log."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rayflink.common.connector_base.source import EnumeratorContext, SplitEnumerator
from rayflink.user_types import SourceSplit

from .chunks import Chunk, FinishedChunk

Table = TypeVar("Table")


@dataclass(frozen=True)
class Prepared(Generic[Table]):
    """The tables and chunks that were found in the database, and where the log is read from.

    Args:
        tables: full name -> the database's own description, which can be pickled.
        chunks: of all tables, in the order in which they are to be read; none where there is no snapshot.
        start: position of the log, before that of all snapshots.
        token: what the database needs beside the position.
    """

    tables: Mapping[str, Table]
    chunks: tuple[Chunk, ...]
    start: int
    token: str = ""


@dataclass(frozen=True)
class ChunkSplit(Generic[Table]):
    """A chunk to read."""

    table: Table
    chunk: Chunk

    @property
    def split_id(self) -> str:
        """Return the split's name."""
        return f"{self.chunk.table}:{self.chunk.number}"


@dataclass(frozen=True)
class LogSplit(Generic[Table]):
    """The log.

    Args:
        tables: whose changes are wanted, by their full names.
        position: the log from here on.
        skip: changes of the transaction `transaction` that have been emitted.
        finished: chunks whose snapshots contain changes behind `position`.
        token: what the database needs beside the position.
    """

    tables: Mapping[str, Table]
    position: int
    transaction: int = 0
    skip: int = 0
    finished: tuple[FinishedChunk, ...] = ()
    token: str = ""

    split_id = "log"

    def at(self, position: int, transaction: int = 0, skip: int = 0, token: str = "") -> LogSplit[Table]:
        """Return the rest of the log; chunks whose snapshots end before are forgotten."""
        finished = self.finished
        if finished and position >= max(done.mark.high for done in finished):
            finished = ()
        return replace(self, position=position, transaction=transaction, skip=skip, finished=finished, token=token)


@dataclass(frozen=True)
class ChunksFinished:
    """A reader reports chunks that it has emitted, and whose rows a checkpoint contains, if there are any."""

    chunks: tuple[FinishedChunk, ...]


@dataclass(frozen=True)
class SnapshotProgress(Generic[Table]):
    """The state of the enumerator.

    Args:
        pending: chunks that no reader has.
        returned: a log split that a failed reader had.
    """

    prepared: Prepared[Table] | None = None
    pending: tuple[Chunk, ...] = ()
    finished: tuple[FinishedChunk, ...] = ()
    log_assigned: bool = False
    returned: tuple[SourceSplit, ...] = field(default=())


class Database(ABC, Generic[Table]):
    """The side of a database that the enumerator needs; its methods block, and run beside the coordinator."""

    @abstractmethod
    def prepare(self) -> Prepared[Table]:
        """Check and prepare everything: the server, the tables, what reads the log, and the chunks."""

    @abstractmethod
    def resume(self, prepared: Prepared[Table]) -> Prepared[Table] | None:
        """Check that the log is still there, after a restore; return what replaces `prepared`, None: nothing does."""

    def close(self) -> None:
        """Release what `prepare` or `resume` keep open: all chunks have been read, or the job ends."""


class SnapshotEnumerator(SplitEnumerator, Generic[Table]):
    """Distributes the chunks of all tables to the readers that ask, and the log to one when all chunks are finished.

    Args:
        ctx: the coordinator.
        database: prepares everything.
        reads_log: False: the source ends with the snapshot.
        progress: of a job that is restored.
    """

    def __init__(
        self, ctx: EnumeratorContext, database: Database[Table], reads_log: bool,
        progress: SnapshotProgress[Table] | None = None,
    ) -> None:  # fmt: skip
        self._ctx, self._database, self._reads_log = ctx, database, reads_log
        progress = progress or SnapshotProgress()
        self._prepared = progress.prepared
        self._pending = deque(progress.pending)
        self._finished = {done.chunk.chunk_id: done for done in progress.finished}
        self._log_assigned, self._returned = progress.log_assigned, list(progress.returned)
        self._waiting: deque[int] = deque()
        self._is_checked = False

    def start(self) -> None:
        prepared = self._prepared
        if prepared is None:
            self._ctx.call_async(self._database.prepare, self._begin)
        else:
            known = prepared
            self._ctx.call_async(lambda: self._database.resume(known), self._resumed)

    def _begin(self, prepared: Prepared[Table] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        assert prepared is not None
        self._prepared, self._pending, self._is_checked = prepared, deque(prepared.chunks), True
        self._assign()

    def _resumed(self, prepared: Prepared[Table] | None, error: Exception | None) -> None:
        if error is not None:
            raise error
        self._prepared, self._is_checked = prepared or self._prepared, True
        self._assign()

    def handle_split_request(self, subtask: int) -> None:
        if subtask not in self._waiting:
            self._waiting.append(subtask)
        self._assign()

    def handle_source_event(self, subtask: int, event: object) -> None:
        assert isinstance(event, ChunksFinished), event
        for done in event.chunks:
            self._finished[done.chunk.chunk_id] = done
        if self._prepared is not None and len(self._finished) == len(self._prepared.chunks):
            self._database.close()
        self._assign()

    def close(self) -> None:
        self._database.close()

    def add_splits_back(self, splits: list[SourceSplit], subtask: int) -> None:
        for split in splits:
            if isinstance(split, LogSplit):
                self._returned.append(split)
            else:
                self._pending.appendleft(split.chunk)
                self._finished.pop(split.chunk.chunk_id, None)
        if subtask in self._waiting:
            self._waiting.remove(subtask)  # the reader asks again once it has started

    def snapshot_state(self) -> SnapshotProgress[Table]:
        finished = () if self._log_assigned else tuple(self._finished.values())
        pending = tuple(self._pending)
        return SnapshotProgress(self._prepared, pending, finished, self._log_assigned, tuple(self._returned))

    def _assign(self) -> None:
        prepared = self._prepared
        if prepared is None or not self._is_checked:
            return
        while self._waiting and self._pending:
            chunk = self._pending.popleft()
            self._ctx.assign_splits({self._waiting.popleft(): [ChunkSplit(prepared.tables[chunk.table], chunk)]})
        if not self._waiting:
            return
        if not self._reads_log:
            while self._waiting:
                self._ctx.signal_no_more_splits(self._waiting.popleft())
        elif self._returned:
            self._ctx.assign_splits({self._waiting.popleft(): [self._returned.pop()]})
        elif not self._log_assigned and len(self._finished) == len(prepared.chunks):
            self._assign_log(prepared)

    def _assign_log(self, prepared: Prepared[Table]) -> None:
        finished: Sequence[FinishedChunk] = tuple(self._finished.values())
        log: LogSplit[Table] = LogSplit(
            prepared.tables, prepared.start, finished=tuple(finished), token=prepared.token
        )
        self._log_assigned = True
        self._ctx.assign_splits({self._waiting.popleft(): [log]})


__all__ = [
    "ChunkSplit", "ChunksFinished", "Database", "LogSplit", "Prepared", "SnapshotEnumerator", "SnapshotProgress",
]  # fmt: skip
