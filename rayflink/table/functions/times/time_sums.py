"""Times plus and minus intervals, and sums of intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

from rayflink.table.functions.declaring import Kind, by_columns, is_nullable
from rayflink.table.functions.remainders import modulo
from rayflink.table.plan.typed import Arguments, Expr, RowError, Values
from rayflink.table.types import DataType, DataTypes, Root

DAY_MS = 86_400_000
INTERVAL = Kind("an interval", lambda kind: kind.is_interval, DataTypes.INTERVAL_DAY_TIME())
_TIMES = (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ)


def infer_sum(args: Sequence[Expr]) -> DataType | str:
    """Infer the type of the sum of a time and an interval, in any order, or of two intervals."""
    if len(args) == 2:
        left, right = args
        if left.type.is_interval and right.type.root in _TIMES:
            left, right = right, left
        result = _moved(left, right)
        if result is not None:
            return result.as_nullable(is_nullable(args))
    return "a time and an interval, or two intervals of one kind"


def infer_difference(args: Sequence[Expr]) -> DataType | str:
    """Infer the type of the difference of a time and an interval, or of two intervals."""
    if len(args) == 2:
        result = _moved(args[0], args[1])
        if result is not None:
            return result.as_nullable(is_nullable(args))
    return "a time and an interval, or two intervals of one kind; TIMESTAMPDIFF gives the time between two times"


def infer_scaled(args: Sequence[Expr]) -> DataType | str:
    """Infer the type of the product of an interval and a number, in any order."""
    if len(args) == 2:
        for interval, factor in (args, (args[1], args[0])):
            if interval.type.is_interval and factor.type.is_numeric:
                return interval.type.as_nullable(is_nullable(args))
    return "an interval and a number"


def _moved(time: Expr, interval: Expr) -> DataType | None:
    kind, step = time.type, interval.type
    if not step.is_interval:
        return None
    if kind.is_interval:
        return kind if kind.root is step.root else None
    if kind.root not in _TIMES or (kind.root is Root.TIME and step.root is Root.INTERVAL_YEAR_MONTH):
        return None
    return kind


def sum_of_times(arguments: Arguments) -> Values:
    """Return a time plus an interval, or two intervals."""
    left, right = arguments.call.args
    if left.type.is_interval and not right.type.is_interval:
        return _moved_by(arguments, 1, 0, 1)
    return _moved_by(arguments, 0, 1, 1)


def difference_of_times(arguments: Arguments) -> Values:
    """Return a time minus an interval, or two intervals."""
    return _moved_by(arguments, 0, 1, -1)


def _moved_by(arguments: Arguments, time_at: int, interval_at: int, sign: int) -> Values:
    kind = arguments.call.args[time_at].type
    step = arguments.call.args[interval_at].type
    time, interval = arguments.values[time_at], arguments.values[interval_at]
    if sign < 0:
        interval = negated(interval)
    if kind.is_interval:
        return pc.add(time, interval)
    if step.root is Root.INTERVAL_YEAR_MONTH:
        return by_columns(lambda _, values: months_later(*values))(
            Arguments([time, interval], arguments.rows, arguments.call, arguments.session)
        )
    try:
        if kind.is_timestamp:
            return pc.add_checked(time, interval)
        if kind.root is Root.DATE:
            days = pc.divide(pc.cast(interval, pyarrow.int64()), DAY_MS)  # parts of days do not count
            moved = pc.add(pc.cast(time, pyarrow.int32()), pc.cast(days, pyarrow.int32()))
            return pc.cast(moved, arguments.result)
    except pyarrow.ArrowInvalid as error:
        problem = f"an interval is too long to be added to a {kind.nullable()}"
        raise RowError(problem, "give a shorter one, or a time of a lower precision") from error
    return _time_later(time, interval)


def negated(interval: Values) -> Values:
    """Return the interval backwards."""
    kind = interval.type
    if not pyarrow.types.is_duration(kind):
        return pc.negate(interval)
    return pc.cast(pc.negate(pc.cast(interval, pyarrow.int64())), kind)


def _time_later(time: Values, interval: Values) -> Values:
    """Past midnight the day begins anew."""
    kind = time.type
    steps = {"ms": 1, "us": 1000, "ns": 1_000_000}[kind.unit]
    day = pyarrow.scalar(DAY_MS * steps, pyarrow.int64())
    number = pyarrow.int32() if kind.bit_width == 32 else pyarrow.int64()
    since = pc.add(
        pc.cast(pc.cast(time, number), pyarrow.int64()), pc.multiply(pc.cast(interval, pyarrow.int64()), steps)
    )
    return pc.cast(pc.cast(modulo(since, day), number), kind)


def months_later(times: pyarrow.Array, months: pyarrow.Array) -> pyarrow.Array:
    """Dates or timestamps this many months later: the same day of the month, or its last.

    >>> import datetime
    >>> months_later(pyarrow.array([datetime.date(2024, 1, 31)]), pyarrow.array([1])).to_pylist()
    [datetime.date(2024, 2, 29)]
    """
    kind = times.type
    naive = times.cast(pyarrow.timestamp(kind.unit)) if pyarrow.types.is_timestamp(kind) else times
    whole: Any = naive.to_numpy(zero_copy_only=False)
    days = whole.astype("datetime64[D]")
    steps = pc.fill_null(months, 0).to_numpy(zero_copy_only=False).astype("timedelta64[M]")
    first = days.astype("datetime64[M]")
    target = first + steps
    following = (target + numpy.timedelta64(1, "M")).astype("datetime64[D]")
    last = following - target.astype("datetime64[D]") - numpy.timedelta64(1, "D")
    moved = target.astype("datetime64[D]") + numpy.minimum(days - first.astype("datetime64[D]"), last)
    moved = moved.astype(whole.dtype) + (whole - days.astype(whole.dtype))
    nulls = pc.or_(pc.is_null(times), pc.is_null(months)).to_numpy(zero_copy_only=False)
    return pyarrow.array(moved, mask=nulls).cast(naive.type).cast(kind)
