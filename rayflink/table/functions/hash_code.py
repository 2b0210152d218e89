"""HASH_CODE: a whole number of a value, by which rows are divided into buckets."""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
from pyarrow import types

from rayflink.state.keys.key_columns import hash_column, hash_columns
from rayflink.table.functions.declaring import INT, Columns, Kind, by_columns, takes
from rayflink.table.functions.encodings import hashes
from rayflink.table.plan.typed import Arguments
from rayflink.table.types import DataType, DataTypes, Root

_NESTED = (Root.ARRAY, Root.MAP, Root.MULTISET, Root.ROW, Root.RAW)
_WHOLE = {32: pyarrow.int32(), 64: pyarrow.int64()}


def has_hash(kind: DataType) -> bool:
    """Return whether HASH_CODE takes values of a type."""
    return kind.root not in _NESTED


_HASHED = Kind("a value that is no array, map or row", has_hash, DataTypes.STRING())


@hashes("HASH_CODE(value)", "A whole number from 0 on, the same for equal values and in every run; null has one, too.",
        takes(_HASHED, gives=INT, null=False))  # fmt: skip
@by_columns
def _hash_code(arguments: Arguments, columns: Columns) -> Any:
    codes = _hashes(columns[0]) & numpy.uint32(0x7FFF_FFFF)
    return pyarrow.array(codes.view(numpy.int32))


def _hashes(values: pyarrow.Array) -> Any:
    """uint32[n]; of decimals and times by their numbers, as which equal ones are the same."""
    kind = values.type
    if types.is_decimal(kind):
        return _of_decimals(values)
    if types.is_temporal(kind):
        return hash_column(values.view(_WHOLE[kind.bit_width]))
    return hash_column(values)


def _of_decimals(values: pyarrow.Array) -> Any:
    width = values.type.bit_width // 64
    data = values.buffers()[1]
    if data is None:
        return numpy.zeros(len(values), dtype=numpy.uint32)
    first = values.offset * width
    words = numpy.frombuffer(data, numpy.int64)[first : first + len(values) * width].reshape(len(values), width)
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return hash_columns(
        [pyarrow.array(numpy.ascontiguousarray(words[:, index]), mask=missing) for index in range(width)]
    )


__all__ = ["has_hash"]
