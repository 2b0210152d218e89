"""Durations and points in time with PyFlink's names; a ``datetime.timedelta`` serves wherever a Duration does."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import total_ordering

__all__ = ["Duration", "Instant", "Length", "Time", "to_millis"]

_NANOS_PER_MILLI = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000


@total_ordering
class Duration:
    """An immutable length of time in whole nanoseconds; may be negative.

    Args:
        nanos: nanoseconds; programs rather call `of_seconds`, `of_millis` and the like.

    >>> Duration.of_seconds(90), Duration.of_millis(5).to_millis()
    (Duration<PT1M30S>, 5)
    """

    __slots__ = ("_nanos",)

    def __init__(self, nanos: int) -> None:
        self._nanos = nanos

    @staticmethod
    def of_days(days: int) -> Duration:
        """Return a duration of whole days of 24 hours."""
        return Duration.of_hours(days * 24)

    @staticmethod
    def of_hours(hours: int) -> Duration:
        """Return a duration of whole hours."""
        return Duration.of_minutes(hours * 60)

    @staticmethod
    def of_minutes(minutes: int) -> Duration:
        """Return a duration of whole minutes."""
        return Duration.of_seconds(minutes * 60)

    @staticmethod
    def of_seconds(seconds: int) -> Duration:
        """Return a duration of whole seconds."""
        return Duration(seconds * _NANOS_PER_SECOND)

    @staticmethod
    def of_millis(millis: int) -> Duration:
        """Return a duration of whole milliseconds."""
        return Duration(millis * _NANOS_PER_MILLI)

    @staticmethod
    def of_nanos(nanos: int) -> Duration:
        """Return a duration of whole nanoseconds."""
        return Duration(nanos)

    @staticmethod
    def of_timedelta(delta: timedelta) -> Duration:
        """Return the same length as a ``timedelta``, exactly."""
        return Duration((delta.days * 86_400 + delta.seconds) * _NANOS_PER_SECOND + delta.microseconds * 1000)

    def to_millis(self) -> int:
        """Return the length in whole milliseconds, rounded towards minus infinity."""
        return self._nanos // _NANOS_PER_MILLI

    def to_nanos(self) -> int:
        """Return the length in nanoseconds."""
        return self._nanos

    def to_timedelta(self) -> timedelta:
        """Return the length as a ``timedelta``; nanoseconds below one microsecond are dropped."""
        return timedelta(microseconds=self._nanos // 1000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Duration) and self._nanos == other._nanos

    def __lt__(self, other: Duration) -> bool:
        return self._nanos < other._nanos

    def __hash__(self) -> int:
        return hash(self._nanos)

    def __reduce__(self) -> tuple[type[Duration], tuple[int]]:
        return Duration, (self._nanos,)

    def __str__(self) -> str:
        """Return ISO-8601 as ``java.time.Duration`` writes it: PT1H30M, PT0.01S, PT0S."""
        sign = -1 if self._nanos < 0 else 1
        seconds, nanos = divmod(abs(self._nanos), _NANOS_PER_SECOND)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        text = "".join(f"{sign * amount}{unit}" for amount, unit in ((hours, "H"), (minutes, "M")) if amount)
        if seconds or nanos or not text:
            fraction = f".{nanos:09d}".rstrip("0") if nanos else ""
            text += f"{'-' if sign < 0 else ''}{seconds}{fraction}S"
        return f"PT{text}"

    def __repr__(self) -> str:
        return f"Duration<{self}>"


def to_millis(amount: Length) -> int:
    """Convert any form of a length of time to milliseconds; an int is milliseconds already.

    Raises: TypeError: `amount` is none of Duration, Time, timedelta, int.
    """
    if isinstance(amount, Duration):
        return amount.to_millis()
    if isinstance(amount, timedelta):
        return Duration.of_timedelta(amount).to_millis()
    if isinstance(amount, Time):
        return amount.to_milliseconds()
    if isinstance(amount, int) and not isinstance(amount, bool):
        return amount
    raise TypeError(
        f"a length of time must be a Duration, Time, datetime.timedelta or int (milliseconds), found {amount!r}"
    )


@total_ordering
class Instant:
    """A point on the UTC time line: seconds since 1970-01-01 and nanoseconds within that second."""

    __slots__ = ("seconds", "nanos")

    def __init__(self, seconds: int, nanos: int) -> None:
        self.seconds = seconds
        self.nanos = nanos

    @staticmethod
    def of_epoch_milli(epoch_milli: int) -> Instant:
        """Return the instant `epoch_milli` milliseconds after 1970-01-01T00:00Z."""
        seconds, millis = divmod(epoch_milli, 1000)
        return Instant(seconds, millis * _NANOS_PER_MILLI)

    def to_epoch_milli(self) -> int:
        """Return the milliseconds since 1970-01-01T00:00Z, rounded towards minus infinity."""
        return self.seconds * 1000 + self.nanos // _NANOS_PER_MILLI

    def to_datetime(self) -> datetime:
        """Return an aware ``datetime`` in UTC; nanoseconds below one microsecond are dropped."""
        return datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(
            seconds=self.seconds, microseconds=self.nanos // 1000
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Instant) and (self.seconds, self.nanos) == (other.seconds, other.nanos)

    def __lt__(self, other: Instant) -> bool:
        return (self.seconds, self.nanos) < (other.seconds, other.nanos)

    def __hash__(self) -> int:
        return hash((self.seconds, self.nanos))

    def __reduce__(self) -> tuple[type[Instant], tuple[int, int]]:
        return Instant, (self.seconds, self.nanos)

    def __repr__(self) -> str:
        return f"Instant<{self.seconds}, {self.nanos}>"


class Time:
    """A length of time in milliseconds, as windows take it.

    >>> str(Time.minutes(2))
    '120000 ms'
    """

    __slots__ = ("_milliseconds",)

    def __init__(self, milliseconds: int) -> None:
        self._milliseconds = milliseconds

    def to_milliseconds(self) -> int:
        """Return the length in milliseconds."""
        return self._milliseconds

    @staticmethod
    def milliseconds(milliseconds: int) -> Time:
        """Return a time of whole milliseconds."""
        return Time(milliseconds)

    @staticmethod
    def seconds(seconds: int) -> Time:
        """Return a time of whole seconds."""
        return Time(seconds * 1000)

    @staticmethod
    def minutes(minutes: int) -> Time:
        """Return a time of whole minutes."""
        return Time(minutes * 60_000)

    @staticmethod
    def hours(hours: int) -> Time:
        """Return a time of whole hours."""
        return Time(hours * 3_600_000)

    @staticmethod
    def days(days: int) -> Time:
        """Return a time of whole days of 24 hours."""
        return Time(days * 86_400_000)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Time) and self._milliseconds == other._milliseconds

    def __hash__(self) -> int:
        return hash(self._milliseconds)

    def __str__(self) -> str:
        return f"{self._milliseconds} ms"


Length = Duration | Time | timedelta | int
"""The forms of a length of time; a plain number is milliseconds."""
