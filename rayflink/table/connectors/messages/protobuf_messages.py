"""`protobuf`: one Protobuf message each, of a class that protoc has generated."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.user_types import UserValue

from ...errors import SqlError, nearest
from ...plan.logical import Schema
from ...types import DataType, Root
from ..contract import Option
from ..formats import column_named
from ..print_and_blackhole import truth
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow

Get: TypeAlias = Callable[[UserValue], UserValue]
"""A message -> the value of a field."""
Put: TypeAlias = Callable[[UserValue, UserValue], None]
"""A message and a value, not NULL -> nothing; the field is set."""

_ROOTS = {
    "BOOL": (Root.BOOLEAN,), "INT32": (Root.INT, Root.BIGINT), "INT64": (Root.BIGINT,),
    "UINT32": (Root.INT, Root.BIGINT), "UINT64": (Root.BIGINT, Root.DECIMAL), "FLOAT": (Root.FLOAT, Root.DOUBLE),
    "DOUBLE": (Root.DOUBLE,), "STRING": (Root.CHAR, Root.VARCHAR, Root.BINARY, Root.VARBINARY),
    "ENUM": (Root.INT, Root.CHAR, Root.VARCHAR), "MESSAGE": (Root.ROW,),
}  # fmt: skip
"""Kind of a field in Python -> the kinds of SQL's types that it can have."""


class ProtobufMessages(MessageFormat):
    """Messages of a class that protoc has generated for Python; fields are columns by their names."""

    name = "protobuf"
    options: Mapping[str, Option] = {
        "message-class-name": Option(str, required=True),
        "ignore-parse-errors": Option(truth, False),
        "read-default-values": Option(truth, False),
        "write-null-string-literal": Option(str, ""),
    }

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        message = str(options["message-class-name"])
        check_columns(message_class(message).DESCRIPTOR, [(column.name, column.type) for column in schema])
        columns = tuple(column_named(schema, name) for name in names)
        return ProtobufDecoder(
            message, columns, bool(options["read-default-values"]), bool(options["ignore-parse-errors"])
        )

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        message = str(options["message-class-name"])
        check_columns(message_class(message).DESCRIPTOR, [(column.name, column.type) for column in schema])
        return ProtobufEncoder(message, schema, str(options["write-null-string-literal"]))


def message_class(path: str) -> UserValue:
    """Return a generated class by its path, such as `shop.orders_pb2.Order`; classes within others are found, too.

    Raises:
        SqlError: there is none.
    """
    remedy = "write 'module.Message', of a module that protoc has generated and that every node can import"
    try:
        importlib.import_module("google.protobuf")
    except ImportError as error:
        raise SqlError("protobuf is not installed", "pip install 'rayflink[protobuf]' on every node") from error
    parts, failure = path.split("."), ""
    for length in range(len(parts) - 1, 0, -1):
        try:
            message_type: UserValue = importlib.import_module(".".join(parts[:length]))
        except ImportError as error:
            failure = failure or f" ({described(error)})"
            continue
        for name in parts[length:]:
            message_type = getattr(message_type, name, None)
        if not hasattr(message_type, "DESCRIPTOR") or not hasattr(message_type, "FromString"):
            raise SqlError(f"{path!r} is no class of Protobuf messages", remedy)
        return message_type
    raise SqlError(f"there is no class {path!r}{failure}", remedy)


def check_columns(descriptor: UserValue, columns: Sequence[tuple[str, DataType]]) -> None:
    """Check that a message has fields for columns.

    Raises:
        SqlError: it has not, or one of another type.
    """
    for name, kind in columns:
        field = descriptor.fields_by_name.get(name)
        if field is None:
            names = list(descriptor.fields_by_name)
            problem = f"the message {descriptor.full_name} has no field {name!r}{nearest(name, names)}"
            raise SqlError(problem, f"its fields are {', '.join(names)}")
        _check_field(field, kind)


def _check_field(field: UserValue, kind: DataType) -> None:
    if _is_map(field):
        if kind.root is not Root.MAP:
            raise _misfit(field, "a map", kind)
        for part, item in zip(("key", "value"), kind.items, strict=True):
            _check_one(field.message_type.fields_by_name[part], item)
    elif _is_repeated(field):
        if kind.root is not Root.ARRAY:
            raise _misfit(field, "repeated", kind)
        _check_one(field, kind.items[0])
    else:
        _check_one(field, kind)


