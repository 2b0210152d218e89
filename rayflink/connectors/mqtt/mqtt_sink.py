"""The sink of MQTT, and its builder."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from rayflink.common.connector_base.sink import Sink, SinkWriter, UnwritableRecord, WriterContext
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.user_types import UserRecord

from ..message_logs.outages import OutageWatch
from .mqtt_broker import MqttBroker, MqttBrokerBuilder
from .mqtt_connection import KEEP_ALIVE_S, MqttConnection, MqttSession
from .mqtt_errors import MqttOutage
from .mqtt_messages import MessageWriter, checked_topic

MOST_MESSAGES = 1_000
"""Messages that wait for their acknowledgements at once."""
LINGER_MS = 100
"""Milliseconds for which a record waits for others."""
_ALIVE_MS = KEEP_ALIVE_S * 1_000 // 3
"""Milliseconds after which an idle connection reads and writes what is due."""


@dataclass(frozen=True)
class MqttSinkSettings:
    """The settings of a sink.

    Args:
        messages: makes messages of records.
        qos: 0, 1 or 2.
        is_retained: whether the broker keeps the last message of each topic for later subscribers.
    """

    broker: MqttBroker
    messages: MessageWriter
    qos: int = 1
    is_retained: bool = False


class MqttSink(Sink[UserRecord]):
    """Publishes records to topics, each at least once; `MqttSink.builder()` makes one.

    A checkpoint waits until the broker has acknowledged all messages before it. After a failure those since the last
    complete checkpoint are published again. With QoS 0 nothing is acknowledged, and messages may be lost.
    """

    name = "Sink: MQTT"

    def __init__(self, settings: MqttSinkSettings) -> None:
        self._settings = settings

    @staticmethod
    def builder() -> MqttSinkBuilder:
        """Return a builder without settings."""
        return MqttSinkBuilder()

    def __repr__(self) -> str:
        return f"MqttSink({self._settings.broker.place})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return MqttWriter(self._settings, ctx)


class MqttWriter(SinkWriter):
    """Publishes the records of one subtask, many at once, in order.

    Args:
        settings: of the sink.
        ctx: its metrics count `numRecordsSend` and `numReconnects`.
    """

    def __init__(self, settings: MqttSinkSettings, ctx: WriterContext) -> None:
        self._settings, self._ctx = settings, ctx
        metrics = ctx.metrics or MetricGroup()
        self._sent, self._reconnects = metrics.counter("numRecordsSend"), metrics.counter("numReconnects")
        self._connection: MqttConnection | None = None
        self._waiting: list[tuple[str, bytes]] = []
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
        if self._waiting:
            self._due_ms = self._ctx.now_ms() + LINGER_MS

    def next_time_ms(self) -> int | None:
        return self._due_ms

    def on_time(self, now_ms: int) -> None:
        if self._due_ms is None or now_ms < self._due_ms:
            return
        self.flush(False)
        try:
            if self._connection is not None:
                self._connection.step(0)
        except MqttOutage:  # the next record finds out
            self.close()

    def flush(self, end_of_input: bool) -> None:
        while self._waiting:
            self._send()
        self._due_ms = None if self._connection is None else self._ctx.now_ms() + _ALIVE_MS

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _send(self) -> None:
        """Publish messages from the front, and try again for a while where the broker is away.

        Raises:
            MqttOutage: it is away too long.
            MqttRefusal: it refuses.
        """
        broker = self._settings.broker
        outage = OutageWatch(broker.place, broker.outage_timeout_ms, self._reconnects.inc)
        messages = self._waiting[:MOST_MESSAGES]
        while True:
            try:
                self._publish(messages)
                break
            except MqttOutage as error:
                self.close()
                time.sleep(outage.pause_s(error))
        del self._waiting[: len(messages)]
        self._sent.inc(len(messages))

    def _publish(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Publish messages, and wait until all are acknowledged."""
        settings = self._settings
        connection = self._connection
        if connection is None:
            connection = self._connection = MqttConnection(settings.broker, MqttSession(), lambda _: None)
            connection.open()
        for topic, payload in messages:
            connection.publish(topic, payload, settings.qos, settings.is_retained)
        connection.await_acknowledged()


class MqttSinkBuilder(MqttBrokerBuilder):
    """Collects the settings of an `MqttSink`; `set_url` is required, and the topic of records."""

    def __init__(self) -> None:
        super().__init__()
        self._messages, self._qos, self._is_retained = MessageWriter(), 1, False

    def set_topic(self, topic: str | Callable[[UserRecord], str]) -> MqttSinkBuilder:
        """Set the topic, or a function from a record to it; the default is that of an `MqttMessage`.

        Raises:
            MqttRefusal: it is no topic to publish to.
        """
        if isinstance(topic, str):
            checked_topic(topic)
        self._messages = replace(self._messages, topic=topic)
        return self

    def set_serialization_schema(self, schema: SerializationSchema) -> MqttSinkBuilder:
        """Set what encodes records; the default is that they are bytes, strings or `MqttMessage`s."""
        self._messages = replace(self._messages, schema=schema)
        return self

    def set_qos(self, qos: int) -> MqttSinkBuilder:
        """Set the quality of service, 0, 1 or 2; the default is 1, and with 0 messages may be lost.

        Raises:
            ValueError: it is another number.
        """
        if qos not in (0, 1, 2):
            raise ValueError(f"found QoS {qos}, wanted 0, 1 or 2")
        self._qos = qos
        return self

    def set_retained(self, is_retained: bool) -> MqttSinkBuilder:
        """Set whether the broker keeps the last message of each topic for later subscribers; the default is not."""
        self._is_retained = is_retained
        return self

    def build(self) -> MqttSink:
        """Return the sink.

        Raises:
            MqttRefusal: a required setting is missing.
        """
        return MqttSink(MqttSinkSettings(self._checked_broker(), self._messages, self._qos, self._is_retained))


__all__ = ["MqttSink", "MqttSinkBuilder"]
