"""Entries of streams as records, and records as entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.common.types import Row
from rayflink.user_types import UserRecord

from .redis_errors import RedisError
from .redis_positions import EntryId, shown_id


@dataclass(frozen=True, slots=True)
class RedisEntry:
    """An entry of a stream.

    Args:
        stream: its key.
        entry_id: as Redis writes it, such as "1700000000000-0".
        fields: names and values; of equal names the last counts.
    """

    stream: str
    entry_id: str
    fields: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class RawEntry:
    """An entry as the server sends it.

    Args:
        pairs: names and values in turn; None: the entry was deleted while it was read.
    """

    stream: str
    entry_id: EntryId
    pairs: Sequence[bytes]

    def __bytes__(self) -> bytes:
        return b" ".join(self.pairs)


class EntrySchema(DeserializationSchema):
    """Makes a `RedisEntry` of each entry."""

    def deserialize(self, message: RawEntry) -> RedisEntry:  # type: ignore[override]
        names = (name.decode() for name in message.pairs[::2])
        fields = dict(zip(names, message.pairs[1::2], strict=True))
        return RedisEntry(message.stream, shown_id(message.entry_id), fields)


class FieldSchema(DeserializationSchema):
    """Decodes one field of each entry.

    Args:
        name: of the field.
        schema: decodes its values.
    """

    def __init__(self, name: str, schema: DeserializationSchema) -> None:
        self._name, self._key, self._schema = name, name.encode(), schema

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return FieldSchema(self._name, self._schema.counting(metrics))

    def deserialize(self, message: RawEntry) -> UserRecord:  # type: ignore[override]
        return self._schema.deserialize(self._value(message))

    def deserialize_batch(self, messages: Sequence[RawEntry]) -> tuple[Batch, Sequence[int] | None]:  # type: ignore[override]
        key = self._key
        values = [
            message.pairs[1] if message.pairs[0] == key else self._value(message)  # the first one of most entries
            for message in messages
        ]
        return self._schema.deserialize_batch(values)

    def get_produced_type(self) -> TypeInformation | None:
        return self._schema.get_produced_type()

    def _value(self, message: RawEntry) -> bytes:
        names = message.pairs[::2]
        if self._key not in names:
            fields = b", ".join(names).decode("utf-8", "replace")
            raise ValueError(f"the entry has no field {self._name!r}, found {fields}")
        last = len(names) - 1 - list(reversed(names)).index(self._key)
        return message.pairs[2 * last + 1]


class EntryWriter:
    """Makes the fields of an entry of a record.

    Args:
        name: of the field that has the whole record; "": each field of the record is one of the entry.
        schema: encodes the record, where there is one field.

    Raises:
        RedisError: a record has no names, or a value is of another type than str, bytes, int and float.
    """

    def __init__(self, name: str, schema: SerializationSchema | None) -> None:
        self._name, self._schema = name, schema

    def pairs(self, record: UserRecord) -> list[object]:
        """Return names and values in turn."""
        if self._schema is not None:
            return [self._name, self._schema.serialize(record)]
        fields = record.as_dict() if isinstance(record, Row) else record
        if isinstance(fields, RedisEntry):
            fields = fields.fields
        if not isinstance(fields, Mapping) or not fields:
            problem = f"found {record!r}, wanted a row with names or a dict, with at least one field"
            raise RedisError(problem, "make one in a map() before the sink, or call set_value_field(name, schema)")
        pairs: list[object] = []
        for name, value in fields.items():
            if isinstance(value, bool) or not isinstance(value, (str, bytes, int, float)):
                problem = f"field {name!r} of {record!r} is of type {type(value).__name__}"
                raise RedisError(problem, "make a str, bytes, int or float of it in a map() before the sink")
            pairs += [name, value]
        return pairs


__all__ = ["EntrySchema", "EntryWriter", "FieldSchema", "RawEntry", "RedisEntry"]
