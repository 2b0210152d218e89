"""A producer that takes messages by columns, in one call for all; other threads run Python meanwhile.

confluent-kafka's own takes a dict for each message, and half of its time is for reading these. Methods that both have
are named alike, and their errors are confluent-kafka's.
"""

from __future__ import annotations

import ctypes
import logging
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import TYPE_CHECKING, Final

import numpy as np

from . import librdkafka
from .kafka_client import ClientErrors, as_exception, client_log, library
from .kafka_messages import ANY_PARTITION, NO_TIMESTAMP, Column, Headers, MessageColumns
from .librdkafka import Library

if TYPE_CHECKING:
    import confluent_kafka

_LEVELS: Final = (*repeat(logging.ERROR, 4), logging.WARNING, logging.INFO, logging.INFO, logging.DEBUG)
"""Level of the library's log -> level of Python's."""
_NO_BYTES: Final = ctypes.c_char()
"""Where entries of an empty buffer begin."""
_STEP_MS: Final = 2
"""Milliseconds after which deliveries are looked for; the library itself does so each 10 ms."""


@dataclass(frozen=True)
class TopicMetadata:
    """The answer of the brokers to a question for a topic.

    Args:
        partitions: their numbers.
    """

    error: confluent_kafka.KafkaError | None
    partitions: Sequence[int]


@dataclass(frozen=True)
class ClusterMetadata:
    """The answer of the brokers by topic."""

    topics: Mapping[str, TopicMetadata]


class MessageRows:
    """Messages for one topic as the library takes them: arrays that point into buffers.

    Args:
        entries: of MESSAGE, (n,); or of FIELD, (n, fields of a message at most).
        counts: fields of each message; None: `entries` are of MESSAGE.
        buffers: that `entries` point into.
    """

    def __init__(self, topic: int, entries: np.ndarray, counts: np.ndarray | None, buffers: object) -> None:
        self.topic, self.entries, self.counts, self.buffers = topic, entries, counts, buffers

    def __len__(self) -> int:
        return len(self.entries)

    def select(self, index: slice | np.ndarray) -> MessageRows:
        """Return some of the messages."""
        counts = None if self.counts is None else self.counts[index]
        return MessageRows(self.topic, self.entries[index], counts, self.buffers)


def joined_rows(parts: Sequence[MessageRows]) -> MessageRows:
    """Return messages of the same topic and form behind each other; there is at least one part."""
    first = parts[0]
    if len(parts) == 1:
        return first
    counts = [part.counts for part in parts if part.counts is not None]
    width = max(part.entries.shape[1:] for part in parts)
    entries = np.zeros((sum(map(len, parts)), *width), first.entries.dtype)  # concatenate() would move the fields
    start = 0
    for part in parts:
        place = entries[start : start + len(part)]
        (place[:, : part.entries.shape[1]] if width else place)[...] = part.entries
        start += len(part)
    every = np.concatenate(counts) if counts else None
    return MessageRows(first.topic, entries, every, [part.buffers for part in parts])


