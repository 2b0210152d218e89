"""Lines of CSV as records of a declared row type, and back."""

from __future__ import annotations

import base64
import csv
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from rayflink.user_types import UserRecord, UserValue

from ..data_types.basic_types import BasicType, BasicTypeInfo, DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from ..data_types.composite_types import ElementsTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo, TupleTypeInfo
from ..data_types.type_base import TypeInformation
from ..errors import InvalidTypesError, TypeMismatch, shorten
from ..serialization import DeserializationSchema, SerializationSchema
from ..types import Row, _create_row
from .batches import ArrowBatch, Batch
from .csv_by_columns import CsvParser, CsvWriter, bytes_of
from .csv_marks import CsvMarks
from .number_strings import decimal_number, real_number, stripped_decimal, whole_number
from .print_form import number_text
from .time_strings import java_timestamp_text, parsed_time, parsed_timestamp, sql_timestamp_text, time_text

__all__ = ["CsvRowDeserializationSchema", "CsvRowSerializationSchema"]


def field_of(value: UserValue, kind: TypeInformation, marks: CsvMarks, strips_zeros: bool = False) -> str:
    """Write a value as a field of a line: strings in quotes where they need them; numbers, truth values and None never.

    Args:
        strips_zeros: decimals without the zeros at their end, as Flink writes those of tables.
    """
    if value is None:
        return marks.null
    text = text_of(value, kind, marks, strips_zeros)
    return text if isinstance(value, bool | int | float | Decimal) else marks.quoted(text)


