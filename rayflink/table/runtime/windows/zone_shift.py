"""Instants as times of day in a zone and back, where windows lie in a zone's days and hours.

A local time is epoch milliseconds of the clock on the wall read as if it were UTC.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HOUR_MS = 3_600_000
_QUARTER_MS = 900_000
"""In these days clocks change at quarters of an hour."""
_ARROW_KNOWS = 2_114_380_800_000
"""Begin of 2037: of later years Arrow knows no summer time."""
_EPOCH = datetime(1970, 1, 1)
_LEAST, _MOST = -62_135_500_000_000, 253_402_200_000_000
"""Milliseconds that a calendar of years 1 to 9999 knows, a day left at each end."""
_MS = timedelta(milliseconds=1)


def is_utc(zone: str) -> bool:
    """Return whether local times are instants."""
    return zone in ("UTC", "Z", "Etc/UTC", "GMT", "+00:00")


def local_times(instants: pa.Array, zone: str) -> pa.Array:
    """Instants, timestamp[ms], as local times."""
    if is_utc(zone):
        return instants
    local = pc.local_timestamp(pc.assume_timezone(instants, "UTC").cast(pa.timestamp("ms", zone)))
    greatest = pc.max(instants.cast(pa.int64())).as_py()
    if greatest is None or greatest < _ARROW_KNOWS:
        return local
    numbers = instants.cast(pa.int64()).fill_null(0).to_numpy()
    quarters, index = np.unique(numbers // _QUARTER_MS, return_inverse=True)
    shifts = [local_time(quarter * _QUARTER_MS, zone) - quarter * _QUARTER_MS for quarter in quarters.tolist()]
    later = pa.array(numbers + np.array(shifts)[index]).cast(pa.timestamp("ms"))
    return pc.if_else(pa.array(numbers >= _ARROW_KNOWS), later, local)


def local_time(instant: int, zone: str) -> int:
    """Return the local time of an instant."""
    if is_utc(zone) or not _LEAST < instant < _MOST:
        return instant
    moment = (_EPOCH + instant * _MS).replace(tzinfo=timezone.utc)
    return (moment.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - _EPOCH) // _MS


@lru_cache(4096)
def instant_of(local: int, zone: str) -> int:
    """Return the instant of a local time: the earlier of two; in a gap as far behind it as the local time is in it."""
    if is_utc(zone) or not _LEAST < local < _MOST:
        return local
    moment = (_EPOCH + local * _MS).replace(tzinfo=ZoneInfo(zone))
    return (moment.astimezone(timezone.utc).replace(tzinfo=None) - _EPOCH) // _MS


@lru_cache(4096)
def timer_of(local: int, zone: str) -> int:
    """Return the instant at which a local time has come for good: the later of two; in a gap the begin of its hour.

    Source: apache/flink TimeWindowUtil.toEpochMillsForTimer.
    """
    if is_utc(zone):
        return local
    first, an_hour_on = instant_of(local, zone), instant_of(local + _HOUR_MS, zone)
    if an_hour_on - first > _HOUR_MS:
        return an_hour_on - _HOUR_MS
    return first - first % _HOUR_MS if an_hour_on == first else first


def instants_of(locals_: NDArray[np.int64], zone: str) -> NDArray[np.int64]:
    """Return the instants of many local times, as `instant_of`: int64[n]."""
    if is_utc(zone):
        return locals_
    distinct, index = np.unique(locals_, return_inverse=True)
    stamps = pc.assume_timezone(
        pa.array(distinct).cast(pa.timestamp("ms")), zone, ambiguous="earliest", nonexistent="latest"
    )
    # In a gap Arrow gives its end; as many milliseconds behind it as the local time is in it are wanted.
    instants = stamps.cast(pa.int64()).to_numpy().copy()
    shown = pc.local_timestamp(stamps).cast(pa.int64()).to_numpy()
    for number in np.flatnonzero((shown != distinct) | (distinct >= _ARROW_KNOWS)):
        instants[number] = instant_of(int(distinct[number]), zone)
    every_instant: NDArray[np.int64] = instants[index]
    return every_instant


def last_over(progress: int, zone: str) -> int:
    """Return the last local time whose `timer_of` is not beyond the progress of time, an instant."""
    if is_utc(zone) or not _LEAST < progress < _MOST:
        return progress
    least = local_time(progress, zone) - 3 * _HOUR_MS
    most = least + 6 * _HOUR_MS
    while least < most:
        middle = (least + most + 1) // 2
        if timer_of(middle, zone) <= progress:
            least = middle
        else:
            most = middle - 1
    return least
