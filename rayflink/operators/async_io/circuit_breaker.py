"""A circuit breaker, which stops calls to a service that keeps failing."""

from __future__ import annotations


class CircuitBreaker:
    """A switch that opens after a number of failures in a row; after a pause one call probes whether it may close
    again.

    >>> breaker = CircuitBreaker(failures=2, probe_after_ms=1000)
    >>> breaker.failed(now_ms=0); breaker.failed(now_ms=10); breaker.state
    'open'
    >>> breaker.may_call(now_ms=500), breaker.may_call(now_ms=1010), breaker.may_call(now_ms=1010)
    (False, True, False)
    >>> breaker.succeeded(); breaker.state
    'closed'

    Args:
        failures: in a row, at least 1.
        probe_after_ms: milliseconds from the last failure to the next probe.
    """

    def __init__(self, failures: int, probe_after_ms: int) -> None:
        self._threshold, self._pause_ms = failures, probe_after_ms
        self._failures = 0
        self._failed_at_ms = 0
        self._probing = False
        self.open_since_ms: int | None = None
        """Time at which the breaker opened, in epoch milliseconds; None while it is closed."""
        self.times_opened = 0

    @property
    def state(self) -> str:
        """Return "closed", "open", or "half-open" while a probe is under way."""
        if self.open_since_ms is None:
            return "closed"
        return "half-open" if self._probing else "open"

    def may_call(self, now_ms: int) -> bool:
        """Return whether a call may be made; True for one caller alone where that call is a probe."""
        if self.open_since_ms is None:
            return True
        if self._probing or now_ms < self._failed_at_ms + self._pause_ms:
            return False
        self._probing = True
        return True

    def wait_ms(self, now_ms: int) -> int:
        """Return the milliseconds after which it makes sense to ask `may_call` again, at least 1."""
        left = self._pause_ms if self._probing else self._failed_at_ms + self._pause_ms - now_ms
        return max(1, left)

    def succeeded(self) -> None:
        """Record a call that succeeded."""
        self._failures, self._probing, self.open_since_ms = 0, False, None

    def failed(self, now_ms: int) -> None:
        """Record a call that failed."""
        self._failures += 1
        self._probing, self._failed_at_ms = False, now_ms
        if self.open_since_ms is None and self._failures >= self._threshold:
            self.open_since_ms = now_ms
            self.times_opened += 1


class CircuitOpen(Exception):
    """The function of a pool has failed too often, for too long.

    Args:
        failures: after how many in a row it is not called any more.
        waited_ms: since then.
        last: what it raised last.
    """

    def __init__(self, failures: int, waited_ms: int, last: str) -> None:
        super().__init__(failures, waited_ms, last)
        self.failures, self.waited_ms, self.last = failures, waited_ms, last

    def __str__(self) -> str:
        return (
            f"{self.failures} calls in a row failed, and no probe has succeeded for {self.waited_ms} ms; the last "
            f"failure was {self.last}; correct that, raise open_deadline_ms, or name a side_output"
        )


__all__ = ["CircuitBreaker", "CircuitOpen"]
