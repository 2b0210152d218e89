"""Messages into a producer of the client, with back-pressure; and the writer that waits for no checkpoint."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.sink import SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.records.batches import Batch, rows_of

from .block_producer import joined_rows, new_block_producer
from .kafka_client import (
    MISSING,
    ClientErrors,
    as_exception,
    error_name,
    is_transient,
    library,
    new_producer,
    place_of,
    without_secrets,
)
from .kafka_errors import KafkaBrokerUnavailable, KafkaClientError
from .kafka_messages import ANY_PARTITION, NO_TIMESTAMP, KafkaMessages, MessageColumns
from .kafka_record_serialization import KafkaRecordSerializationSchema

if TYPE_CHECKING:
    import confluent_kafka

SLICE = 1_000
"""Messages that are given to the client in one call as Python objects."""
CALL_MESSAGES = 40_000
"""Messages that are given to the client in one call, at most, where it takes them by columns."""
QUEUE_BYTES = 256 << 20
"""Bytes of messages in the client's queue after which the writer waits until it is empty."""
METADATA_S = 10
"""Seconds for which a subtask waits for the partitions of a topic."""
METADATA_AGE_S = 60
"""Seconds after which a partitioner sees that a topic has more partitions."""
OVERHEAD = 72
"""Bytes of a message beside key, value and headers, at most; the client counts them too."""
_WAIT_S = 0.1
_TRY_S = 0.5
_REPORT_S = 0.02
_DROPPED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


class TooLargeMessage(KafkaClientError):
    """A message is larger than the client or the broker allows."""


@dataclass(frozen=True, slots=True)
class MessageQueueStatistics:
    """The messages that the client has and the brokers have not."""

    messages: int
    """Messages that were not delivered yet."""
    bytes: int
    """Bytes that were put into the queue since it was empty."""


