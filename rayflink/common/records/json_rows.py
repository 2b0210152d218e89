"""JSON objects as records of a declared row type, and back."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from rayflink.user_types import UserRecord

from ..data_types.basic_types import BasicType, BasicTypeInfo, DateTypeInfo, TimestampTypeInfo, TimeTypeInfo
from ..data_types.composite_types import (
    ElementsTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ..data_types.type_base import TypeInformation
from ..errors import InvalidTypesError, TypeMismatch, shorten
from ..serialization import DeserializationSchema, SerializationSchema
from ..typeinfo import Types
from ..types import Row, _create_row
from .arrow_types import to_arrow_schema
from .batches import ArrowBatch, Batch
from .csv_by_columns import bytes_of
from .json_by_columns import JsonWriter
from .json_columns import JsonParser, UnreadableColumn
from .json_strings import dumped, json_text, without_surrogates
from .number_strings import decimal_number, real_number, whole_number, whole_or_real
from .time_strings import parsed_instant, parsed_time, parsed_timestamp

if TYPE_CHECKING:
    import pyarrow

__all__ = ["JsonRowDeserializationSchema", "JsonRowSerializationSchema"]

_NUMBERS = (BasicType.FLOAT, BasicType.DOUBLE)
_COLUMNAR = (
    BasicType.BOOLEAN, BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG, BasicType.DOUBLE,
    BasicType.STRING,
)  # fmt: skip


class JsonRowDeserializationSchema(DeserializationSchema):
    """The fields of a row type out of a JSON object.

    >>> from rayflink.common.typeinfo import Types
    >>> of = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
    >>> JsonRowDeserializationSchema.builder().type_info(of).build().deserialize(b'{"name": "a", "id": 1}')
    Row(id=1, name='a')

    Args:
        type_info: a RowTypeInfo.
        fail_on_missing_field: a field that is not there is an error; else it is None.
        ignore_parse_errors: what cannot be read is None instead of an error.
    """

    def __init__(
        self, type_info: TypeInformation, fail_on_missing_field: bool = False, ignore_parse_errors: bool = False
    ) -> None:
        self._type_info = _row_type(type_info)
        self._strict, self._lenient = fail_on_missing_field, ignore_parse_errors
        self._reader = _reader_of(self._type_info, fail_on_missing_field)
        self._parser: JsonParser | None = None
        is_own = type(self).deserialize is JsonRowDeserializationSchema.deserialize
        self._has_columns = is_own and is_columnar(self._type_info)

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        """Return the rows of many JSON objects, as columns where all their values are of the very types of the fields.

        Raises:
            ValueError: a message is malformed, and errors are not ignored.
        """
        data = self._columns(messages) if self._has_columns and None not in messages else None
        return super().deserialize_batch(messages) if data is None else (ArrowBatch(data), None)

    def _columns(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch | None:
        """Return the columns of messages; None: they have to be read one by one."""
        try:
            if self._parser is None:
                self._parser = JsonParser(to_arrow_schema(self._type_info), self._strict)
            return self._parser.messages(messages)
        except UnreadableColumn:
            self._has_columns = False
            return None

    def deserialize(self, message: bytes) -> Row | None:
        """Return the row of a JSON object; None where errors are ignored and it is malformed.

        Raises:
            ValueError: it is malformed.
        """
        try:
            document = json.loads(message, parse_float=Decimal)
            row: Row = self._reader(document, "")
        except (ValueError, TypeError, ArithmeticError, RecursionError, TypeMismatch) as error:
            if self._lenient:
                return None
            text = shorten(bytes(message).decode("utf-8", "replace"), 200)
            raise ValueError(f"JSON {text} does not fit {self._type_info}: {error}") from error
        return row

    def get_produced_type(self) -> TypeInformation:
        return self._type_info

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type_info, self._strict, self._lenient)

    @staticmethod
    def builder() -> JsonRowDeserializationSchema.Builder:
        """Return a builder; `type_info` or `json_schema` must be called."""
        return JsonRowDeserializationSchema.Builder()

    class Builder:
        """Collects the row type and the treatment of mistakes."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None
            self._strict = self._lenient = False

        def type_info(self, type_info: TypeInformation) -> JsonRowDeserializationSchema.Builder:
            """Set the fields to read."""
            self._type_info = type_info
            return self

        def json_schema(self, json_schema: str) -> JsonRowDeserializationSchema.Builder:
            """Set the fields to read, as a JSON schema.

            Raises:
                InvalidTypesError: it has something that no type stands for.
            """
            if json_schema is None:
                raise TypeError("The json_schema must not be None.")
            self._type_info = type_of_schema(json.loads(json_schema))
            return self

        def fail_on_missing_field(self) -> JsonRowDeserializationSchema.Builder:
            """Let a field that is not there be an error."""
            self._strict = True
            return self

        def ignore_parse_errors(self) -> JsonRowDeserializationSchema.Builder:
            """Let what cannot be read become None."""
            self._lenient = True
            return self

        def build(self) -> JsonRowDeserializationSchema:
            """Return the schema.

            Raises:
                TypeError: there is no type.
            """
            if self._type_info is None:
                raise TypeError("the schema has no row type; call type_info(...) or json_schema(...) before build()")
            return JsonRowDeserializationSchema(self._type_info, self._strict, self._lenient)


