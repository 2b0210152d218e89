"""The sink of Redis Streams, and its builder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rayflink.common.connector_base.sink import Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.common.time import Duration, to_millis
from rayflink.user_types import UserRecord

from ..message_logs.outages import OutageWatch
from .redis_client import Client, RedisServer
from .redis_entries import EntryWriter
from .redis_errors import RedisError, RedisOutage, failure_of

MOST_ENTRIES = 1_000
"""Entries of one request."""
LINGER_MS = 100
"""Milliseconds for which a record waits for others."""


@dataclass(frozen=True)
class RedisSinkSettings:
    """The settings of a sink.

    Args:
        stream: key, or a function from a record to it.
        entries: makes entries of records.
        max_length: entries that a stream keeps; 0: all.
        is_exact: False: it may keep a few more, which costs the server less.
    """

    server: RedisServer
    stream: str | Callable[[UserRecord], str]
    entries: EntryWriter
    max_length: int = 0
    is_exact: bool = False


class RedisStreamSink(Sink[UserRecord]):
    """Adds records to Redis Streams, each at least once; `RedisStreamSink.builder()` makes one.

    A checkpoint waits until the server has taken all records before it. After a failure those since the last complete
    checkpoint are added again.
    """

    name = "Sink: Redis Streams"

    def __init__(self, settings: RedisSinkSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> RedisStreamSinkBuilder:
        """Return a builder without settings."""
        return RedisStreamSinkBuilder()

    def __repr__(self) -> str:
        return f"RedisStreamSink({self._settings.server.place})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return RedisStreamWriter(self._settings, ctx)


class RedisStreamWriter(SinkWriter):
    """Adds the records of one subtask, many in one request, in order.

    Args:
        settings: of the sink.
        ctx: its metrics count `numRecordsSend` and `numReconnects`.
    """

    def __init__(self, settings: RedisSinkSettings, ctx: WriterContext) -> None:
        self._settings, self._ctx = settings, ctx
        self._due_ms: int | None = None
        metrics = ctx.metrics or MetricGroup()
        self._sent, self._reconnects = metrics.counter("numRecordsSend"), metrics.counter("numReconnects")
        self._client: Client | None = None
        self._waiting: list[tuple[str, list[object]]] = []
        length, sign = settings.max_length, "=" if settings.is_exact else "~"
        self._trimming: tuple[object, ...] = ("MAXLEN", sign, length) if length else ()

    def write(self, batch: Batch) -> None:
        stream, pairs = self._settings.stream, self._settings.entries.pairs
        for record in rows_of(batch):
            try:
                self._waiting.append((stream if isinstance(stream, str) else stream(record), pairs(record)))
            except Exception as error:  # of the user's functions, or of a record that has no fields
                raise UnwritableRecord(shorten(record)) from error
        while len(self._waiting) >= MOST_ENTRIES:
            self._send()
        if self._waiting and self._due_ms is None:
            self._due_ms = self._ctx.now_ms() + LINGER_MS

    def next_time_ms(self) -> int | None:
        return self._due_ms

    def on_time(self, now_ms: int) -> None:
        if self._due_ms is not None and now_ms >= self._due_ms:
            self.flush(False)

    def flush(self, end_of_input: bool) -> None:
        while self._waiting:
            self._send()
        self._due_ms = None

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _send(self) -> None:
        """Add entries from the front, and try again for a while where the server is away.

        Raises:
            RedisError: it refuses, or is away too long.
        """
        server = self._settings.server
        outage = OutageWatch(server.place, server.outage_timeout_ms, self._reconnects.inc)
        while True:
            entries = self._waiting[:MOST_ENTRIES]
            try:
                self._add(entries)
                return
            except RedisOutage as error:
                self.close()
                time.sleep(outage.pause_s(error))

    def _add(self, entries: Sequence[tuple[str, list[object]]]) -> None:
        settings = self._settings
        self._client = self._client or settings.server.connect("sink")
        pipeline = self._client.pipeline(transaction=True)  # in order, and none where memory is short
        for stream, pairs in entries:
            pipeline.execute_command("XADD", stream, *self._trimming, "*", *pairs)
        place = settings.server.place
        try:
            answers = pipeline.execute(raise_on_error=False)
        except Exception as error:  # of the client library: it is not known which were added
            raise failure_of(error, f"adding {len(entries)} entries", place) from error
        for (stream, _), answer in zip(entries, answers, strict=True):
            if isinstance(answer, Exception):
                raise failure_of(answer, f"adding an entry to stream {stream!r}", place) from answer
        del self._waiting[: len(entries)]
        self._sent.inc(len(entries))


class RedisStreamSinkBuilder:
    """Collects the settings of a `RedisStreamSink`; `set_url` and `set_stream` are required."""

    def __init__(self) -> None:
        self._url, self._outage_ms = "", 60_000
        self._stream: str | Callable[[UserRecord], str] | None = None
        self._entries = EntryWriter("", None)
        self._max_length, self._is_exact = 0, False

    def set_url(self, url: str) -> RedisStreamSinkBuilder:
        """Set the server: `redis://user:password@host:6379/0`, `rediss://...` for TLS, or `unix:///path`.

        Raises:
            RedisError: it is no URL of Redis, or the library is not installed.
        """
        RedisServer(url)
        self._url = url
        return self

    def set_stream(self, stream: str | Callable[[UserRecord], str]) -> RedisStreamSinkBuilder:
        """Set the key of the stream, or a function from a record to it."""
        self._stream = stream
        return self

    def set_value_field(self, name: str, schema: SerializationSchema) -> RedisStreamSinkBuilder:
        """Set the field that gets the encoded record; the default is that each field of a row or dict is one."""
        self._entries = EntryWriter(name, schema)
        return self

    def set_max_length(self, entries: int, exact: bool = False) -> RedisStreamSinkBuilder:
        """Set how many entries a stream keeps; the default is all.

        Args:
            exact: False: it may keep a few more, which costs the server less.

        Raises:
            ValueError: the number is less than 1.
        """
        if entries < 1:
            raise ValueError(f"expected at least 1 entry, found {entries}")
        self._max_length, self._is_exact = entries, exact
        return self

    def set_outage_timeout(self, timeout: Duration | int) -> RedisStreamSinkBuilder:
        """Set how long the server may be away until the job fails, in milliseconds; the default is a minute."""
        self._outage_ms = to_millis(timeout)
        return self

    def build(self) -> RedisStreamSink:
        """Return the sink.

        Raises:
            RedisError: a required setting is missing.
        """
        if not self._url or self._stream is None:
            missing = "set_stream" if self._url else "set_url"
            raise RedisError(f"the sink has no {missing.removeprefix('set_')}", f"call {missing}(...) of its builder")
        server = RedisServer(self._url, self._outage_ms)
        settings = RedisSinkSettings(server, self._stream, self._entries)
        return RedisStreamSink(replace(settings, max_length=self._max_length, is_exact=self._is_exact))


__all__ = ["RedisStreamSink", "RedisStreamSinkBuilder"]
