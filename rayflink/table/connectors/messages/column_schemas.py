"""Schemas of messages that work by columns; single records are batches of one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.common.types import Row
from rayflink.user_types import UserRecord

from ...plan.logical import Schema

if TYPE_CHECKING:
    import pyarrow


class ColumnDecoder(DeserializationSchema):
    """Decodes batches of messages to columns; subclass it with `deserialize_batch`."""

    @abstractmethod
    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the columns of many messages and, for each row, the index of its message.

        Raises:
            ValueError: a message is malformed.
        """

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of one message; None: it has none.

        Raises:
            ValueError: the message is malformed, or has several rows.
        """
        rows = rows_of(self.deserialize_batch([message])[0])
        if len(rows) > 1:
            remedy = "call deserialize_batch, which returns them all"
            raise ValueError(f"{shorten(message, 80)} has {len(rows)} rows, one is wanted; {remedy}")
        return rows[0] if rows else None


class ColumnEncoder(SerializationSchema):
    """Encodes batches of columns to messages; subclass it with `messages_of`.

    Args:
        schema: of the rows.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema

    @abstractmethod
    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        """Return the message of each row."""

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        if isinstance(batch, ArrowBatch):
            return self.messages_of(batch.data)
        import pyarrow

        fields = [(column.name, column.type.to_arrow()) for column in self._schema]
        values = zip(*batch.values, strict=True) if batch.values else [()] * len(fields)
        arrays = [pyarrow.array(column, kind) for column, (_, kind) in zip(values, fields, strict=True)]
        return self.messages_of(pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields)))

    def serialize(self, element: UserRecord) -> bytes:
        return self.serialize_batch(RowBatch([element]))[0] or b""


__all__ = ["ColumnDecoder", "ColumnEncoder"]