class JsonRowSerializationSchema(SerializationSchema):
    """A row as a JSON object; its own field names do not count, those of the type do.

    >>> from rayflink.common.typeinfo import Types
    >>> of = Types.ROW_NAMED(["id", "name"], [Types.LONG(), Types.STRING()])
    >>> JsonRowSerializationSchema.builder().with_type_info(of).build().serialize(Row(1, "a"))
    b'{"id":1,"name":"a"}'

    Args:
        type_info: a RowTypeInfo.
    """

    def __init__(self, type_info: TypeInformation) -> None:
        self._type_info = _row_type(type_info)
        is_own = type(self).serialize is JsonRowSerializationSchema.serialize
        self._writer = JsonWriter(self._type_info) if is_own else None

    def serialize_batch(self, batch: Batch) -> Sequence[bytes | None]:
        """Return the JSON of each row; rows that are columns of the very types become objects by columns.

        Raises:
            TypeMismatch: a row is not of the type.
        """
        if isinstance(batch, ArrowBatch) and self._writer is not None:
            objects = self._writer.objects(batch.data)
            if objects is not None:
                return bytes_of(objects)
        return super().serialize_batch(batch)

    def serialize(self, element: UserRecord) -> bytes:
        """Return the JSON of a row.

        Raises:
            TypeMismatch: it is not of the type.
        """
        row = self._type_info.convert(element, "record to write as JSON")
        return json_text(row, self._type_info).encode("utf-8")

    @staticmethod
    def builder() -> JsonRowSerializationSchema.Builder:
        """Return a builder; `with_type_info` must be called."""
        return JsonRowSerializationSchema.Builder()

    class Builder:
        """Collects the row type."""

        def __init__(self) -> None:
            self._type_info: TypeInformation | None = None

        def with_type_info(self, type_info: TypeInformation) -> JsonRowSerializationSchema.Builder:
            """Set the fields to write."""
            self._type_info = type_info
            return self

        def build(self) -> JsonRowSerializationSchema:
            """Return the schema.

            Raises:
                TypeError: there is no type.
            """
            if self._type_info is None:
                raise TypeError("Typeinfo should be set.")
            return JsonRowSerializationSchema(self._type_info)


def _row_type(type_info: object) -> RowTypeInfo:
    if not isinstance(type_info, RowTypeInfo):
        problem = f"a row type is wanted, found {shorten(type_info, 80)}"
        raise InvalidTypesError(problem, "use Types.ROW_NAMED([...names], [...types])")
    return type_info


def is_columnar(kind: TypeInformation) -> bool:
    """Return whether JSON becomes the same values of a type by columns as one by one."""
    if isinstance(kind, BasicTypeInfo):
        return kind.basic_type in _COLUMNAR
    if isinstance(kind, RowTypeInfo):
        return all(map(is_columnar, kind.get_field_types()))
    if isinstance(kind, MapTypeInfo):
        return kind.key_type == Types.STRING() and is_columnar(kind.value_type)
    is_plain_list = isinstance(kind, ElementsTypeInfo) and not isinstance(kind, PrimitiveArrayTypeInfo)
    return is_plain_list and is_columnar(kind.element_type)  # type: ignore[attr-defined]


_Reader = Callable[[Any, str], Any]


