"""Between instants and the time that clocks show in a zone."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from typing import Any

import pyarrow
import pyarrow.compute as pc

from rayflink.table.plan.typed import RowError

_SHORT = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AST": "America/Anchorage",
    "BST": "Asia/Dhaka",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "ECT": "Europe/Paris",
    "EST": "America/Panama",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MST": "America/Phoenix",
    "PST": "America/Los_Angeles",
}
"""Names of Java that the IANA database has not, or otherwise."""
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?([+-])(\d{1,2})(?::?(\d{2}))?")


def zone_name(name: str) -> str:
    """Return a zone as Arrow knows it: of the IANA database, or an offset such as +08:00.

    >>> zone_name("PST"), zone_name("GMT-8"), zone_name("Z")
    ('America/Los_Angeles', '-08:00', 'UTC')

    Raises:
        RowError: there is none of that name.
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign, hours, minutes = offset.groups()
        return f"{sign}{int(hours):02}:{int(minutes or 0):02}"
    zone = "UTC" if name in ("Z", "GMT") else _SHORT.get(name, name)
    try:
        zoneinfo.ZoneInfo(zone)
    except (ValueError, zoneinfo.ZoneInfoNotFoundError) as error:
        raise RowError(f"there is no time zone {name!r}", "give one such as 'Europe/Berlin' or '+01:00'") from error
    return zone


def local_times(instants: Any, zone: str) -> Any:
    """Instants as times without a zone: what clocks show there."""
    unit, name = instants.type.unit, zone_name(zone)
    if name == "UTC":
        return pc.cast(instants, pyarrow.timestamp(unit))
    return pc.local_timestamp(pc.cast(instants, pyarrow.timestamp(unit, name)))


def instants_of(times: pyarrow.Array, zone: str) -> Any:
    """Times without a zone as the instants at which clocks show them there.

    Of two instants it is the earlier one; a time that is skipped in spring is as much later.
    """
    unit, name = times.type.unit, zone_name(zone)
    utc = pyarrow.timestamp(unit, "UTC")
    if name == "UTC":
        return pc.cast(times, utc)
    instants = pc.assume_timezone(times, name, ambiguous="earliest", nonexistent="earliest")
    skipped = pc.not_equal(pc.local_timestamp(instants), times)
    if pc.any(skipped).as_py():
        hours = pyarrow.scalar(datetime.timedelta(hours=3), pyarrow.duration(unit))
        before = pc.assume_timezone(pc.subtract(times, hours), name, ambiguous="earliest", nonexistent="earliest")
        instants = pc.if_else(skipped, pc.add(before, hours), instants)
    return pc.cast(instants, utc)
