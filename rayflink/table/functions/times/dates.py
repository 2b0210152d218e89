"""Parts of dates and times, rounding to them, and times between times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import converted
from rayflink.table.functions.declaring import (
    BIGINT,
    BOOLEAN,
    INT,
    TIME_POINT,
    Family,
    Kind,
    by_columns,
    is_nullable,
    takes,
)
from rayflink.table.functions.remainders import modulo, remainder
from rayflink.table.functions.times.time_sums import DAY_MS, INTERVAL, infer_sum, months_later, sum_of_times
from rayflink.table.functions.times.zones import instants_of, local_times
from rayflink.table.plan.typed import Arguments, Expr, RowError, Session, Values
from rayflink.table.types import DataType, DataTypes, Root

dates = Family("Dates and times")
_TIME_OR_INTERVAL = Kind(
    "a date, a time, a timestamp or an interval",
    lambda kind: TIME_POINT.holds(kind) or INTERVAL.holds(kind),
    DataTypes.TIMESTAMP(3),
)


def plain(values: Values, kind: DataType, session: Session) -> Any:
    """Times without a zone: dates and timestamps as clocks of the session show them."""
    return (
        by_value(lambda instants: local_times(instants, session.zone), values)
        if kind.root is Root.TIMESTAMP_LTZ
        else values
    )


def by_value(compute: Callable[[Any], Any], values: Values) -> Any:
    """Compute a constant as a column of one row."""
    if isinstance(values, pyarrow.Scalar):
        return compute(pyarrow.repeat(values, 1))[0]
    return compute(values)


def _iso(field: str) -> Callable[[Any], Any]:
    return lambda times: pc.struct_field(pc.iso_calendar(times), field)


def _rounded_up(step: int) -> Callable[[Any], Any]:
    return lambda times: pc.divide(pc.add(pc.year(times), step - 1), step)


def _fraction(step: int) -> Callable[[Any], Any]:
    def computed(times: Values) -> Any:
        nanoseconds = pc.cast(pc.cast(times, pyarrow.timestamp("ns")), pyarrow.int64())
        return pc.divide(modulo(nanoseconds, 1_000_000_000), step)

    return computed


def _epoch(times: Values) -> Any:
    return pc.divide(pc.cast(pc.cast(times, pyarrow.timestamp("ms")), pyarrow.int64()), 1000)


_DAYS: dict[str, Callable[[Any], Any]] = {
    "MILLENNIUM": _rounded_up(1000),
    "CENTURY": _rounded_up(100),
    "DECADE": lambda times: pc.divide(pc.year(times), 10),
    "YEAR": pc.year,
    "ISOYEAR": _iso("iso_year"),
    "QUARTER": pc.quarter,
    "MONTH": pc.month,
    "WEEK": _iso("iso_week"),
    "DAY": pc.day,
    "DOY": pc.day_of_year,
    "DOW": lambda times: pc.day_of_week(times, count_from_zero=False, week_start=7),
    "ISODOW": lambda times: pc.day_of_week(times, count_from_zero=False),
}
_TIMES: dict[str, Callable[[Any], Any]] = {
    "HOUR": pc.hour,
    "MINUTE": pc.minute,
    "SECOND": pc.second,
    "MILLISECOND": _fraction(1_000_000),
    "MICROSECOND": _fraction(1000),
    "NANOSECOND": _fraction(1),
}
UNITS = (*_DAYS, *_TIMES, "EPOCH")


def extracted(unit: str, values: Values, kind: DataType, session: Session) -> Values:
    """Return a part of times or intervals, a whole number."""
    if kind.is_interval:
        return _of_interval(unit, values, kind)
    if kind.root is Root.NULL:
        return pc.cast(values, pyarrow.int64())
    times = plain(values, kind, session)
    if unit == "EPOCH":
        return _epoch(times)
    if kind.root is Root.DATE and unit in _TIMES:
        return pc.multiply(pc.cast(pc.cast(times, pyarrow.int32()), pyarrow.int64()), 0)
    if kind.root is Root.TIME and unit in ("MILLISECOND", "MICROSECOND", "NANOSECOND"):
        nanoseconds = pc.cast(pc.cast(times, pyarrow.time64("ns")), pyarrow.int64())
        step = {"MILLISECOND": 1_000_000, "MICROSECOND": 1000, "NANOSECOND": 1}[unit]
        return pc.divide(modulo(nanoseconds, 1_000_000_000), step)
    return pc.cast({**_DAYS, **_TIMES}[unit](times), pyarrow.int64())


def _of_interval(unit: str, values: Values, kind: DataType) -> Values:
    whole = pc.cast(values, pyarrow.int64())
    if kind.root is Root.INTERVAL_YEAR_MONTH:
        step, limit = {"YEAR": (12, None), "QUARTER": (3, 4), "MONTH": (1, 12)}.get(unit, (1, None))
    else:
        steps = {"DAY": (DAY_MS, None), "HOUR": (3_600_000, 24), "MINUTE": (60_000, 60), "SECOND": (1000, 60)}
        step, limit = steps.get(unit, (1, 1000) if unit == "MILLISECOND" else (1000, None))
    result = pc.divide(whole, step)
    return result if limit is None else remainder(result, limit)


dates.add(
    "EXTRACT(unit FROM time)",
    f"A part of a time or an interval: {', '.join(UNITS)}. DOW counts from Sunday, 1; WEEK is that of ISO 8601.",
    takes(_TIME_OR_INTERVAL, gives=BIGINT),
    lambda arguments: extracted(
        arguments.call.options[0], arguments.values[0], arguments.call.args[0].type, arguments.session
    ),
    name="EXTRACT",
)

for _name, _unit, _meaning in (
    ("YEAR", "YEAR", "year"),
    ("QUARTER", "QUARTER", "quarter, 1 to 4"),
    ("MONTH", "MONTH", "month, 1 to 12"),
    ("WEEK", "WEEK", "week of ISO 8601, 1 to 53"),
    ("DAYOFYEAR", "DOY", "day of the year, 1 to 366"),
    ("DAYOFMONTH", "DAY", "day of the month, 1 to 31"),
    ("DAYOFWEEK", "DOW", "day of the week, 1 on Sunday to 7"),
    ("HOUR", "HOUR", "hour, 0 to 23"),
    ("MINUTE", "MINUTE", "minute, 0 to 59"),
    ("SECOND", "SECOND", "second, 0 to 59"),
):

    def _part(arguments: Arguments, unit: str = _unit) -> Values:
        return extracted(unit, arguments.values[0], arguments.call.args[0].type, arguments.session)

    dates.add(f"{_name}(time)", f"The {_meaning}.", takes(_TIME_OR_INTERVAL, gives=BIGINT), _part)


# Rounding. FLOOR and CEIL of numbers stand in maths.py, which comes here where a unit is given.

_YEARS = {"MILLENNIUM": 1000, "CENTURY": 100, "DECADE": 10}
_ARROW = {"YEAR": "year", "QUARTER": "quarter", "MONTH": "month", "DAY": "day", "HOUR": "hour"}
_ARROW |= {"MINUTE": "minute", "SECOND": "second", "MILLISECOND": "millisecond", "MICROSECOND": "microsecond"}
ROUNDING_UNITS = (*_YEARS, "WEEK", *_ARROW)


def rounded_time(arguments: Arguments, up: bool) -> Values:
    """FLOOR and CEIL of a time to a unit, the call's option."""
    unit, kind = arguments.call.options[0], arguments.call.args[0].type
    zone = arguments.session.zone

    def computed(values: Values) -> Any:
        times = local_times(values, zone) if kind.root is Root.TIMESTAMP_LTZ else values
        if kind.root is Root.TIME:
            return _rounded_clock(times, unit, up)
        result = _rounded_up_or_down(
            pc.cast(times, pyarrow.timestamp("ms")) if kind.root is Root.DATE else times, unit, up
        )
        return instants_of(result, zone) if kind.root is Root.TIMESTAMP_LTZ else pc.cast(result, times.type)

    return by_value(computed, arguments.values[0])


