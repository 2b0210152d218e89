"""Types of single values: numbers, text, booleans, dates and times, and pickled objects."""

from __future__ import annotations

import datetime
import numbers
import operator
from array import array
from collections.abc import Callable, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple

from rayflink.user_types import UserValue

from ..errors import shorten
from ..time import Instant
from .type_base import Fault, TypeInformation

__all__ = [
    "BasicType",
    "BasicTypeInfo",
    "DateTypeInfo",
    "InstantTypeInfo",
    "LocalTimeTypeInfo",
    "PickledBytesTypeInfo",
    "SqlTimeTypeInfo",
    "TimeTypeInfo",
    "TimestampTypeInfo",
]


class BasicType(Enum):
    """The basic types; the value is how a type prints."""

    STRING = "String"
    BYTE = "Byte"
    BOOLEAN = "Boolean"
    SHORT = "Short"
    INT = "Integer"
    LONG = "Long"
    FLOAT = "Float"
    DOUBLE = "Double"
    CHAR = "Char"
    BIG_INT = "BigInteger"
    BIG_DEC = "BigDecimal"
    INSTANT = "Instant"
    VOID = "Void"


class _Rule(NamedTuple):
    """The rule by which one basic type takes values."""

    exact: type
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any]
    python_form: str
    none: bool
    bits: int = 0


def _is_real(value: UserValue) -> bool:
    try:
        return isinstance(value, numbers.Real) and float(value) is not None
    except OverflowError:
        return False


def _is_boolean(value: UserValue) -> bool:
    kind = type(value)
    return kind is bool or (kind.__module__ == "numpy" and kind.__name__ in ("bool", "bool_"))


def _to_float32(value: UserValue) -> float:
    return float(array("f", (value,))[0])


def _whole(bits: int) -> _Rule:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1

    def accepts(value: UserValue) -> bool:
        return isinstance(value, numbers.Integral) and low <= value <= high

    return _Rule(int, accepts, operator.index, f"an int in [-2**{bits - 1}, 2**{bits - 1})", False, bits)


def _is_whole(value: UserValue) -> bool:
    return isinstance(value, numbers.Integral)


def _is_text(value: UserValue) -> bool:
    return isinstance(value, str)


_RULES: dict[BasicType, _Rule] = {
    BasicType.STRING: _Rule(str, _is_text, str.__str__, "a str", True),
    BasicType.CHAR: _Rule(str, lambda v: _is_text(v) and len(v) == 1, str.__str__, "a str of one character", False),
    BasicType.BYTE: _whole(8),
    BasicType.SHORT: _whole(16),
    BasicType.INT: _whole(32),
    BasicType.LONG: _whole(64),
    BasicType.BIG_INT: _Rule(int, _is_whole, operator.index, "an int", True),
    BasicType.BOOLEAN: _Rule(bool, _is_boolean, bool, "a bool", False),
    BasicType.FLOAT: _Rule(float, _is_real, _to_float32, "a float", False),
    BasicType.DOUBLE: _Rule(float, _is_real, float, "a float", False),
    BasicType.BIG_DEC: _Rule(
        Decimal, lambda v: isinstance(v, Decimal) or _is_whole(v),
        lambda v: v if isinstance(v, Decimal) else Decimal(int(v)), "a decimal.Decimal", True,
    ),
    BasicType.INSTANT: _Rule(Instant, lambda v: isinstance(v, Instant), lambda v: v, "an Instant", True),
    BasicType.VOID: _Rule(type(None), lambda v: v is None, lambda v: v, "None", True),
}  # fmt: skip


class BasicTypeInfo(TypeInformation):
    """A number, text, boolean, decimal or instant."""

    def __init__(self, basic_type: BasicType) -> None:
        self.basic_type = basic_type
        self._rule = _RULES[basic_type]

    @property
    def accepts_none(self) -> bool:  # type: ignore[override]  # a property here, as it depends on the basic type
        """Return whether None is a value of the type itself."""
        return self._rule.none

    @property
    def python_form(self) -> str:  # type: ignore[override]
        """Return a description of what to pass, for error messages."""
        return self._rule.python_form

    def _parameters(self) -> tuple[Any, ...]:
        return (self.basic_type,)

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        if self._rule.accepts(value):
            return None
        if self._rule.bits and isinstance(value, numbers.Integral):
            wider = "Types.LONG() or Types.BIG_INT()" if self._rule.bits < 64 else "Types.BIG_INT()"
            remedy = f"give {self.python_form}, or declare {wider}"
            return Fault(path, f"int {shorten(value, 80)}, which is out of range", str(self), remedy)
        return self._mismatch(value, path)

    def _column_fits(self, values: Sequence[Any]) -> bool:
        rule = self._rule
        if not set(map(type, values)) <= {rule.exact}:
            return False
        if rule.bits and values:
            limit = 1 << (rule.bits - 1)
            return bool(-limit <= min(values) and max(values) < limit)
        return self.basic_type is not BasicType.CHAR or set(map(len, values)) <= {1}

    def _convert_value(self, value: UserValue) -> Any:
        exact = type(value) is self._rule.exact and self.basic_type is not BasicType.FLOAT
        return value if exact else self._rule.convert(value)

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        kinds = set(map(type, values))
        if self.basic_type is BasicType.FLOAT:
            return array("f", values).tolist() if kinds <= {float, int} else list(map(self.convert_field, values))
        return values if kinds <= {self._rule.exact, type(None)} else list(map(self.convert_field, values))

    def in_state(self) -> BasicTypeInfo:
        return _FloatInState(self.basic_type) if self.basic_type is BasicType.FLOAT else self

    def __repr__(self) -> str:
        return str(self.basic_type.value)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.basic_type,)


