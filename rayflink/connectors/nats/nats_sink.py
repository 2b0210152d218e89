"""The sink of NATS JetStream, and its builder."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rayflink.common.connector_base.sink import Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.user_types import UserRecord

from ..message_logs.outages import OutageWatch
from .nats_connection import ANSWER_TIMEOUT_S, Message, NatsConnection, api_error
from .nats_errors import NatsOutage, NatsRefusal
from .nats_messages import MessageWriter, checked_subject
from .nats_server import NatsServer, NatsServerBuilder, library

MOST_MESSAGES = 1_000
"""Messages that wait for their acknowledgements at once."""
LINGER_MS = 100
"""Milliseconds for which a record waits for others."""
EXPECTED_STREAM = "Nats-Expected-Stream"
"""The header that names the stream that must take a message."""
Answer = TypeVar("Answer")
Outgoing = tuple[str, bytes, dict[str, str] | None]


@dataclass(frozen=True)
class NatsSinkSettings:
    """The settings of a sink.

    Args:
        messages: makes messages of records.
        stream: that must take the messages; "": any.
    """

    server: NatsServer
    messages: MessageWriter
    stream: str = ""


class NatsSink(Sink[UserRecord]):
    """Publishes records to streams of NATS JetStream, each at least once; `NatsSink.builder()` makes one.

    A checkpoint waits until the streams have acknowledged all messages before it. After a failure those since the last
    complete checkpoint are published again; with message ids, a stream drops those that it already has.
    """

    name = "Sink: NATS"

    def __init__(self, settings: NatsSinkSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> NatsSinkBuilder:
        """Return a builder without settings."""
        return NatsSinkBuilder()

    def __repr__(self) -> str:
        return f"NatsSink({self._settings.server.place})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return NatsWriter(self._settings, ctx)


class NatsWriter(SinkWriter):
    """Publishes the records of one subtask, many at once, in order.

    Args:
        settings: of the sink.
        ctx: its metrics count `numRecordsSend`, `numDuplicates` and `numReconnects`.
    """

    def __init__(self, settings: NatsSinkSettings, ctx: WriterContext) -> None:
        self._settings, self._ctx = settings, ctx
        metrics = ctx.metrics or MetricGroup()
        self._sent, self._reconnects = metrics.counter("numRecordsSend"), metrics.counter("numReconnects")
        self._duplicates = metrics.counter("numDuplicates")
        self._publisher: _Publisher | None = None
        self._waiting: list[Outgoing] = []
        self._due_ms: int | None = None

    def write(self, batch: Batch) -> None:
        message = self._settings.messages.message
        for record in rows_of(batch):
            try:
                self._waiting.append(message(record))
            except Exception as error:  # of the user's functions, or of a record that is no message
                raise UnwritableRecord(shorten(record)) from error
        while len(self._waiting) >= MOST_MESSAGES:
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
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def _send(self) -> None:
        """Publish messages from the front, and try again for a while where the server is away.

        Raises:
            NatsError: it refuses, or is away too long.
        """
        server = self._settings.server
        outage = OutageWatch(server.place, server.outage_timeout_ms, self._reconnects.inc)
        waiting, stream = self._waiting[:MOST_MESSAGES], self._settings.stream
        while True:
            try:
                self._publisher = self._publisher or _Publisher(server)
                duplicates = self._publisher.publish(waiting, stream)
                break
            except NatsOutage as error:
                self.close()
                time.sleep(outage.pause_s(error))
        del self._waiting[: len(waiting)]
        self._sent.inc(len(waiting))
        self._duplicates.inc(duplicates)


class _Publisher:
    """A connection with an event loop of its own, in a thread that answers the server's pings between two batches."""

    def __init__(self, server: NatsServer) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="nats-sink", daemon=True)
        self._thread.start()
        self._connection: NatsConnection | None = None
        self._inbox, self._batch, self._left, self._duplicates = "", 0, 0, 0
        self._done: asyncio.Future[None] = self._loop.create_future()
        try:
            self._call(self._open(server))
        except BaseException:
            self.close()
            raise

    def publish(self, messages: Sequence[Outgoing], stream: str) -> int:
        """Publish messages, wait for all acknowledgements, and return how many the stream already had.

        Raises:
            NatsError: one was not acknowledged; others may have been.
        """
        return self._call(self._publish(messages, stream))

    def close(self) -> None:
        """Close the connection, and end the thread."""
        if self._connection is not None:
            self._call(self._connection.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _open(self, server: NatsServer) -> None:
        connection = self._connection = NatsConnection(server, "sink")
        await connection.open()
        self._inbox = connection.client.new_inbox()
        await connection.wait_for(connection.client.subscribe(f"{self._inbox}.*", cb=self._take_answer), "connecting")

    async def _publish(self, messages: Sequence[Outgoing], stream: str) -> int:
        connection, doing = self._connection, f"publishing {len(messages)} messages"
        assert connection is not None
        self._batch += 1
        self._left, self._duplicates = len(messages), 0
        self._done = asyncio.get_running_loop().create_future()
        publish, reply = connection.client.publish, f"{self._inbox}.{self._batch}"
        expected = {EXPECTED_STREAM: stream} if stream else None

        async def publish_all() -> None:
            for subject, data, headers in messages:
                await publish(subject, data, reply, {**(headers or {}), **expected} if expected else headers)
            await asyncio.wait_for(self._done, ANSWER_TIMEOUT_S)

        try:
            await connection.wait_for(publish_all(), doing)
        except NatsOutage as error:
            if type(error.__cause__).__name__ == "NoRespondersError":
                await self._check_subjects(messages, doing)
            raise
        return self._duplicates

    async def _take_answer(self, message: Message) -> None:
        """Take an acknowledgement, or an error; those of a batch that has failed are dropped."""
        if self._done.done() or not message.subject.endswith(f".{self._batch}"):
            return
        if message.headers and message.headers.get("Status") == "503":
            self._done.set_exception(library().errors.NoRespondersError())
            return
        answer = json.loads(message.data)
        if "error" in answer:
            self._done.set_exception(api_error(answer["error"]))
            return
        self._duplicates += bool(answer.get("duplicate"))
        self._left -= 1
        if not self._left:
            self._done.set_result(None)

    async def _check_subjects(self, messages: Sequence[Outgoing], doing: str) -> None:
        """Check that a stream takes each subject, where no stream has answered.

        Raises:
            NatsRefusal: none takes one of them.
        """
        connection = self._connection
        assert connection is not None
        for subject in {subject for subject, _, _ in messages}:
            answer = await connection.ask("STREAM.NAMES", {"subject": subject}, doing)
            if not answer.get("streams"):
                problem = f"{doing} failed: no stream of NATS at {connection.server.place} takes subject {subject!r}"
                raise NatsRefusal(problem, "create a stream with this subject, or correct the subject")


class NatsSinkBuilder(NatsServerBuilder):
    """Collects the settings of a `NatsSink`; `set_servers` is required, and the subject of records."""

    def __init__(self) -> None:
        super().__init__()
        self._messages, self._stream = MessageWriter(), ""

    def set_subject(self, subject: str | Callable[[UserRecord], str]) -> NatsSinkBuilder:
        """Set the subject, or a function from a record to it; the default is that of a `NatsMessage`.

        Raises:
            NatsError: it is no subject to publish to.
        """
        if isinstance(subject, str):
            checked_subject(subject)
        self._messages = replace(self._messages, subject=subject)
        return self

    def set_serialization_schema(self, schema: SerializationSchema) -> NatsSinkBuilder:
        """Set what encodes records; the default is that they are bytes, strings or `NatsMessage`s."""
        self._messages = replace(self._messages, schema=schema)
        return self

    def set_message_id(self, message_id: Callable[[UserRecord], str]) -> NatsSinkBuilder:
        """Set a function from a record to its id; a stream drops messages whose ids it has seen lately.

        The window is the stream's `duplicate_window`, two minutes by default.
        """
        self._messages = replace(self._messages, message_id=message_id)
        return self

    def set_headers(self, headers: Callable[[UserRecord], Mapping[str, str]]) -> NatsSinkBuilder:
        """Set a function from a record to the headers of its message; the default is none."""
        self._messages = replace(self._messages, headers=headers)
        return self

    def set_expected_stream(self, name: str) -> NatsSinkBuilder:
        """Set the stream that must take the messages, or the job fails; the default is any."""
        self._stream = name
        return self

    def build(self) -> NatsSink:
        """Return the sink.

        Raises:
            NatsError: a required setting is missing.
        """
        return NatsSink(NatsSinkSettings(self._checked_server(), self._messages, self._stream))


__all__ = ["NatsSink", "NatsSinkBuilder"]
