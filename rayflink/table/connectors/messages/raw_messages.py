"""`raw`: the bytes of a message as the value of the only column, as Flink's raw format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.charsets import UnknownCharset, charset
from rayflink.common.serialization import DeserializationSchema, SerializationSchema

from ...errors import SqlError
from ...plan.logical import Attribute, Schema
from ...types import Root
from ..contract import Option
from ..option_values import one_of
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow

_NUMBERS = {
    Root.BOOLEAN: "u1", Root.TINYINT: "i1", Root.SMALLINT: "i2", Root.INT: "i4", Root.BIGINT: "i8",
    Root.FLOAT: "f4", Root.DOUBLE: "f8",
}  # fmt: skip
"""Type -> numpy's code of its bytes."""
_ORDERS = {"big-endian": ">", "little-endian": "<"}


def _charset(text: str) -> str:
    try:
        return charset(text)
    except UnknownCharset as error:
        raise ValueError(f"a character set ({error})") from error


class RawMessages(MessageFormat):
    """The bytes of a message as one value: a string, bytes, a number or a boolean."""

    name = "raw"
    options: Mapping[str, Option] = {
        "charset": Option(_charset, "utf-8"),
        "endianness": Option(one_of("big-endian", "little-endian"), "big-endian"),
    }

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        column = _only_column(schema)
        order = _ORDERS[str(options["endianness"])]
        return RawDecoder(column, str(options["charset"]), order, is_read=column.name in names)

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        return RawEncoder(_only_column(schema), str(options["charset"]), _ORDERS[str(options["endianness"])])


def _only_column(schema: Schema) -> Attribute:
    """Return the column.

    Raises:
        SqlError: there are several, or its type has no bytes of its own.
    """
    if len(schema) != 1:
        names = ", ".join(column.name for column in schema)
        problem = f"the format 'raw' represents one column, and there are {len(schema)} ({names})"
        raise SqlError(problem, "declare one column, or take json, csv or avro")
    column = schema[0]
    if column.type.root not in _NUMBERS and not column.type.is_text and not column.type.is_bytes:
        problem = f"the format 'raw' cannot represent column {column.name!r}, which is {column.type}"
        raise SqlError(problem, "make it a STRING, BYTES, a number or BOOLEAN, or take json or avro")
    return column


class RawDecoder(ColumnDecoder):
    """Decodes each message to one value; a message without bytes at all (None) to NULL.

    Args:
        order: of the bytes of a number, ">" for big-endian or "<".
        is_read: False if rows without columns are wanted.
    """

    def __init__(self, column: Attribute, charset: str, order: str, is_read: bool = True) -> None:
        self._column, self._charset, self._order, self._is_read = column, charset, order, is_read

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        import pyarrow

        values = self._values(messages)
        data = pyarrow.RecordBatch.from_arrays([values], [self._column.name])
        return ArrowBatch(data if self._is_read else data.select([])), None

    def _values(self, messages: Sequence[bytes]) -> pyarrow.Array:
        import pyarrow

        kind = self._column.type
        if kind.root in _NUMBERS:
            return self._numbers(messages)
        if kind.is_bytes:
            return pyarrow.array(messages, kind.to_arrow())
        if self._charset == "utf-8":
            values = pyarrow.array(messages, pyarrow.binary()).cast(pyarrow.string())  # which checks the bytes
            return values.cast(kind.to_arrow())
        strings = [None if message is None else str(message, self._charset) for message in messages]
        return pyarrow.array(strings, kind.to_arrow())

    def _numbers(self, messages: Sequence[bytes]) -> pyarrow.Array:
        """Return the numbers that the messages are the bytes of.

        Raises:
            ValueError: a message is not as long as numbers of the type.
        """
        import numpy
        import pyarrow

        code = _NUMBERS[self._column.type.root]
        size = int(code[1:])
        nulls = numpy.fromiter((message is None for message in messages), numpy.bool_, len(messages))
        for message in messages:
            if message is not None and len(message) != size:
                problem = f"{shorten(message, 40)} has {len(message)} bytes"
                raise ValueError(f"{problem}, {self._column.type} in column {self._column.name!r} has {size}")
        data = b"".join(bytes(size) if message is None else message for message in messages)
        numbers = numpy.frombuffer(data, self._order + code).astype(code)
        if self._column.type.root is Root.BOOLEAN:
            numbers = numbers != 0
        return pyarrow.array(numbers, self._column.type.to_arrow(), mask=nulls)


class RawEncoder(ColumnEncoder):
    """Encodes the value of each row as a message; NULL as none."""

    def __init__(self, column: Attribute, charset: str, order: str) -> None:
        super().__init__((column,))
        self._kind, self._charset, self._order = column.type, charset, order

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        import pyarrow

        values, kind = data.column(0), self._kind
        if kind.root in _NUMBERS:
            return self._bytes_of_numbers(values)
        if kind.is_bytes or self._charset == "utf-8":
            messages: list[bytes | None] = values.cast(pyarrow.binary()).to_pylist()
            return messages
        return [None if text is None else text.encode(self._charset) for text in values.to_pylist()]

    def _bytes_of_numbers(self, values: pyarrow.Array) -> Sequence[bytes | None]:
        import pyarrow
        from pyarrow import compute

        code = _NUMBERS[self._kind.root]
        plain = values.cast(pyarrow.uint8()) if self._kind.root is Root.BOOLEAN else values
        numbers = compute.fill_null(plain, 0).to_numpy(zero_copy_only=False).astype(self._order + code)
        size, written = int(code[1:]), numbers.tobytes()
        nulls = values.is_null().to_pylist()
        return [None if null else written[index * size : (index + 1) * size] for index, null in enumerate(nulls)]


__all__ = ["RawDecoder", "RawEncoder", "RawMessages"]
