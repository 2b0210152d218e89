"""Times from strings and numbers, and strings from times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.number_casts import as_number
from rayflink.table.functions.declaring import (
    BIGINT,
    INTEGER,
    NUMBER,
    STRING,
    TEXT,
    TIMESTAMP,
    Columns,
    Kind,
    by_values,
    constant,
    either,
    takes,
)
from rayflink.table.functions.times import time_format, time_patterns
from rayflink.table.functions.times.calendar_days import timestamps
from rayflink.table.functions.times.dates import dates
from rayflink.table.functions.times.zones import instants_of, local_times
from rayflink.table.plan.typed import Arguments, Expr, RowError, Values
from rayflink.table.types import DataType, DataTypes, Root

_DEFAULT = "yyyy-MM-dd HH:mm:ss"
_LEAST = -(2**63)
_TIMESTAMP3, _INSTANT3 = DataTypes.TIMESTAMP(3), DataTypes.TIMESTAMP_LTZ(3)
_PATTERN = Kind("a pattern such as 'yyyy-MM-dd'", TEXT.holds, STRING)


@dates(
    "DATE_FORMAT(time, pattern)",
    "A timestamp, or a text of the form yyyy-MM-dd HH:mm:ss, formatted by a pattern of Java.",
    either(takes(TIMESTAMP, _PATTERN, gives=STRING), takes(TEXT, _PATTERN, gives=STRING, null=True)),
)
@by_values(1)
def _date_format(arguments: Arguments, columns: Columns, pattern: str) -> Any:
    times, kind = columns[0], arguments.call.args[0].type
    if kind.is_text:
        times = _lenient_times(times, _DEFAULT)
    elif kind.root is Root.TIMESTAMP_LTZ:
        times = local_times(times, arguments.session.zone)
    elif kind.root is Root.NULL:
        return pc.cast(times, pyarrow.string())
    return time_patterns.written(times, pattern)


def _lenient_times(strings: Values, pattern: str) -> Any:
    """Parse strings as SimpleDateFormat does: timestamp[ms] without a zone."""
    days, since_midnight, valid, _ = time_patterns.read(strings, pattern, True)
    return timestamps(days, since_midnight, valid, "ms")


# Epoch seconds.


@dates(
    "FROM_UNIXTIME(seconds[, pattern])",
    "Seconds since 1970-01-01 UTC as a text in the session's time zone; the pattern is by default yyyy-MM-dd HH:mm:ss.",
    takes(INTEGER, _PATTERN, gives=STRING, least=1),
)
@by_values(1)
def _from_unixtime(arguments: Arguments, columns: Columns, pattern: str = _DEFAULT) -> Any:
    seconds = as_number(columns[0], arguments.call.args[0].type, BIGINT)
    instants = pc.cast(seconds, pyarrow.timestamp("s", "UTC"))
    return time_patterns.written(local_times(instants, arguments.session.zone), pattern)


@by_values(1)
def _seconds_of_text(arguments: Arguments, columns: Columns, pattern: str = _DEFAULT) -> Any:
    days, since_midnight, valid, offset = time_patterns.read(columns[0], pattern, True)
    local = timestamps(days, since_midnight, valid, "s")
    if offset is None:
        seconds = pc.cast(instants_of(local, arguments.session.zone), pyarrow.int64())
    else:
        seconds = pc.subtract(pc.cast(local, pyarrow.int64()), pyarrow.array(offset))
    is_valid = pc.is_valid(columns[0])
    return pc.if_else(is_valid, pc.fill_null(seconds, _LEAST), pyarrow.scalar(None, pyarrow.int64()))


def _unix_timestamp(arguments: Arguments) -> Values:
    if arguments.values:
        return _seconds_of_text(arguments)
    return pyarrow.scalar(arguments.session.now_ms() // 1000, pyarrow.int64())


dates.add(
    "UNIX_TIMESTAMP([text[, pattern]])",
    "Seconds from 1970-01-01 UTC until now, or until the time that a text shows in the session's time zone; the "
    "pattern is by default yyyy-MM-dd HH:mm:ss. A text that does not match gives -9223372036854775808.",
    takes(TEXT, _PATTERN, gives=BIGINT, least=0),
    _unix_timestamp,
    name="UNIX_TIMESTAMP",
    is_deterministic=False,
    is_clock=True,
)


@dates(
    "TO_DATE(text[, pattern])",
    "The date that a text shows; null if it does not match the pattern, by default yyyy-MM-dd.",
    takes(TEXT, _PATTERN, gives=DataTypes.DATE(), least=1, null=True),
)
@by_values(1)
def _to_date(arguments: Arguments, columns: Columns, pattern: str | None = None) -> Any:
    strings = pc.cast(columns[0], pyarrow.string())
    if pattern is None:
        return time_format.parse_dates(strings)
    days, _, valid, _ = time_patterns.read(strings, pattern, True)
    return pyarrow.array(days.astype(numpy.int32), mask=~valid).cast(pyarrow.date32())


@dates(
    "TO_TIMESTAMP(text[, pattern])",
    "The timestamp without a zone that a text shows; null if it does not match the pattern, by default "
    "yyyy-MM-dd HH:mm:ss.",
    takes(TEXT, _PATTERN, gives=_TIMESTAMP3, least=1, null=True),
)
@by_values(1)
def _to_timestamp(arguments: Arguments, columns: Columns, pattern: str = _DEFAULT) -> Any:
    return read_timestamps(pc.cast(columns[0], pyarrow.string()), pattern)


def read_timestamps(strings: Values, pattern: str) -> Any:
    """Parse strings by a pattern to timestamp[ms]; forms such as 2020-1-2 3:4:5.6 and 2020-1-2 are read as well."""
    if pattern == _DEFAULT:
        return time_format.parse_timestamps(pc.utf8_trim(strings, " "), _TIMESTAMP3)
    days, since_midnight, valid, _ = time_patterns.read(strings, pattern, False)
    result = timestamps(days, since_midnight, valid, "ms")
    if valid.all():
        return result
    other = time_format.parse_timestamps(pc.utf8_trim(strings, " "), _TIMESTAMP3)
    return pc.coalesce(result, other)


_EPOCH = Kind("seconds or milliseconds since 1970", NUMBER.holds, BIGINT)
_PRECISION = Kind("digits of a second's fraction", lambda kind: kind.is_integer, BIGINT)
_ZONE = Kind("a time zone", TEXT.holds, STRING)


def _to_instant(arguments: Arguments) -> Values:
    if arguments.call.args[0].type.is_text:
        return _instant_of_text(arguments)
    return _instant_of_number(arguments)


@by_values(1)
def _instant_of_number(arguments: Arguments, columns: Columns, precision: int = 3) -> Any:
    """Null beyond the years 0 to 9999."""
    if not 0 <= precision <= 9:
        raise RowError(f"TO_TIMESTAMP_LTZ has precision {precision}", "give a precision within [0, 9]")
    kind, numbers = arguments.call.args[0].type, columns[0]
    if precision == 0 and kind.is_approximate:
        numbers, precision = pc.multiply(numbers, 1000.0), 3
    whole = as_number(numbers, kind, BIGINT)
    low, high = (bound * 10**precision for bound in (-62_167_219_200, 253_402_300_800))
    inside = pc.and_(pc.greater_equal(whole, max(low, -(2**63))), pc.less(whole, min(high, 2**63 - 1)))
    whole = pc.if_else(inside, whole, pyarrow.scalar(None, pyarrow.int64()))
    digits = {"ms": 3, "us": 6, "ns": 9}[arguments.call.type.unit]
    return pc.cast(pc.multiply(whole, 10 ** (digits - precision)), arguments.result)


def _instant_type(args: Sequence[Expr]) -> DataType:
    digits = constant(args[1]) if len(args) > 1 else None
    return DataTypes.TIMESTAMP_LTZ(digits) if digits is not None and 3 < digits <= 9 else _INSTANT3


@by_values(1, 2)
def _instant_of_text(arguments: Arguments, columns: Columns, pattern: str = _DEFAULT, zone: str | None = None) -> Any:
    local = read_timestamps(pc.cast(columns[0], pyarrow.string()), pattern)
    return instants_of(local, zone or "UTC")


dates.add(
    "TO_TIMESTAMP_LTZ(number[, precision]) or (text[, pattern[, zone]])",
    "The instant this many milliseconds (with precision 0: seconds) after 1970-01-01 UTC; or the instant that a text "
    "shows by a pattern in a zone, by default UTC.",
    either(
        takes(_EPOCH, _PRECISION, gives=_instant_type, least=1, null=True),
        takes(TEXT, _PATTERN, _ZONE, gives=_INSTANT3, least=1, null=True),
    ),
    _to_instant,
    name="TO_TIMESTAMP_LTZ",
)


@dates(
    "CONVERT_TZ(text, zone1, zone2)",
    "A time of the form yyyy-MM-dd HH:mm:ss in zone1, as the same instant in zone2; null if the form differs.",
    takes(TEXT, _ZONE, _ZONE, gives=STRING, null=True),
)
@by_values(1, 2)
def _convert_tz(arguments: Arguments, columns: Columns, from_zone: str, to_zone: str) -> Any:
    instants = instants_of(_lenient_times(columns[0], _DEFAULT), _known_zone(from_zone))
    return time_patterns.written(local_times(instants, _known_zone(to_zone)), _DEFAULT)


def _known_zone(name: str) -> str:
    """UTC for what is no zone, as Java's TimeZone has it."""
    from rayflink.table.functions.times.zones import zone_name  # which imports this module

    try:
        return zone_name(name)
    except RowError:
        return "UTC"