def _check_one(field: UserValue, kind: DataType) -> None:
    name = _kind(field)
    if kind.root not in _ROOTS[name] or (name == "STRING" and kind.is_bytes != (field.type == field.TYPE_BYTES)):
        raise _misfit(field, "bytes" if field.type == field.TYPE_BYTES else name.lower(), kind)
    if kind.root is Root.ROW:
        check_columns(field.message_type, [(inner.name, inner.type) for inner in kind.fields])


def _misfit(field: UserValue, field_type: str, kind: DataType) -> SqlError:
    problem = f"field {field.full_name!r} is {field_type}, and its column {kind}"
    return SqlError(problem, "declare the column as docs/formats.md says for the type of the field")


def _kind(field: UserValue) -> str:
    kinds: dict[int, str] = {getattr(field, f"CPPTYPE_{name}"): name for name in _ROOTS}
    return kinds[field.cpp_type]


def _is_repeated(field: UserValue) -> bool:
    is_repeated = getattr(field, "is_repeated", None)
    return bool(field.label == field.LABEL_REPEATED if is_repeated is None else is_repeated)


def _is_map(field: UserValue) -> bool:
    return _is_repeated(field) and _kind(field) == "MESSAGE" and bool(field.message_type.GetOptions().map_entry)


class ProtobufDecoder(ColumnDecoder):
    """Decodes messages to columns; those that are None have no rows.

    Args:
        message: path of the class.
        columns: those to decode.
        reads_defaults: a field that is not set has its default, instead of NULL.
        skips: messages that are malformed are left out and counted.
        errors: the counter; None: nothing is counted.
    """

    def __init__(
        self, message: str, columns: Schema, reads_defaults: bool = False, skips: bool = False,
        errors: Counter | None = None,
    ) -> None:  # fmt: skip
        self._settings = message, columns, reads_defaults, skips
        self._columns, self._skips, self._errors = columns, skips, errors
        message_type = message_class(message)
        self._parse = message_type.FromString
        fields = message_type.DESCRIPTOR.fields_by_name
        self._gets = [_getter(fields[column.name], column.type, reads_defaults) for column in columns]

    def __reduce__(self) -> tuple[object, ...]:
        return ProtobufDecoder, self._settings

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        return ProtobufDecoder(*self._settings, metrics.counter(NUM_RECORDS_IN_ERRORS)) if self._skips else self

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        import pyarrow

        parsed, indices = list[UserValue](), list[int]()
        for index, message in enumerate(messages):
            if message is None:
                continue
            try:
                parsed.append(self._parse(message))
            except Exception as error:  # DecodeError, which the implementations of Protobuf define differently
                if not self._skips:
                    remedy = "set 'protobuf.ignore-parse-errors' = 'true' to leave such messages out"
                    raise ValueError(f"the message is no {self._settings[0]} ({described(error)}); {remedy}") from error
                if self._errors is not None:
                    self._errors.inc()
                continue
            indices.append(index)
        fields = [(column.name, column.type.to_arrow()) for column in self._columns]
        arrays = [pyarrow.array(map(get, parsed), kind, size=len(parsed))
                  for get, (_, kind) in zip(self._gets, fields, strict=True)]  # fmt: skip
        if not arrays:
            empty = pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * len(parsed), pyarrow.struct([])))
            return ArrowBatch(empty), indices
        data = pyarrow.RecordBatch.from_arrays(arrays, schema=pyarrow.schema(fields))
        return ArrowBatch(data), None if len(indices) == len(messages) else indices


def _getter(field: UserValue, kind: DataType, reads_defaults: bool) -> Get:
    """Return the function that reads a field of a message."""
    name = field.name
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[part] for part in ("key", "value"))
        of_key = _converter(key, kind.items[0], reads_defaults)
        of_value = _converter(value, kind.items[1], reads_defaults)
        return lambda message: [(of_key(part), of_value(item)) for part, item in getattr(message, name).items()]
    convert = _converter(field, kind, reads_defaults)
    if _is_repeated(field):
        convert = _converter(field, kind.items[0], reads_defaults)
        return lambda message: list(map(convert, getattr(message, name)))
    is_message = _kind(field) == "MESSAGE"
    if not field.has_presence or (reads_defaults and not is_message):
        return lambda message: convert(getattr(message, name))
    return lambda message: convert(getattr(message, name)) if message.HasField(name) else None