class BlockProducer:
    """A producer of librdkafka.

    Args:
        properties: of the client.
        errors: what it reports to.
        report: called with the error and the topic of each message that was not delivered, by `poll` and `flush`.

    Raises:
        KafkaClientError: the library refuses the properties.
    """

    def __init__(
        self,
        functions: Library,
        properties: Mapping[str, object],
        errors: ClientErrors,
        report: Callable[[confluent_kafka.KafkaError, str], None],
    ) -> None:
        self._functions = functions
        self._callbacks = _callbacks(functions, errors, weakref.WeakMethod(report))
        self._handle = self._create(properties)
        self._topics: dict[str, int] = {}
        closing = weakref.finalize(self, _destroy, functions, self._handle, self._topics, self._callbacks)
        closing.atexit = False  # as the process's end is the client's

    def __len__(self) -> int:
        """Return how many messages are not delivered yet."""
        return int(self._functions.outq_len(self._handle))

    def rows(self, topic: str, messages: MessageColumns) -> MessageRows:
        """Return messages as `produce` takes them; all are for one topic."""
        base = _address(messages.body)
        if messages.headers is not None or messages.timestamps is not None:
            return self._full_rows(topic, messages, base)
        entries = np.zeros(len(messages), librdkafka.MESSAGE)
        entries["value"], entries["value_bytes"] = _pointers(messages.values, base)
        if messages.keys is not None:
            entries["key"], entries["key_bytes"] = _pointers(messages.keys, base)
        entries["partition"] = ANY_PARTITION if messages.partitions is None else messages.partitions
        return MessageRows(self._topic(topic), entries, None, messages.body)

    def produce(self, rows: MessageRows) -> tuple[MessageRows, confluent_kafka.KafkaError | None]:
        """Queue messages.

        Returns:
            Those that were not taken, and the error of the first of them; "_QUEUE_FULL": they may be given again.
        """
        if rows.counts is not None:
            return self._produce_each(rows, rows.counts)
        flags = librdkafka.COPY | librdkafka.PARTITIONS
        entries, count = rows.entries, len(rows)
        if self._functions.produce_batch(rows.topic, ANY_PARTITION, flags, entries.ctypes.data, count) == count:
            return rows.select(slice(0, 0)), None
        left = rows.select(entries["error"] != 0)
        codes = left.entries["error"]
        return left, _as_error(int(codes[0]))

    def list_topics(self, topic: str, timeout: float) -> ClusterMetadata:
        """Ask the brokers for a topic.

        Raises:
            KafkaException: they do not answer.
        """
        answer = ctypes.POINTER(librdkafka.Metadata)()
        handle = self._topic(topic)
        code = self._functions.metadata(self._handle, 0, handle, ctypes.byref(answer), _milliseconds(timeout))
        if code:
            raise library().KafkaException(_as_error(code))
        try:
            content = answer.contents
            topics = [content.topics[index] for index in range(content.topic_count)]
            return ClusterMetadata({
                each.topic.decode(): TopicMetadata(
                    _as_error(each.error) if each.error else None,
                    [each.partitions[index].id for index in range(each.partition_count)],
                )
                for each in topics
            })  # fmt: skip
        finally:
            self._functions.metadata_destroy(answer)

    def poll(self, timeout: float) -> int:
        """Serve reports, and wait for one."""
        return int(self._functions.poll(self._handle, _milliseconds(timeout)))

    def wait_for_delivery(self) -> None:
        """Serve reports, and wait a moment for deliveries, which are not reported."""
        self._functions.poll(self._handle, _STEP_MS)

    def flush(self, timeout: float) -> int:
        """Wait until all messages are delivered or not; return how many still wait."""
        deadline = time.monotonic() + timeout
        while self._functions.flush(self._handle, _STEP_MS):
            if time.monotonic() >= deadline:
                return len(self)
        return 0

    def purge(self, blocking: bool) -> None:
        """Drop all messages."""
        assert not blocking
        self._functions.purge(self._handle, librdkafka.PURGE_ALL)

    def init_transactions(self, timeout: float) -> None:
        """End what another producer of the transactional id has begun."""
        self._ensure(self._functions.init_transactions(self._handle, _milliseconds(timeout)))

    def begin_transaction(self) -> None:
        """Begin a transaction."""
        self._ensure(self._functions.begin_transaction(self._handle))

    def commit_transaction(self, timeout: float) -> None:
        """Commit the transaction when all of its messages are delivered."""
        self._ensure(self._functions.commit_transaction(self._handle, _milliseconds(timeout)))

    def abort_transaction(self, timeout: float) -> None:
        """Abort the transaction."""
        self._ensure(self._functions.abort_transaction(self._handle, _milliseconds(timeout)))

    def send_offsets_to_transaction(
        self, offsets: Sequence[confluent_kafka.TopicPartition], group: str, timeout: float
    ) -> None:
        """Commit offsets with metadata for a consumer group with the transaction."""
        functions = self._functions
        places, owner = (
            functions.topic_partition_list_new(len(offsets)),
            functions.consumer_group_metadata_new(group.encode()),
        )
        try:
            for offset in offsets:
                place = functions.topic_partition_list_add(places, offset.topic.encode(), offset.partition).contents
                metadata = (offset.metadata or "").encode() + b"\0"  # up to which the library reads copies of it
                place.metadata = functions.mem_malloc(self._handle, len(metadata))  # goes with the list
                ctypes.memmove(place.metadata, metadata, len(metadata))
                place.metadata_bytes, place.offset = len(metadata), offset.offset
            self._ensure(functions.send_offsets_to_transaction(self._handle, places, owner, _milliseconds(timeout)))
        finally:
            functions.consumer_group_metadata_destroy(owner)
            functions.topic_partition_list_destroy(places)

    def _create(self, properties: Mapping[str, object]) -> int:
        functions = self._functions
        reason = ctypes.create_string_buffer(librdkafka.ERROR_BYTES)
        settings = functions.conf_new()
        own = {**properties, "delivery.report.only.error": True, "log.queue": True}
        for name, value in own.items():
            text = str(value).lower() if isinstance(value, bool) else str(value)
            if functions.conf_set(settings, name.encode(), text.encode(), reason, len(reason)):
                functions.conf_destroy(settings)
                raise self._refusal(reason, properties)
        report, note_error, note_log = self._callbacks
        functions.conf_set_dr_msg_cb(settings, report)
        functions.conf_set_error_cb(settings, note_error)
        functions.conf_set_log_cb(settings, note_log)
        handle = functions.new(librdkafka.PRODUCER, settings, reason, len(reason))
        if not handle:
            functions.conf_destroy(settings)
            raise self._refusal(reason, properties)
        functions.set_log_queue(handle, None)  # so that `poll` writes the logs, and no thread of the library does
        return int(handle)

    def _refusal(self, reason: ctypes.Array[ctypes.c_char], properties: Mapping[str, object]) -> Exception:
        error = library().KafkaError(librdkafka.INVALID_ARGUMENT, reason.value.decode(errors="replace"))
        return as_exception(error, properties, "creating a client (producer)")

    def _topic(self, topic: str) -> int:
        handle = self._topics.get(topic)
        if handle is None:
            handle = self._topics[topic] = self._functions.topic_new(self._handle, topic.encode(), None)
        return handle

    def _full_rows(self, topic: str, messages: MessageColumns, base: int) -> MessageRows:
        """Return messages with headers or timestamps."""
        handle, count = self._topic(topic), len(messages)
        most = 0 if messages.headers is None else max(map(len, (own or () for own in messages.headers)), default=0)
        fields = np.zeros((count, 6 + most), librdkafka.FIELD)
        kinds = (
            librdkafka.TOPIC, librdkafka.FLAGS, librdkafka.PARTITION, librdkafka.TIMESTAMP, librdkafka.VALUE,
            librdkafka.KEY,
        )  # fmt: skip
        fields["kind"][:, :6] = kinds
        first, second = fields["first"], fields["second"]
        first[:, 0], first[:, 1] = handle, librdkafka.COPY
        first[:, 2] = ANY_PARTITION if messages.partitions is None else messages.partitions
        stamps = NO_TIMESTAMP if messages.timestamps is None else messages.timestamps
        first[:, 3] = np.maximum(0, stamps)  # 0 is the time of the call
        first[:, 4], second[:, 4] = _pointers(messages.values, base)
        if messages.keys is not None:
            first[:, 5], second[:, 5] = _pointers(messages.keys, base)
        counts, headers = np.full(count, 6), b""
        if messages.headers is not None:
            headers = _add_headers(fields[:, 6:], messages.headers)
            counts += [len(own or ()) for own in messages.headers]
        return MessageRows(handle, fields, counts, (messages.body, headers))

    def _produce_each(
        self, rows: MessageRows, counts: np.ndarray
    ) -> tuple[MessageRows, confluent_kafka.KafkaError | None]:
        address, size = rows.entries.ctypes.data, rows.entries.strides[0]
        addresses = range(address, address + size * len(rows), size)
        calls = map(self._functions.produceva, repeat(self._handle), addresses, counts.tolist())
        for index, error in enumerate(calls):
            if error:
                return rows.select(slice(index, len(rows))), self._taken(error)
        return rows.select(slice(0, 0)), None

    def _ensure(self, error: int | None) -> None:
        if error:
            raise library().KafkaException(self._taken(error))

    def _taken(self, error: int) -> confluent_kafka.KafkaError:
        """Return an error of the library, and free that."""
        functions = self._functions
        try:
            return library().KafkaError(  # type: ignore[no-any-return]
                functions.error_code(error), functions.error_string(error).decode(errors="replace"),
                bool(functions.error_is_fatal(error)), bool(functions.error_is_retriable(error)),
                bool(functions.error_txn_requires_abort(error)),
            )  # fmt: skip
        finally:
            functions.error_destroy(error)


