"""Java's patterns for dates and times, such as yyyy-MM-dd HH:mm:ss: writing and reading by them.

Letters c, V, v, O, n, N, A, B and p are not known; names are those of English.

Source: java.time.format.DateTimeFormatter, java.text.SimpleDateFormat.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.remainders import modulo
from rayflink.table.functions.times.calendar_days import assemble_timestamps, days_of, integers
from rayflink.table.functions.times.time_format import truths
from rayflink.table.plan.typed import RowError

MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October"]
MONTHS += ["November", "December"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_NUMBERS = "yuMLdHhkKmsSDEwWYaGQqe"
_ZONES = "XxZ"
_ISO = "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"
"""The text of a timestamp[ns], with the letter for each of its places."""
_FIRST_S, _LAST_S = -62_135_596_800, 253_402_300_800
"""The begin of the year 1, and of the year 10000."""


_PIECES = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])|(.)", re.S)


@dataclass(frozen=True)
class Part:
    """A part of a pattern.

    Args:
        letter: what stands there, empty for a text.
        count: how often the letter is written.
        text: what is written as it is.
    """

    letter: str
    count: int
    text: str = ""


@lru_cache(maxsize=256)
def parts_of(pattern: str) -> tuple[Part, ...]:
    """Return a pattern in parts.

    Raises:
        RowError: it has a letter that is not known, or an open quote.
    """
    parts: list[Part] = []
    for quoted, letter, other in _PIECES.findall(pattern):
        if letter:
            if letter not in _NUMBERS + _ZONES:
                raise RowError(f"the letter {letter} of the pattern {pattern!r} is not known", "quote it as in 'T'")
            again = parts and parts[-1].letter == letter
            parts = [*parts[:-1], Part(letter, parts[-1].count + 1)] if again else [*parts, Part(letter, 1)]
        elif other == "'":
            raise RowError(f"a quote in the pattern {pattern!r} is not closed", "close it, or write '' for a quote")
        elif other and other in "[]":
            raise RowError(f"optional sections of the pattern {pattern!r} are not supported", "write one pattern")
        else:
            parts.append(Part("", 0, other or quoted.replace("''", "'") or "'"))
    return tuple(parts)


def written(times: pyarrow.Array, pattern: str) -> pyarrow.Array:
    """Timestamps without a zone by a pattern.

    >>> import datetime
    >>> times = pyarrow.array([datetime.datetime(2020, 3, 4, 15, 6, 7)])
    >>> written(times, "EEE d MMM yyyy, hh:mm a").to_pylist()
    ['Wed 4 Mar 2020, 03:06 PM']

    Raises:
        RowError: a time does not lie in the years 1 to 9999.
    """
    _refuse_far(times)
    iso = pc.cast(times, pyarrow.string())
    have = len("yyyy-MM-dd HH:mm:ss") + {"s": 0, "ms": 4, "us": 7, "ns": 10}[times.type.unit]
    pieces: list[Any] = []
    for start, stop, item in _slices(parts_of(pattern), have):
        pieces.append(pc.utf8_slice_codeunits(iso, start, stop) if item is None else _piece(times, item))
    if len(pieces) == 1 and not isinstance(pieces[0], str):
        return pieces[0]
    strings = pc.binary_join_element_wise(*pieces, "") if pieces else pyarrow.array([""] * len(times))
    if all(isinstance(piece, str) for piece in pieces):
        strings = pyarrow.array([str(strings) if pieces else ""] * len(times), pyarrow.string())
    return pc.if_else(pc.is_valid(times), strings, pyarrow.scalar(None, pyarrow.string()))


def _refuse_far(times: pyarrow.Array) -> None:
    bounds = pc.min_max(pc.cast(times, pyarrow.int64()))
    steps = {"s": 1, "ms": 1000, "us": 1_000_000, "ns": 1_000_000_000}[times.type.unit]
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is not None and not (_FIRST_S * steps <= least and most < _LAST_S * steps):
        raise RowError("a time beyond the years 1 to 9999 cannot be formatted by a pattern", "filter such times out")


def _slices(parts: tuple[Part, ...], have: int) -> list[tuple[int, int, Part | None]]:
    """Return the pattern as slices of the ISO text, as long ones as there are, and the parts that are none."""
    slices: list[tuple[int, int, Part | None]] = []
    for item in parts:
        letters = item.text or item.letter * item.count
        if (
            slices
            and slices[-1][2] is None
            and _ISO[slices[-1][1] :].startswith(letters)
            and slices[-1][1] + len(letters) <= have
        ):
            if item.text or _whole(item, slices[-1][1]):
                slices[-1] = (slices[-1][0], slices[-1][1] + len(letters), None)
                continue
        start = _ISO.find(letters) if item.letter in tuple("yMdHmsS") and item.letter else -1
        if start >= 0 and start + len(letters) <= have and _whole(item, start):
            slices.append((start, start + len(letters), None))
        else:
            slices.append((0, 0, item))
    return slices


def _whole(item: Part, start: int) -> bool:
    """Return whether the letters are all of those of their kind, or digits of a fraction from its first."""
    return item.letter == "S" or (item.count == _ISO.count(item.letter) and _ISO[start] == item.letter)


def _piece(times: pyarrow.Array, item: Part) -> Any:
    letter, count = item.letter, item.count
    if not letter:
        return item.text
    if letter in _ZONES:
        raise RowError(f"a time without a zone has no {letter}", "leave it out of the pattern")
    if letter == "S":
        nanoseconds = modulo(pc.cast(pc.cast(times, pyarrow.timestamp("ns")), pyarrow.int64()), 1_000_000_000)
        return pc.utf8_slice_codeunits(_padded(nanoseconds, 9), 0, count)
    if letter in "ML" and count > 2:
        return _names(MONTHS, pc.subtract(pc.month(times), 1), count)
    if letter == "E":
        return _names(DAYS, pc.day_of_week(times), count)
    if letter == "a":
        return pyarrow.array(["AM", "PM"]).take(pc.if_else(pc.greater_equal(pc.hour(times), 12), 1, 0))
    if letter == "G":
        return "AD" if count < 4 else "Anno Domini"
    if letter in "Qq" and count > 2:
        return pc.binary_join_element_wise("Q", _padded(pc.quarter(times), 1), "")
    if letter in "yuY" and count == 2:
        return _padded(modulo(_number(times, letter), 100), 2)
    return _padded(_number(times, letter), count)


def _names(names: list[str], indices: Any, count: int) -> Any:
    strings = pyarrow.array([name[:3] if count < 4 else name[:1] if count == 5 else name for name in names])
    return strings.take(indices)


def _number(times: pyarrow.Array, letter: str) -> Any:
    if letter in "yu":
        return pc.year(times)
    if letter == "Y":
        return pc.add(pc.year(times), pc.cast(_is_next_year(times), pyarrow.int64()))
    if letter in "ML":
        return pc.month(times)
    if letter == "w":
        return _week_of_year(times)
    if letter == "W":
        return _weeks(times, pc.day(times))
    if letter == "e":
        return pc.day_of_week(times, count_from_zero=False, week_start=7)
    simple = {
        "Q": pc.quarter,
        "q": pc.quarter,
        "d": pc.day,
        "D": pc.day_of_year,
        "H": pc.hour,
        "m": pc.minute,
        "s": pc.second,
    }
    if letter in simple:
        return simple[letter](times)
    hour = pc.hour(times)
    if letter == "k":
        return pc.if_else(pc.equal(hour, 0), 24, hour)
    half = modulo(hour, 12)
    return half if letter == "K" else pc.if_else(pc.equal(half, 0), 12, half)


def _weeks(times: pyarrow.Array, day: Any) -> Any:
    """Number of the week that begins on Sunday, where the first week is that of the first day."""
    sunday_based = modulo(pc.add(pc.day_of_week(times), 1), 7)
    return pc.divide(pc.add(pc.subtract(day, sunday_based), 12), 7)


def _is_next_year(times: pyarrow.Array) -> Any:
    """Return whether the week, which begins on Sunday, has the first day of the next year in it."""
    sunday_based = modulo(pc.add(pc.day_of_week(times), 1), 7)
    to_saturday = pc.subtract(6, sunday_based)
    return pc.and_(pc.equal(pc.month(times), 12), pc.greater(pc.add(pc.day(times), to_saturday), 31))


def _week_of_year(times: pyarrow.Array) -> Any:
    return pc.if_else(_is_next_year(times), 1, _weeks(times, pc.day_of_year(times)))


def _padded(numbers: Any, count: int) -> Any:
    strings = pc.cast(numbers, pyarrow.string())
    return pc.utf8_lpad(strings, count, "0") if count > 1 else strings


# Reading.

_FIELDS = {"y": "year", "u": "year", "Y": "year", "M": "month", "L": "month", "d": "day", "H": "hour", "k": "hour24"}
_FIELDS |= {"h": "hour12", "K": "hour", "m": "minute", "s": "second", "S": "fraction", "a": "half", "E": "weekday"}
_FIELDS |= {"X": "zone", "x": "zone", "Z": "zone", "D": "day_of_year"}


@lru_cache(maxsize=256)
def _expression(pattern: str, is_lenient: bool) -> tuple[str, tuple[tuple[str, Part], ...]]:
    """Return a regular expression with a group for each field.

    Args:
        is_lenient: whether numbers may have any number of digits, and more may follow, as SimpleDateFormat has it.
    """
    parts, letters = parts_of(pattern), ""
    fields: list[tuple[str, Part]] = []
    for position, item in enumerate(parts):
        if not item.letter:
            letters += re.escape(item.text)
            continue
        field = _FIELDS.get(item.letter)
        if field is None:
            raise RowError(f"{item.letter} of the pattern {pattern!r} cannot be parsed", "leave it out")
        beside = (
            position + 1 < len(parts)
            and parts[position + 1].letter in tuple("yuMdHhkKmsSD")
            and parts[position + 1].letter
        )
        name = f"{field}{sum(other == field for other, _ in fields) or ''}"
        letters += f"(?P<{name}>{_digits(item, is_lenient, bool(beside))})"
        fields.append((name, item))
    return "^" + letters + ("" if is_lenient else "$"), tuple(fields)


def _digits(item: Part, is_lenient: bool, beside: bool) -> str:
    letter, count = item.letter, item.count
    if letter in "ML" and count > 2:
        return "(?i:" + "|".join(name if count > 3 else name[:3] for name in MONTHS) + ")"
    if letter == "E":
        return "(?i:" + "|".join(name if count > 3 else name[:3] for name in DAYS) + ")"
    if letter == "a":
        return "(?i:AM|PM)"
    if letter in _ZONES:
        return r"Z|[+-][0-9]{2}(?::?[0-9]{2})?"
    if beside:
        return f"[0-9]{{{count}}}"
    if is_lenient:
        return "[0-9]{1,9}"
    if letter in "yuY":
        return f"[0-9]{{{count}}}" if count == 2 else f"[0-9]{{{min(count, 4)},9}}" if count != 4 else "[0-9]{4}"
    if letter == "S":
        return f"[0-9]{{{count}}}"
    return "[0-9]{1,2}" if count == 1 else f"[0-9]{{{count}}}"


def read(strings: pyarrow.Array, pattern: str, is_lenient: bool) -> tuple[Any, Any, Any, Any]:
    """Parse strings by a pattern: days since 1970, nanoseconds of the day, which are valid, and the offset in seconds.

    The offset is None where the pattern has none; each is an array of numpy.
    """
    expression, fields = _expression(pattern, is_lenient)
    if not fields:
        raise RowError(f"the pattern {pattern!r} has no date and no time", "give one such as 'yyyy-MM-dd'")
    groups = pc.extract_regex(strings, expression)
    valid = truths(pc.is_valid(groups))
    parts: dict[str, Any] = {}
    for name, item in fields:
        _add_field(parts, _FIELDS[item.letter], item, pc.struct_field(groups, name))
    offset = parts.pop("zone", None)
    half, of_year = parts.pop("half", None), parts.pop("day_of_year", None)
    if "hour24" in parts:
        parts["hour"] = parts.pop("hour24") % 24
    if "hour12" in parts:
        parts["hour"] = parts.pop("hour12") % 12
    if half is not None and "hour" in parts:
        parts["hour"] = parts["hour"] + 12 * half
    if is_lenient:
        days, since_midnight = _lenient(parts, len(strings))
    else:
        days, since_midnight, valid = _strict(parts, valid)
    if of_year is not None:
        days = days + of_year - 1
    return days, since_midnight, valid, offset


def _add_field(parts: dict[str, Any], name: str, item: Part, strings: pyarrow.Array) -> None:
    if name == "month" and item.count > 2:
        starts = pyarrow.array([month[:3].lower() for month in MONTHS])
        index = pc.index_in(pc.utf8_lower(pc.utf8_slice_codeunits(strings, 0, 3)), starts)
        parts[name] = pc.fill_null(index, 0).to_numpy(zero_copy_only=False).astype(numpy.int64) + 1
    elif name == "half":
        parts[name] = truths(pc.fill_null(pc.equal(pc.utf8_upper(strings), "PM"), False)).astype(numpy.int64)
    elif name == "fraction":
        parts["nanosecond"] = _fraction(strings, item)
    elif name == "zone":
        parts[name] = _offset(strings)
    elif name != "weekday":
        number = integers(strings, 0)
        if name == "year" and item.count == 2:
            number = numpy.where(number < 100, number + 2000, number)
        parts[name] = number


def _fraction(strings: pyarrow.Array, item: Part) -> Any:
    digits = pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(strings, ""), 9, "0"), 0, 9)
    return integers(digits, 0)


def _offset(strings: pyarrow.Array) -> Any:
    plain = pc.replace_substring(pc.fill_null(strings, ""), ":", "")
    hours, minutes = (
        integers(pc.utf8_slice_codeunits(plain, 1, 3), 0),
        integers(pc.utf8_slice_codeunits(plain, 3, 5), 0),
    )
    sign = numpy.where(truths(pc.starts_with(plain, "-")), -1, 1)
    return sign * (hours * 3600 + minutes * 60)


def _strict(parts: dict[str, Any], valid: Any) -> tuple[Any, Any, Any]:
    """Return the last day of a month for a day up to 31 that it has not."""
    if {"year", "month", "day"} <= parts.keys():
        month = numpy.clip(parts["month"], 1, 12)
        lengths = days_of(parts["year"], month + 1, 1) - days_of(parts["year"], month, 1)
        parts["day"] = numpy.where(parts["day"] <= 31, numpy.minimum(parts["day"], lengths), parts["day"])
    return assemble_timestamps(parts, valid)


def _lenient(parts: dict[str, Any], rows: int) -> tuple[Any, Any]:
    """Whatever the numbers are: month 13 is January of the next year."""
    ones = numpy.ones(rows, numpy.int64)
    days = days_of(parts.get("year", 1970 * ones), parts.get("month", ones), parts.get("day", ones))
    seconds = parts.get("hour", 0 * ones) * 3600 + parts.get("minute", 0 * ones) * 60 + parts.get("second", 0 * ones)
    return days + seconds // 86_400, seconds % 86_400 * 1_000_000_000 + parts.get("nanosecond", 0 * ones)
