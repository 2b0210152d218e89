"""Schemas that turn single records into bytes and back, for files and message queues; names are PyFlink's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

from rayflink.user_types import TypeHint, UserRecord

from .data_types.basic_types import PickledBytesTypeInfo
from .data_types.type_base import TypeInformation
from .errors import shorten
from .records import charsets
from .records.batches import Batch, RowBatch, rows_of
from .typeinfo import Types
from .types import Row

if TYPE_CHECKING:
    from .metrics.metric_group import MetricGroup

__all__ = [
    "BulkWriter",
    "BulkWriterFactory",
    "ByteArraySchema",
    "DeserializationSchema",
    "Encoder",
    "RowDataBulkWriterFactory",
    "RowFieldExtractorSchema",
    "SerializationSchema",
    "SimpleStringSchema",
]


class SerializationSchema(ABC):
    """Turns a record into bytes; subclass it with `serialize`."""

    @abstractmethod
    def serialize(self, element: UserRecord) -> bytes:
        """Return the record as bytes."""

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        """Return the bytes of each record of a batch; formats of columns override it."""
        return list(map(self.serialize, rows_of(batch)))


class DeserializationSchema(ABC):
    """Turns bytes into a record; subclass it with `deserialize`.

    Connectors decode whole batches of messages; a schema that can do so by columns overrides `deserialize_batch`.
    """

    @abstractmethod
    def deserialize(self, message: bytes) -> Any:
        """Return the record that the bytes stand for.

        Raises:
            ValueError: they stand for none.
        """

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the records of many messages and, for each record, the index of its message.

        None in place of the indices says that there is one record a message. A message that `deserialize` makes None
        of has no record.

        >>> SimpleStringSchema().deserialize_batch([b"a", b"b"])
        (RowBatch(['a', 'b']), None)

        Raises: what `deserialize` raises for one of them; it need not name which.
        """
        records = list(map(self.deserialize, messages))
        if None not in records:
            return RowBatch(records), None
        indices = [index for index, record in enumerate(records) if record is not None]
        return RowBatch([records[index] for index in indices]), indices

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        """Return this schema, extended to count in a reader's metrics what it leaves out itself."""
        return self

    def is_end_of_stream(self, next_element: UserRecord) -> bool:
        """Return whether this record says that no other follows."""
        return False

    def get_produced_type(self) -> TypeInformation | None:
        """Return the type of the records; None: not known."""
        return None


class SimpleStringSchema(SerializationSchema, DeserializationSchema):
    """Strings in one character set.

    >>> SimpleStringSchema("latin-1").serialize("é")
    b'\\xe9'
    >>> SimpleStringSchema().deserialize(b"ab")
    'ab'

    Raises:
        UnknownCharset: the character set is unknown.
    """

    def __init__(self, charset: str = "UTF-8") -> None:
        self._charset = charsets.charset(charset)

    def serialize(self, element: UserRecord) -> bytes:
        if not isinstance(element, str):
            actual = f"{type(element).__name__} {shorten(element, 80)}"
            raise TypeError(f"SimpleStringSchema writes str, found {actual}; map it to a string first")
        return element.encode(self._charset)

    def deserialize(self, message: bytes) -> str:
        return message.decode(self._charset)

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        if type(self).deserialize is not SimpleStringSchema.deserialize:
            return super().deserialize_batch(messages)
        charset = self._charset
        return RowBatch([message.decode(charset) for message in messages]), None

    def get_produced_type(self) -> TypeInformation:
        return Types.STRING()


class ByteArraySchema(SerializationSchema, DeserializationSchema):
    """Bytes as they are."""

    def serialize(self, element: UserRecord) -> bytes:
        if not isinstance(element, bytes | bytearray | memoryview):
            actual = f"{type(element).__name__} {shorten(element, 80)}"
            raise TypeError(f"ByteArraySchema writes bytes, found {actual}; map it to bytes first")
        return bytes(element)

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        values = list(rows_of(batch))
        return values if set(map(type, values)) == {bytes} else list(map(self.serialize, values))

    def deserialize(self, message: bytes) -> bytes:
        return message

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        if type(self).deserialize is not ByteArraySchema.deserialize:
            return super().deserialize_batch(messages)
        return RowBatch(list(messages)), None

    def get_produced_type(self) -> TypeInformation:
        return Types.PRIMITIVE_ARRAY(Types.BYTE())