def _rounded_clock(times: Values, unit: str, up: bool) -> Any:
    whole = pyarrow.int32() if times.type.bit_width == 32 else pyarrow.int64()
    since = pc.cast(pc.cast(pc.cast(times, whole), pyarrow.int64()), pyarrow.timestamp(times.type.unit))
    result = pc.cast(_rounded_up_or_down(since, unit, up), pyarrow.int64())
    day = DAY_MS * {"ms": 1, "us": 1000, "ns": 1_000_000}[times.type.unit]
    return pc.cast(pc.cast(modulo(result, day), whole), times.type)


def _rounded_up_or_down(times: Values, unit: str, up: bool) -> Any:
    if unit in _YEARS:
        return _rounded_years(times, unit, up)
    if up and unit in ("YEAR", "QUARTER", "MONTH", "WEEK"):
        return _days_up(pc.floor_temporal(times, unit="day"), unit)
    if unit == "WEEK":
        return pc.floor_temporal(times, unit="week", week_starts_monday=False)
    return (pc.ceil_temporal if up else pc.floor_temporal)(times, unit=_ARROW[unit])


def _days_up(days: Any, unit: str) -> Any:
    """Round days up; only the day counts, as in Flink: a quarter is over on all days but the first of the year."""
    if unit == "WEEK":
        down = pc.floor_temporal(days, unit="week", week_starts_monday=False)
        return pc.if_else(pc.equal(down, days), down, _later(down, 7))
    result = pc.ceil_temporal(days, unit=_ARROW[unit])  # of the first day of a month that is the next one
    if unit != "QUARTER":
        return pc.if_else(pc.equal(pc.floor_temporal(days, unit=_ARROW[unit]), days), days, result)
    return pc.if_else(pc.equal(pc.day_of_year(days), 1), days, pc.ceil_temporal(_later(days, 1), unit="quarter"))


