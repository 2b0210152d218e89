"""Datums as Python objects: records are dicts, and logical types are Python's decimals, dates and times."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rayflink.user_types import UserRecord

from .avro_schema import AvroSchema, Json, fastavro_package
from .datum_columns import MARK, BadDatum, encoded_long

_VALUE, _MARK = "value__", "mark__"


class DatumRecords:
    """Decodes and encodes datums of one schema.

    >>> records = DatumRecords(AvroSchema({"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}))
    >>> records.encoded([{"n": 4}, {"n": -1}])
    [b'\\x08', b'\\x01']
    >>> records.of_messages([b"\\x08", b"\\x01"])
    [{'n': 4}, {'n': -1}]

    Args:
        writer: the schema of the datums.
        reader: the schema of the records, by Avro's rules of schema resolution; None: that of the writer.

    Raises:
        BadAvroSchema: it is no schema.
    """

    def __init__(self, writer: AvroSchema, reader: AvroSchema | None = None) -> None:
        package = fastavro_package()
        self._read, self._write = package.schemaless_reader, package.schemaless_writer
        self._writer, self._reader = writer, reader
        self._one = package.parse_schema(writer.definition)
        self._of_one = None if reader is None else package.parse_schema(reader.definition)
        self._many = {has_marks: _schemas(writer, reader, has_marks) for has_marks in (False, True)}

    def __reduce__(self) -> tuple[object, ...]:
        return DatumRecords, (self._writer, self._reader)

    def of_messages(self, messages: Sequence[bytes]) -> list[UserRecord]:
        """Return the record of each message.

        Raises:
            BadDatum: one is no datum of the schema, or has bytes left, or cannot be read by the reader's schema.
        """
        if not messages:
            return []
        mark = encoded_long(MARK)
        stream = io.BytesIO(b"".join((encoded_long(len(messages)), mark.join(messages), mark, b"\0")))
        try:
            records = self._read(stream, *self._many[True])
        except Exception:  # fastavro raises errors of any sort; which message it is, is found below
            records = []
        if len(records) == len(messages) and all(record[_MARK] == MARK for record in records):
            return [record[_VALUE] for record in records]
        return list(map(self._of_message, messages))

    def of_block(self, data: bytes, count: int) -> list[UserRecord]:
        """Return `count` datums that follow one another without gaps, as in the block of a file.

        Raises:
            BadDatum: they are no such datums.
        """
        if not count:
            return []
        stream = io.BytesIO(b"".join((encoded_long(count), data, b"\0")))
        try:
            datums: list[UserRecord] = self._read(stream, *self._many[False])
        except Exception as error:  # see above
            raise BadDatum(f"the block is not encoded by its schema ({type(error).__name__}: {error})") from error
        if len(datums) != count or stream.tell() != len(data) + len(encoded_long(count)) + 1:
            raise BadDatum(f"the block is not encoded by its schema: {len(datums)} of {count} datums are in it")
        return datums

    def encoded(self, values: Sequence[UserRecord], header: bytes = b"") -> list[bytes]:
        """Return the datum of each record.

        Args:
            header: bytes before each of them.

        Raises:
            ValueError: a record does not have the schema's types.
        """
        return [header + self._encoded(value, self._one) for value in values]

    def encoded_block(self, values: Sequence[UserRecord]) -> bytes:
        """Return the datums of records, one behind the other, as in the block of a file.

        Raises:
            ValueError: a record does not have the schema's types.
        """
        if not values:
            return b""
        wrapped = fastavro_package().parse_schema({"type": "array", "items": self._writer.definition})
        return self._encoded(list(values), wrapped)[len(encoded_long(len(values))) : -1]

    def _encoded(self, value: UserRecord, schema: Json) -> bytes:
        stream = io.BytesIO()
        try:
            self._write(stream, schema, value)
        except Exception as error:  # see above
            remedy = "map it to a dict with the fields of the schema before the sink"
            raise ValueError(
                f"a record does not fit the Avro schema ({type(error).__name__}: {error}); {remedy}"
            ) from error
        return stream.getvalue()

    def _of_message(self, message: bytes) -> UserRecord:
        stream = io.BytesIO(message)
        try:
            record = self._read(stream, self._one, self._of_one)
        except Exception as error:  # see above
            problem = f"{type(error).__name__}: {error}"
            if isinstance(error, EOFError):
                problem = "it ends within a field"
            raise BadDatum(f"the message is not encoded by its schema: {problem}") from error
        if stream.tell() != len(message):
            left = len(message) - stream.tell()
            raise BadDatum(f"the message is not encoded by its schema: {left} bytes are left behind the last field")
        return record


def _schemas(writer: AvroSchema, reader: AvroSchema | None, has_marks: bool) -> tuple[Json, Json]:
    """Return the schemas of many datums, of the writer and of the reader."""

    def many(schema: AvroSchema) -> Json:
        if not has_marks:
            return {"type": "array", "items": schema.definition}
        fields = [{"name": _VALUE, "type": schema.definition}, {"name": _MARK, "type": "long"}]
        return {"type": "array", "items": {"type": "record", "name": "marked__", "fields": fields}}

    parse = fastavro_package().parse_schema
    return parse(many(writer)), None if reader is None else parse(many(reader))


__all__ = ["DatumRecords"]