def new_block_producer(
    properties: Mapping[str, object],
    errors: ClientErrors,
    report: Callable[[confluent_kafka.KafkaError, str], None],
) -> BlockProducer | None:
    """Return such a producer; None: the client was built in a way that hides the library.

    Args:
        report: a method.
    """
    functions = librdkafka.load()
    return None if functions is None else BlockProducer(functions, properties, errors, report)


def _callbacks(
    functions: Library, errors: ClientErrors, report: weakref.WeakMethod[Callable[..., None]]
) -> tuple[object, object, object]:
    """Return what the library calls; it must live as long as the client."""

    def on_report(_handle: int, message: int, _opaque: int) -> None:
        receive, content = report(), librdkafka.Message.from_address(message)
        if receive is not None and content.error:
            receive(_as_error(content.error), functions.topic_name(content.topic).decode())

    def on_error(handle: int, code: int, reason: bytes, _opaque: int) -> None:
        if code != librdkafka.FATAL:
            errors.note(library().KafkaError(code, reason.decode(errors="replace")))
            return
        content = ctypes.create_string_buffer(librdkafka.ERROR_BYTES)
        code = functions.fatal_error(handle, content, len(content))
        errors.note(library().KafkaError(code, content.value.decode(errors="replace"), True))

    def on_log(handle: int, level: int, facility: bytes, line: bytes) -> None:
        name = functions.name(handle).decode() if handle else ""
        severity = _LEVELS[min(level, len(_LEVELS) - 1)]
        client_log.log(severity, "%s [%s] %s", facility.decode(), name, line.decode(errors="replace"))

    return librdkafka.Report(on_report), librdkafka.NoteError(on_error), librdkafka.NoteLog(on_log)


