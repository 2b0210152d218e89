"""Columns encoded to datums."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rayflink.user_types import UserValue

from .arrow_mapping import arrow_type, sizes_of
from .avro_schema import AvroSchema, BadAvroSchema, SchemaNode, fastavro_package
from .datum_columns import encoded_long, plain_type, without_logical

if TYPE_CHECKING:
    import pyarrow


class DatumEncoder:
    """Encodes rows of columns as records of a schema.

    >>> import pyarrow
    >>> schema = AvroSchema({"type": "record", "name": "R", "fields": [{"name": "n", "type": ["null", "int"]}]})
    >>> DatumEncoder(schema).messages_of(pyarrow.record_batch({"n": [4, None]}))
    [b'\\x02\\x08', b'\\x00']

    Args:
        schema: a record; its fields are the columns of the same names.

    Raises:
        BadAvroSchema: it is no record, or has a union of several types.
    """

    def __init__(self, schema: AvroSchema) -> None:
        self._root, self._definition = schema.root.value, schema.definition
        if self._root.kind != "record":
            raise BadAvroSchema(f"the schema is {schema.root}, a record is wanted", "wrap it in a record")
        for field in self._root.fields:
            arrow_type(field.node)
        package = fastavro_package()
        self._write = package.schemaless_writer
        plain = plain_type(self._root, itertools.count())
        self._one = package.parse_schema(plain)
        self._many = package.parse_schema({"type": "array", "items": plain})
        self._prefix = encoded_long(schema.root.items.index(self._root)) if schema.root.kind == "union" else b""

    def messages_of(self, data: pyarrow.RecordBatch, header: bytes = b"") -> list[bytes]:
        """Return the datum of each row.

        Args:
            header: bytes before each of them.

        Raises:
            ValueError: a value is NULL where the schema has no null, or cannot be represented.
        """
        stream, ends, header = io.BytesIO(), [0], header + self._prefix
        for row in self.rows_of(data):
            stream.write(header)
            self._write(stream, self._one, row)
            ends.append(stream.tell())
        whole = stream.getvalue()
        return [whole[start:end] for start, end in itertools.pairwise(ends)]

    def json_of(self, data: pyarrow.RecordBatch) -> list[bytes]:
        """Return the datum of each row in Avro's JSON encoding.

        Raises:
            ValueError: a value is NULL where the schema has no null, or cannot be represented.
        """
        package = fastavro_package()
        schema, datums = package.parse_schema(without_logical(self._definition)), []
        for row in self.rows_of(data):
            stream = io.StringIO()
            package.json_writer(stream, schema, [row])
            datums.append(stream.getvalue().strip().encode())
        return datums

    def block_of(self, data: pyarrow.RecordBatch) -> bytes:
        """Return the datums of all rows, one behind the other, as in the block of a file.

        Raises:
            ValueError: a value is NULL where the schema has no null, or cannot be represented.
        """
        if not data.num_rows:
            return b""
        stream = io.BytesIO()
        self._write(stream, self._many, self.rows_of(data))
        return stream.getvalue()[len(encoded_long(data.num_rows)) : -1]

    def rows_of(self, data: pyarrow.RecordBatch) -> list[UserValue]:
        """Return rows as fastavro writes them, with times as numbers and decimals as bytes."""
        columns = []
        for field in self._root.fields:
            place = data.schema.get_field_index(field.name)
            if place < 0:
                raise ValueError(f"the rows have no column {field.name!r}, which the schema has; add it")
            columns.append(raw_values(data.column(place), field.node, field.name))
        names = [field.name for field in self._root.fields]
        return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)] or [{}] * data.num_rows


def raw_values(column: pyarrow.Array, node: SchemaNode, path: str) -> Sequence[UserValue]:
    """Return values as fastavro writes them for a schema without logical types.

    Raises:
        ValueError: one is NULL where the schema has no null, or cannot be represented.
    """
    if column.null_count and not node.is_nullable:
        remedy = "declare the field as a union with null, or leave such rows out"
        raise ValueError(f"a value of {path!r} is NULL, which its type {node} does not have; {remedy}")
    value = node.value
    nested: dict[str, Callable[[pyarrow.Array, SchemaNode, str], Sequence[UserValue]]] = {
        "record": _records, "array": _lists, "map": _maps,
    }  # fmt: skip
    if value.kind in nested:
        return nested[value.kind](column, value, path)
    return _scalars(column, value, path)


def _scalars(column: pyarrow.Array, node: SchemaNode, path: str) -> Sequence[UserValue]:
    import pyarrow
    from pyarrow import types

    wanted = arrow_type(node)
    if types.is_decimal(wanted):
        return _decimals(column.cast(wanted), node, path)
    if types.is_timestamp(wanted) and types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp(column.type.unit, wanted.tz))
    if types.is_temporal(wanted):
        column = column.cast(wanted, safe=False).cast(pyarrow.int64() if node.kind == "long" else pyarrow.int32())
    elif column.type != wanted and node.kind != "null":
        column = column.cast(wanted)
    values: Sequence[UserValue] = column.to_pylist()
    if node.kind == "enum":
        unknown = set(values).difference((None, *node.symbols))
        if unknown:
            unknown_symbols = ", ".join(map(repr, sorted(unknown)[:3]))
            raise ValueError(
                f"{unknown_symbols} of {path!r} is no symbol of {node}, which has {', '.join(node.symbols)}"
            )
    return values


def _decimals(column: pyarrow.Array, node: SchemaNode, path: str) -> Sequence[UserValue]:
    encoded_values: list[UserValue] = []
    for value in column.to_pylist():
        if value is None:
            encoded_values.append(None)
            continue
        number = int(value.scaleb(node.scale))
        size = node.size or (number + (number < 0)).bit_length() // 8 + 1
        try:
            encoded_values.append(number.to_bytes(size, "big", signed=True))
        except OverflowError as error:
            raise ValueError(f"{value} of {path!r} does not fit into the {size} bytes of {node.name}") from error
    return encoded_values


def _records(column: pyarrow.StructArray, node: SchemaNode, path: str) -> Sequence[UserValue]:
    children = {field.name: place for place, field in enumerate(column.type)}
    whole = column.drop_null() if column.null_count else column
    parts = whole.flatten()
    missing = [field.name for field in node.fields if field.name not in children]
    if missing:
        raise ValueError(f"{path!r} has no field {missing[0]!r}, which the schema has; add it")
    columns = [raw_values(parts[children[field.name]], field.node, f"{path}.{field.name}") for field in node.fields]
    names = [field.name for field in node.fields]
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)] or [{}] * len(whole)
    return _spread(rows, column)


def _lists(column: pyarrow.Array, node: SchemaNode, path: str) -> Sequence[UserValue]:
    whole = column.drop_null() if column.null_count else column
    items = raw_values(whole.flatten(), node.items[0], f"{path}[]")
    return _spread([items[start:end] for start, end in _bounds(whole)], column)


def _maps(column: pyarrow.MapArray, node: SchemaNode, path: str) -> Sequence[UserValue]:
    whole = column.drop_null() if column.null_count else column
    first, last = (whole.offsets[0].as_py(), whole.offsets[-1].as_py()) if len(whole) else (0, 0)
    keys = whole.keys.slice(first, last - first).to_pylist()
    values = raw_values(whole.items.slice(first, last - first), node.items[0], f"{path}{{}}")
    maps = [dict(zip(keys[start:end], values[start:end], strict=True)) for start, end in _bounds(whole)]
    return _spread(maps, column)


def _bounds(lists: pyarrow.Array) -> list[tuple[int, int]]:
    """Return where each list begins and ends in the elements that `flatten` gives."""
    ends = list(itertools.accumulate(sizes_of(lists).to_pylist(), initial=0))
    return list(itertools.pairwise(ends))


def _spread(values: Sequence[UserValue], column: pyarrow.Array) -> Sequence[UserValue]:
    """Return values with None in the places where a column is null."""
    if not column.null_count:
        return values
    left = iter(values)
    return [next(left) if is_valid else None for is_valid in column.is_valid().to_pylist()]


__all__ = ["DatumEncoder", "raw_values"]