def _later(times: Values, days: int) -> Any:
    return pc.cast(pc.add(times, pyarrow.scalar(days * DAY_MS, pyarrow.duration("ms"))), times.type)


def _rounded_years(times: Values, unit: str, up: bool) -> Any:
    step = _YEARS[unit]
    year = pc.year(times)
    if unit == "DECADE":
        first = pc.multiply(pc.divide(year, 10), 10)
    else:
        first = pc.subtract(pc.multiply(pc.divide(pc.add(year, step - 1), step), step), step - 1)
    first = pc.add(first, step) if up else first
    years = (pc.fill_null(first, 1970).to_numpy(zero_copy_only=False) - 1970).astype("datetime64[Y]")
    result = pyarrow.array(years.astype("datetime64[D]")).cast(times.type)
    return pc.if_else(pc.is_valid(times), result, pyarrow.scalar(None, times.type))


# Sums and differences.

_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_MILLISECONDS = {
    "WEEK": 7 * DAY_MS,
    "DAY": DAY_MS,
    "HOUR": 3_600_000,
    "MINUTE": 60_000,
    "SECOND": 1000,
    "MILLISECOND": 1,
}


def _infer_moved(args: Sequence[Expr], options: tuple[Any, ...]) -> DataType | str:
    if len(args) != 2 or not args[0].type.is_integer or not TIME_POINT.accepts(args[1].type):
        return "a unit, a whole number and a time"
    kind = args[1].type
    if kind.root is Root.DATE and options and options[0] in ("HOUR", "MINUTE", "SECOND", "MILLISECOND"):
        kind = DataTypes.TIMESTAMP(6)
    return kind.as_nullable(is_nullable(args))


def _added(arguments: Arguments) -> Values:
    unit, (number, time) = arguments.call.options[0], arguments.values
    try:
        whole = pc.cast(number, pyarrow.int64())
        if unit in _MONTHS:
            step: Values = pc.cast(pc.multiply_checked(whole, _MONTHS[unit]), pyarrow.int32())
            kind: DataType = DataTypes.INTERVAL_YEAR_MONTH()
        else:
            step = pc.cast(pc.multiply_checked(whole, _MILLISECONDS[unit]), pyarrow.duration("ms"))
            kind = DataTypes.INTERVAL_DAY_TIME()
    except pyarrow.ArrowInvalid as error:
        problem = f"TIMESTAMPADD adds more {unit}s than an interval can have"
        raise RowError(problem, "give a smaller number, or a larger unit") from error
    time_type = arguments.call.args[1].type
    time = converted(time, time_type, arguments.call.type, arguments.session)
    call = arguments.call.with_inputs([Expr(arguments.call.type), Expr(kind)])
    return sum_of_times(Arguments([time, step], arguments.rows, call, arguments.session))  # type: ignore[arg-type]


dates.add(
    "TIMESTAMPADD(unit, number, time)",
    "The time this many units later; units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND.",
    lambda args: _infer_moved(args, ()),
    _added,
    by_options=_infer_moved,
)