class RowFieldExtractorSchema(SerializationSchema):
    """One field of a Row (or tuple, or list), which must be bytes; None, of the field or the row, becomes no bytes.

    >>> RowFieldExtractorSchema(1).serialize(Row(b"key", b"value")), RowFieldExtractorSchema(0).serialize(Row(None))
    (b'value', b'')

    Args:
        field_index: of the field, at least 0.

    Raises:
        ValueError: it is negative.
    """

    def __init__(self, field_index: int) -> None:
        if field_index < 0:
            raise ValueError(f"Field index must be non-negative, got: {field_index}")
        self._field_index = field_index

    def serialize(self, element: UserRecord) -> bytes:
        if element is None:
            return b""
        if not isinstance(element, Row | tuple | list) or self._field_index >= len(element):
            wanted = f"a Row with a field {self._field_index} is wanted"
            raise TypeError(f"{wanted}, found {shorten(element, 80)}; use a smaller index or a map() before")
        value = element[self._field_index]
        if value is None:
            return b""
        if not isinstance(value, bytes | bytearray | memoryview):
            actual = f"{type(value).__name__} {shorten(value, 80)}"
            raise TypeError(f"field {self._field_index} must be bytes, found {actual}; encode it in a map() before")
        return bytes(value)


class Encoder(ABC):
    """Appends records to a file, one after the other; subclass it with `encode`."""

    @abstractmethod
    def encode(self, element: UserRecord) -> bytes:
        """Return the bytes of one record, with what separates it from the next."""

    def encode_all(self, elements: Sequence[Any]) -> list[bytes]:
        """Return the bytes of each record."""
        return [self.encode(element) for element in elements]

    def for_type(self, type_info: TypeInformation | None) -> Encoder:
        """Return the encoder for records of a declared type; None: none was declared."""
        return self

    @staticmethod
    def simple_string_encoder(charset_name: str = "UTF-8") -> Encoder:
        """Return an encoder of each record as a line: `str(record)`, or what Java writes for its declared type.

        >>> from rayflink.common.typeinfo import Types
        >>> Encoder.simple_string_encoder().encode(("a", 1))
        b"('a', 1)\\n"
        >>> Encoder.simple_string_encoder().for_type(Types.TUPLE([Types.STRING(), Types.INT()])).encode(("a", 1))
        b'(a,1)\\n'

        Raises:
            UnknownCharset: the character set is unknown.
        """
        return _TextLines(charsets.charset(charset_name))

    @staticmethod
    def lines_of(schema: SerializationSchema, separator: bytes = b"\n") -> Encoder:
        """Return the bytes of each record by a schema, each followed by `separator`: JSON lines, for example."""
        return _Lines(schema, separator)


class _TextLines(Encoder):
    def __init__(self, charset: str, type_info: TypeInformation | None = None) -> None:
        self._charset, self._type_info = charset, type_info

    def for_type(self, type_info: TypeInformation | None) -> Encoder:
        return _TextLines(self._charset, type_info)

    def encode(self, element: UserRecord) -> bytes:
        try:
            return self.encode_all([element])[0]
        except UnicodeEncodeError as error:
            remedy = "replace such characters before the sink, or choose another charset_name"
            raise ValueError(f"{error}; {remedy}") from error

    def encode_all(self, elements: Sequence[Any]) -> list[bytes]:
        from .records.print_form import java_text  # slow: it loads numpy

        kind, charset = self._type_info, self._charset
        if kind is None or isinstance(kind, PickledBytesTypeInfo):
            return [f"{element}\n".encode(charset) for element in elements]
        return [f"{java_text(kind, element)}\n".encode(charset) for element in elements]


class _Lines(Encoder):
    def __init__(self, schema: SerializationSchema, separator: bytes) -> None:
        self._schema, self._separator = schema, separator

    def encode(self, element: UserRecord) -> bytes:
        return self._schema.serialize(element) + self._separator


class BulkWriter(ABC):
    """Writes one file whose records are encoded together: columns, blocks, a footer."""

    @abstractmethod
    def add_element(self, element: UserRecord) -> None:
        """Append one record."""

    def add_batch(self, batch: Batch) -> None:
        """Append a batch, in order; formats of columns override it."""
        for element in rows_of(batch):
            self.add_element(element)

    def flush(self) -> None:  # noqa: B027
        """Hand what can be written to the file."""

    @abstractmethod
    def finish(self) -> None:
        """Write what is left and the footer; the file itself is closed by the sink."""

    def abandon(self) -> None:  # noqa: B027
        """Release everything; the file will be deleted unfinished."""


class BulkWriterFactory(ABC):
    """Makes a `BulkWriter` for each file of a sink; a value that can be pickled."""

    def for_type(self, type_info: TypeInformation | None) -> BulkWriterFactory:
        """Return the factory for records of a declared type; None: none was declared."""
        return self

    @abstractmethod
    def create(self, file: IO[bytes]) -> BulkWriter:
        """Return the writer of a new, empty file."""


class RowDataBulkWriterFactory(BulkWriterFactory):
    """A `BulkWriterFactory` for records of one row type.

    Args:
        row_type: a RowTypeInfo, a ROW of `DataTypes` or a pyarrow Schema.
    """

    def __init__(self, row_type: TypeHint) -> None:
        self._row_type = row_type

    def get_row_type(self) -> Any:
        """Return the type of the records."""
        return self._row_type
