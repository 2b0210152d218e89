"""Casts of times and intervals."""

from __future__ import annotations

from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.casts.casts import Cast, casts, sized
from rayflink.table.functions.remainders import modulo
from rayflink.table.functions.times import time_format
from rayflink.table.functions.times.zones import instants_of, local_times
from rayflink.table.plan.typed import RowError
from rayflink.table.types import DataType, DataTypes, Root


def cut_to(times: pyarrow.Array, target: DataType) -> Any:
    """Timestamps in the unit of a type, without the digits it has not."""
    unit = target.unit
    step = 10 ** ({"ms": 3, "us": 6, "ns": 9}[unit] - target.precision)
    if times.type.unit != unit:
        try:
            times = pc.cast(_floored(times, unit), pyarrow.timestamp(unit, times.type.tz))
        except pyarrow.ArrowInvalid as error:
            problem = f"a time is out of the range of {target.nullable()}"
            raise RowError(problem, "nanoseconds go from 1677 to 2262; give a precision of 6 at most") from error
    if step == 1:
        return times
    whole = pc.cast(times, pyarrow.int64())
    return pc.cast(pc.subtract(whole, modulo(whole, step)), times.type)


def _floored(times: pyarrow.Array, unit: str) -> Any:
    steps = {"s": 0, "ms": 3, "us": 6, "ns": 9}
    lost = steps[times.type.unit] - steps[unit]
    if lost <= 0:
        return times
    whole = pc.cast(times, pyarrow.int64())
    return pc.cast(pc.subtract(whole, modulo(whole, 10**lost)), times.type)


def _local(values: pyarrow.Array, cast: Cast) -> Any:
    return local_times(values, cast.session.zone) if cast.source.root is Root.TIMESTAMP_LTZ else values


def _as_wanted(times: pyarrow.Array, cast: Cast) -> Any:
    """Timestamps without a zone as those of the wanted type."""
    times = cut_to(times, cast.target)
    return instants_of(times, cast.session.zone) if cast.target.root is Root.TIMESTAMP_LTZ else times


@casts("date", "text")
def _text_of_date(values: pyarrow.Array, cast: Cast) -> Any:
    return sized(pc.cast(values, pyarrow.string()), cast.target)


@casts("time", "text")
def _text_of_time(values: pyarrow.Array, cast: Cast) -> Any:
    return sized(time_format.time_strings(values, cast.source.precision), cast.target)


@casts(("timestamp", "instant"), "text")
def _text_of_timestamp(values: pyarrow.Array, cast: Cast) -> Any:
    return sized(time_format.timestamp_strings(_local(values, cast), cast.source.precision), cast.target)


@casts("duration", "text")
def _text_of_duration(values: pyarrow.Array, cast: Cast) -> Any:
    return sized(time_format.duration_strings(values), cast.target)


@casts("months", "text")
def _text_of_months(values: pyarrow.Array, cast: Cast) -> Any:
    return sized(time_format.month_strings(values), cast.target)


@casts("text", "date", fails=True)
def _date_of_text(values: pyarrow.Array, cast: Cast) -> Any:
    return time_format.parse_dates(values)


@casts("text", "time", fails=True)
def _time_of_text(values: pyarrow.Array, cast: Cast) -> Any:
    return time_format.parse_times(values, cast.target)


@casts("text", ("timestamp", "instant"), fails=True)
def _timestamp_of_text(values: pyarrow.Array, cast: Cast) -> Any:
    plain = DataTypes.TIMESTAMP(cast.target.precision)
    return _as_wanted(time_format.parse_timestamps(values, plain), cast)


@casts(("timestamp", "instant"), ("timestamp", "instant"))
def _timestamp(values: pyarrow.Array, cast: Cast) -> Any:
    if cast.source.root is cast.target.root:
        return cut_to(values, cast.target)
    return _as_wanted(_local(values, cast), cast)


@casts("date", ("timestamp", "instant"))
def _timestamp_of_date(values: pyarrow.Array, cast: Cast) -> Any:
    return _as_wanted(pc.cast(values, pyarrow.timestamp(cast.target.unit)), cast)


@casts("time", ("timestamp", "instant"))
def _timestamp_of_time(values: pyarrow.Array, cast: Cast) -> Any:
    """Return the time on 1970-01-01."""
    whole = pc.cast(pc.cast(values, time_format.number_type(cast.source)), pyarrow.int64())
    return _as_wanted(pc.cast(whole, pyarrow.timestamp(values.type.unit)), cast)


@casts(("timestamp", "instant"), "date")
def _date_of_timestamp(values: pyarrow.Array, cast: Cast) -> Any:
    local = _local(values, cast)
    return pc.cast(pc.floor_temporal(local, unit="day"), pyarrow.date32())


@casts(("timestamp", "instant"), "time")
def _time_of_timestamp(values: pyarrow.Array, cast: Cast) -> Any:
    local = cut_to(_local(values, cast), DataTypes.TIMESTAMP(cast.target.precision))
    return pc.cast(local, cast.target.to_arrow())


@casts("time", "time")
def _time(values: pyarrow.Array, cast: Cast) -> Any:
    whole = pc.cast(pc.cast(values, time_format.number_type(cast.source)), pyarrow.int64())
    steps = {"ms": 1_000_000, "us": 1000, "ns": 1}
    digits = 10 ** (9 - cast.target.precision)
    nanoseconds = pc.multiply(whole, steps[values.type.unit])
    nanoseconds = pc.subtract(nanoseconds, modulo(nanoseconds, digits))
    result = pc.divide(nanoseconds, steps[cast.target.unit])
    return pc.cast(pc.cast(result, time_format.number_type(cast.target)), cast.target.to_arrow())


@casts("date", "date")
def _date(values: pyarrow.Array, cast: Cast) -> Any:
    return values


@casts("duration", "duration")
@casts("months", "months")
def _interval(values: pyarrow.Array, cast: Cast) -> Any:
    return values
