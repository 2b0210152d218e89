"""Values in the places of question marks: SQL of Flink has no parameters, so they are written as literals."""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import cast

from rayflink.common.types import Row
from rayflink.table.definitions import quote_string

from .exceptions import InterfaceError, ProgrammingError

__all__ = ["literal", "with_parameters"]

_PARTS = re.compile(
    r"""'(?:[^']|'')*'      # a string
    | `(?:[^`]|``)*`        # a name
    | "(?:[^"]|"")*"
    | --[^\n]*              # comments
    | /\*.*?\*/
    | \?""",
    re.VERBOSE | re.DOTALL,
)
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_MOST_DIGITS = 38
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)
_MILLISECOND, _MICROSECOND = dt.timedelta(milliseconds=1), dt.timedelta(microseconds=1)


def with_parameters(statement: str, parameters: Sequence[object]) -> str:
    """Return a statement with values in the places of its question marks; those in strings and comments stay.

    >>> with_parameters("SELECT '?' FROM t WHERE name = ?", ["it's"])
    "SELECT '?' FROM t WHERE name = 'it''s'"

    Raises:
        ProgrammingError: there are more or fewer values than question marks.
        InterfaceError: the statement is no string, or a value has no form in SQL.
    """
    if not isinstance(statement, str):
        raise InterfaceError(f"found a statement of type {type(statement).__name__}, expected a string")
    if isinstance(parameters, (str, bytes, Mapping)) or not isinstance(parameters, Sequence):
        raise InterfaceError(
            f"found parameters of type {type(parameters).__name__}, expected a list or tuple; "
            "write ? in the statement for each and pass them in their order"
        )
    marks = [match.start() for match in _PARTS.finditer(statement) if match[0] == "?"]
    if len(marks) != len(parameters):
        raise ProgrammingError(f"found {len(marks)} question marks and {len(parameters)} values; give one for each")
    pieces, end = [], 0
    for mark, value in zip(marks, parameters, strict=True):
        written = literal(value)
        is_comment = written.startswith("-") and statement[:mark].endswith("-")  # "5 -?" with -1
        pieces += [statement[end:mark], f" {written}" if is_comment else written]
        end = mark + 1
    return "".join([*pieces, statement[end:]])


def literal(value: object) -> str:
    """Return a value as a literal of SQL.

    >>> literal(3), literal(None), literal(dt.date(2024, 1, 31)), literal([1.5, 2.0]), literal({"a": True})
    ('3', 'NULL', "DATE '2024-01-31'", 'ARRAY[1.5E0, 2.0E0]', "MAP['a', TRUE]")

    Args:
        value: None, bool, int (64 bits, larger ones up to 38 digits are DECIMAL), float, Decimal, str, bytes, date,
            time, datetime (TIMESTAMP, or TIMESTAMP_LTZ where it has a time zone), timedelta, UUID (a string), Row,
            list, dict, or a scalar of NumPy.

    Raises:
        InterfaceError: it is something else, or has no form in SQL.
    """
    for kinds, write in _FORMS:
        if isinstance(value, kinds):
            return cast("Callable[[object], str]", write)(value)
    if hasattr(value, "item") and getattr(value, "shape", None) == ():  # a scalar of NumPy
        plain = value.item()
        if isinstance(plain, int) and not isinstance(plain, bool) and "64[" in str(getattr(value, "dtype", "")):
            remedy = "convert it with .astype('datetime64[us]') or .astype('timedelta64[us]')"
            raise InterfaceError(f"found {value!r}, a time that is no datetime or timedelta of Python; {remedy}")
        if type(plain) is not type(value):
            return literal(plain)
    raise InterfaceError(f"found a parameter of type {type(value).__name__}, which has no form in SQL: {value!r:.80}")


def _integer(value: int) -> str:
    if _LEAST <= value <= _MOST:
        return f"{value:d}"
    digits = _decimal(Decimal(value))
    return f"CAST('{digits}' AS DECIMAL({len(digits.lstrip('-'))}, 0))"


def _float(value: float) -> str:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return f"CAST('{name}' AS DOUBLE)"
    digits = repr(float(value))
    return digits if "e" in digits else f"{digits}E0"


def _decimal(value: Decimal) -> str:
    if not value.is_finite():
        raise InterfaceError(f"found the parameter {value!r}; a DECIMAL has no such value, pass a float")
    digits = f"{value:f}"
    if sum(digit.isdigit() for digit in digits.lstrip("-0.")) > _MOST_DIGITS:
        raise InterfaceError(f"found a number of more than {_MOST_DIGITS} digits, which no DECIMAL has: {digits:.60}")
    return digits


def _timestamp(value: dt.datetime) -> str:
    if value != value:  # NaT of pandas
        return "NULL"
    if value.tzinfo is None:
        return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
    since = value - _EPOCH
    if since % _MILLISECOND:
        return f"TO_TIMESTAMP_LTZ({since // _MICROSECOND}, 6)"
    return f"TO_TIMESTAMP_LTZ({since // _MILLISECOND}, 3)"


def _time(value: dt.time) -> str:
    if value.tzinfo is not None:
        raise InterfaceError(f"found a time with a time zone: {value!r}; SQL has none, pass a time without")
    return f"TIME '{value.isoformat()}'"


def _interval(value: dt.timedelta) -> str:
    sign, value = ("-", -value) if value < dt.timedelta(0) else ("", value)
    minutes, seconds = divmod(value.seconds, 60)
    parts = f"{value.days} {minutes // 60:02}:{minutes % 60:02}:{seconds:02}.{value.microseconds:06}"
    return f"INTERVAL {sign}'{parts}' DAY({max(2, len(str(value.days)))}) TO SECOND(6)"


def _array(value: Sequence[object]) -> str:
    return f"ARRAY[{', '.join(map(literal, value))}]"


def _map(value: Mapping[object, object]) -> str:
    return f"MAP[{', '.join(literal(part) for item in value.items() for part in item)}]"


_FORMS = (
    (type(None), lambda value: "NULL"),
    (bool, lambda value: str(value).upper()),
    (int, _integer),
    (float, _float),
    (Decimal, _decimal),
    (str, quote_string),
    ((bytes, bytearray, memoryview), lambda value: f"X'{bytes(value).hex()}'"),
    (dt.datetime, _timestamp),
    (dt.date, lambda value: f"DATE '{value.isoformat()}'"),
    (dt.time, _time),
    (dt.timedelta, _interval),
    (uuid.UUID, lambda value: f"'{value}'"),
    (Row, lambda value: f"ROW({', '.join(map(literal, value))})"),
    (Mapping, _map),
    ((list, tuple), _array),
)
