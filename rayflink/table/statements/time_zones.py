"""The session's time zone, by its name in the IANA database."""

from __future__ import annotations

import os

from ..errors import SqlError, nearest


def known_zone(name: str, what: str = "'table.local-time-zone'") -> str:
    """Return the same name.

    Args:
        what: is the name, for messages.

    Raises:
        SqlError: there is no time zone of it.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

    from ..runtime.windows.zone_shift import is_utc  # slow: it loads pyarrow

    if is_utc(name):
        return name
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        problem = f"{what} is {name!r}, which is no time zone{nearest(name, available_timezones())}"
        raise SqlError(problem, "give a name of the IANA database, as Europe/Berlin or UTC") from error
    return name


def system_zone() -> str:
    """Return the name of this machine's time zone, UTC where it has none."""
    variable = os.environ.get("TZ", "").lstrip(":")
    if variable:
        return variable
    try:
        _, separator, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    except OSError:
        return "UTC"
    return name if separator else "UTC"


__all__ = ["known_zone", "system_zone"]
