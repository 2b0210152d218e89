"""Times as SQL writes them, and strings read as times.

Source: apache/flink DateTimeUtils.
"""

from __future__ import annotations

from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.remainders import remainder
from rayflink.table.functions.times.calendar_days import (
    assemble_timestamps,
    days_of,
    integers,
    month_lengths,
    timestamps,
)
from rayflink.table.types import DataType, DataTypes

_MOST_MICROSECONDS = 2**63 // 1000 - 1
"""The largest time, in microseconds, that Arrow holds with nanoseconds: in the year 2262."""
_DATE = r"^\s*(?P<year>[0-9]{1,9})\s*(?:-\s*(?P<month>[0-9]{1,9})\s*(?:-\s*(?P<day>[0-9]{1,9})\s*)?)?(?: .*)?$"
_TIME = (
    r"^\s*(?P<hour>[0-9]{1,2})\s*"
    r"(?::\s*(?P<minute>[0-9]{1,2})\s*(?::\s*(?P<second>[0-9]{1,2})(?P<part>\.[0-9]*)?)?)?\s*$"
)
_TIMESTAMP = (
    r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?: (?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?P<part>\.[0-9]{0,9})?)?$"
)


def parse_dates(strings: pyarrow.Array) -> pyarrow.Array:
    """Parse strings such as 2020-1-2, also followed by a time, to dates; null where a string is none.

    >>> parse_dates(pyarrow.array(["2020-1-2", "2020", "2020-02-30"])).to_pylist()
    [datetime.date(2020, 1, 2), datetime.date(2020, 1, 1), None]
    """
    try:
        return pc.cast(strings, pyarrow.date32())
    except pyarrow.ArrowInvalid:  # another form, or no date
        parts = pc.extract_regex(strings, _DATE)
    year, month, day = (integers(pc.struct_field(parts, name), 1) for name in ("year", "month", "day"))
    valid = truths(pc.is_valid(parts)) & (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1) & (year <= 9999)
    year, month = numpy.where(valid, year, 1970), numpy.where(valid, month, 1)
    valid &= day <= month_lengths(year, month)
    days = days_of(year, month, numpy.where(valid, day, 1)).astype(numpy.int32)
    return pyarrow.array(days, mask=~valid).cast(pyarrow.date32())


