"""Transactions that write chunks and their ledger together; each is committed, or aborted, soon after it is filled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from rayflink.common.metrics.metric_group import Counter
from rayflink.common.text_output.logs import get_logger

from .kafka_chunks import Chunk
from .kafka_client import (
    MISSING,
    ClientErrors,
    as_exception,
    error_name,
    is_transient,
    library,
    new_consumer,
    place_of,
)
from .kafka_errors import KafkaAccessDenied, KafkaBrokerUnavailable, KafkaClientError
from .kafka_ledger import ChunkFate, Ledger
from .kafka_producing import MessageQueue, is_missing, missing_topic, refused_size

if TYPE_CHECKING:
    import confluent_kafka

_T = TypeVar("_T")
log = get_logger(__name__)

CALL_S = 10.0
"""Seconds for which a call to the brokers waits."""
TRY_S = 1.0
"""Seconds after which such a call is left where it can be resumed, to see whether the brokers refuse the client."""
GRACE_S = 1.0
"""Seconds beyond those for which the client should wait, after which a call is left alone."""
ABORT_S = 2.0
"""Seconds for which a failed transaction is aborted at once."""
REPORTS_S = 1.0
"""Seconds for which the reports of messages are waited for after one of them may have failed the transaction."""
PROBE_S = 2.0
"""Seconds in which the brokers must answer before a transaction is begun."""
LONGEST_TIMEOUT_MS = 60_000
"""Most milliseconds that a transaction is given after some were too slow."""
_FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")


@dataclass
class TransactionCounts:
    """The counters of the transactions of a subtask."""

    transactions: Counter = field(default_factory=Counter)
    aborted: Counter = field(default_factory=Counter)
    fenced: Counter = field(default_factory=Counter)
    records: Counter = field(default_factory=Counter)
    bytes: Counter = field(default_factory=Counter)


class FencedTransaction(KafkaBrokerUnavailable):
    """A transaction was ended by the brokers: another producer has its id, or it took too long."""


class LostLedger(KafkaClientError):
    """The ledger does not say whether a chunk is in Kafka."""


class Transactions:
    """The transactions of one transactional id.

    The first commit fences off whoever had the id before, which aborts a transaction that was left open, and then
    reads the ledger. After an error the producer is dropped, and the next commit begins in the same way; so it does not
    matter whether a transaction whose outcome is unknown was committed.

    Args:
        transactional_id: also the consumer group whose offset is the ledger.
        properties: of a producer.
        retention_ms: time for which the brokers keep offsets.
        counts: what happened.
    """

    def __init__(
        self, transactional_id: str, properties: Mapping[str, str], retention_ms: int, counts: TransactionCounts
    ) -> None:
        self.id, self._retention_ms, self._counts = transactional_id, retention_ms, counts
        self._properties = dict(properties)
        self._first_timeout_ms = self._timeout_ms = int(properties["transaction.timeout.ms"])
        self._queue: MessageQueue | None = None
        self._ledgers: dict[str, Ledger] = {}
        self._group: object = None
        self._deadline = 0.0

    def fate(self, chunk: Chunk, now_ms: int) -> ChunkFate:
        """Return whether a chunk is committed, as of the last time that this producer had the id for itself.

        Raises:
            KafkaClientError: the ledger cannot be read.
        """
        self._open()
        own = chunk.id
        if own.ledger_topic not in self._ledgers:
            self._ledgers[own.ledger_topic] = self._read(own.ledger_topic)
        ledger = self._ledgers[own.ledger_topic]
        return ledger.fate(own.run, own.sequence, own.written_ms, now_ms, self._retention_ms)

    def is_ready(self, ledger_topic: str) -> bool:
        """Return whether `fate` and `begin` only have to probe the brokers."""
        return self._queue is not None and ledger_topic in self._ledgers

    def begin(self, chunks: Sequence[Chunk]) -> None:
        """Fill a transaction with chunks of one run, in the order of their numbers; `finish` commits it.

        Raises:
            KafkaClientError: they are not committed.
        """
        assert self._queue is not None, "fate() opens it"
        self._deadline = time.monotonic() + self._timeout_ms / 1000
        with self._leaving_if_it_fails(self._queue) as queue:
            self._probe(queue, chunks[-1].id.ledger_topic)
            queue.producer.begin_transaction()
            for chunk in chunks:
                queue.put_parts(chunk.columns(), chunk.size)

    def abandon(self) -> None:
        """Abort what `begin` has begun; the chunks may be given to it again."""
        queue = self._queue
        if queue is None:
            return
        self._counts.aborted.inc()
        try:
            self._within(ABORT_S, lambda seconds: queue.producer.abort_transaction(seconds))
            queue.forget_reports()
        except (library().KafkaException, KafkaClientError) as error:
            log.warning("transaction of %r was not aborted, the next one of that id does so: %s", self.id, error)
            self.close()

    def finish(self, chunks: Sequence[Chunk], was_open: bool = False) -> None:
        """Commit the transaction of the chunks that `begin` was given; another thread may do so.

        Args:
            was_open: whether time has passed since `begin`, in which the brokers may have gone away.

        Raises:
            KafkaClientError: they are not committed, or it is unknown; `fate` says which.
        """
        assert self._queue is not None, "begin() was called"
        last = chunks[-1].id
        ledger = self._ledgers[last.ledger_topic].with_chunk(last.run, last.sequence)
        offset = library().TopicPartition(last.ledger_topic, 0, ledger.commits, ledger.metadata())
        with self._leaving_if_it_fails(self._queue) as queue:
            if was_open:
                self._probe(queue, last.ledger_topic)
            if queue.takes_columns:  # confluent-kafka's producer does so when it commits
                queue.producer.flush(max(0.0, self._deadline - time.monotonic()))
            send = queue.producer.send_offsets_to_transaction
            self._until(self._deadline, lambda seconds: send([offset], self._group, seconds))
            self._until(self._deadline, queue.producer.commit_transaction)
        self._ledgers[last.ledger_topic] = ledger
        if self._timeout_ms > self._first_timeout_ms:
            self._timeout_ms = self._first_timeout_ms
            self.close()  # the brokers would wait as long for each of its transactions, should this process die
        self._counts.transactions.inc()
        self._counts.records.inc(sum(chunk.count for chunk in chunks))
        self._counts.bytes.inc(sum(chunk.size for chunk in chunks))

    @contextmanager
    def _leaving_if_it_fails(self, queue: MessageQueue) -> Iterator[MessageQueue]:
        """Abort the transaction and drop the producer when the block raises an error."""
        try:
            yield queue
        except library().KafkaException as error:
            failure = self._undelivered(queue, error.args[0])
            failure = failure or self._failure(error.args[0], f"a transaction of {self.id!r}")
            self._leave(failure)
            raise failure from None
        except KafkaClientError as failure:
            self._leave(failure)
            raise
        except BaseException:
            self.close()
            raise

    def _probe(self, queue: MessageQueue, topic: str) -> None:
        """See that the brokers answer and know a topic, before a transaction is begun.

        Raises:
            KafkaClientError: the topic does not exist.
        """
        deadline = time.monotonic() + PROBE_S
        answer = self._until(deadline, lambda seconds: queue.producer.list_topics(topic, timeout=seconds))
        metadata = answer.topics[topic]
        if is_missing(metadata.error, metadata.partitions):
            raise missing_topic(topic, place_of(self._properties))

    def close(self) -> None:
        """Drop the producer."""
        queue, self._queue = self._queue, None
        self._ledgers.clear()
        self._group = None
        if queue is not None:
            queue.discard()

    def _open(self) -> None:
        if self._queue is not None:
            return
        module = library()
        properties = {
            **self._properties, "transactional.id": self.id, "transaction.timeout.ms": str(self._timeout_ms),
            "delivery.timeout.ms": str(self._timeout_ms),
        }  # fmt: skip
        errors = ClientErrors(properties)
        queue = MessageQueue(properties, errors, by_columns=True)

        def initialize(seconds: float) -> None:
            queue.producer.poll(0)  # which reports the errors of connections
            errors.check()
            queue.producer.init_transactions(min(TRY_S, seconds))  # the next call resumes it

        try:
            self._until(time.monotonic() + CALL_S, initialize)
        except module.KafkaException as error:
            queue.discard()
            raise self._failure(error.args[0], f"initializing the transactions of {self.id!r}") from None
        except KafkaClientError:
            queue.discard()
            raise
        self._queue = queue

    def _read(self, topic: str) -> Ledger:
        """Return the ledger that stands at partition 0 of a topic."""
        module = library()
        own = {
            name: value for name, value in self._properties.items()
            if name.startswith(("bootstrap.", "sasl.", "ssl.", "security.", "client.", "socket.", "broker."))
        }  # fmt: skip
        own |= {"group.id": self.id, "isolation.level": "read_committed", "enable.auto.commit": "false"}
        consumer = new_consumer(own, ClientErrors(own))
        try:
            place = [module.TopicPartition(topic, 0)]
            [entry] = self._until(time.monotonic() + CALL_S, lambda s: consumer.committed(place, timeout=s))
            if entry.error is not None:
                raise module.KafkaException(entry.error)
            by_columns = self._queue is not None and self._queue.takes_columns
            self._group = self.id if by_columns else consumer.consumer_group_metadata()
        except module.KafkaException as error:
            if error_name(error.args[0]) in MISSING:
                raise missing_topic(topic, place_of(self._properties)) from None
            raise self._failure(error.args[0], f"reading the ledger of {self.id!r} at topic {topic!r}") from None
        finally:
            consumer.close()
        try:
            return Ledger.of_metadata(entry.offset, entry.metadata)
        except (ValueError, KeyError, TypeError) as error:
            problem = f"the offset of group {self.id!r} for partition 0 of topic {topic!r} is no ledger: {error}"
            remedy = "another program commits offsets to the group; give the sink a transactional id prefix of its own"
            raise LostLedger(problem, remedy) from None

    def _until(self, deadline: float, call: Callable[[float], _T]) -> _T:
        """Call the client, again where an error passes by itself, until a deadline of `time.monotonic`."""
        module = library()
        while True:
            left = max(0.1, deadline - time.monotonic())
            try:
                return self._within(left, call)
            except module.KafkaException as error:
                reason = error.args[0]
                passes = is_transient(reason) and not reason.txn_requires_abort() and not reason.fatal()
                if not passes or time.monotonic() >= deadline:
                    raise
            time.sleep(0.02)

    def _within(self, seconds: float, call: Callable[[float], _T]) -> _T:
        """Call the client, and leave the call alone if it takes longer than it was given.

        `send_offsets_to_transaction` of librdkafka 2.16 may not return at all after its broker has restarted.

        Raises:
            KafkaBrokerUnavailable: the call has not returned.
        """
        results: list[_T] = []
        errors: list[BaseException] = []

        def work() -> None:
            try:
                results.append(call(seconds))
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=work, name=f"kafka-{self.id}", daemon=True)
        thread.start()
        thread.join(seconds + GRACE_S)
        if errors:
            raise errors[0]
        if not results:
            problem = f"Kafka's client did not return to {self.id!r} within {seconds + GRACE_S:.0f} s"
            raise KafkaBrokerUnavailable(problem, "it is tried again; check that the brokers run")
        return results[0]

    def _undelivered(self, queue: MessageQueue, error: confluent_kafka.KafkaError) -> KafkaClientError | None:
        """Return why a message was not delivered, where a call failed for that alone; None: that is not why.

        The client refuses calls of a transaction as soon as one of its messages has failed, which may be before it has
        reported that message.
        """
        is_consequence = error.txn_requires_abort() or error_name(error) == "_STATE"
        return queue.first_failure(REPORTS_S if is_consequence else 0.0)

    def _failure(self, error: confluent_kafka.KafkaError, doing: str) -> KafkaClientError:
        if error_name(error) in _FENCED:
            self._counts.fenced.inc()
            problem = f"{doing} was ended by another producer with this id, or took longer than {self._timeout_ms} ms"
            remedy = "it is tried again; no two jobs or sinks may have the same transactional id prefix"
            return FencedTransaction(problem, remedy)
        if error_name(error) == "MSG_SIZE_TOO_LARGE":
            return refused_size(doing, place_of(self._properties), error.str())
        if error_name(error) == "INVALID_TRANSACTION_TIMEOUT":
            problem = f"the brokers refuse transactions of {self._timeout_ms} ms (transaction.max.timeout.ms)"
            return KafkaClientError(problem, "set_property('transaction.timeout.ms', ...) to less")
        if error_name(error) == "OFFSET_METADATA_TOO_LARGE":
            problem = "the brokers refuse the ledger, which has up to 2048 bytes"
            return KafkaClientError(problem, "set offset.metadata.max.bytes of the brokers to 2048 or more")
        return as_exception(error, self._properties, doing)

    def _leave(self, failure: KafkaClientError) -> None:
        """Abort a transaction where that can be done at once, and drop the producer.

        Where it cannot, the next commit aborts it, or the brokers do after `transaction.timeout.ms`.
        """
        assert self._queue is not None
        self._counts.aborted.inc()
        if isinstance(failure, FencedTransaction):
            self._timeout_ms = max(self._timeout_ms, min(2 * self._timeout_ms, LONGEST_TIMEOUT_MS))
        elif not isinstance(failure, KafkaBrokerUnavailable):
            with suppress(Exception):
                self._within(ABORT_S, self._queue.producer.abort_transaction)
        log.warning("transaction of %r was not committed: %s", self.id, failure)
        self.close()


def is_permanent(failure: KafkaClientError) -> bool:
    """Return whether a retry would only repeat the failure."""
    return isinstance(failure, KafkaAccessDenied) or not isinstance(failure, KafkaBrokerUnavailable)


__all__ = ["LostLedger", "TransactionCounts", "Transactions", "is_permanent"]
