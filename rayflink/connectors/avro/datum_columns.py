"""Many datums of one schema decoded to columns at once.

Avro's binary encoding of records that follow one another is that of an array of records, or of a block of a file. So a
whole batch of messages is decoded by one call: by polars, which does so by columns, where it knows the types, else by
fastavro. A number that no message contains stands behind each of them, which shows that none is too short or too long.

Source: https://avro.apache.org/docs/1.12.0/specification/, "Binary Encoding" and "Object Container Files".
"""

from __future__ import annotations

import io
import itertools
import json
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, TypeAlias

from rayflink.user_types import UserValue

from .arrow_mapping import arrow_type
from .avro_schema import NO_DEFAULT, AvroSchema, BadAvroSchema, Json, SchemaField, SchemaNode, fastavro_package
from .fitted_columns import check_fit, fitted

if TYPE_CHECKING:
    from types import ModuleType

    import pyarrow

    Value: TypeAlias = UserValue
    Records: TypeAlias = Sequence[dict[str, Value]]

_MARK_NAME = "mark__"
MARK = int.from_bytes(os.urandom(8), "big") >> 2 | 1 << 61
"""The number behind each message of a batch."""
_ONLY = "value__"
"""The name of the column of a schema that is no record."""
_CALLS_WITHOUT_COLUMNS = 32
"""The batches that fastavro decodes after a failure, as the reader is likely to look for it among smaller parts."""


class BadDatum(ValueError):
    """A message is no datum of its schema."""


