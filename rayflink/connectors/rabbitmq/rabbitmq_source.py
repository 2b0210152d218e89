"""The source of RabbitMQ."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.functions.type_variables import Output
from rayflink.common.serialization import DeserializationSchema

from ..message_queues.deliveries import Deliveries, DeliveryTag
from ..message_queues.queue_reader import QueueReading
from ..message_queues.queue_source import QueueSource
from .rabbitmq_connection import RMQConnectionConfig, ensure_queue
from .rabbitmq_errors import RMQOutage


class RMQSource(QueueSource[Output]):
    """Consumes one queue; for `env.add_source` or `env.from_source`.

    Messages are acknowledged when the checkpoint that contains them is complete; so each arrives at least once. With
    correlation ids, which producers have to set and which have to be unique, each counts once in the state of the job,
    and the source has parallelism 1. A job without checkpoints acknowledges a message as soon as it is given out.

    >>> from rayflink.common import SimpleStringSchema
    >>> config = RMQConnectionConfig.Builder().set_uri("amqp://me:secret@mq.example:5672/shop").build()
    >>> RMQSource(config, "orders", True, SimpleStringSchema())
    RMQSource(queue 'orders' of RabbitMQ at mq.example:5672/shop)

    Args:
        connection_config: the broker.
        queue_name: of the queue; a job that starts afresh declares it, durable, if it is not there.
        use_correlation_id: whether messages whose correlation id was seen before are dropped.
        deserialization_schema: decodes the bodies of messages.
        malformed_records: the policy for messages that cannot be decoded; None: the job fails. PyFlink has no such
            argument.
    """

    def __init__(
        self,
        connection_config: RMQConnectionConfig,
        queue_name: str,
        use_correlation_id: bool,
        deserialization_schema: DeserializationSchema,
        malformed_records: MalformedRecords | None = None,
    ) -> None:
        config = connection_config
        reading = QueueReading(
            queue_name, f"queue {queue_name!r} of RabbitMQ at {config.place}", config.prefetch_count,
            "raise set_prefetch_count()", use_correlation_id, malformed_records or MalformedRecords.fail(),
            config.retries_ms, "correlation id",
        )  # fmt: skip
        super().__init__(reading, deserialization_schema)
        self._config, self._queue = config, queue_name

    def prepare(self) -> None:
        """Declare the queue if it is not there."""
        ensure_queue(self._config, self._queue)

    def connect(self, subtask: int) -> RMQConsumer:
        return RMQConsumer(self._config, self._queue, f"source, subtask {subtask}")


class RMQConsumer:
    """One connection that consumes a queue.

    Args:
        config: the broker.
        role: part of the connection's name.
    """

    def __init__(self, config: RMQConnectionConfig, queue: str, role: str) -> None:
        import pika

        self._config, self._queue, self._doing = config, queue, f"consuming queue {queue!r}"
        self._bodies: list[bytes] = []
        self._tags: list[int] = []
        self._ids: list[str | None] = []
        with config.failures(self._doing):
            self._connection = pika.BlockingConnection(config.parameters(role))
            try:
                self._channel = self._connection.channel()
                self._channel.queue_declare(queue, passive=True)
                self._channel.basic_qos(prefetch_count=config.prefetch_count)
                self._read(0, 0)
            except BaseException:
                self.close()
                raise

    def receive(self, most: int, wait_s: float) -> Deliveries | None:
        """Return what has arrived."""
        if not 0 < most <= len(self._tags):
            with self._config.failures(self._doing):
                self._read(most, 0 if self._tags else wait_s)
        if not self._tags or not most:
            return None
        deliveries = Deliveries(self._bodies[:most], self._tags[:most], self._ids[:most])
        del self._bodies[:most], self._tags[:most], self._ids[:most]
        return deliveries

    def _read(self, most: int, wait_s: float) -> None:
        """Add what arrives, until there are `most` messages or nothing more has arrived.

        Args:
            wait_s: for the first.
        """
        while True:
            for method, properties, body in self._channel.consume(self._queue, inactivity_timeout=wait_s):
                if method is None or properties is None or body is None:
                    return
                self._tags.append(method.delivery_tag)
                self._ids.append(properties.correlation_id)
                self._bodies.append(body)
                if len(self._tags) == most:
                    return
                if not self._channel.get_waiting_message_count():
                    break
            else:
                remedy = "check whether the queue was deleted or its node went away; it is looked for again"
                raise RMQOutage(f"{self._doing}: RabbitMQ at {self._config.place} has cancelled the consumer", remedy)
            wait_s = 0

    def acknowledge(self, tags: Sequence[DeliveryTag]) -> None:
        """Acknowledge deliveries: the last one stands for all before it, as they are in order."""
        last = tags[-1]
        assert isinstance(last, int), "the tags of this connection are numbers"
        with self._config.failures(f"acknowledging {len(tags)} messages of queue {self._queue!r}"):
            self._channel.basic_ack(last, multiple=True)

    def close(self) -> None:
        """Close the connection."""
        if self._connection.is_open:
            self._connection.close()


__all__ = ["RMQConsumer", "RMQSource"]