def _reader_of(kind: TypeInformation, strict: bool) -> _Reader:
    """Return the function that makes a value of a type from JSON; the string is its place, for errors."""
    inner: Callable[[Any, str], Any]
    if isinstance(kind, RowTypeInfo):
        fields = [(name, _reader_of(field, strict)) for name, field in zip(
            kind.get_field_names(), kind.get_field_types(), strict=True)]  # fmt: skip
        names = kind.get_field_names()

        def inner(json_value: Any, path: str) -> Any:
            _ensure(json_value, dict, "an object", path)
            if strict and (missing := [name for name in names if name not in json_value]):
                raise ValueError(f"no field {', '.join(missing)}{f' in {path}' if path else ''}")
            return _create_row(
                names, [read(json_value.get(name), f"{path}.{name}" if path else name) for name, read in fields]
            )

    elif isinstance(kind, PrimitiveArrayTypeInfo) and kind.is_bytes:

        def inner(json_value: Any, path: str) -> Any:
            return base64.b64decode(_ensure(json_value, str, "base64 text", path), validate=True)

    elif isinstance(kind, ElementsTypeInfo):
        element = _reader_of(kind.element_type, strict)

        def inner(json_value: Any, path: str) -> Any:
            return [
                element(item, f"{path}[{place}]")
                for place, item in enumerate(_ensure(json_value, list, "a list", path))
            ]

    elif isinstance(kind, TupleTypeInfo):
        readers = [_reader_of(field, strict) for field in kind.get_field_types()]

        def inner(json_value: Any, path: str) -> Any:
            if len(_ensure(json_value, list, "a list", path)) != len(readers):
                raise ValueError(f"{path} has {len(json_value)} elements, {len(readers)} are wanted")
            return tuple(read(json_value[place], f"{path}[{place}]") for place, read in enumerate(readers))

    elif isinstance(kind, MapTypeInfo):
        value = _reader_of(kind.value_type, strict)

        def inner(json_value: Any, path: str) -> Any:
            return {
                key: value(item, f"{path}.{key}") for key, item in _ensure(json_value, dict, "an object", path).items()
            }

    else:
        read_simple = _simple_reader(kind)

        def inner(json_value: Any, path: str) -> Any:
            return read_simple(json_value, path)

    return lambda json_value, path: None if json_value is None else inner(json_value, path)


def _simple_reader(kind: TypeInformation) -> _Reader:
    def read(json_value: object, path: str) -> Any:
        if isinstance(kind, BasicTypeInfo):
            try:
                value = _basic(json_value, kind.basic_type)
            except ValueError as error:
                raise ValueError(f"field {path}: {error}") from error
            return kind.convert(value, f"field {path}")
        if isinstance(json_value, str):
            if isinstance(kind, DateTypeInfo):
                return date.fromisoformat(json_value)
            if isinstance(kind, TimeTypeInfo):
                return parsed_time(json_value)
            if isinstance(kind, TimestampTypeInfo):
                return parsed_timestamp(json_value)
        return kind.convert(json_value, f"field {path}")

    return read


def _basic(json_value: object, basic: BasicType) -> Any:
    if basic in (BasicType.STRING, BasicType.CHAR):
        if isinstance(json_value, str):
            return without_surrogates(json_value)
        return json.dumps(json_value, default=float, ensure_ascii=False, separators=(",", ":"))  # as Jackson's asText
    if basic is BasicType.INSTANT and isinstance(json_value, str):
        return parsed_instant(json_value)
    if basic is BasicType.BOOLEAN:
        return json_value
    if isinstance(json_value, bool):
        raise ValueError(f"{dumped(json_value)} is a Boolean, {basic.value} is wanted")
    if basic is BasicType.BIG_DEC and isinstance(json_value, int | str | Decimal):
        return decimal_number(json_value) if isinstance(json_value, str) else Decimal(json_value)
    if basic in _NUMBERS and isinstance(json_value, Decimal | str):
        return real_number(json_value) if isinstance(json_value, str) else float(json_value)
    if isinstance(json_value, Decimal):
        return whole_or_real(json_value)
    return whole_number(json_value) if isinstance(json_value, str) else json_value


def _ensure(json_value: object, wanted: type, called: str, path: str) -> Any:
    if not isinstance(json_value, wanted):
        raise ValueError(f"{path or 'the whole'} is {shorten(json_value, 80)}, {called} is wanted")
    return json_value


def type_of_schema(schema: Mapping[str, Any]) -> TypeInformation:
    """Return the type a JSON schema stands for, as Flink's JsonRowSchemaConverter: whole numbers are BIG_DEC too.

    Raises:
        InvalidTypesError: it has something that no type stands for.
    """

    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [name for name in kind if name != "null"]
        kind = kinds[0] if len(kinds) == 1 else kind
    if kind == "object":
        fields = schema.get("properties", {})
        return Types.ROW_NAMED(list(fields), [type_of_schema(field) for field in fields.values()])
    if kind == "array" and isinstance(schema.get("items"), dict):
        return Types.OBJECT_ARRAY(type_of_schema(schema["items"]))
    if kind == "array" and isinstance(schema.get("items"), list):
        return Types.ROW([type_of_schema(item) for item in schema["items"]])
    if kind == "string" and schema.get("contentEncoding") == "base64":
        return Types.PRIMITIVE_ARRAY(Types.BYTE())
    if kind == "string":
        formats = {"date-time": Types.SQL_TIMESTAMP, "date": Types.SQL_DATE, "time": Types.SQL_TIME}
        return formats.get(schema.get("format", ""), Types.STRING)()
    simple = {"number": Types.BIG_DEC, "integer": Types.BIG_DEC, "boolean": Types.BOOLEAN, "null": Types.VOID}
    if isinstance(kind, str) and kind in simple:
        return simple[kind]()
    raise InvalidTypesError(
        f"there is no type for the JSON schema {shorten(schema, 120)}", "give type_info(...) instead"
    )
