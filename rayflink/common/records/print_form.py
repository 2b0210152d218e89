"""The string of a record as Flink prints it, which depends on the type the program declared.

Without a type it is Python's `str`. A Row of a row type is its kind and the `str` of its fields. Values of all other
types are written as Java writes them: `(hi,0,5,null)`, `[1, 2]`, `{a=1.0}`, `1.0E10`. Source: apache/flink
DataStream._align_output_type in Python; Java's Tuple, Row and Double.toString.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rayflink.user_types import UserRecord, UserValue

from ..data_types.basic_types import BasicType, BasicTypeInfo, PickledBytesTypeInfo, TimestampTypeInfo, TimeTypeInfo
from ..data_types.composite_types import (
    ElementsTypeInfo,
    MapTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
)
from ..data_types.type_base import TypeInformation
from ..types import Row
from .time_strings import instant_text, java_timestamp_text, time_text

_PLAIN = range(-3, 7)
"""Powers of ten of numbers that Java writes without an exponent."""


class PrintForm:
    """Gives the text of the records of a stream.

    >>> from rayflink.common.typeinfo import Types
    >>> PrintForm(Types.TUPLE([Types.STRING(), Types.DOUBLE()]))(("hi", 1e7))
    '(hi,1.0E7)'
    >>> PrintForm(None)(("hi", 1e7))
    "('hi', 10000000.0)"

    Args:
        type_info: the declared type of the records; None: none was declared.
    """

    def __init__(self, type_info: TypeInformation | None) -> None:
        self._type_info = type_info
        self._text = _form_of(type_info)

    def __call__(self, value: UserValue) -> str:
        try:
            return self._text(value)
        except (TypeError, ValueError, AttributeError):
            if self._type_info is not None:
                self._type_info.check(value, "record to print")  # says what it is, where it is not of the type
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        return PrintForm, (self._type_info,)


def _form_of(type_info: TypeInformation | None) -> Callable[[Any], str]:
    if type_info is None or isinstance(type_info, PickledBytesTypeInfo):
        return str
    if isinstance(type_info, RowTypeInfo):
        return lambda row: type_info.text_of(row) or _row_on_a_line(row)
    return lambda value: java_text(type_info, value)


def _row_on_a_line(row: UserRecord) -> str:
    return f"{row.get_row_kind()}[{','.join(map(str, row))}]" if isinstance(row, Row) else str(row)


def java_text(type_info: TypeInformation, value: UserValue) -> str:
    """Return the value as Java's string conversion writes one of that type."""
    if value is None:
        return "null"
    if isinstance(type_info, TupleTypeInfo):
        return f"({','.join(_fields(type_info, value))})"
    if isinstance(type_info, RowTypeInfo):
        own = type_info.text_of(value)
        if own is not None:
            return own
        return f"{value.get_row_kind()}[{', '.join(_fields(type_info, value))}]"
    if isinstance(type_info, PrimitiveArrayTypeInfo) and isinstance(value, bytes):
        return str([byte - 256 if byte > 127 else byte for byte in value])
    if isinstance(type_info, ElementsTypeInfo):
        element = type_info.element_type
        return f"[{', '.join(java_text(element, item) for item in value)}]"
    if isinstance(type_info, MapTypeInfo):
        keys, values = type_info.key_type, type_info.value_type
        return f"{{{', '.join(f'{java_text(keys, k)}={java_text(values, v)}' for k, v in value.items())}}}"
    if isinstance(type_info, BasicTypeInfo):
        return _basic_text(type_info.basic_type, value)
    if isinstance(type_info, TimestampTypeInfo):
        return java_timestamp_text(value)
    if isinstance(type_info, TimeTypeInfo):
        return time_text(value.replace(microsecond=0))  # java.sql.Time shows whole seconds
    return str(value)


def _fields(type_info: TupleTypeInfo | RowTypeInfo, record: UserRecord) -> list[str]:
    return [java_text(field, item) for field, item in zip(type_info.get_field_types(), record, strict=True)]


def _basic_text(kind: BasicType, value: UserValue) -> str:
    if kind is BasicType.BOOLEAN:
        return "true" if value else "false"
    if kind is BasicType.FLOAT:
        return single_text(value)
    if kind is BasicType.DOUBLE:
        return double_text(value)
    if kind is BasicType.INSTANT:
        return instant_text(value)
    return str(value)


def number_text(value: float, type_info: TypeInformation) -> str:
    """Return a floating point number as Java writes one of the type: a float where that is FLOAT, else a double."""
    is_single = isinstance(type_info, BasicTypeInfo) and type_info.basic_type is BasicType.FLOAT
    return single_text(value) if is_single else double_text(value)


def single_text(value: float) -> str:
    """Return a number of 32 bits as Java writes a float, with the fewest digits that stand for it.

    >>> single_text(1.100000023841858)
    '1.1'
    """
    return floating_text(np.float32(value))


def double_text(value: float) -> str:
    """Return a number of 64 bits as Java writes a double.

    >>> double_text(1e10), double_text(1.5)
    ('1.0E10', '1.5')
    """
    return repr(float(value)) if 1e-3 <= abs(value) < 1e7 else floating_text(np.float64(value))


def floating_text(number: np.floating[Any]) -> str:
    """Return a floating point number as Java writes it."""
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if not number:
        return "-0.0" if np.signbit(number) else "0.0"
    scientific = np.format_float_scientific(number, unique=True, trim="0", exp_digits=1)
    mantissa, power = scientific.split("e")
    if int(power) in _PLAIN:
        return np.format_float_positional(number, unique=True, trim="0")
    return f"{mantissa}E{int(power)}"


__all__ = ["PrintForm", "double_text", "floating_text", "java_text", "number_text", "single_text"]