class DatumColumns:
    """Decodes datums to columns.

    >>> schema = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int"]}]})
    >>> DatumColumns(schema).of_messages([bytes([2, 8]), bytes([0])]).to_pydict()
    {'n': [4, None]}

    Args:
        writer: the schema of the datums, a record; the value of another is the column `value__`.
        wanted: the columns to decode, with their types; None: all. The others are skipped.
        reader: a record with aliases and defaults of the wanted columns; None: they have none.

    Raises:
        BadAvroSchema: a column is not in the datums and has no default, or is of a type that cannot be read as wanted.
    """

    def __init__(
        self, writer: AvroSchema, wanted: pyarrow.Schema | None = None, reader: SchemaNode | None = None
    ) -> None:
        import pyarrow

        root = writer.root
        self._definition = writer.definition
        self._fields = root.fields if root.kind == "record" else (SchemaField(_ONLY, root),)
        if wanted is None:
            wanted = pyarrow.schema([(field.name, arrow_type(field.node)) for field in self._fields])
        self.schema = wanted
        names = [field.name for field in self._fields]
        self._places = [_place(names, column, None if reader is None else reader.field(column.name))
                        for column in wanted]  # fmt: skip
        self._defaults = [None if reader is None else reader.field(column.name) for column in wanted]
        for column, place, default in zip(wanted, self._places, self._defaults, strict=True):
            if place is not None:
                check_fit(self._fields[place].node, column.type, f"field {column.name!r}")
            else:
                _check_default(column, default)
        self._by_columns = _ColumnDecoder.of(self._fields, self._places)
        self._by_records: _RecordDecoder | None = None
        self._without_columns = 0

    def of_messages(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch:
        """Return the columns of messages, each of which is one datum.

        Raises:
            BadDatum: one is no datum of the schema, or has bytes left.
            pyarrow.ArrowInvalid: a value is out of the range of the column.
        """
        mark = encoded_long(MARK)
        data = mark.join(messages) + mark if messages else b""
        return self._columns(data, len(messages), messages)

    def of_block(self, data: bytes, count: int) -> pyarrow.RecordBatch:
        """Return the columns of `count` datums that follow one another without gaps, as in the block of a file.

        Raises:
            BadDatum: they are no such datums.
        """
        return self._columns(data, count, None)

    def of_json(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch:
        """Return the columns of messages, each of which is one datum in Avro's JSON encoding.

        Raises:
            BadDatum: one is no datum of the schema.
        """
        package = fastavro_package()
        schema = package.parse_schema(without_logical(self._definition))
        records = [_from_json(package, message, schema) for message in messages]
        if self._by_records is None:
            self._by_records = _RecordDecoder(self._fields)
        return self._fitted(self._by_records.columns(records, self._used), len(records))

    def _columns(self, data: bytes, count: int, messages: Sequence[bytes] | None) -> pyarrow.RecordBatch:
        return self._fitted(self._raw_columns(data, count, messages), count)

    def _fitted(self, raw: dict[int, pyarrow.Array], count: int) -> pyarrow.RecordBatch:
        import pyarrow

        columns = []
        for place, column, default in zip(self._places, self.schema, self._defaults, strict=True):
            if place is None:
                columns.append(_default_column(column.type, default, count))
            else:
                columns.append(fitted(raw[place], self._fields[place].node, column.type))
        if not columns:
            return pyarrow.RecordBatch.from_struct_array(pyarrow.array([{}] * count, pyarrow.struct([])))
        return pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)

    def _raw_columns(
        self, data: bytes, count: int, messages: Sequence[bytes] | None
    ) -> dict[int, pyarrow.Array]:
        if self._by_columns is not None and not self._without_columns and count:
            columns = self._by_columns.decode(data, count, messages is not None)
            if columns is not None:
                return columns
            self._without_columns = _CALLS_WITHOUT_COLUMNS
        self._without_columns = max(self._without_columns - 1, 0)
        if self._by_records is None:
            self._by_records = _RecordDecoder(self._fields)
        records = self._by_records.decode(data, count, messages)
        return self._by_records.columns(records, self._used)

    @property
    def _used(self) -> set[int]:
        return {place for place in self._places if place is not None}


class _ColumnDecoder:
    """Decodes blocks by polars.

    Args:
        fields: the schemas of the fields, as JSON, with types that polars knows and that are encoded alike.
        columns: the place of each field that is decoded, with its name.
    """

    def __init__(self, fields: Sequence[Json], columns: dict[int, str]) -> None:
        self._columns = columns
        self._headers = {False: _header(fields), True: _header([*fields, {"name": _MARK_NAME, "type": "long"}])}

    @staticmethod
    def of(fields: Sequence[SchemaField], places: Sequence[int | None]) -> _ColumnDecoder | None:
        """Return the decoder of some fields; None: polars is not installed, or does not know a type."""
        try:
            import polars  # noqa: F401
        except ImportError:
            return None
        numbers = itertools.count()
        kinds = [_wire_type(field.node, numbers) for field in fields]
        if None in kinds or not fields:
            return None
        members: list[Json] = [{"name": field.name, "type": kind} for field, kind in zip(fields, kinds, strict=True)]
        return _ColumnDecoder(members, {place: fields[place].name for place in places if place is not None})

    def decode(self, data: bytes, count: int, has_marks: bool) -> dict[int, pyarrow.Array] | None:
        """Return the columns by their places; None: the data is malformed, or polars does not read it."""
        import polars
        import pyarrow

        header, sync = self._headers[has_marks]
        block = b"".join((header, encoded_long(count), encoded_long(len(data)), data, sync))
        names = [*self._columns.values(), *([_MARK_NAME] if has_marks else ())]
        try:
            frame = polars.read_avro(io.BytesIO(block), columns=names or None)
        except (polars.exceptions.PolarsError, polars.exceptions.PanicException, OSError, ValueError):
            return None
        if frame.height != count or (has_marks and not (frame[_MARK_NAME] == MARK).all()):
            return None
        columns = {place: frame[name].to_arrow() for place, name in self._columns.items()}
        return {
            place: column.combine_chunks() if isinstance(column, pyarrow.ChunkedArray) else column
            for place, column in columns.items()
        }


class _RecordDecoder:
    """Decodes blocks by fastavro, to records, and makes columns of them."""

    def __init__(self, fields: Sequence[SchemaField]) -> None:
        self._package = fastavro_package()
        self._fields = fields
        numbers = itertools.count()
        plain: list[Json] = [{"name": field.name, "type": plain_type(field.node, numbers)} for field in fields]
        record = {"type": "record", "name": "record__", "fields": plain}
        marked = {**record, "fields": [*plain, {"name": _MARK_NAME, "type": "long"}]}
        self._one = self._package.parse_schema(record)
        self._many = {
            has_marks: self._package.parse_schema({"type": "array", "items": items})
            for has_marks, items in ((False, record), (True, marked))
        }

    def decode(self, data: bytes, count: int, messages: Sequence[bytes] | None) -> Records:
        """Return the records.

        Raises:
            BadDatum: there are other than `count`, or one is malformed.
        """
        if not count:
            return []
        stream = io.BytesIO(b"".join((encoded_long(count), data, b"\0")))
        end = len(stream.getbuffer())
        try:
            records: Records = self._package.schemaless_reader(stream, self._many[messages is not None])
        except Exception as error:  # fastavro raises errors of any sort for data that does not fit
            self._find(messages)
            raise BadDatum(f"the block is not encoded by its schema ({type(error).__name__}: {error})") from error
        is_aligned = messages is None or all(record[_MARK_NAME] == MARK for record in records)
        if stream.tell() != end or len(records) != count or not is_aligned:
            self._find(messages)
            raise BadDatum(f"the block is not encoded by its schema: {end - stream.tell()} bytes are left behind it")
        return records

    def _find(self, messages: Sequence[bytes] | None) -> None:
        """Raise the error of the first message that is malformed."""
        for message in messages or ():
            stream = io.BytesIO(message)
            try:
                self._package.schemaless_reader(stream, self._one)
            except Exception as error:  # see above
                problem = f"{type(error).__name__}: {error}"
                if isinstance(error, EOFError):
                    problem = "it ends within a field"
                raise BadDatum(f"the message is not encoded by its schema: {problem}") from error
            if stream.tell() != len(message):
                left = len(message) - stream.tell()
                raise BadDatum(f"the message is not encoded by its schema: {left} bytes are left behind the last field")

    def columns(self, records: Records, places: Collection[int]) -> dict[int, pyarrow.Array]:
        """Return the values of some fields by their places."""
        import pyarrow

        columns = {}
        for place in places:
            name, node = self._fields[place].name, self._fields[place].node
            values = [record[name] for record in records]
            columns[place] = pyarrow.array(_with_pairs(values, node), raw_type(node))
        return columns


def _from_json(package: ModuleType, message: bytes, schema: Json) -> dict[str, Value]:
    try:
        [record] = package.json_reader(io.StringIO(message.decode("utf-8").replace("\n", " ")), schema)
    except Exception as error:  # fastavro raises errors of any sort for data that does not fit
        raise BadDatum(f"the message is no JSON of its schema ({type(error).__name__}: {error})") from error
    values: dict[str, Value] = record
    return values


def without_logical(part: Json) -> Json:
    """Return a schema without its logical types, so that values are those of the types below."""
    if isinstance(part, dict):
        return {key: without_logical(value) for key, value in part.items() if key != "logicalType"}
    return [without_logical(value) for value in part] if isinstance(part, list) else part


def raw_type(node: SchemaNode) -> pyarrow.DataType:
    """Return Arrow's type of what is decoded, before `fitted`."""
    import pyarrow

    value = node.value
    if value.kind == "record":
        return pyarrow.struct([(field.name, raw_type(field.node)) for field in value.fields])
    if value.kind == "array":
        return pyarrow.list_(raw_type(value.items[0]))
    if value.kind == "map":
        return pyarrow.map_(pyarrow.string(), raw_type(value.items[0]))
    if value.kind == "fixed":
        return pyarrow.binary()
    return arrow_type(SchemaNode(value.kind)) if value.kind != "union" else pyarrow.null()


def _has_maps(node: SchemaNode) -> bool:
    inner = [*node.items, *(field.node for field in node.fields)]
    return node.kind == "map" or any(map(_has_maps, inner))


def _with_pairs(values: Sequence[Value], node: SchemaNode) -> Sequence[Value]:
    """Return values with lists of pairs in place of maps, as pyarrow takes them."""
    value = node.value
    if not _has_maps(value):
        return values
    if value.kind == "map":
        return [None if item is None else _pairs(item, value.items[0]) for item in values]
    if value.kind == "array":
        return [None if item is None else _with_pairs(item, value.items[0]) for item in values]
    columns = [
        _with_pairs([None if item is None else item[field.name] for item in values], field.node)
        for field in value.fields
    ]
    names = [field.name for field in value.fields]
    rows = zip(*columns, strict=True) if columns else [()] * len(values)
    pairs = zip(values, rows, strict=True)
    return [None if item is None else dict(zip(names, row, strict=True)) for item, row in pairs]


def _pairs(value: dict[str, Value], node: SchemaNode) -> list[tuple[str, Value]]:
    return list(zip(value, _with_pairs(list(value.values()), node), strict=True))


def _wire_type(node: SchemaNode, numbers: itertools.count[int]) -> Json:
    """Return a type that polars decodes and that has the same encoding; None: there is none."""
    if node.kind == "enum":
        return "int"
    if node.kind == "fixed":
        return {"type": "fixed", "name": f"fixed{next(numbers)}", "size": node.size}
    if node.kind == "union":
        kinds = [item.kind for item in node.items]
        inner = _wire_type(node.value, numbers) if len(kinds) == 2 and kinds.count("null") == 1 else None
        return None if inner is None else [inner if kind != "null" else "null" for kind in kinds]
    if node.kind in ("array", "map"):
        inner = _wire_type(node.items[0], numbers)
        if inner is None:
            return None
        pair = [{"name": "key", "type": "string"}, {"name": "value", "type": inner}]
        return {"type": "array", "items": inner if node.kind == "array" else _record(pair, numbers)}
    if node.kind == "record":
        kinds_of_fields = [_wire_type(field.node, numbers) for field in node.fields]
        if None in kinds_of_fields or not kinds_of_fields:
            return None
        return _record(
            [{"name": field.name, "type": kind} for field, kind in zip(node.fields, kinds_of_fields, strict=True)],
            numbers,
        )
    return None if node.kind == "null" else node.kind


def plain_type(node: SchemaNode, numbers: itertools.count[int]) -> Json:
    """Return the type without logical types, and with new names."""
    if node.kind == "enum":
        return {"type": "enum", "name": f"enum{next(numbers)}", "symbols": node.symbols}
    if node.kind == "fixed":
        return {"type": "fixed", "name": f"fixed{next(numbers)}", "size": node.size}
    if node.kind == "union":
        return [plain_type(item, numbers) for item in node.items]
    if node.kind == "array":
        return {"type": "array", "items": plain_type(node.items[0], numbers)}
    if node.kind == "map":
        return {"type": "map", "values": plain_type(node.items[0], numbers)}
    if node.kind == "record":
        return _record([{"name": f.name, "type": plain_type(f.node, numbers)} for f in node.fields], numbers)
    return node.kind


def _record(fields: Sequence[Json], numbers: itertools.count[int]) -> Json:
    return {"type": "record", "name": f"record{next(numbers)}", "fields": fields}


def _header(fields: Sequence[Json]) -> tuple[bytes, bytes]:
    """Return the header of a file with a record of these fields, and the marker that ends its blocks."""
    sync = os.urandom(16)
    schema = json.dumps({"type": "record", "name": "record__", "fields": fields}).encode()
    pairs = ((b"avro.schema", schema), (b"avro.codec", b"null"))
    metadata = b"".join(encoded_long(len(part)) + part for pair in pairs for part in pair)
    return b"Obj\x01" + encoded_long(len(pairs)) + metadata + b"\0" + sync, sync


def encoded_long(number: int) -> bytes:
    """Return a number as Avro encodes it.

    >>> encoded_long(-1), encoded_long(64)
    (b'\\x01', b'\\x80\\x01')
    """
    number = number << 1 ^ number >> 63
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _place(names: Sequence[str], column: pyarrow.Field, reader: SchemaField | None) -> int | None:
    known = [column.name, *(reader.aliases if reader is not None else ())]
    return next((names.index(name) for name in known if name in names), None)


def _check_default(column: pyarrow.Field, reader: SchemaField | None) -> None:
    if not column.nullable and (reader is None or reader.default is NO_DEFAULT):
        remedy = "declare the column nullable, or give the field a default in the schema of the reader"
        raise BadAvroSchema(f"field {column.name!r} is not in the schema of the writer", remedy)


def _default_column(kind: pyarrow.DataType, reader: SchemaField | None, count: int) -> pyarrow.Array:
    """Return a column of the default of a field, NULL where it has none."""
    import pyarrow

    if reader is None or reader.default is NO_DEFAULT or reader.default is None:
        return pyarrow.nulls(count, kind)
    value = default_value(reader.default, reader.node)
    raw = pyarrow.array(_with_pairs([value], reader.node), raw_type(reader.node))
    return fitted(raw, reader.node, kind).take(pyarrow.array([0] * count, pyarrow.int64()))


def default_value(default: Value, node: SchemaNode) -> Value:
    """Return the value of a default, which schemas write as JSON: bytes are strings there."""
    value = node.value
    if isinstance(default, str) and value.kind in ("bytes", "fixed"):
        return default.encode("latin-1")
    if isinstance(default, dict) and value.kind == "record":
        inner = {field.name: default.get(field.name, field.default) for field in value.fields}
        return {field.name: default_value(inner[field.name], field.node) for field in value.fields}
    if isinstance(default, dict):
        return {key: default_value(item, value.items[0]) for key, item in default.items()}
    if isinstance(default, list):
        return [default_value(item, value.items[0]) for item in default]
    return default


__all__ = [
    "MARK", "BadDatum", "DatumColumns", "default_value", "encoded_long", "plain_type", "raw_type", "without_logical",
]  # fmt: skip
