"""Type objects and constructors of PEP 249."""

from __future__ import annotations

import datetime as dt

from rayflink.table.types import Root

__all__ = [
    "BINARY", "DATETIME", "NUMBER", "ROWID", "STRING", "Binary", "Date", "DateFromTicks", "Time", "TimeFromTicks",
    "Timestamp", "TimestampFromTicks", "TypeObject",
]  # fmt: skip


class TypeObject:
    """Equals the type codes of a kind of columns.

    >>> NUMBER == "BIGINT", NUMBER == "VARCHAR"
    (True, False)

    Args:
        name: as PEP 249 writes it.
        kinds: of SQL types, whose values are their type codes.
    """

    def __init__(self, name: str, *kinds: Root) -> None:
        self._name, self._codes = name, frozenset(kind.value for kind in kinds)

    def __eq__(self, other: object) -> bool:
        return self is other or other in self._codes

    def __hash__(self) -> int:
        return hash(self._codes)

    def __repr__(self) -> str:
        return self._name


STRING = TypeObject("STRING", Root.CHAR, Root.VARCHAR)
BINARY = TypeObject("BINARY", Root.BINARY, Root.VARBINARY)
NUMBER = TypeObject(
    "NUMBER", Root.BOOLEAN, Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT, Root.FLOAT, Root.DOUBLE, Root.DECIMAL
)
DATETIME = TypeObject(
    "DATETIME", Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.TIMESTAMP_TZ
)  # fmt: skip
ROWID = TypeObject("ROWID")

Date = dt.date
Time = dt.time
Timestamp = dt.datetime
Binary = bytes


def DateFromTicks(ticks: float) -> dt.date:  # the name that PEP 249 wants
    """Return the local date of a time in seconds since 1970."""
    return dt.date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> dt.time:
    """Return the local time of day of a time in seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks).time()


def TimestampFromTicks(ticks: float) -> dt.datetime:
    """Return the local date and time of a time in seconds since 1970."""
    return dt.datetime.fromtimestamp(ticks)
