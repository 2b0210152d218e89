"""Rows of numbers as records: the columns of a row beside one another, so that a row is one line of the cache.

A column of another type is not in the record, which has the number of the row that has it in a heap (`heap_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from ..aggregates.reductions import has_numpy_type, to_arrow, to_numpy
from .frame_memory import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Records = NDArray[np.void]
    Truths = NDArray[np.bool_]

PRINT, GROUP, ACCESSED, KEY_HEAP, VALUE_HEAP = "print", "group", "accessed", "key_heap", "value_heap"
"""Fields: fingerprint, key group, time of the last access, and rows in the heaps of keys and values."""
FLAGS = "flags0"
"""Field whose lowest bit says that the record is in use."""
IN_USE = 1
_FLAGS_A_FIELD = 8


class RecordLayout:
    """Places the columns of a row in a record.

    Args:
        keys: types of the key's columns, in the form in which they are compared.
        values: types of the other columns.
        has_time: whether a record has the time of its last access.
    """

    def __init__(self, keys: Sequence[pa.DataType], values: Sequence[pa.DataType], has_time: bool) -> None:
        self._kinds = [*keys, *values]
        self.key_types = list(keys)
        self._width = len(keys)
        fixed = [number for number, kind in enumerate(self._kinds) if is_fixed(kind)]
        self.heap_keys = [number for number in range(len(keys)) if number not in fixed]
        """Columns of the key that are in a heap."""
        self.heap_values = [number - len(keys) for number in range(len(keys), len(self._kinds)) if number not in fixed]
        """The same of the values."""
        self._fixed = fixed
        self._bits = {number: divmod(place + 1, _FLAGS_A_FIELD) for place, number in enumerate(fixed)}
        self._flags = [f"flags{number}" for number in range(len(fixed) // _FLAGS_A_FIELD + 1)]
        self._key_masks = [
            sum(1 << bit for number, (field, bit) in self._bits.items() if field == which and number < len(keys))
            for which in range(len(self._flags))
        ]
        self.dtype = self._placed(has_time)

    def _placed(self, has_time: bool) -> np.dtype[np.void]:
        """Return the type of a record: the widest fields come first, so that each is aligned."""
        fields: list[tuple[str, Any]] = [(_field(number), _number_type(self._kinds[number])) for number in self._fixed]
        fields += [(KEY_HEAP, np.dtype(np.int64))] if self.heap_keys else []
        fields += [(VALUE_HEAP, np.dtype(np.int64))] if self.heap_values else []
        fields += [(ACCESSED, np.dtype(np.int64))] if has_time else []
        fields += [(PRINT, np.dtype(np.uint32)), (GROUP, np.dtype(np.uint16))]
        fields += [(flags, np.dtype(np.uint8)) for flags in self._flags]
        fields.sort(key=lambda field: -int(field[1].itemsize))
        ends = np.cumsum([dtype.itemsize for _, dtype in fields]).tolist()
        return np.dtype({
            "names": [name for name, _ in fields],
            "formats": [dtype for _, dtype in fields],
            "offsets": [0, *ends[:-1]],
            "itemsize": -(-ends[-1] // 8) * 8,
        })  # fmt: skip

    def value_field(self, number: int) -> str:
        """Return the name of the field that has a column of the values, which is in the record."""
        return _field(self._width + number)

    def keys(self, columns: Columns) -> Records:
        """Return new records with these keys, in use; their other fields are 0."""
        records: Records = np.zeros(len(columns[0]), dtype=self.dtype)
        records[FLAGS] = IN_USE
        self._write(records, range(self._width), columns)
        return records

    def put_values(self, records: Records, columns: Columns) -> None:
        """Replace the values in records."""
        for flags, mask in zip(self._flags, self._key_masks, strict=True):
            records[flags] &= np.uint8(mask | IN_USE if flags == FLAGS else mask)
        self._write(records, range(self._width, len(self._kinds)), columns)

    def _write(self, records: Records, numbers: range, columns: Columns) -> None:
        for number, column in zip(numbers, columns, strict=True):
            if number in self._bits:
                field, bit = self._bits[number]
                numbers_, valid = _numbers(column)
                records[_field(number)] = numbers_
                records[self._flags[field]] |= (
                    np.uint8(1 << bit) if valid is None else valid.astype(np.uint8) << np.uint8(bit)
                )

    def is_same_key(self, records: Records, others: Records) -> Truths:
        """Return whether two records have equal keys, as far as these are in the records: bool[n]."""
        same: Truths = np.ones(len(records), dtype=np.bool_)
        for number in self._fixed:
            if number < self._width:
                equal = records[_field(number)] == others[_field(number)]
                same &= equal if equal.ndim == 1 else equal.all(axis=1)
        for flags, mask in zip(self._flags, self._key_masks, strict=True):
            if mask:
                same &= ((records[flags] ^ others[flags]) & np.uint8(mask)) == 0
        return same

    def key_columns(self, records: Records) -> list[pa.Array | None]:
        """Return the columns of the key; None for those in the heap."""
        return [self._column(records, number) for number in range(self._width)]

    def value_columns(self, records: Records) -> list[pa.Array | None]:
        """Return the columns of the values; None for those in the heap."""
        return [self._column(records, number) for number in range(self._width, len(self._kinds))]

    def _column(self, records: Records, number: int) -> pa.Array | None:
        if number not in self._bits:
            return None
        field, bit = self._bits[number]
        valid = (records[self._flags[field]] & np.uint8(1 << bit)) != 0
        kind, numbers = self._kinds[number], np.ascontiguousarray(records[_field(number)])
        if numbers.ndim == 1:
            return to_arrow(numbers, kind, valid)
        bits = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(kind, len(numbers), [bits, pa.py_buffer(numbers)])


def is_fixed(kind: pa.DataType) -> bool:
    """Return whether values of a type have a place in a record."""
    if types.is_decimal128(kind):
        return True
    return has_numpy_type(kind) and (types.is_boolean(kind) or kind.bit_width <= 64) and not types.is_interval(kind)


def _field(number: int) -> str:
    return f"c{number}"


def _number_type(kind: pa.DataType) -> np.dtype[Any]:
    if types.is_decimal128(kind):
        return np.dtype((np.int64, (2,)))
    return to_numpy(pa.array([], kind)).dtype


def _numbers(column: pa.Array) -> tuple[NDArray[Any], Truths | None]:
    """Return the numbers of a column, 0 in place of a null, and where there are values; None: everywhere."""
    kind = column.type
    if types.is_decimal128(kind):
        numbers = np.frombuffer(column.buffers()[1] or b"", np.int64, 2 * len(column), 16 * column.offset)
        numbers = numbers.reshape(-1, 2)
    else:
        numbers = to_numpy(column)
    if not column.null_count:
        return numbers, None
    valid: Truths = column.is_valid().to_numpy(zero_copy_only=False)
    is_null = ~valid
    numbers = numbers.copy()
    numbers[is_null] = 0
    return numbers, valid


__all__ = [
    "ACCESSED", "FLAGS", "GROUP", "IN_USE", "KEY_HEAP", "PRINT", "VALUE_HEAP", "RecordLayout", "is_fixed",
]  # fmt: skip