class MessageQueue:
    """The queue of a producer: messages go in, in order, and it waits where there is no room.

    Args:
        properties: of the client.
        by_columns: whether the producer should take messages by columns, where the client allows it.
    """

    def __init__(self, properties: Mapping[str, str], errors: ClientErrors, by_columns: bool = False) -> None:
        self._properties, self._errors = properties, errors
        block_producer = new_block_producer(properties, errors, self.note_failure) if by_columns else None
        self.takes_columns = block_producer is not None
        """Whether the producer takes messages by columns; else it is confluent-kafka's."""
        self.producer: Any = block_producer
        if block_producer is None:
            self.producer = new_producer({**properties, "delivery.report.only.error": True}, errors)
        self._most = int(properties.get("queue.buffering.max.messages", 100_000))
        kbytes = int(properties.get("queue.buffering.max.kbytes", QUEUE_BYTES >> 10))
        self._most_bytes = min(kbytes << 10, QUEUE_BYTES)
        self._bytes = 0
        self.failure: KafkaClientError | None = None
        """The reason why the first message was not delivered."""
        self._dropped: KafkaClientError | None = None
        """The report of a message that the client has dropped, which is no reason: another error made it do so."""

    def put(self, messages: KafkaMessages, size: int) -> None:
        """Give messages to the client, and wait while its queue is full.

        Args:
            size: bytes of the messages.

        Raises:
            KafkaClientError: an earlier message was not delivered, or the client refuses one.
        """
        for topic, part in messages.by_topic():
            for start in range(0, len(part), SLICE):
                piece = part.slice(start, start + SLICE) if len(part) > SLICE else part
                own_size = size * len(piece) // len(messages)
                if self.takes_columns:
                    self._put_columns(topic, [MessageColumns.of(piece)], own_size)
                else:
                    self._put_rows(topic, piece, own_size)
        self.producer.poll(0)

    def flush(self, within_s: float | None = None) -> None:
        """Wait until all messages are delivered, or not: each ends within the client's `delivery.timeout.ms`.

        Raises:
            KafkaClientError: one was not delivered.
            KafkaBrokerUnavailable: some still wait after `within_s` seconds.
        """
        deadline = None if within_s is None else time.monotonic() + within_s
        while self.producer.flush(_WAIT_S):
            self.check()
            if deadline is not None and time.monotonic() > deadline:
                problem = f"{len(self.producer)} messages for Kafka at {place_of(self._properties)} still wait"
                raise KafkaBrokerUnavailable(f"{problem} after {within_s:.0f} s", self._remedy())
        self._bytes = 0
        self.check()

    def statistics(self) -> MessageQueueStatistics:
        """Return the present sizes."""
        return MessageQueueStatistics(len(self.producer), self._bytes)

    def check(self) -> None:
        """Raise the error of a message that was not delivered.

        Raises:
            KafkaClientError: it says why.
        """
        self._errors.check()
        failure = self.failure or self._dropped
        if failure is not None:
            raise failure

    def first_failure(self, within_s: float) -> KafkaClientError | None:
        """Return the reason why the first message was not delivered.

        None: all were, or `within_s` seconds are over, or the client has dropped them for another reason.
        """
        deadline = time.monotonic() + within_s
        self.producer.poll(0)
        while self.failure is None and len(self.producer) and time.monotonic() < deadline:
            self.producer.poll(_REPORT_S)
        return self.failure

    def note_delivery(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        """Take the report of a message that was delivered, or was not."""
        if error is not None:
            self.note_failure(error, str(message.topic()))

    def note_failure(self, error: confluent_kafka.KafkaError, topic: str) -> None:
        """Take the report of a message that was not delivered."""
        if error_name(error) in _DROPPED:
            self._dropped = self._dropped or self._as_failure(error, topic)
        elif self.failure is None:
            self.failure = self._as_failure(error, topic)

    def forget_reports(self) -> None:
        """Forget what was reported of messages whose transaction was aborted: the next one has none of them."""
        self.producer.poll(0)
        self.failure = self._dropped = None
        self._bytes = 0

    @property
    def queued(self) -> int:
        """Return how many messages wait for their delivery; 0 after `discard`."""
        producer = vars(self).get("producer")
        return 0 if producer is None else len(producer)

    def discard(self) -> None:
        """Drop the producer with everything that it has not delivered."""
        self.producer.purge(blocking=False)
        del self.producer

    def put_parts(self, parts: Iterable[MessageColumns], size: int) -> None:
        """Give messages to the client as `put` does, in as few calls as it can be: a thread that fills a transaction
        beside its task waits for its turn after each.

        Args:
            size: bytes of all.

        Raises:
            KafkaClientError: an earlier message was not delivered, or the client refuses one.
        """
        every = list(parts)
        count = max(1, sum(map(len, every)))
        for _, run in groupby(every, key=_form_of):
            own = list(run)
            own_size = size * sum(map(len, own)) // count
            if self.takes_columns and isinstance(own[0].topics, str):
                self._put_columns(own[0].topics, own, own_size)
                self.producer.poll(0)
            else:
                for part in own:
                    self.put(part.messages(), own_size * len(part) // max(1, sum(map(len, own))))

    def _put_columns(self, topic: str, parts: Sequence[MessageColumns], size: int) -> None:
        """Give messages of the same columns to a producer that takes them so."""
        rows = joined_rows([self.producer.rows(topic, part) for part in parts])
        most = min(CALL_MESSAGES, max(1, self._most // 2))
        for start in range(0, len(rows), most):
            part = rows.select(slice(start, start + most))
            self._wait_for_room(min(len(part), self._most), size * len(part) // len(rows))
            while len(part):
                part, error = self.producer.produce(part)
                if error is not None:
                    if error_name(error) != "_QUEUE_FULL":
                        raise self._as_failure(error, topic)
                    self._wait()

    def _put_rows(self, topic: str, messages: KafkaMessages, size: int) -> None:
        """Give messages to confluent-kafka's producer."""
        self._wait_for_room(min(len(messages), self._most), size)
        if messages.headers is not None or messages.timestamps is not None:
            self._put_each(topic, messages)
            return
        for partition, rows in _rows_by_partition(messages).items():
            self._put_dicts(topic, partition, rows)

    def _put_dicts(self, topic: str, partition: int, rows: list[dict[str, Any]]) -> None:
        produce_batch, report = self.producer.produce_batch, self.note_delivery
        while True:  # the partition is that of the call: the client ignores one that a message names
            if produce_batch(topic, rows, partition, on_delivery=report) == len(rows):
                return
            rows = [row for row in rows if "_error" in row]
            for row in rows:
                error = row.pop("_error")
                if error_name(error) != "_QUEUE_FULL":
                    raise self._as_failure(error, topic)
            self._wait()

    def _put_each(self, topic: str, messages: KafkaMessages) -> None:
        """Give messages with timestamps or headers, which `produce_batch` does not take, to the client one by one."""
        module, produce, report = library(), self.producer.produce, self.note_delivery
        count = len(messages)
        keys = messages.keys if messages.keys is not None else [None] * count
        stamps = [max(0, stamp) for stamp in messages.timestamps or [NO_TIMESTAMP] * count]  # 0 is the time of the call
        partitions = messages.partitions or [ANY_PARTITION] * count
        headers = messages.headers or [None] * count
        for value, key, partition, stamp, own in zip(messages.values, keys, partitions, stamps, headers, strict=True):
            while True:
                try:
                    produce(topic, value, key, partition, on_delivery=report, timestamp=stamp, headers=own)
                    break
                except BufferError:
                    self._wait()
                except module.KafkaException as error:
                    raise self._as_failure(error.args[0], topic) from None

    def _wait_for_room(self, count: int, size: int) -> None:
        """Wait in front of the client's limits, beyond which it would refuse some of the messages."""
        self._bytes += size
        while len(self.producer) + count > self._most:
            self._wait()
        if self._bytes > self._most_bytes:
            self.flush()
            self._bytes = size

    def _wait(self) -> None:
        if self.takes_columns:
            self.producer.wait_for_delivery()
        else:
            self.producer.poll(_WAIT_S)
        self.check()

    def _as_failure(self, error: confluent_kafka.KafkaError, topic: str) -> KafkaClientError:
        name = error_name(error)
        place = place_of(self._properties)
        if name == "MSG_SIZE_TOO_LARGE":
            return refused_size(f"writing to topic {topic!r}", place, error.str())
        if name in MISSING:
            return missing_topic(topic, place)
        failure = as_exception(error, self._properties, f"writing to topic {topic!r}")
        if isinstance(failure, KafkaBrokerUnavailable):
            return KafkaBrokerUnavailable(failure.problem, self._remedy())
        return failure

    def _remedy(self) -> str:
        last = without_secrets(self._errors.last, self._properties)
        seen = f" (the client's last error: {last})" if last else ""
        return f"check that the brokers run and can be reached from every node{seen}"


def _form_of(messages: MessageColumns) -> tuple[object, ...]:
    """Return what messages must share to be in one call."""
    topics = messages.topics if isinstance(messages.topics, str) else None
    return topics, messages.headers is None and messages.timestamps is None, messages.headers is None


def _rows_by_partition(messages: KafkaMessages) -> dict[int, list[dict[str, Any]]]:
    """Return the messages by partition, ANY_PARTITION where the client chooses, as `produce_batch` takes them."""
    if messages.keys is None:
        rows: list[dict[str, Any]] = [{"value": value} for value in messages.values]
    else:
        pairs = zip(messages.values, messages.keys, strict=True)
        rows = [{"value": value, "key": key} for value, key in pairs]
    if messages.partitions is None:
        return {ANY_PARTITION: rows}
    by_partition: dict[int, list[dict[str, Any]]] = {}
    for row, partition in zip(rows, messages.partitions, strict=True):
        by_partition.setdefault(partition, []).append(row)
    return by_partition


def refused_size(doing: str, place: str, reason: str) -> TooLargeMessage:
    """Return the error of a message that is larger than the topic allows."""
    problem = f"{doing} at {place} failed, as a message is larger than is allowed: {reason}"
    return TooLargeMessage(problem, "raise max.message.bytes of the topic and message.max.bytes of the sink")


def missing_topic(topic: str, place: str) -> KafkaClientError:
    """Return the error of a topic that is not there."""
    problem = f"topic {topic!r} does not exist at {place}, or lacks the partition"
    return KafkaClientError(problem, "create it, or correct its name; the sink creates no topics")


def is_missing(error: confluent_kafka.KafkaError | None, partitions: Collection[object]) -> bool:
    """Return whether the brokers do not know a topic, from the error and the partitions that they gave for it."""
    return not partitions if error is None else error_name(error) in MISSING


class TopicPartitions:
    """The partitions of topics, which a client asks the brokers for.

    Args:
        client: a producer; None: one is made when there is something to ask.
        errors: what the producer reports to.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        subtask: int,
        parallelism: int,
        client: confluent_kafka.Producer | None = None,
        errors: ClientErrors | None = None,
    ) -> None:
        self._errors = errors or ClientErrors(properties)
        self._client, self._properties = client, properties
        self.subtask, self.parallelism = subtask, parallelism
        self._found: dict[str, tuple[float, Sequence[int]]] = {}

    def partitions_of(self, topic: str) -> Sequence[int]:
        """Return the partitions of a topic.

        Raises:
            KafkaClientError: it does not exist, or no broker answers.
        """
        known = self._found.get(topic)
        if known is not None and time.monotonic() - known[0] < METADATA_AGE_S:
            return known[1]
        doing = f"looking up topic {topic!r}"
        metadata = self._ask(topic, doing).topics[topic]
        if is_missing(metadata.error, metadata.partitions):
            raise missing_topic(topic, place_of(self._properties))
        if metadata.error is not None:
            raise as_exception(metadata.error, self._properties, doing)
        partitions = sorted(metadata.partitions)
        self._found[topic] = time.monotonic(), partitions
        return partitions

    def _ask(self, topic: str, doing: str) -> Any:
        """Return what the brokers say of a topic, asked again until one answers or refuses the client.

        Raises:
            KafkaClientError: none answers in time.
        """
        if self._client is None:
            self._client = new_producer(self._properties, self._errors)
        module, deadline, seconds = library(), time.monotonic() + METADATA_S, _TRY_S
        while True:
            left = deadline - time.monotonic()
            try:
                return self._client.list_topics(topic, timeout=max(0.1, min(seconds, left)))
            except module.KafkaException as error:
                failure, seconds = error.args[0], 2 * seconds
            self._client.poll(0)  # which reports the errors of connections
            self._errors.check()
            if left <= 0 or not is_transient(failure):
                raise as_exception(failure, self._properties, doing)

    def close(self) -> None:
        """Drop the client."""
        self._client = None


class Encoder:
    """Turns the records of a subtask into messages that the client takes.

    Args:
        most_bytes: of a message, the client's `message.max.bytes`.
    """

    def __init__(self, schema: KafkaRecordSerializationSchema, topics: TopicPartitions, most_bytes: int) -> None:
        self._schema, self._topics, self._most_bytes = schema, topics, most_bytes

    def encode(self, batch: Batch) -> tuple[KafkaMessages, list[int]]:
        """Return the messages of a batch and the bytes of each.

        Raises:
            UnwritableRecord: a record cannot be encoded, or its message is too large.
        """
        messages = self._schema.encode_batch(batch, self._topics)
        sizes = messages.sizes()
        if sizes and max(sizes) + OVERHEAD > self._most_bytes:
            index = sizes.index(max(sizes))
            problem = f"a message of {sizes[index]} bytes is larger than message.max.bytes, {self._most_bytes}"
            remedy = "set_property('message.max.bytes', ...) on the sink, and max.message.bytes of the topic"
            raise UnwritableRecord(shorten(list(rows_of(batch))[index])) from TooLargeMessage(problem, remedy)
        return messages, sizes


class DirectWriter(SinkWriter):
    """Gives messages to the client at once.

    Args:
        waits: whether a checkpoint waits until the messages before it are delivered.
    """

    def __init__(self, ctx: WriterContext, queue: MessageQueue, encoder: Encoder, waits: bool) -> None:
        self._queue, self._encoder, self._waits = queue, encoder, waits
        metrics = ctx.metrics or MetricGroup()
        self._sent, self._bytes = metrics.counter("numRecordsSend"), metrics.counter("numBytesSend")
        self._errors = metrics.counter("numRecordsSendErrors")
        metrics.gauge("queuedMessages", lambda: queue.queued)

    def write(self, batch: Batch) -> None:
        messages, sizes = self._encoder.encode(batch)
        size = sum(sizes)
        with self._counted():
            self._queue.check()
            self._queue.put(messages, size)
        self._sent.inc(len(messages))
        self._bytes.inc(size)

    def flush(self, end_of_input: bool) -> None:
        if self._waits or end_of_input:
            with self._counted():
                self._queue.flush()

    def close(self) -> None:
        self._queue.discard()

    def _counted(self) -> _Counted:
        return _Counted(self._errors)


class _Counted:
    """Counts an error that passes through."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, KafkaClientError):
            self._counter.inc()


__all__ = [
    "DirectWriter",
    "Encoder",
    "MessageQueue",
    "TooLargeMessage",
    "TopicPartitions",
    "is_missing",
    "missing_topic",
    "refused_size",
]
