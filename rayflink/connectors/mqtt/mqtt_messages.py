"""Messages as records, and records as messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.user_types import UserRecord

from .mqtt_errors import MqttRefusal

_LONGEST_TOPIC = 65_535


@dataclass(frozen=True, slots=True)
class MqttMessage:
    """A message.

    Args:
        topic: that it was published to.
        qos: with which it was delivered; 0 for one that the broker does not deliver again.
        is_retained: whether the broker had it before the subscription.
        is_repeated: whether the broker has sent it before.
    """

    topic: str
    payload: bytes
    qos: int = 1
    is_retained: bool = False
    is_repeated: bool = False

    def __bytes__(self) -> bytes:
        return self.payload


class MessageSchema(DeserializationSchema):
    """Leaves messages as they are."""

    def deserialize(self, message: MqttMessage) -> MqttMessage:  # type: ignore[override]
        return message


class PayloadSchema(DeserializationSchema):
    """Decodes the payloads of messages.

    Args:
        schema: decodes bytes.
    """

    def __init__(self, schema: DeserializationSchema) -> None:
        self._schema = schema

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return PayloadSchema(self._schema.counting(metrics))

    def deserialize(self, message: MqttMessage) -> UserRecord:  # type: ignore[override]
        return self._schema.deserialize(message.payload)

    def deserialize_batch(self, messages: Sequence[MqttMessage]) -> tuple[Batch, Sequence[int] | None]:  # type: ignore[override]
        return self._schema.deserialize_batch([message.payload for message in messages])

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()


@dataclass(frozen=True)
class MessageWriter:
    """Makes messages of records.

    Args:
        topic: a topic, or a function from a record to it; None: of the record, an `MqttMessage`.
        schema: encodes records; None: they are bytes, strings or `MqttMessage`s.

    Raises:
        MqttRefusal: a record is no message.
    """

    topic: str | Callable[[UserRecord], str] | None = None
    schema: SerializationSchema | None = None

    def message(self, record: UserRecord) -> tuple[str, bytes]:
        """Return topic and payload."""
        topic = self.topic
        if topic is None:
            topic = record.topic if isinstance(record, MqttMessage) else ""
        elif not isinstance(topic, str):
            topic = topic(record)
        return checked_topic(topic), self._payload(record)

    def _payload(self, record: UserRecord) -> bytes:
        if self.schema is not None:
            return self.schema.serialize(record)
        if isinstance(record, MqttMessage):
            return record.payload
        if isinstance(record, str):
            return record.encode()
        if not isinstance(record, bytes):
            problem = f"found {record!r} of type {type(record).__name__}, wanted bytes, a str or an MqttMessage"
            raise MqttRefusal(problem, "call set_serialization_schema(schema), or make one in a map() before the sink")
        return record


def checked_topic(topic: str) -> str:
    """Return a topic to publish to.

    Raises:
        MqttRefusal: it is none.
    """
    if not topic or any(sign in topic for sign in "#+\0") or len(topic.encode()) > _LONGEST_TOPIC:
        remedy = "write words with / between them, such as 'sensors/kitchen', without # and +"
        raise MqttRefusal(f"{topic!r} is no topic to publish to", remedy)
    return topic


def checked_filter(pattern: str) -> str:
    """Return a topic filter.

    Raises:
        MqttRefusal: it is none.
    """
    levels = pattern.split("/")
    is_wrong = any(("#" in level or "+" in level) and len(level) > 1 for level in levels) or "#" in levels[:-1]
    if not pattern or is_wrong or levels[0] == "$share":
        remedy = "write 'sensors/kitchen', 'sensors/+' or 'sensors/#', and call set_shared_subscription() for $share"
        raise MqttRefusal(f"{pattern!r} is no topic filter", remedy)
    return pattern


__all__ = [
    "MessageSchema", "MessageWriter", "MqttMessage", "PayloadSchema", "checked_filter", "checked_topic",
]  # fmt: skip
