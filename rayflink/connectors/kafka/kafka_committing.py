"""The exactly-once sink of Kafka: its writer collects chunks, its committer writes those that are not yet in Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from enum import Enum
from itertools import groupby

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer, SinkWriter, WriterContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch

from .kafka_chunks import Chunk, ChunkWriter
from .kafka_client import place_of
from .kafka_errors import KafkaClientError
from .kafka_ledger import ChunkFate
from .kafka_producing import Encoder
from .kafka_transactions import LostLedger, TransactionCounts, Transactions, is_permanent

PROBED_S = 0.05
"""Seconds for which the brokers count as present after they have answered."""
EARLY_MS = 3_000
"""Milliseconds for which a transaction is open at most while its checkpoint is not complete."""


class UnknownChunks(Enum):
    """The treatment of restored chunks of which the ledger no longer says whether they are in Kafka."""

    FAIL = "fail"
    """The job fails, and its error names the choice."""
    WRITE = "write"
    """They are written, perhaps for the second time."""
    DROP = "drop"
    """They are dropped, perhaps never written."""


class ChunkingWriter(SinkWriter):
    """Collects messages in chunks, which are committed with checkpoints."""

    def __init__(self, ctx: WriterContext, encoder: Encoder, chunks: ChunkWriter, close: Callable[[], None]) -> None:
        self._ctx, self._encoder, self._chunks, self._close = ctx, encoder, chunks, close
        metrics = ctx.metrics or MetricGroup()
        metrics.gauge("spilledBytes", lambda: chunks.spilled_bytes)

    def write(self, batch: Batch) -> None:
        messages, sizes = self._encoder.encode(batch)
        self._chunks.add(messages, sizes, self._ctx.now_ms())

    def flush(self, end_of_input: bool) -> None:
        """Do nothing: chunks are complete when they are prepared."""

    def prepare_commit(self) -> Sequence[Chunk]:
        return self._chunks.take(self._ctx.now_ms())

    def close(self) -> None:
        self._close()


class ChunkCommitter(Committer):
    """Writes chunks in transactions.

    It computes more than it waits, so it does that in the task, until a commit fails: the brokers may be away. Until a
    commit succeeds again, the tries go on in the background while the task takes records.

    Args:
        properties: of a producer.
        retention_ms: time for which the brokers keep offsets.
    """

    most_at_once = 8
    has_large_committables = True

    def __init__(self, properties: Mapping[str, str], retention_ms: int, unknown: UnknownChunks) -> None:
        self._properties, self._retention_ms, self._unknown = properties, retention_ms, unknown
        self.early_ms = min(EARLY_MS, int(properties["transaction.timeout.ms"]) // 2)
        self._now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
        self._counts = TransactionCounts()
        self._by_id: dict[str, Transactions] = {}
        self._parallelism = 1
        self._begun: list[Chunk] | KafkaClientError | None = None
        self._begun_s = 0.0

    def open(self, ctx: WriterContext) -> None:
        self._parallelism, self._now_ms = ctx.parallelism, ctx.now_ms
        metrics = ctx.metrics or MetricGroup()
        self._counts = TransactionCounts(
            metrics.counter("numTransactions"), metrics.counter("numAbortedTransactions"),
            metrics.counter("numFencedTransactions"), metrics.counter("numRecordsSend"),
            metrics.counter("numBytesSend"),
        )  # fmt: skip

    def group_of(self, committable: Chunk) -> Hashable:
        return committable.id.transactional_id

    def begin(self, requests: Sequence[CommitRequest[Chunk]]) -> None:
        """Fill the transaction of new chunks, if a producer is ready; else `commit` does everything.

        A thread does so before the checkpoint is complete, where that is soon; readers wait for it as long.
        So a task waits for brokers that are away once, for the seconds in which they are probed, and no longer.
        """
        self._begun = None
        own = requests[0].get_committable().id
        transactions = self._by_id.get(own.transactional_id)
        is_ready = transactions is not None and transactions.is_ready(own.ledger_topic)
        if is_ready and not requests[0].restored and len(set(map(_run_of, requests))) == 1:
            try:
                self._begun = self._begin_run(requests)
            except KafkaClientError as failure:
                self._begun = failure
            self._begun_s = time.monotonic()

    def abandon(self) -> None:
        begun, self._begun = self._begun, None
        if begun and isinstance(begun, list):
            for transactions in self._by_id.values():
                transactions.abandon()

    def commit(self, requests: Sequence[CommitRequest[Chunk]]) -> None:
        left = list(requests)
        for _, group in groupby(requests, key=_run_of):
            own = list(group)
            failure = self._commit_run(own)
            self.in_background = failure is not None
            if failure is not None:
                for request in left:  # the later ones wait, as messages are written in order
                    request.retry_later(failure)
                if is_permanent(failure) or self._may_be_overtaken(left[0]):
                    left[0].signal_failed_with_unknown_reason(failure)
                return
            left = left[len(own) :]

    def close(self) -> None:
        for transactions in self._by_id.values():
            transactions.close()
        self._by_id.clear()

    def _commit_run(self, requests: Sequence[CommitRequest[Chunk]]) -> KafkaClientError | None:
        """Commit chunks of one run; return why they are not all committed."""
        transactions = self._transactions(requests[0].get_committable().id.transactional_id)
        begun, self._begun = self._begun, None
        try:
            if isinstance(begun, KafkaClientError):
                raise begun
            if chunks := self._begin_run(requests) if begun is None else begun:
                transactions.finish(chunks, begun is not None and time.monotonic() - self._begun_s > PROBED_S)
        except KafkaClientError as failure:
            transactions.close()
            return failure
        return None

    def _begin_run(self, requests: Sequence[CommitRequest[Chunk]]) -> list[Chunk]:
        """Fill a transaction with those chunks of one run that are not yet in Kafka; return them.

        Raises:
            KafkaClientError: that failed.
        """
        transactions = self._transactions(requests[0].get_committable().id.transactional_id)
        to_write: list[Chunk] = []
        for request in requests:
            chunk = request.get_committable()
            fate = transactions.fate(chunk, self._now_ms())
            if fate is ChunkFate.UNKNOWN and self._unknown is UnknownChunks.FAIL:
                raise self._lost(chunk)
            if fate is ChunkFate.SKIP:
                request.signal_already_committed()
            elif fate is ChunkFate.UNKNOWN and self._unknown is UnknownChunks.DROP:
                request.signal_failed_with_known_reason(self._lost(chunk))
            else:
                to_write.append(chunk)
        if to_write:
            transactions.begin(to_write)
        return to_write

    def _may_be_overtaken(self, request: CommitRequest[Chunk]) -> bool:
        """Return whether other subtasks could write newer messages of the same keys before this request's.

        Keys are at other subtasks than before where the parallelism has changed; so the job starts again instead.
        """
        return request.restored and request.get_committable().id.parallelism != self._parallelism

    def _transactions(self, transactional_id: str) -> Transactions:
        """Return the transactions of an id; those of another subtask, which are restored, are closed after it."""
        if transactional_id not in self._by_id:
            self.close()
            self._by_id[transactional_id] = Transactions(
                transactional_id, self._properties, self._retention_ms, self._counts
            )
        return self._by_id[transactional_id]

    def _lost(self, chunk: Chunk) -> LostLedger:
        own, place = chunk.id, place_of(self._properties)
        days = (self._now_ms() - own.written_ms) / 86_400_000
        problem = f"{chunk!r}, written {days:.1f} days ago, may be in Kafka at {place} or not: the ledger of its run is"
        problem += f" gone, as brokers delete the offsets of idle groups (here group {own.transactional_id!r})"
        choices = "set_unknown_chunks(UnknownChunks.WRITE) writes them, perhaps again; UnknownChunks.DROP drops them"
        return LostLedger(problem, f"look into topic {own.ledger_topic!r} and choose: {choices}")


def _run_of(request: CommitRequest[Chunk]) -> tuple[str, str, str]:
    own = request.get_committable().id
    return own.transactional_id, own.run, own.ledger_topic


__all__ = ["ChunkCommitter", "ChunkingWriter", "UnknownChunks"]