class _FloatInState(BasicTypeInfo):
    """FLOAT with the precision of a Python float."""

    def _convert_value(self, value: UserValue) -> Any:
        return float(value)

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        return values if set(map(type, values)) <= {float} else list(map(self.convert_field, values))


def _shortcut(basic_type: BasicType) -> staticmethod[[], BasicTypeInfo]:
    def make() -> BasicTypeInfo:
        return InstantTypeInfo(basic_type) if basic_type is BasicType.INSTANT else BasicTypeInfo(basic_type)

    make.__name__ = f"{basic_type.name}_TYPE_INFO"
    make.__doc__ = f"The type that prints as {basic_type.value}."
    return staticmethod(make)


for _basic_type in BasicType:
    setattr(BasicTypeInfo, f"{_basic_type.name}_TYPE_INFO", _shortcut(_basic_type))


class InstantTypeInfo(BasicTypeInfo):
    """A point in time, as `rayflink.common.time.Instant`."""

    def __init__(self, basic_type: BasicType = BasicType.INSTANT) -> None:
        super().__init__(basic_type)


class _CalendarTypeInfo(TypeInformation):
    """A class of the datetime module."""

    _exact: type

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        return None if isinstance(value, self._exact) else self._mismatch(value, path)

    def _column_fits(self, values: Sequence[Any]) -> bool:
        return set(map(type, values)) <= {self._exact}

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        exact = set(map(type, values)) <= {self._exact, type(None)}
        return values if exact else super()._convert_column(values)


class DateTypeInfo(_CalendarTypeInfo):
    """A calendar date; a datetime becomes its date."""

    _exact = datetime.date
    python_form = "a datetime.date"

    def _convert_value(self, value: UserValue) -> Any:
        return value.date() if isinstance(value, datetime.datetime) else value


class TimeTypeInfo(_CalendarTypeInfo):
    """A time of day."""

    _exact = datetime.time
    python_form = "a datetime.time"


class TimestampTypeInfo(_CalendarTypeInfo):
    """A date with a time of day."""

    _exact = datetime.datetime
    python_form = "a datetime.datetime"


class SqlTimeTypeInfo:
    """Shortcuts for the types of SQL dates and times."""

    @staticmethod
    def DATE() -> DateTypeInfo:
        """Return the type of a date."""
        return DateTypeInfo()

    @staticmethod
    def TIME() -> TimeTypeInfo:
        """Return the type of a time of day."""
        return TimeTypeInfo()

    @staticmethod
    def TIMESTAMP() -> TimestampTypeInfo:
        """Return the type of a timestamp."""
        return TimestampTypeInfo()


class LocalTimeTypeInfo(_CalendarTypeInfo):
    """A date, time or timestamp without a time zone."""

    class TimeType(Enum):
        """The one of the three types that it is."""

        LOCAL_DATE = 0
        LOCAL_TIME = 1
        LOCAL_DATE_TIME = 2

    def __init__(self, time_type: TimeType) -> None:
        self._time_type = time_type
        self._exact = (datetime.date, datetime.time, datetime.datetime)[time_type.value]

    def _parameters(self) -> tuple[Any, ...]:
        return (self._time_type,)

    def __repr__(self) -> str:
        return f"LocalTimeTypeInfo<{self._time_type.name}>"


class PickledBytesTypeInfo(TypeInformation):
    """Any Python object that pickles; values are neither checked nor changed."""

    def _fault(self, value: UserValue, path: str) -> Fault | None:
        return None

    def _column_fits(self, values: Sequence[Any]) -> bool:
        return True

    def _convert_column(self, values: Sequence[Any]) -> Sequence[Any]:
        return values

    def __repr__(self) -> str:
        return "PickledByteArrayTypeInfo"