def _converter(field: UserValue, kind: DataType, reads_defaults: bool) -> Get:
    if _kind(field) == "MESSAGE":
        fields = field.message_type.fields_by_name
        gets = [(inner.name, _getter(fields[inner.name], inner.type, reads_defaults)) for inner in kind.fields]
        return lambda message: {name: get(message) for name, get in gets}
    if _kind(field) == "ENUM" and kind.is_text:
        names = {number: value.name for number, value in field.enum_type.values_by_number.items()}
        return lambda number: names.get(number, str(number))
    return lambda value: value


class ProtobufEncoder(ColumnEncoder):
    """Encodes rows as messages; fields of columns that are NULL are not set.

    Args:
        message: path of the class.
        schema: of the rows.
        null_string: stands for NULL within arrays and maps of strings; other elements have their defaults.
    """

    def __init__(self, message: str, schema: Schema, null_string: str = "") -> None:
        super().__init__(schema)
        self._settings = message, schema, null_string
        self._class = message_class(message)
        fields = self._class.DESCRIPTOR.fields_by_name
        self._puts = [(column.name, _putter(fields[column.name], column.type, null_string)) for column in schema]

    def __reduce__(self) -> tuple[object, ...]:
        return ProtobufEncoder, self._settings

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        columns = {name: column.to_pylist() for name, column in zip(data.schema.names, data.columns, strict=True)}
        messages: list[bytes | None] = []
        for row in range(data.num_rows):
            message = self._class()
            for name, put in self._puts:
                value = columns[name][row]
                if value is not None:
                    put(message, value)
            messages.append(message.SerializeToString())
        return messages


def _putter(field: UserValue, kind: DataType, null_string: str) -> Put:
    """Return the function that sets a field of a message."""
    name = field.name
    if _is_map(field):
        return _map_putter(field, kind, null_string)
    if _kind(field) == "MESSAGE":
        fill = _filler(field, kind.items[0] if _is_repeated(field) else kind, null_string)

        def put_message(message: UserValue, value: UserValue) -> None:
            inner = getattr(message, name)
            if _is_repeated(field):
                for item in value:
                    fill(inner.add(), item)
            else:
                inner.SetInParent()
                fill(inner, value)

        return put_message
    of_value = _scalar(field, null_string)
    if _is_repeated(field):
        return lambda message, value: getattr(message, name).extend(map(of_value, value))
    return lambda message, value: setattr(message, name, of_value(value))


def _map_putter(field: UserValue, kind: DataType, null_string: str) -> Put:
    name, entry = field.name, field.message_type.fields_by_name
    of_key = _scalar(entry["key"], null_string)
    if _kind(entry["value"]) == "MESSAGE":
        fill = _filler(entry["value"], kind.items[1], null_string)

        def put_messages(message: UserValue, value: UserValue) -> None:
            for key, item in value:
                fill(getattr(message, name)[of_key(key)], item)

        return put_messages
    of_value = _scalar(entry["value"], null_string)

    def put(message: UserValue, value: UserValue) -> None:
        for key, item in value:
            getattr(message, name)[of_key(key)] = of_value(item)

    return put


def _filler(field: UserValue, kind: DataType, null_string: str) -> Put:
    """Return the function that sets the fields of a message within another from a dict."""
    fields = field.message_type.fields_by_name
    puts = [(inner.name, _putter(fields[inner.name], inner.type, null_string)) for inner in kind.fields]

    def fill(message: UserValue, value: UserValue) -> None:
        for name, put in puts:
            if value is not None and value[name] is not None:
                put(message, value[name])

    return fill


def _scalar(field: UserValue, null_string: str) -> Get:
    """Return the conversion of a value to the field's; NULL, within arrays and maps, becomes a default."""
    kind = _kind(field)
    if kind == "ENUM":
        numbers = {name: value.number for name, value in field.enum_type.values_by_name.items()}

        def number(value: UserValue) -> UserValue:
            if value is not None and not isinstance(value, int) and value not in numbers:
                raise ValueError(f"{value!r} is no name of {field.enum_type.full_name}, which has {', '.join(numbers)}")
            return numbers.get(value, value or 0)

        return number
    if kind == "STRING":
        nothing: UserValue = b"" if field.type == field.TYPE_BYTES else null_string
    else:
        nothing = {"BOOL": False, "FLOAT": 0.0, "DOUBLE": 0.0}.get(kind, 0)
    if kind == "UINT64":
        return lambda value: nothing if value is None else int(value)
    return lambda value: nothing if value is None else value


__all__ = ["ProtobufDecoder", "ProtobufEncoder", "ProtobufMessages", "check_columns", "message_class"]