def parse_times(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse strings such as 03:04:05.678 to times of day; null where a string is none."""
    parts = pc.extract_regex(strings, _TIME)
    named = {name: integers(pc.struct_field(parts, name), 0) for name in ("hour", "minute", "second")}
    named["nanosecond"] = _nanoseconds(pc.struct_field(parts, "part"))
    _, since_midnight, valid = assemble_timestamps(named, truths(pc.is_valid(parts)))
    step = {"ms": 1_000_000, "us": 1000, "ns": 1}[kind.unit]
    return pyarrow.array(cut(since_midnight, kind) // step, mask=~valid).cast(number_type(kind)).cast(kind.to_arrow())


def parse_timestamps(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array:
    """Parse strings such as 2020-01-02 03:04:05.678 to timestamps without a zone; null where a string is none."""
    if kind.unit == "ns":
        roughly = pc.cast(parse_timestamps(strings, DataTypes.TIMESTAMP(6)), pyarrow.int64())
        strings = pc.if_else(pc.less_equal(pc.abs(roughly), _MOST_MICROSECONDS), strings, None)
    quickly = _quickly(strings, kind)
    if quickly is not None:
        return quickly
    parts = pc.extract_regex(strings, _TIMESTAMP)
    named = {name: integers(pc.struct_field(parts, name), 0) for name in ("hour", "minute", "second")}
    named |= {name: integers(pc.struct_field(parts, name), 1) for name in ("year", "month", "day")}
    named["nanosecond"] = _nanoseconds(pc.struct_field(parts, "part"))
    valid = truths(pc.is_valid(parts))
    month = numpy.clip(named["month"], 1, 12)
    named["day"] = numpy.minimum(named["day"], numpy.where(named["day"] <= 31, month_lengths(named["year"], month), 99))
    days, since_midnight, valid = assemble_timestamps(named, valid)
    return timestamps(days, cut(since_midnight, kind), valid, kind.unit)


def _quickly(strings: pyarrow.Array, kind: DataType) -> pyarrow.Array | None:
    """Parse by Arrow; None where a string is invalid, or has a form that Flink does not accept."""
    sizes = pc.min_max(pc.binary_length(strings)).as_py()
    if (sizes["min"], sizes["max"]) not in ((10, 10), (19, 19)) and not 20 < (sizes["min"] or 0) <= sizes["max"] < 30:
        return None
    if kind.precision not in (3, 6, 9) or pc.any(pc.match_substring(strings, "T")).as_py():
        return None
    try:
        return pc.cast(strings, pyarrow.timestamp(kind.unit))
    except pyarrow.ArrowInvalid:
        return None


def cut(nanoseconds: Any, kind: DataType) -> Any:
    """Remove the digits that a type's precision does not have."""
    step = 10 ** (9 - kind.precision)
    return nanoseconds // step * step


def _nanoseconds(fractions: pyarrow.Array) -> Any:
    """Parse strings such as .5 to nanoseconds, int64[n]."""
    digits = pc.utf8_rpad(pc.utf8_slice_codeunits(pc.fill_null(fractions, ""), 1, 10), 9, "0")
    return pc.cast(digits, pyarrow.int64()).to_numpy(zero_copy_only=False)


def truths(mask: pyarrow.Array) -> Any:
    """Return a column of truth values without nulls as bool[n]."""
    return mask.to_numpy(zero_copy_only=False)


def number_type(kind: DataType) -> pyarrow.DataType:
    """Return the whole numbers of which times of a type are made."""
    return pyarrow.int32() if kind.unit == "ms" else pyarrow.int64()


def timestamp_strings(times: pyarrow.Array, precision: int) -> pyarrow.Array:
    """Timestamps without a zone with this many digits of a second's fraction.

    >>> import datetime
    >>> timestamp_strings(pyarrow.array([datetime.datetime(2020, 1, 2, 3, 4, 5, 600000)]), 3).to_pylist()
    ['2020-01-02 03:04:05.600']
    """
    digits = {"s": 0, "ms": 3, "us": 6, "ns": 9}[times.type.unit]
    strings = pc.cast(times, pyarrow.string())
    less = digits - precision + (1 if precision == 0 else 0)
    return pc.utf8_slice_codeunits(strings, 0, -less) if digits > precision else strings


def time_strings(times: pyarrow.Array, precision: int) -> pyarrow.Array:
    """Times of day; of the fraction at least one digit, and no zeros at the end."""
    strings = pc.cast(times, pyarrow.string())
    if precision == 0:
        return pc.utf8_slice_codeunits(strings, 0, 8)
    strings = pc.utf8_slice_codeunits(strings, 0, 9 + precision)
    return pc.replace_substring_regex(strings, r"(\.[0-9])([0-9]*[1-9])?0*$", r"\1\2")


def duration_strings(intervals: pyarrow.Array) -> pyarrow.Array:
    """Intervals such as +1 02:03:04.005."""
    whole = pc.cast(intervals, pyarrow.int64())
    size = pc.abs(whole)
    days, remaining = pc.divide(size, 86_400_000), remainder(size, 86_400_000)
    times = pc.cast(pc.cast(pc.cast(remaining, pyarrow.int32()), pyarrow.time32("ms")), pyarrow.string())
    sign = pc.if_else(pc.less(whole, 0), "-", "+")
    days = pc.binary_join_element_wise(sign, pc.cast(days, pyarrow.string()), "")
    return pc.binary_join_element_wise(days, times, " ")


def month_strings(intervals: pyarrow.Array) -> pyarrow.Array:
    """Intervals of months such as +1-02."""
    whole = pc.cast(intervals, pyarrow.int64())
    size = pc.abs(whole)
    years, months = pc.divide(size, 12), remainder(size, 12)
    digits = pc.utf8_lpad(pc.cast(months, pyarrow.string()), 2, "0")
    sign = pc.if_else(pc.less(whole, 0), "-", "+")
    years = pc.binary_join_element_wise(sign, pc.cast(years, pyarrow.string()), "")
    return pc.binary_join_element_wise(years, digits, "-")