# Now.


def _now(show: Callable[[Any, str], Any]) -> Callable[[Arguments], Values]:
    """Return a constant of all rows of a batch, as clocks show it in the session's zone."""

    def computed(arguments: Arguments) -> Values:
        instant = pyarrow.array([arguments.session.now_ms()]).cast(pyarrow.timestamp("ms", "UTC"))
        return show(instant, arguments.session.zone).cast(arguments.result)[0]

    return computed


def _clock(instant: Any, zone: str) -> Any:
    seconds = pc.cast(pc.floor_temporal(local_times(instant, zone), unit="second"), pyarrow.time32("ms"))
    return seconds


for _usage, _about, _kind, _show, _aliases in (
    ("CURRENT_TIMESTAMP", "The instant at which it is evaluated.", _INSTANT3, lambda times, zone: times, ("NOW",)),
    ("CURRENT_ROW_TIMESTAMP()", "The instant at which a row is evaluated.", _INSTANT3, lambda times, zone: times, ()),
    (
        "PROCTIME()",
        "The time of processing: the instant at which a row is evaluated.",
        _INSTANT3,
        lambda times, zone: times,
        (),
    ),
    ("LOCALTIMESTAMP", "What a clock shows in the session's time zone.", _TIMESTAMP3, local_times, ()),
    ("CURRENT_TIME", "The time of day in the session's time zone.", DataTypes.TIME(0), _clock, ("LOCALTIME",)),
    (
        "CURRENT_DATE",
        "The day in the session's time zone.",
        DataTypes.DATE(),
        lambda times, zone: pc.cast(pc.floor_temporal(local_times(times, zone), unit="day"), pyarrow.date32()),
        (),
    ),
):
    dates.add(
        _usage, _about, takes(gives=_kind, null=False), _now(_show), aliases=_aliases, is_deterministic=False,
        is_clock=True,
    )  # fmt: skip


def _current_watermark(arguments: Arguments) -> Values:
    """Return one value for all rows of a batch: watermarks come between batches."""
    watermark = pyarrow.array([arguments.session.watermark()], pyarrow.int64())
    target = arguments.result
    return watermark.cast(pyarrow.timestamp("ms", target.tz)).cast(target)[0]


dates.add(
    "CURRENT_WATERMARK(rowtime)",
    "The latest watermark, as a timestamp of the time attribute's type; NULL before the first.",
    takes(TIMESTAMP, gives=lambda args: DataTypes.TIMESTAMP_LTZ(3) if args[0].type.root is Root.TIMESTAMP_LTZ
          else DataTypes.TIMESTAMP(3), null=True),
    _current_watermark,
    is_deterministic=False,
    is_clock=True,
)  # fmt: skip
