"""Columns as JSON text, written by columns: no Python for a row."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any

import pyarrow
from pyarrow import compute as pc

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.float_columns import float_strings
from rayflink.common.serialization import BulkWriter, BulkWriterFactory

from ..plan.logical import Schema
from ..types import DataType, IntType, Root
from .column_strings import decimal_strings, time_strings, timestamp_strings


@dataclass(frozen=True)
class JsonColumns(BulkWriterFactory):
    """One object a line, as Flink's JSON format writes rows.

    Args:
        schema: of the rows.
        iso: times with a T instead of a blank.
        ignore_null_fields: fields that are NULL are left out.
        plain_decimals: decimals have all their digits, and no exponent.
    """

    schema: Schema
    iso: bool = False
    ignore_null_fields: bool = False
    plain_decimals: bool = False

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _JsonWriter(file, self)

    def strings(self, data: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return the object of each row."""
        columns = [self._strings(column, field.type) for column, field in zip(data.columns, self.schema, strict=True)]
        return self._objects([field.name for field in self.schema], columns, data.num_rows)

    def _objects(self, names: list[str], columns: list[pyarrow.Array], rows: int) -> pyarrow.Array:
        """Objects of columns of JSON, whose nulls stand for NULL."""
        if not names:
            return pyarrow.array(["{}"] * rows, pyarrow.string())
        parts: list[Any] = []
        for index, (name, column) in enumerate(zip(names, columns, strict=True)):
            key = f"{json.dumps(name, ensure_ascii=False)}:"
            if self.ignore_null_fields:
                parts.append(pc.fill_null(pc.binary_join_element_wise(key, column, ",", ""), ""))
            else:
                parts += [f"{',' if index else '{'}{key}", pc.fill_null(column, "null")]
        if not self.ignore_null_fields:
            return pc.binary_join_element_wise(*parts, "}", "")
        inner = pc.utf8_rtrim(pc.binary_join_element_wise(*parts, ""), ",")
        return pc.binary_join_element_wise("{", inner, "}", "")

    def _strings(self, column: pyarrow.Array, kind: DataType) -> pyarrow.Array:
        """Return a column as JSON; its nulls stay."""
        root = kind.root
        if root is Root.ARRAY:
            return self._lists(column, self._strings(column.flatten(), kind.items[0]), "[]")
        if root in (Root.MAP, Root.MULTISET):
            return self._maps(column, kind)
        if root is Root.ROW:
            inner = [
                self._strings(values, field.type) for values, field in zip(column.flatten(), kind.fields, strict=True)
            ]
            objects = self._objects([field.name for field in kind.fields], inner, len(column))
            return pc.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.string()), objects)
        return self._scalars(column, kind)

    def _scalars(self, column: pyarrow.Array, kind: DataType) -> pyarrow.Array:
        root = kind.root
        if kind.is_text:
            return quoted(column)
        if root is Root.BOOLEAN:
            return column.cast(pyarrow.string())
        if kind.is_approximate:
            return pc.if_else(pc.is_finite(column), float_strings(column), _in_quotes(float_strings(column)))
        if root is Root.DECIMAL:
            return decimal_strings(column, self.plain_decimals)
        if kind.is_bytes:
            return _in_quotes(_base64(column))
        if root is Root.INTERVAL_DAY_TIME:
            return column.cast(pyarrow.int64()).cast(pyarrow.string())
        if kind.is_timestamp:
            return _in_quotes(timestamp_strings(column, self.iso))
        if root is Root.TIME:
            return _in_quotes(time_strings(column))
        strings = column.cast(pyarrow.string())
        return _in_quotes(strings) if root is Root.DATE else strings

    def _lists(self, column: pyarrow.Array, elements: pyarrow.Array, marks: str) -> pyarrow.Array:
        """Elements as JSON, joined by the lists or maps they are in."""
        sizes = pc.fill_null(_sizes(column), 0)
        starts = pyarrow.concat_arrays(
            [pyarrow.array([0], pyarrow.int32()), pc.cumulative_sum(sizes).cast(pyarrow.int32())]
        )
        lists = pyarrow.ListArray.from_arrays(starts, pc.fill_null(elements, "null"))
        arrays = pc.binary_join_element_wise(marks[0], pc.binary_join(lists, ","), marks[1], "")
        return pc.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.string()), arrays)

    def _maps(self, column: pyarrow.Array, kind: DataType) -> pyarrow.Array:
        whole = kind.items[1] if len(kind.items) > 1 else IntType()
        keys, items = _entries(column)
        pairs = [self._strings(keys, kind.items[0]), pc.fill_null(self._strings(items, whole), "null")]
        return self._lists(column, pc.binary_join_element_wise(*pairs, ":"), "{}")


class _JsonWriter(BulkWriter):
    def __init__(self, file: IO[bytes], form: JsonColumns) -> None:
        self._file, self._form = file, form

    def add_element(self, element: Any) -> None:
        raise TypeError(f"found {element!r}; rows of a table are columns")

    def add_batch(self, batch: Batch) -> None:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        lines = pc.binary_join_element_wise(self._form.strings(batch.data), "\n", "")
        whole = pc.binary_join(pyarrow.ListArray.from_arrays([0, len(lines)], lines), "")
        self._file.write(whole.buffers()[2])

    def finish(self) -> None:
        """Every batch is in the file already."""


def quoted(strings: pyarrow.Array) -> pyarrow.Array:
    """Quote strings as JSON does; nulls stay.

    >>> quoted(pyarrow.array(["tea", 'a "b"', None])).to_pylist()
    ['"tea"', '"a \\\\"b\\\\""', None]
    """
    strings = strings.cast(pyarrow.string())
    if pc.any(pc.match_substring_regex(strings, r'["\\\\\x00-\x1f]')).as_py():
        strings = pc.replace_substring(pc.replace_substring(strings, "\\", "\\\\"), '"', '\\"')
        if pc.any(pc.match_substring_regex(strings, r"[\x00-\x1f]")).as_py():
            for code in range(0x20):
                strings = pc.replace_substring(strings, chr(code), _CONTROLS.get(code, f"\\u{code:04X}"))
    return _in_quotes(strings)


_CONTROLS = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}


def _in_quotes(strings: pyarrow.Array) -> pyarrow.Array:
    return pc.binary_join_element_wise('"', strings, '"', "")


def _base64(column: pyarrow.Array) -> pyarrow.Array:
    import polars

    series: Any = polars.from_arrow(column.cast(pyarrow.binary()))
    return series.bin.encode("base64").to_arrow().cast(pyarrow.string())


def _sizes(column: pyarrow.Array) -> pyarrow.Array:
    """Return the number of elements of each list or map."""
    if not pyarrow.types.is_map(column.type):
        return pc.list_value_length(column)
    offsets = column.offsets
    sizes = pc.subtract(offsets.slice(1), offsets.slice(0, len(offsets) - 1))
    return pc.if_else(column.is_null(), pyarrow.scalar(0, pyarrow.int32()), sizes)


def _entries(column: pyarrow.MapArray) -> tuple[pyarrow.Array, pyarrow.Array]:
    """Keys and values of the maps that are not null, one behind the other."""
    maps = column.drop_null() if column.null_count else column
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    return maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
