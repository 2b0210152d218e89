"""The sink of RabbitMQ."""

from __future__ import annotations

import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic

from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext, all_or_named
from rayflink.common.functions.type_variables import Input
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.serialization import SerializationSchema
from rayflink.user_types import UserRecord

from ..message_logs.outages import OutageWatch
from .rabbitmq_connection import RMQConnectionConfig, ensure_queue
from .rabbitmq_errors import RMQError, RMQOutage
from .rabbitmq_publisher import Message, Publisher

MOST_UNCONFIRMED = 5_000
"""Messages that were published and not confirmed yet; the writer waits for the next."""
_PERSISTENT = 2


class RMQSinkPublishOptions(ABC, Generic[Input]):
    """The exchange, routing key and properties of each record's message; subclass it with `compute_routing_key`.

    >>> class ByCountry(RMQSinkPublishOptions):
    ...     def compute_exchange(self, record):
    ...         return "orders"
    ...     def compute_routing_key(self, record):
    ...         return record["country"]
    ...     def compute_properties(self, record):
    ...         return {"correlation_id": record["id"], "content_type": "application/json"}

    Source: apache/flink-connector-rabbitmq RMQSinkPublishOptions; PyFlink has none.
    """

    @abstractmethod
    def compute_routing_key(self, record: Input) -> str:
        """Return the routing key; that of the default exchange is the name of a queue."""

    def compute_exchange(self, record: Input) -> str:
        """Return the exchange; "": the default one."""
        return ""

    def compute_properties(self, record: Input) -> Mapping[str, object]:
        """Return properties of AMQP by their names in pika, such as correlation_id, headers or expiration.

        A message is persistent, unless they say `delivery_mode`: 1.
        """
        return {}

    def compute_mandatory(self, record: Input) -> bool:
        """Return whether a message that no queue takes fails the job; if not, the broker drops it. True, by default."""
        return True


class _DefaultExchange(RMQSinkPublishOptions[Input]):
    def __init__(self, queue: str) -> None:
        self._queue = queue

    def compute_routing_key(self, record: Input) -> str:
        return self._queue


class RMQSink(Sink[Input]):
    """Publishes records, each at least once; for `add_sink` or `sink_to`.

    A checkpoint waits until the broker has confirmed all messages before it. After a failure those since the last
    complete checkpoint are published again. Messages are persistent.

    >>> from rayflink.common import SimpleStringSchema
    >>> config = RMQConnectionConfig.Builder().set_uri("amqp://me:secret@mq.example:5672/shop").build()
    >>> RMQSink(config, "orders", SimpleStringSchema())
    RMQSink(queue 'orders' of RabbitMQ at mq.example:5672/shop)

    Args:
        connection_config: the broker.
        queue_name: of the queue; it is declared, durable, if it is not there. "": `publish_options` alone say where.
        serialization_schema: encodes records.
        publish_options: exchange, routing key and properties of each message; None: all go to the queue. PyFlink has no
            such argument.

    Raises:
        RMQError: there is neither a queue nor an option.
    """

    name = "Sink: RabbitMQ"

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        serialization_schema: SerializationSchema,
        publish_options: RMQSinkPublishOptions[Input] | None = None,
    ) -> None:
        if not queue_name and publish_options is None:
            raise RMQError("the sink of RabbitMQ has neither queue nor publish_options", "give it the name of a queue")
        self._config, self._queue, self._schema = connection_config, queue_name, serialization_schema
        self._options = publish_options or _DefaultExchange(queue_name)

    def __repr__(self) -> str:
        target = f"queue {self._queue!r}" if self._queue else f"{self._options!r}"
        return f"RMQSink({target} of RabbitMQ at {self._config.place})"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return RMQWriter(self._config, self._queue, self._schema, self._options, ctx)


class RMQWriter(SinkWriter):
    """Publishes the records of one subtask, in order.

    Args:
        queue: declared first; "": none.
        ctx: its metrics count `numRecordsSend` and `numReconnects`.
    """

    def __init__(
        self, config: RMQConnectionConfig, queue: str, schema: SerializationSchema,
        options: RMQSinkPublishOptions[UserRecord], ctx: WriterContext,
    ) -> None:  # fmt: skip
        self._config, self._queue, self._schema, self._options = config, queue, schema, options
        self._role = f"sink, subtask {ctx.subtask}"
        metrics = ctx.metrics or MetricGroup()
        self._sent, self._reconnects = metrics.counter("numRecordsSend"), metrics.counter("numReconnects")
        self._publisher: Publisher | None = None

    def write(self, batch: Batch) -> None:
        records = list(rows_of(batch))
        self._publish(all_or_named(self._messages_of, self._message_of, records), MOST_UNCONFIRMED)

    def flush(self, end_of_input: bool) -> None:
        if self._publisher is not None:
            self._publish((), 0)

    def close(self) -> None:
        publisher, self._publisher = self._publisher, None
        if publisher is not None:
            publisher.close()

    def _messages_of(self, records: Sequence[UserRecord]) -> list[Message]:
        return [self._message_of(record) for record in records]

    def _message_of(self, record: UserRecord) -> Message:
        options = self._options
        properties = {"delivery_mode": _PERSISTENT, **options.compute_properties(record)}
        return Message(
            options.compute_exchange(record), options.compute_routing_key(record), self._schema.serialize(record),
            properties, options.compute_mandatory(record),
        )  # fmt: skip

    def _publish(self, messages: Sequence[Message], most: int) -> None:
        """Publish messages and wait until at most `most` are unconfirmed; what is, is published again after an outage.

        Raises:
            RMQError: the broker refuses, or is away too long.
        """
        outage = OutageWatch(f"RabbitMQ at {self._config.place}", self._config.retries_ms, self._reconnects.inc)
        while True:
            try:
                publisher = self._publisher or self._open()
                publisher.publish(messages)
                messages = ()
                publisher.wait(most)
                return
            except RMQOutage as error:
                if self._publisher is not None:
                    messages = [*self._publisher.unconfirmed(), *messages]
                    self.close()
                time.sleep(outage.pause_s(error))

    def _open(self) -> Publisher:
        if self._queue:
            ensure_queue(self._config, self._queue)
        self._publisher = publisher = Publisher(self._config, self._role, self._sent.inc)
        weakref.finalize(self, publisher.close)
        return publisher


__all__ = ["RMQSink", "RMQSinkPublishOptions"]
