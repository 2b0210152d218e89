"""Columns as they were decoded, fitted to the types that are wanted.

What is decoded has the types below the logical ones: timestamps are numbers, decimals bytes, enums strings or numbers
of symbols, and maps may be lists of pairs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.records.arrow_values import list_offsets

from .arrow_mapping import arrow_type, sizes_of
from .avro_schema import BadAvroSchema, SchemaNode

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

_DECIMAL_BYTES = 16
_MOST_DIGITS = 38


def check_fit(node: SchemaNode, wanted: pyarrow.DataType, path: str) -> None:
    """Check that the values of a type can be read as another, by Avro's rules of schema resolution.

    Args:
        node: the writer's type.
        wanted: the reader's.
        path: of the field, for the error.

    Raises:
        BadAvroSchema: they cannot.
    """
    from pyarrow import types

    value = node.value
    if value.kind == "record" and types.is_struct(wanted):
        for field in wanted:
            writer_field = value.field(field.name)
            if writer_field is not None:
                check_fit(writer_field.node, field.type, f"{path}.{field.name}")
            elif not field.nullable:
                raise _unfit(path, f"has no field {field.name!r}", f"{field.type} NOT NULL")
    elif value.kind == "array" and (types.is_list(wanted) or types.is_large_list(wanted)):
        check_fit(value.items[0], wanted.value_type, f"{path}[]")
    elif value.kind == "map" and types.is_map(wanted):
        check_fit(value.items[0], wanted.item_type, f"{path}{{}}")
    elif not _fits(value, wanted):
        raise _unfit(path, f"is {value} in the schema of the writer", str(wanted))


def _unfit(path: str, problem: str, wanted: str) -> BadAvroSchema:
    remedy = "declare the type that the writer has, or one that it can be promoted to"
    return BadAvroSchema(f"{path} {problem}, {wanted} is wanted", remedy)


def _fits(node: SchemaNode, wanted: pyarrow.DataType) -> bool:
    from pyarrow import types

    kind = node.kind
    if kind == "null":
        return True
    allowed = [
        (types.is_boolean, ("boolean",)), (types.is_int64, ("int", "long")), (types.is_integer, ("int",)),
        (types.is_float64, ("int", "long", "float", "double")), (types.is_floating, ("int", "long", "float")),
        (types.is_string, ("string", "bytes", "enum")), (types.is_binary, ("bytes", "string", "fixed")),
        (types.is_fixed_size_binary, ("fixed", "bytes")), (types.is_decimal, ("bytes", "fixed")),
        (types.is_timestamp, ("long",)), (types.is_time64, ("int", "long")), (types.is_time, ("int", "long")),
        (types.is_date, ("int",)),
    ]  # fmt: skip
    return any(is_it(wanted) and kind in kinds for is_it, kinds in allowed)


def fitted(column: pyarrow.Array, node: SchemaNode, wanted: pyarrow.DataType) -> pyarrow.Array:
    """Return a column of decoded values as one of a type that `check_fit` accepts.

    Raises:
        pyarrow.ArrowInvalid: a value is out of the type's range.
    """
    import pyarrow
    from pyarrow import types

    value = node.value
    if value.kind == "record":
        return _record(column, value, wanted)
    if value.kind == "array":
        items = fitted(column.flatten(), value.items[0], wanted.value_type)
        return pyarrow.ListArray.from_arrays(list_offsets(sizes_of(column)), items, wanted, mask=_mask(column))
    if value.kind == "map":
        return _map(column, value, wanted)
    if value.kind == "enum" and types.is_integer(column.type):
        return pyarrow.array(value.symbols, pyarrow.string()).take(column).cast(wanted)
    if types.is_decimal(wanted):
        scale = value.scale if value.logical == "decimal" else wanted.scale
        return _decimals(column, scale).cast(wanted)
    natural = arrow_type(value)
    if types.is_temporal(natural) or types.is_temporal(wanted):
        moments = column.cast(natural if types.is_temporal(natural) else wanted)
        return _moments(moments, wanted)
    if types.is_binary(column.type) or types.is_large_binary(column.type):
        return column.cast(pyarrow.binary()).cast(wanted)
    return column if column.type == wanted else column.cast(wanted)


def _moments(column: pyarrow.Array, wanted: pyarrow.DataType) -> pyarrow.Array:
    """Return times in another unit or zone; they are cut, not rounded, to fewer digits."""
    import pyarrow
    from pyarrow import types

    if column.type == wanted:
        return column
    if types.is_integer(wanted):
        return column.cast(wanted)
    if types.is_timestamp(wanted) and types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp(column.type.unit, wanted.tz))
    return column.cast(wanted, safe=False)


def _record(column: pyarrow.StructArray, node: SchemaNode, wanted: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow

    places = {field.name: place for place, field in enumerate(node.fields)}
    children = column.flatten()
    inner = []
    for field in wanted:
        place = places.get(field.name)
        if place is None:
            inner.append(pyarrow.nulls(len(column), field.type))
        else:
            inner.append(fitted(children[place], node.fields[place].node, field.type))
    if not inner:
        validity = column.is_valid().buffers()[1] if column.null_count else None
        return pyarrow.Array.from_buffers(wanted, len(column), [validity])
    return pyarrow.StructArray.from_arrays(inner, fields=list(wanted), mask=_mask(column))


def _map(column: pyarrow.Array, node: SchemaNode, wanted: pyarrow.DataType) -> pyarrow.Array:
    import pyarrow
    from pyarrow import types

    if types.is_map(column.type):
        whole = column.drop_null() if column.null_count else column
        first, last = (whole.offsets[0].as_py(), whole.offsets[-1].as_py()) if len(whole) else (0, 0)
        keys, values = whole.keys.slice(first, last - first), whole.items.slice(first, last - first)
        offsets = list_offsets(sizes_of(column))
    else:
        keys, values = column.flatten().flatten()
        offsets = list_offsets(sizes_of(column))
    items = fitted(values, node.items[0], wanted.item_type)
    return pyarrow.MapArray.from_arrays(offsets, keys.cast(wanted.key_type), items, wanted, mask=_mask(column))


def _mask(column: pyarrow.Array) -> pyarrow.Array | None:
    return column.is_null() if column.null_count else None


def _decimals(column: pyarrow.Array, scale: int) -> pyarrow.Array:
    """Return numbers from bytes of two's complement, the highest first.

    Raises:
        ValueError: a number has more than 38 digits or so.
    """
    import numpy
    import pyarrow

    column = column.cast(pyarrow.large_binary())
    count = len(column)
    _, starts, data = column.buffers()
    offsets = numpy.frombuffer(starts, numpy.int64)[column.offset : column.offset + count + 1]
    source = numpy.frombuffer(data, numpy.uint8) if data is not None and data.size else numpy.zeros(1, numpy.uint8)
    lengths = numpy.diff(offsets)
    signs = _signs(source, offsets, lengths)
    _refuse_wide(source, offsets, lengths, signs)
    within = numpy.arange(_DECIMAL_BYTES)
    places = offsets[1:, None] - 1 - within  # the lowest byte first, as Arrow has it
    is_there = within < lengths[:, None]
    whole = numpy.where(is_there, source[numpy.where(is_there, places, 0)], signs[:, None])
    validity = column.is_valid().cast(pyarrow.bool_()).buffers()[1] if column.null_count else None
    buffers = [validity, pyarrow.py_buffer(numpy.ascontiguousarray(whole, numpy.uint8).tobytes())]
    return pyarrow.Array.from_buffers(pyarrow.decimal128(_MOST_DIGITS, scale), count, buffers)


def _signs(
    source: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64]
) -> NDArray[np.uint8]:
    """Return the byte that fills each number up: 255 for negative ones."""
    import numpy

    first = source[numpy.where(lengths > 0, offsets[:-1], 0)]
    return numpy.where((lengths > 0) & (first >= 0x80), 0xFF, 0).astype(numpy.uint8)


def _refuse_wide(
    source: NDArray[np.uint8], offsets: NDArray[np.int64], lengths: NDArray[np.int64], signs: NDArray[np.uint8]
) -> None:
    import numpy

    for row in numpy.flatnonzero(lengths > _DECIMAL_BYTES).tolist():
        extra = source[offsets[row] : offsets[row + 1] - _DECIMAL_BYTES]
        lowest = source[offsets[row + 1] - _DECIMAL_BYTES]
        if (extra != signs[row]).any() or (lowest >= 0x80) != (signs[row] == 0xFF):
            raise ValueError(f"a decimal has {lengths[row]} bytes, which are more than {_MOST_DIGITS} digits")


__all__ = ["check_fit", "fitted"]
