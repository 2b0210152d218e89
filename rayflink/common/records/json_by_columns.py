"""Columns as JSON objects, with the results of `json_strings` and no Python call a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..data_types.basic_types import BasicType, BasicTypeInfo
from ..data_types.composite_types import ElementsTypeInfo, MapTypeInfo, PrimitiveArrayTypeInfo, RowTypeInfo
from ..data_types.type_base import TypeInformation
from .csv_by_columns import REAL, WHOLE, has_types
from .float_columns import float_strings
from .json_strings import dumped

if TYPE_CHECKING:
    import pyarrow

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


class JsonWriter:
    """Writes columns as objects, one a row; of truth values, numbers, strings, and lists and rows of those.

    Args:
        type_info: of the rows.
    """

    def __init__(self, type_info: RowTypeInfo) -> None:
        self._type_info, self._is_possible = type_info, _is_plain(type_info)

    def objects(self, data: pyarrow.RecordBatch) -> pyarrow.Array | None:
        """Return the object of each row; None: they have to be written one by one."""
        if not self._is_possible or not has_types(data, self._type_info):
            return None
        return _objects(data.columns, self._type_info, data.num_rows)


def _is_plain(kind: TypeInformation) -> bool:
    if isinstance(kind, BasicTypeInfo):
        return kind.basic_type in (*WHOLE, *REAL, BasicType.BOOLEAN, BasicType.STRING)
    if isinstance(kind, RowTypeInfo):
        return bool(kind.get_field_types()) and all(map(_is_plain, kind.get_field_types()))
    is_list = isinstance(kind, ElementsTypeInfo) and not isinstance(kind, PrimitiveArrayTypeInfo | MapTypeInfo)
    return is_list and _is_plain(kind.element_type)  # type: ignore[attr-defined]


def _objects(columns: Sequence[pyarrow.Array], kind: RowTypeInfo, rows: int) -> pyarrow.Array:
    from pyarrow import compute

    parts: list[object] = []
    names, kinds = kind.get_field_names(), kind.get_field_types()
    for index, (name, inner, column) in enumerate(zip(names, kinds, columns, strict=True)):
        parts += [f"{',' if index else '{'}{dumped(name)}:", compute.fill_null(_strings(column, inner), "null")]
    return compute.binary_join_element_wise(*parts, "}", "")


def _strings(column: pyarrow.Array, kind: TypeInformation) -> pyarrow.Array:
    """Return a column as JSON; its nulls stay."""
    import pyarrow
    from pyarrow import compute

    if isinstance(kind, RowTypeInfo):
        objects = _objects(column.flatten(), kind, len(column))
        return compute.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.string()), objects)
    if isinstance(kind, ElementsTypeInfo):
        return _lists(column, _strings(column.flatten(), kind.element_type))
    assert isinstance(kind, BasicTypeInfo), "others are not plain"
    if kind.basic_type is BasicType.STRING:
        return _quoted(column)
    if kind.basic_type not in REAL:
        return column.cast(pyarrow.string())
    strings = float_strings(column)
    return compute.if_else(compute.is_finite(column), strings, compute.binary_join_element_wise('"', strings, '"', ""))


def _lists(column: pyarrow.ListArray, elements: pyarrow.Array) -> pyarrow.Array:
    import numpy
    import pyarrow
    from pyarrow import compute

    sizes = compute.fill_null(compute.list_value_length(column), 0)
    starts = numpy.zeros(len(column) + 1, numpy.int32)
    numpy.cumsum(sizes.to_numpy(zero_copy_only=False), out=starts[1:])
    lists = pyarrow.ListArray.from_arrays(pyarrow.array(starts), compute.fill_null(elements, "null"))
    arrays = compute.binary_join_element_wise("[", compute.binary_join(lists, ","), "]", "")
    return compute.if_else(column.is_null(), pyarrow.scalar(None, pyarrow.string()), arrays)


def _quoted(strings: pyarrow.Array) -> pyarrow.Array:
    """Return strings in quotes, with the escapes of Python's `json`; nulls stay."""
    from pyarrow import compute

    if compute.any(compute.match_substring_regex(strings, r'["\\\x00-\x1f]')).as_py():
        for character, escape in _ESCAPES.items():  # the backslash comes first
            strings = compute.replace_substring(strings, character, escape)
        if compute.any(compute.match_substring_regex(strings, r"[\x00-\x1f]")).as_py():
            for code in range(0x20):
                strings = compute.replace_substring(strings, chr(code), f"\\u{code:04x}")
    return compute.binary_join_element_wise('"', strings, '"', "")


__all__ = ["JsonWriter"]
