"""Times from their parts: year, month, day, hour, minute, second, fraction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy
import pyarrow
import pyarrow.compute as pc

_SECOND = 1_000_000_000


def integers(strings: pyarrow.Array, default: int) -> Any:
    """Digits as numbers, int64[n]; the default where there are none."""
    strings = pc.fill_null(strings, "")
    strings = pc.if_else(pc.equal(strings, ""), str(default), strings)
    return pc.cast(strings, pyarrow.int64()).to_numpy(zero_copy_only=False)


def days_of(year: Any, month: Any, day: Any) -> Any:
    """Days since 1970-01-01, int64[n]; a month or day beyond its year or month goes on into the next one."""
    first = ((year - 1970) * 12 + month - 1).astype("datetime64[M]").astype("datetime64[D]").astype(numpy.int64)
    return first + day - 1


def month_lengths(year: Any, month: Any) -> Any:
    """Days of months, int64[n]."""
    return days_of(year, month + 1, numpy.ones_like(year)) - days_of(year, month, numpy.ones_like(year))


def assemble_timestamps(parts: Mapping[str, Any], valid: Any) -> tuple[Any, Any, Any]:
    """Days since 1970 and nanoseconds of the day from parts by name, and which rows are times at all.

    Args:
        parts: year, month, day, hour, minute, second, nanosecond, each int64[n], some of them.
        valid: which rows have parts.
    """
    rows = len(valid)

    def part(name: str, default: int) -> Any:
        return parts.get(name, numpy.full(rows, default, numpy.int64))

    year, month, day = part("year", 1970), part("month", 1), part("day", 1)
    hour, minute, second = part("hour", 0), part("minute", 0), part("second", 0)
    valid = valid & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    valid &= (hour < 24) & (minute < 60) & (second < 60)
    month = numpy.where(valid, month, 1)
    since_midnight = (hour * 3600 + minute * 60 + second) * _SECOND + part("nanosecond", 0)
    return days_of(year, month, day), since_midnight, valid


def timestamps(days: Any, nanoseconds: Any, valid: Any, unit: str) -> pyarrow.Array:
    """Days since 1970 and nanoseconds of the day as timestamps, null where not valid; finer fractions are cut."""
    step = {"s": _SECOND, "ms": 1_000_000, "us": 1000, "ns": 1}[unit]
    whole = days * (86_400 * _SECOND // step) + nanoseconds // step
    return pyarrow.array(whole, mask=~valid).cast(pyarrow.timestamp(unit))
