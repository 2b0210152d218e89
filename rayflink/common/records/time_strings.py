"""Dates and times as the strings that Flink's formats write, and back.

Source: apache/flink TimeFormats (RFC 3339 with the zone Z), and Java's Timestamp, Time and Instant toString.
"""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone

from ..time import Instant

_CLOCK = r"([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_TIME = re.compile(_CLOCK)
_MOMENT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ]" + _CLOCK + ")?")


def sql_timestamp_text(value: datetime) -> str:
    """Return a timestamp as Flink's CSV format writes it; one with a zone in UTC, with a Z.

    >>> sql_timestamp_text(datetime(2024, 2, 29, 7, 5, 3, 120_000))
    '2024-02-29 07:05:03.12'
    """
    return _timestamp(value, " ") + ("" if value.tzinfo is None else "Z")


def java_timestamp_text(value: datetime) -> str:
    """Return a timestamp as `java.sql.Timestamp` writes it, with at least one digit of fraction; a zone becomes UTC.

    >>> java_timestamp_text(datetime(2024, 2, 29, 7, 5, 3))
    '2024-02-29 07:05:03.0'
    """
    text = _timestamp(value, " ")
    return text if value.microsecond else f"{text}.0"


def utc_timestamp_text(value: datetime) -> str:
    """Return a timestamp by RFC 3339; one without a zone is taken for UTC, as `JsonRowSerializationSchema` does.

    >>> utc_timestamp_text(datetime(2024, 2, 29, 7, 5, 3, 500_000))
    '2024-02-29T07:05:03.5Z'
    """
    return f"{_timestamp(value, 'T')}Z"


def utc_time_text(value: time) -> str:
    """Return a time of day by RFC 3339, in UTC.

    >>> utc_time_text(time(7, 5))
    '07:05:00Z'
    """
    return f"{time_text(value)}Z"


def time_text(value: time) -> str:
    """Return a time of day with its seconds, and with as many digits behind them as it needs.

    >>> time_text(time(7, 5)), time_text(time(7, 5, 3, 10))
    ('07:05:00', '07:05:03.00001')
    """
    return _without_zeros(value.replace(tzinfo=None).isoformat())


def instant_text(value: Instant) -> str:
    """Return a point in time as `java.time.Instant` writes it: no fraction, or one of 3, 6 or 9 digits.

    >>> instant_text(Instant(1, 5_000))
    '1970-01-01T00:00:01.000005Z'
    """
    whole = Instant(value.seconds, 0).to_datetime().replace(tzinfo=None).isoformat()
    if not value.nanos:
        return f"{whole}Z"
    digits = f"{value.nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f"{whole}.{digits}Z"


def parsed_timestamp(text: str) -> datetime:
    """Return the timestamp a string stands for, without a zone: what has one is moved to UTC. Nanoseconds are cut off.

    >>> parsed_timestamp("2024-02-29T07:05:03Z") == parsed_timestamp("2024-02-29 07:05:03")
    True

    Raises:
        ValueError: it stands for none.
    """
    instant = parsed_instant(text)
    return _EPOCH + timedelta(seconds=instant.seconds, microseconds=instant.nanos // 1000)


def parsed_time(text: str) -> time:
    """Return the time of day a string stands for, without a zone. Nanoseconds are cut off.

    >>> parsed_time("07:05:03Z") == parsed_time("07:05:03")
    True

    Raises:
        ValueError: it stands for none, or for one of another zone than UTC.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is not a time of day; write it as 07:05:03")
    if _offset(match[5]):
        raise ValueError(f"{text!r} is not in UTC; write it as 07:05:03Z")
    return time(int(match[1]), int(match[2]), int(match[3] or 0), _nanos(match[4]) // 1000)


def parsed_instant(text: str) -> Instant:
    """Return the point in time a string stands for, to the nanosecond; without a zone it is in UTC.

    >>> parsed_instant("1970-01-01T00:00:01.000000005Z")
    Instant<1, 5>

    Raises:
        ValueError: it stands for none.
    """
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text[:80]!r} is not a timestamp; write it as 2024-02-29T07:05:03Z")
    day, hour, minute, second, fraction, zone = match.groups()
    moment = datetime.fromisoformat(f"{day}T{hour or '00'}:{minute or '00'}:{second or '00'}") - _offset(zone)
    since = moment - _EPOCH
    return Instant(since.days * 86_400 + since.seconds, _nanos(fraction))


_EPOCH = datetime(1970, 1, 1)


def _offset(zone: str | None) -> timedelta:
    """Return how far a zone is ahead of UTC."""
    if zone is None or zone == "Z":
        return timedelta(0)
    ahead = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:].lstrip(":") or 0))
    return -ahead if zone[0] == "-" else ahead


def _nanos(fraction: str | None) -> int:
    return int((fraction or "").ljust(9, "0"))


def _timestamp(value: datetime, between: str) -> str:
    if value.tzinfo is not None:
        value = value.astimezone(timezone.utc).replace(tzinfo=None)
    return _without_zeros(value.isoformat(between))


def _without_zeros(text: str) -> str:
    return text.rstrip("0") if "." in text else text


__all__ = [
    "instant_text", "java_timestamp_text", "parsed_instant", "parsed_time", "parsed_timestamp", "sql_timestamp_text",
    "time_text", "utc_time_text", "utc_timestamp_text",
]  # fmt: skip