def _destroy(functions: Library, handle: int, topics: Mapping[str, int], callbacks: object) -> None:
    for topic in topics.values():
        functions.topic_destroy(topic)
    functions.destroy(handle)


def _as_error(code: int) -> confluent_kafka.KafkaError:
    return library().KafkaError(code)  # type: ignore[no-any-return]


def _milliseconds(seconds: float) -> int:
    return max(0, round(seconds * 1000))


def _address(buffer: bytes | memoryview) -> int:
    """Return the address of a buffer; that of an empty one is not 0, as an entry without bytes is not a missing one."""
    return int(np.frombuffer(buffer, np.uint8).ctypes.data) if len(buffer) else ctypes.addressof(_NO_BYTES)


def _pointers(column: Column, base: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the address and the bytes of each entry; 0 where there is none."""
    sizes = np.maximum(column.lengths, 0).astype(np.int64)
    addresses = base + column.start + np.cumsum(sizes) - sizes
    addresses[column.lengths < 0] = 0
    return addresses, sizes


def _add_headers(fields: np.ndarray, headers: Sequence[Headers | None]) -> bytes:
    """Add headers to the fields of messages; return the bytes that these point into."""
    entries = list(chain.from_iterable(own or () for own in headers))
    names = [name.encode() + b"\0" for name, _ in entries]
    body = b"".join(chain(names, (value or b"" for _, value in entries)))
    base = _address(body)
    counts = np.array([len(own or ()) for own in headers])
    rows = np.repeat(np.arange(len(headers)), counts)
    columns = np.arange(len(entries)) - np.repeat(np.cumsum(counts) - counts, counts)
    sizes = np.array([len(name) for name in names], np.int64)
    values = Column(int(sizes.sum()), np.array([-1 if v is None else len(v) for _, v in entries], np.int32))
    fields["kind"][rows, columns] = librdkafka.HEADER
    fields["first"][rows, columns] = base + np.cumsum(sizes) - sizes
    fields["second"][rows, columns], fields["third"][rows, columns] = _pointers(values, base)
    return body


__all__ = ["BlockProducer", "ClusterMetadata", "MessageRows", "TopicMetadata", "joined_rows", "new_block_producer"]
