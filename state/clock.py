"""Time as a parameter: a system clock for running jobs, a manual one for tests and simulation."""

from __future__ import annotations

import time
from typing import Protocol, runtime_checkable

from rayflink.user_types import UserValue


@runtime_checkable
class Clock(Protocol):
    """A source of time; code that decides takes one instead of asking the machine."""

    def now_ms(self) -> int:
        """Return the wall-clock time in whole milliseconds since 1970-01-01 UTC; may step backwards."""
        ...

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never goes backwards."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Return the wall-clock time in whole milliseconds since 1970-01-01 UTC; may step backwards."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never goes backwards."""
        return time.monotonic()


class ManualClock:
    """A clock that moves only when it is advanced.

    >>> clock = ManualClock(1_000)
    >>> clock.advance(250)
    >>> clock.now_ms(), clock.monotonic()
    (1250, 0.25)
    """

    def __init__(self, start_ms: int = 0) -> None:
        self._start_ms = start_ms
        self._elapsed_ms = 0

    def now_ms(self) -> int:
        """Return the start plus all advances, in milliseconds."""
        return self._start_ms + self._elapsed_ms

    def monotonic(self) -> float:
        """Return the seconds advanced since the clock was made."""
        return self._elapsed_ms / 1000

    def advance(self, by_ms: int) -> None:
        """Move both clocks forward.

        Args:
            by_ms: milliseconds, at least 0.
        Raises: ValueError: ``by_ms`` is negative.
        """
        if by_ms < 0:
            raise ValueError(f"a clock advances by 0 ms or more, not by {by_ms}; make a new ManualClock to go back")
        self._elapsed_ms += by_ms


def epoch_ms(value: UserValue, what: str) -> int:
    """Return `value` as a plain int.

    Args:
        what: what it is, for the error.

    Raises:
        TypeError: it is no whole number.
        ValueError: it is outside [-2^63, 2^63).
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        problem = f"{what} must be an int of epoch milliseconds, found {value!r:.200} of type {type(value).__name__}"
        raise TypeError(problem if value is not None else f"{problem}; a record without a timestamp has None for it")
    if not -(2**63) <= value < 2**63:
        bits = int(value).bit_length()
        raise ValueError(f"{what} must be in [-2^63, 2^63) epoch milliseconds, found a number of {bits} bits")
    return int(value)
