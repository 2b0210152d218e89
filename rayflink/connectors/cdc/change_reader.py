"""The reader of a database's changes: chunks of tables, and the log, each in a thread beside the task."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from rayflink.common.connector_base.source import END, PENDING, Polled, ReaderContext, SourceReader
from rayflink.common.errors import ConfigError
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.options import registry as options
from rayflink.user_types import SourceSplit

from .chunks import FinishedChunk
from .deserialization import ChangeDeserializationSchema
from .log_thread import LogCursor, LogThread
from .snapshot_enumeration import ChunksFinished, ChunkSplit, LogSplit
from .table_changes import TableChanges

Table = TypeVar("Table")

_AHEAD = 2
"""Chunks that a reader has at a time: one to emit, and one to load."""
_PAUSE_MS = 10
_CHECKPOINTS_TO_REPORT = 3
"""Completed checkpoints after which a reader forgets a chunk that it has reported."""


@dataclass(frozen=True)
class LoadedChunk(Generic[Table]):
    """The rows of a chunk that have not been emitted yet; travels in checkpoints.

    Args:
        rows: in order.
    """

    split: ChunkSplit[Table]
    done: FinishedChunk
    rows: tuple[TableChanges, ...]


@dataclass(frozen=True)
class ReportedChunk:
    """A chunk whose rows have been emitted, in checkpoints until the enumerator's state has it for certain.

    Args:
        reported: how many completed checkpoints contain it.
    """

    done: FinishedChunk
    reported: int = 0


class Tables(ABC, Generic[Table]):
    """The side of a database that a reader needs; `load` and what `open_log` returns may block."""

    @abstractmethod
    def load(self, split: ChunkSplit[Table]) -> LoadedChunk[Table]:
        """Read the rows of a chunk in one snapshot."""

    @abstractmethod
    def open_log(self, split: LogSplit[Table], metrics: MetricGroup) -> LogCursor:
        """Start to read the log."""

    @abstractmethod
    def interrupt(self) -> None:
        """Let a `load` under way end soon, by an error; may be called by any thread."""

    def close(self) -> None:
        """Release connections; called when no `load` is under way any more."""


@dataclass
class _Emission(Generic[Table]):
    """A chunk being emitted."""

    chunk: LoadedChunk[Table]
    rows: deque[TableChanges] = field(default_factory=deque)


class ChangeReader(SourceReader, Generic[Table]):
    """Emits the rows of chunks, and then the changes of the log.

    A chunk is loaded as a whole before its first row is emitted, so that each of its rows is from one snapshot; a
    checkpoint in between contains the rest of the rows.

    The log begins only when every chunk is in a completed checkpoint. So the rows of all chunks have passed through the
    whole job before the first change of the log, also where those come from different subtasks.

    Args:
        ctx: the subtask.
        tables: the database.
        schema: makes records of changes.

    Raises:
        ConfigError: there are several readers and no checkpoints.
    """

    def __init__(
        self, ctx: ReaderContext, tables: Tables[Table], schema: ChangeDeserializationSchema, reads_log: bool
    ) -> None:
        self._ctx, self._tables, self._schema = ctx, tables, schema
        self._metrics = ctx.metrics or MetricGroup()
        self._has_checkpoints = bool(ctx.config.get(options.CHECKPOINT_INTERVAL.key))
        if reads_log and ctx.parallelism > 1 and not self._has_checkpoints:
            actual = f"no interval, with change data capture at parallelism {ctx.parallelism}"
            wanted = "checkpoints: the log begins after one that contains the snapshots of all readers"
            remedy = "set an interval, or the parallelism of the source to 1"
            raise ConfigError(options.CHECKPOINT_INTERVAL.key, actual, wanted, remedy)
        self._chunks: deque[ChunkSplit[Table]] = deque()
        self._restored: deque[LoadedChunk[Table]] = deque()
        self._loading: Future[LoadedChunk[Table]] | None = None
        self._emission: _Emission[Table] | None = None
        self._finished: dict[tuple[str, int], ReportedChunk] = {}
        self._log_split: LogSplit[Table] | None = None
        self._log: LogThread | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._no_more = False
        self._snapshot_rows = self._metrics.counter("numSnapshotRecords")
        self._log_changes = self._metrics.counter("numLogRecords")
        self._metrics.gauge("currentLogPosition", lambda: -1 if self._log_split is None else self._log_split.position)

    def add_splits(self, splits: list[SourceSplit]) -> None:
        again = []
        for split in splits:
            if isinstance(split, ChunkSplit):
                self._chunks.append(split)
            elif isinstance(split, LoadedChunk):
                self._restored.append(split)
            elif isinstance(split, ReportedChunk):
                self._finished[split.done.chunk.chunk_id] = split
                again.append(split.done)
            else:
                self._log_split = split
        if again:
            self._report(again)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def needs_split(self) -> bool:
        at_hand = len(self._chunks) + len(self._restored) + (self._loading is not None) + (self._emission is not None)
        return not self._no_more and self._log_split is None and at_hand < _AHEAD

    def next_poll_ms(self) -> int | None:
        return self._ctx.now_ms() + _PAUSE_MS if self._log_split is not None or self._loading is not None else None

    def poll(self, max_records: int) -> Polled:
        if self._emission is not None or self._next_chunk():
            return self._emit(max_records)
        if self._log_split is not None:
            return self._poll_log(self._log_split)
        return END if self._no_more and self._loading is None else PENDING

    def _next_chunk(self) -> bool:
        """Load the next chunk beside the task; return whether there are rows to emit."""
        if self._restored:
            chunk = self._restored.popleft()
        else:
            if self._loading is None and self._chunks:
                self._load()
            if self._loading is None or not self._loading.done():
                return False
            chunk = self._loading.result()
            self._chunks.popleft()
            self._loading = None
            if self._chunks:
                self._load()
        if not chunk.rows:
            self._finish(chunk.done)
            return self._next_chunk()
        self._emission = _Emission(chunk, deque(chunk.rows))
        return True

    def _load(self) -> None:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="rayflink-chunk-reader")
        self._loading = self._pool.submit(self._tables.load, self._chunks[0])

    def _emit(self, max_records: int) -> Polled:
        emission = self._emission
        assert emission is not None
        rows = emission.rows.popleft()
        if len(rows) > 2 * max_records:
            emission.rows.appendleft(rows.slice(max_records, len(rows)))
            rows = rows.slice(0, max_records)
        if not emission.rows:
            self._emission = None
            self._finish(emission.chunk.done)
        self._snapshot_rows.inc(len(rows))
        return self._schema.deserialize_changes(rows)

    def _finish(self, done: FinishedChunk) -> None:
        self._finished[done.chunk.chunk_id] = ReportedChunk(done)
        if not self._has_checkpoints:
            self._report([done])

    def _report(self, done: Sequence[FinishedChunk]) -> None:
        if self._ctx.send_source_event is not None:
            self._ctx.send_source_event(ChunksFinished(tuple(done)))

    def _poll_log(self, split: LogSplit[Table]) -> Polled:
        if self._log is None:
            self._log = LogThread(lambda: self._tables.open_log(split, self._metrics))
        item = self._log.take()
        if item is None:
            return PENDING
        self._log_split = split.at(item.position, item.transaction, item.skip, item.token)
        if not self._has_checkpoints and not item.skip:
            self._log.confirm(item.position)
        if item.changes is None:
            return PENDING
        self._log_changes.inc(len(item.changes))
        return self._schema.deserialize_changes(item.changes)

    def snapshot_state(self) -> list[SourceSplit]:
        splits: list[SourceSplit] = [*self._chunks, *self._restored, *self._finished.values()]
        if self._emission is not None:
            splits.append(replace(self._emission.chunk, rows=tuple(map(_compact, self._emission.rows))))
        if self._log_split is not None:
            splits.append(self._log_split)
        return splits

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[SourceSplit]) -> None:
        done = [split.done for split in splits if isinstance(split, ReportedChunk)]
        for chunk in done:
            count = self._finished[chunk.chunk.chunk_id].reported + 1 if chunk.chunk.chunk_id in self._finished else 0
            if count > _CHECKPOINTS_TO_REPORT:
                del self._finished[chunk.chunk.chunk_id]
            elif count:
                self._finished[chunk.chunk.chunk_id] = ReportedChunk(chunk, count)
                if count == 1:
                    self._report([chunk])
        log = next((split for split in splits if isinstance(split, LogSplit)), None)
        if log is not None and self._log is not None:
            self._log.confirm(log.position)

    def close(self) -> None:
        if self._log is not None:
            self._log.close()
        if self._pool is not None:
            if self._loading is not None and not self._loading.done():
                self._tables.interrupt()
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._tables.close()


def _compact(rows: TableChanges) -> TableChanges:
    """Return rows without the parent buffers of which they are a view."""
    import numpy

    return replace(rows, rows=rows.rows.take(numpy.arange(len(rows))))


__all__ = ["ChangeReader", "LoadedChunk", "ReportedChunk", "Tables"]
