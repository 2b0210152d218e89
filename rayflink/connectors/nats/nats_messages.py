"""Messages as records, and records as messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.user_types import UserRecord

from .nats_errors import NatsError

MESSAGE_ID = "Nats-Msg-Id"
"""The header by which JetStream recognizes a message that it already has."""


@dataclass(frozen=True, slots=True)
class NatsMessage:
    """A message of a stream.

    Args:
        subject: that it was published to.
        sequence: its number in the stream, from 1; 0 for one that is to be written.
        timestamp_ms: the time at which the stream took it, in epoch milliseconds.
    """

    subject: str
    data: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    sequence: int = 0
    timestamp_ms: int = 0

    def __bytes__(self) -> bytes:
        return self.data


class MessageSchema(DeserializationSchema):
    """Leaves messages as they are."""

    def deserialize(self, message: NatsMessage) -> NatsMessage:  # type: ignore[override]
        return message


class DataSchema(DeserializationSchema):
    """Decodes the data of messages.

    Args:
        schema: decodes bytes.
    """

    def __init__(self, schema: DeserializationSchema) -> None:
        self._schema = schema

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return DataSchema(self._schema.counting(metrics))

    def deserialize(self, message: NatsMessage) -> UserRecord:  # type: ignore[override]
        return self._schema.deserialize(message.data)

    def deserialize_batch(self, messages: Sequence[NatsMessage]) -> tuple[Batch, Sequence[int] | None]:  # type: ignore[override]
        return self._schema.deserialize_batch([message.data for message in messages])

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()


@dataclass(frozen=True)
class MessageWriter:
    """Makes messages of records.

    Args:
        subject: a subject, or a function from a record to it; None: of the record, a `NatsMessage`.
        schema: encodes records; None: they are bytes, strings or `NatsMessage`s.
        message_id: returns the id by which JetStream recognizes a record that it already has; None: there is none.
        headers: returns the headers of a record; None: there are none.

    Raises:
        NatsError: a record is no message.
    """

    subject: str | Callable[[UserRecord], str] | None = None
    schema: SerializationSchema | None = None
    message_id: Callable[[UserRecord], str] | None = None
    headers: Callable[[UserRecord], Mapping[str, str]] | None = None

    def message(self, record: UserRecord) -> tuple[str, bytes, dict[str, str] | None]:
        """Return subject, data and headers."""
        is_message = isinstance(record, NatsMessage)
        headers = dict(record.headers) if is_message else {}
        if self.headers is not None:
            headers.update(self.headers(record))
        if self.message_id is not None:
            headers[MESSAGE_ID] = self.message_id(record)
        subject = self.subject
        if subject is None:
            subject = record.subject if is_message else ""
        elif not isinstance(subject, str):
            subject = subject(record)
        return checked_subject(subject), self._data(record), headers or None

    def _data(self, record: UserRecord) -> bytes:
        if self.schema is not None:
            return self.schema.serialize(record)
        if isinstance(record, NatsMessage):
            return record.data
        if isinstance(record, str):
            return record.encode()
        if not isinstance(record, bytes):
            problem = f"found {record!r} of type {type(record).__name__}, wanted bytes, a str or a NatsMessage"
            raise NatsError(problem, "call set_serialization_schema(schema), or make one in a map() before the sink")
        return record


def checked_subject(subject: str) -> str:
    """Return a subject to publish to.

    Raises:
        NatsError: it is none.
    """
    if not subject or any(not token or token in "*>" for token in subject.split(".")) or " " in subject:
        remedy = "write words with dots between them, such as 'orders.eu', without * and >"
        raise NatsError(f"{subject!r} is no subject to publish to", remedy)
    return subject


__all__ = ["MESSAGE_ID", "DataSchema", "MessageSchema", "MessageWriter", "NatsMessage", "checked_subject"]
