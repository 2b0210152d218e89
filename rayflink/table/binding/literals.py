"""Constants of a query's text."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal

from rayflink.common.errors import shorten

from ..errors import SqlError
from ..parsing.statements import Tree
from ..plan.typed import Literal, Place
from ..types import MOST_DIGITS, BinaryType, CharType, DataTypes

_MS = {"MILLISECOND": 1, "SECOND": 1_000, "MINUTE": 60_000, "HOUR": 3_600_000, "DAY": 86_400_000, "WEEK": 604_800_000}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_SPANS = {
    ("DAY", "HOUR"): r"(?P<DAY>\d+) (?P<HOUR>\d+)",
    ("DAY", "MINUTE"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("DAY", "SECOND"): r"(?P<DAY>\d+) (?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("HOUR", "MINUTE"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+)",
    ("HOUR", "SECOND"): r"(?P<HOUR>\d+):(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("MINUTE", "SECOND"): r"(?P<MINUTE>\d+):(?P<SECOND>\d+(?:\.\d+)?)",
    ("YEAR", "MONTH"): r"(?P<YEAR>\d+)-(?P<MONTH>\d+)",
}


def plain(tree: Tree, place: Place | None = None) -> Literal:
    """Return a number or a text."""
    return text(tree.this, place) if tree.is_string else number(tree.this, place)


def number(text: str, place: Place | None) -> Literal:
    """Return a number: INT or BIGINT, DECIMAL with a point, DOUBLE with an exponent."""
    if "e" in text.lower():
        return Literal(DataTypes.DOUBLE(False), float(text), place=place)
    if "." in text:
        value = Decimal(text)
        digits, exponent = value.as_tuple().digits, value.as_tuple().exponent
        scale = -int(exponent)
        precision = max(len(digits), scale)
        if precision > MOST_DIGITS:
            raise SqlError(
                f"{text} has {precision} digits",
                f"at most {MOST_DIGITS} are possible; write it as a DOUBLE, with an exponent as in 1e0",
                "",
                place,
            )
        return Literal(DataTypes.DECIMAL(precision, scale, False), value, place=place)
    digits_ = text.lstrip("0") or "0"
    if len(digits_) > MOST_DIGITS:  # before int(), which refuses thousands of digits
        raise SqlError(
            f"{shorten(text, 60)} has {len(digits_)} digits",
            f"at most {MOST_DIGITS} are possible; write it as a DOUBLE, with an exponent as in 1e0",
            "",
            place,
        )
    value_ = int(digits_)
    if value_ < 2**31:
        return Literal(DataTypes.INT(False), value_, place=place)
    if value_ < 2**63:
        return Literal(DataTypes.BIGINT(False), value_, place=place)
    return Literal(DataTypes.DECIMAL(len(digits_), 0, False), Decimal(digits_), place=place)


def text(value: str, place: Place | None) -> Literal:
    """Return a text.

    Raises:
        SqlError: it has half of a pair of UTF-16, which no text of Arrow can have.
    """
    if (half := re.search("[\ud800-\udfff]", value)) is not None:
        remedy = "write the character itself, or leave it out"
        problem = f"a string has \\u{ord(half[0]):04x}, half of a surrogate pair of UTF-16"
        raise SqlError(problem, remedy)  # without its place: the line could not be printed
    return Literal(CharType(len(value), False), value, place=place)


def binary(digits: str, place: Place | None) -> Literal:
    """Bytes of hexadecimal digits.

    Raises:
        SqlError: they are none.
    """
    try:
        value = bytes.fromhex(digits)
    except ValueError as error:
        raise SqlError(
            f"x'{digits}' is not a byte string", "write two hexadecimal digits for each byte", "", place
        ) from error
    return Literal(BinaryType(len(value), False), value, place=place)


def timed(kind: str, value: str, place: Place | None) -> Literal:
    """DATE, TIME or TIMESTAMP and a text.

    Raises:
        SqlError: the text is none.
    """
    try:
        if kind == "DATE":
            return Literal(DataTypes.DATE(False), datetime.date.fromisoformat(value), place=place)
        fraction = len(value.rpartition(".")[2]) if "." in value else 0
        if kind == "TIME":
            moment = datetime.time.fromisoformat(re.sub(r"^(\d):", r"0\1:", _six(value)))
            return Literal(DataTypes.TIME(fraction, False), moment, place=place)
        timestamp = datetime.datetime.fromisoformat(_six(value).replace("T", " "))
        nanoseconds = value.rpartition(".")[2][6:9].ljust(3, "0") if fraction > 6 else "000"
        if nanoseconds == "000":
            return Literal(DataTypes.TIMESTAMP(fraction, False), timestamp, place=place)
        since_1970 = (timestamp - datetime.datetime(1970, 1, 1)) // datetime.timedelta(microseconds=1)
        return Literal(DataTypes.TIMESTAMP(fraction, False), since_1970 * 1000 + int(nanoseconds), place=place)
    except ValueError as error:
        forms = {"DATE": "2020-12-31", "TIME": "23:59:59", "TIMESTAMP": "2020-12-31 23:59:59.123"}
        raise SqlError(f"{value!r} is not a {kind}", f"write {kind} '{forms[kind]}'", "", place) from error


def _six(value: str) -> str:
    """Return a time with the six digits of a fraction that Python 3.10 wants."""
    head, point, fraction = value.partition(".")
    return f"{head}.{fraction[:6].ljust(6, '0')}" if point else value


def interval(value: str, unit: str, to: str | None, place: Place | None) -> Literal:
    """INTERVAL 'value' unit [TO unit]: milliseconds or months.

    Raises:
        SqlError: the text is none of those units.
    """
    negative = value.startswith("-")
    digits = value.lstrip("+-").strip()
    parts: dict[str, str] | None = None
    if to is None:
        parts = {unit: digits} if re.fullmatch(r"\d+(\.\d+)?" if unit == "SECOND" else r"\d+", digits) else None
    elif (unit, to) in _SPANS:
        match = re.fullmatch(_SPANS[unit, to], digits)
        parts = match.groupdict() if match else None
    units = unit if to is None else f"{unit} TO {to}"
    if parts is None or not (parts.keys() <= _MS.keys() or parts.keys() <= _MONTHS.keys()):
        remedy = (
            "write for example INTERVAL '10' MINUTE, INTERVAL '1 12:00' DAY TO MINUTE or INTERVAL '1-6' YEAR TO MONTH"
        )
        raise SqlError(f"{value!r} is not an interval of {units}", remedy, "", place)
    sign = -1 if negative else 1
    most, unit_lengths = (2**31, _MONTHS) if parts.keys() <= _MONTHS.keys() else (2**63, _MS)
    if any(Decimal(count) * unit_lengths[name] >= most / 4 for name, count in parts.items()):
        remedy = "write one below " + ("44 million years" if unit_lengths is _MONTHS else "73 million years")
        raise SqlError(f"{shorten(value, 60)!r} is too long for an interval of {units}", remedy, "", place)
    if parts.keys() <= _MONTHS.keys():
        months = sum(int(count) * _MONTHS[name] for name, count in parts.items())
        if months >= 2**31:
            raise _too_long(value, units, "178956970 years", place)
        return Literal(DataTypes.INTERVAL_YEAR_MONTH(False), sign * months, place=place)
    ms = sum(int(Decimal(count) * _MS[name]) for name, count in parts.items())
    if ms >= 2**63:
        raise _too_long(value, units, "106751991167 days", place)
    return Literal(DataTypes.INTERVAL_DAY_TIME(3, False), sign * ms, place=place)


def _too_long(value: str, units: str, most: str, place: Place | None) -> SqlError:
    return SqlError(f"an interval of {value} {units} is too long", f"give {most} at most", "", place)