@dates(
    "TIMESTAMPDIFF(unit, time1, time2)",
    "The number of whole units from time1 to time2; units are YEAR, QUARTER, MONTH, WEEK, DAY, HOUR, MINUTE, SECOND.",
    takes(TIME_POINT, TIME_POINT, gives=INT),
)
def _difference(arguments: Arguments) -> Values:
    unit = arguments.call.options[0]
    types = [arg.type for arg in arguments.call.args]
    pairs = zip(arguments.values, types, strict=True)
    start, stop = (_milliseconds(value, kind, arguments.session) for value, kind in pairs)
    if unit in _MONTHS:
        months = by_columns(lambda _, values: _months_between(*values))(
            Arguments([start, stop], arguments.rows, arguments.call, arguments.session)
        )
        return pc.cast(pc.divide(months, _MONTHS[unit]), arguments.result, safe=False)
    return pc.cast(pc.divide(pc.subtract(stop, start), _MILLISECONDS[unit]), arguments.result, safe=False)


def _milliseconds(values: Values, kind: DataType, session: Session) -> Values:
    if kind.root is Root.TIME:
        whole = pyarrow.int32() if values.type.bit_width == 32 else pyarrow.int64()
        number = pc.cast(pc.cast(values, whole), pyarrow.int64())
        return pc.divide(number, {"ms": 1, "us": 1000, "ns": 1_000_000}[values.type.unit])
    if kind.root is Root.NULL:
        return pc.cast(values, pyarrow.int64())
    times = plain(values, kind, session)
    floored = pc.cast(times, pyarrow.timestamp("ms"), safe=False)
    return pc.cast(floored, pyarrow.int64())


def _months_between(start: Any, stop: Any) -> Any:
    """Whole months: a month is over at the same day and time of the next one, or at its end."""
    early, late = pc.min_element_wise(start, stop, skip_nulls=False), pc.max_element_wise(start, stop, skip_nulls=False)
    first, last = (pc.cast(times, pyarrow.timestamp("ms")) for times in (early, late))
    count = pc.subtract(_month_number(last), _month_number(first))
    moved = pc.cast(months_later(first, pc.cast(count, pyarrow.int32())), pyarrow.int64())
    count = pc.subtract(count, pc.cast(pc.greater(moved, late), pyarrow.int64()))
    return pc.if_else(pc.greater(start, stop), pc.negate(count), count)


def _month_number(times: Values) -> Any:
    return pc.add(pc.multiply(pc.year(times), 12), pc.month(times))


def _infer_overlaps(args: Sequence[Expr]) -> DataType | str:
    expected = "the start and the end or length of one span, and those of another"
    if len(args) != 4 or not all(TIME_POINT.accepts(arg.type) for arg in args[::2]):
        return expected
    return (
        BOOLEAN.as_nullable(is_nullable(args)) if all(_TIME_OR_INTERVAL.accepts(arg.type) for arg in args) else expected
    )


@dates(
    "(start1, end1) OVERLAPS (start2, end2)",
    "Whether two periods of time overlap; in place of an end, an interval may give the length.",
    _infer_overlaps,
    name="OVERLAPS",
)
def _overlaps(arguments: Arguments) -> Values:
    args, values = arguments.call.args, list(arguments.values)
    for index in (1, 3):
        if args[index].type.is_interval:
            kind = infer_sum([args[index - 1], args[index]])
            assert isinstance(kind, DataType), kind
            call = replace(arguments.call, type=kind, args=(args[index - 1], args[index]))
            pair = [values[index - 1], values[index]]
            values[index] = sum_of_times(Arguments(pair, arguments.rows, call, arguments.session))
    kind = args[0].type
    kinds = [
        args[index - 1].type if args[index].type.is_interval and index % 2 else args[index].type for index in range(4)
    ]
    values = [converted(value, source, kind, arguments.session) for value, source in zip(values, kinds, strict=True)]
    swapped = [_ordered(*values[index : index + 2]) for index in (0, 2)]
    (start1, stop1), (start2, stop2) = swapped
    return pc.and_kleene(pc.greater_equal(stop1, start2), pc.greater_equal(stop2, start1))


def _ordered(left: Values, right: Values) -> tuple[Values, Values]:
    swap = pc.greater(left, right)
    if isinstance(swap, pyarrow.Scalar):
        return (right, left) if swap.as_py() else (left, right)
    return pc.if_else(swap, right, left), pc.if_else(swap, left, right)