def text_of(value: UserValue, kind: TypeInformation, marks: CsvMarks, strips_zeros: bool = False) -> str:
    """Return a value as a string, as Flink writes it: numbers as Java has them, lists joined, bytes as base64."""
    if value is None:
        return marks.null
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return number_text(value, kind)
    if isinstance(value, Decimal):
        return stripped_decimal(value) if strips_zeros and value.is_finite() else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Row | tuple | list):
        kinds = kind.get_field_types() if isinstance(kind, RowTypeInfo | TupleTypeInfo) else None
        kinds = [getattr(kind, "element_type", kind)] * len(value) if kinds is None else kinds
        return marks.elements.join(
            text_of(item, item_kind, marks, strips_zeros) for item, item_kind in zip(value, kinds, strict=True)
        )
    if isinstance(value, datetime):
        return java_timestamp_text(value) if value.tzinfo is None else sql_timestamp_text(value)
    if isinstance(value, time):
        return time_text(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def value_of(text: str, kind: TypeInformation, marks: CsvMarks) -> Any:
    """Return the value of a type that a string stands for.

    Raises:
        ValueError: it stands for none.
    """
    if text == marks.null:
        return None
    if isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:
        return base64.b64decode(text, validate=True)
    if isinstance(kind, ElementsTypeInfo):
        items = text.split(marks.elements) if marks.elements else [text]
        return [value_of(item, kind.element_type, marks) for item in items] if text else []
    if isinstance(kind, RowTypeInfo | TupleTypeInfo):
        items = text.split(marks.elements) if marks.elements else [text]
        types = kind.get_field_types()
        return kind.convert([value_of(item, item_kind, marks) for item, item_kind in zip(items, types, strict=True)])
    if isinstance(kind, DateTypeInfo):
        return date.fromisoformat(text)
    if isinstance(kind, TimeTypeInfo):
        return parsed_time(text)
    if isinstance(kind, TimestampTypeInfo):
        return parsed_timestamp(text)
    if isinstance(kind, BasicTypeInfo):
        return kind.convert(_basic(text, kind.basic_type))
    raise InvalidTypesError(f"a field of CSV cannot be {kind}", "use a basic type, a list or a row of those")


def _basic(text: str, basic: BasicType) -> Any:
    if basic in (BasicType.STRING, BasicType.CHAR):
        return text
    text = text.strip()
    if basic is BasicType.BOOLEAN:
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(f"{text!r} is not a Boolean; write true or false")
        return text.lower() in ("true", "1")
    if basic in (BasicType.FLOAT, BasicType.DOUBLE):
        return real_number(text)
    return decimal_number(text) if basic is BasicType.BIG_DEC else whole_number(text)


class CsvRowDeserializationSchema(DeserializationSchema):
    """The fields of a row type out of a line of CSV, by position.

    >>> from rayflink.common.typeinfo import Types
    >>> of = Types.ROW_NAMED(["id", "names"], [Types.LONG(), Types.LIST(Types.STRING())])
    >>> CsvRowDeserializationSchema.Builder(of).build().deserialize(b"1,a;b")
    Row(id=1, names=['a', 'b'])

    Args:
        type_info: a RowTypeInfo.
        marks: what the characters mean.
        ignore_parse_errors: a line that cannot be read is None instead of an error, a field likewise.
    """

    def __init__(self, type_info: TypeInformation, marks: CsvMarks, ignore_parse_errors: bool = False) -> None:
        self._type_info, self._marks, self._lenient = _row_type(type_info), marks, ignore_parse_errors
        is_own = type(self).deserialize is CsvRowDeserializationSchema.deserialize
        self._parser = CsvParser(self._type_info, marks) if is_own else None

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the rows of many lines, as columns where all their values are written in the common way.

        Raises:
            ValueError: a line is malformed, and errors are not ignored.
        """
        data = None if self._parser is None else self._parser.columns(messages)
        return super().deserialize_batch(messages) if data is None else (ArrowBatch(data), None)

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a line; None for a comment, and where errors are ignored for a wrong number of fields.

        Raises:
            ValueError: it is malformed.
        """
        line = message.decode("utf-8").rstrip("\r\n")
        if self._marks.comments and line.startswith("#"):
            return None
        names, types = self._type_info.get_field_names(), self._type_info.get_field_types()
        try:
            fields = self._marks.fields_of(line)
            if len(fields) != len(types):
                raise ValueError(f"it has {len(fields)} fields, {len(types)} are wanted")
        except (ValueError, csv.Error) as error:
            if self._lenient:
                return None
            raise ValueError(f"CSV {shorten(line, 200)} does not fit {self._type_info}: {error}") from error
        values = [self._value(*field, line) for field in zip(fields, types, names, strict=True)]
        return _create_row(names, values)

    def _value(self, text: str, kind: TypeInformation, name: str, line: str) -> Any:
        try:
            return value_of(text, kind, self._marks)
        except (ValueError, TypeError, ArithmeticError, TypeMismatch) as error:
            if self._lenient:
                return None
            raise ValueError(f"CSV {shorten(line, 200)}: field {name}: {error}") from error

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    class Builder:
        """Collects what the characters mean.

        Args:
            type_info: a RowTypeInfo.
        """

        def __init__(self, type_info: TypeInformation) -> None:
            if type_info is None:
                raise TypeError("Type information must not be None")
            self._type_info, self._marks, self._lenient = _row_type(type_info), CsvMarks(), False

        def set_field_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the one character between fields."""
            return self._with(delimiter=_one(delimiter, "field delimiter"))

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Let lines that begin with `#` give None."""
            return self._with(comments=allow_comments)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowDeserializationSchema.Builder:
            """Set the string between the elements of a list."""
            return self._with(elements=delimiter)

        def set_quote_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the one character around fields."""
            return self._with(quote=_one(c, "quote character"))

        def set_escape_character(self, c: str) -> CsvRowDeserializationSchema.Builder:
            """Set the one character that takes the meaning off the next."""
            return self._with(escape=_one(c, "escape character"))

        def set_null_literal(self, null_literal: str) -> CsvRowDeserializationSchema.Builder:
            """Set the string that stands for None."""
            return self._with(null=null_literal)

        def set_ignore_parse_errors(self, ignore_parse_errors: bool) -> CsvRowDeserializationSchema.Builder:
            """Let what cannot be read become None."""
            self._lenient = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """Return the schema."""
            return CsvRowDeserializationSchema(self._type_info, self._marks, self._lenient)

        def _with(self, **chosen: Any) -> CsvRowDeserializationSchema.Builder:
            self._marks = replace(self._marks, **chosen)
            return self


class CsvRowSerializationSchema(SerializationSchema):
    """A row as a line of CSV, with its end.

    >>> from rayflink.common.typeinfo import Types
    >>> of = Types.ROW([Types.LONG(), Types.STRING()])
    >>> CsvRowSerializationSchema.Builder(of).build().serialize(Row(1, "a,b"))
    b'1,"a,b"\\n'

    Args:
        type_info: a RowTypeInfo.
        marks: what the characters mean.
    """

    def __init__(self, type_info: TypeInformation, marks: CsvMarks) -> None:
        self._type_info, self._marks = _row_type(type_info), marks
        is_own = type(self).serialize is CsvRowSerializationSchema.serialize
        self._writer = CsvWriter(self._type_info, marks) if is_own else None

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        """Return the line of each row; rows that are columns of the very types become lines by columns.

        Raises:
            TypeMismatch: a row is not of the type.
        """
        if isinstance(batch, ArrowBatch) and self._writer is not None:
            lines = self._writer.lines(batch.data)
            if lines is not None:
                return bytes_of(lines)
        return super().serialize_batch(batch)

    def serialize(self, element: UserRecord) -> bytes:
        """Return the line of a row.

        Raises:
            TypeMismatch: it is not of the type.
        """
        row = self._type_info.convert(element, "record to write as CSV")
        fields = zip(row, self._type_info.get_field_types(), strict=True)
        return self._marks.line_of(field_of(value, kind, self._marks) for value, kind in fields).encode("utf-8")

    class Builder:
        """Collects what the characters mean.

        Args:
            type_info: a RowTypeInfo.
        """

        def __init__(self, type_info: TypeInformation) -> None:
            if type_info is None:
                raise TypeError("Type information must not be None")
            self._type_info, self._marks = _row_type(type_info), CsvMarks()

        def set_field_delimiter(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the one character between fields."""
            return self._with(delimiter=_one(c, "field delimiter"))

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the string after a line: a line end, or nothing.

            Raises:
                ValueError: it is something else.
            """
            if delimiter not in ("\n", "\r", "\r\n", ""):
                raise ValueError(f"line delimiter {delimiter!r} is not supported; use \\n, \\r, \\r\\n or nothing")
            return self._with(line_end=delimiter)

        def set_array_element_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """Set the string between the elements of a list."""
            return self._with(elements=delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """Write no quotes around fields."""
            return self._with(quote=None)

        def set_quote_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the one character around fields that need it."""
            return self._with(quote=_one(c, "quote character"))

        def set_escape_character(self, c: str) -> CsvRowSerializationSchema.Builder:
            """Set the one character before quotes in fields."""
            return self._with(escape=_one(c, "escape character"))

        def set_null_literal(self, s: str) -> CsvRowSerializationSchema.Builder:
            """Set the string that stands for None."""
            return self._with(null=s)

        def build(self) -> CsvRowSerializationSchema:
            """Return the schema."""
            return CsvRowSerializationSchema(self._type_info, self._marks)

        def _with(self, **chosen: Any) -> CsvRowSerializationSchema.Builder:
            self._marks = replace(self._marks, **chosen)
            return self


def _row_type(type_info: object) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        problem = f"a row type is wanted, found {shorten(type_info, 80)}"
        raise InvalidTypesError(problem, "use Types.ROW_NAMED([...names], [...types])")
    return type_info


def _one(character: str, called: str) -> str:
    if len(character) != 1:
        raise ValueError(f"{called} must be a single character, found {character!r}")
    return character
