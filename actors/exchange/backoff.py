"""The backoff of requests for a partition that its producer does not know yet. Pure counting."""

from __future__ import annotations


class RequestBackoff:
    """Waits that double from `initial_ms` to `max_ms`; after the longest one the request has failed for good.

    Args:
        initial_ms: the first wait, >= 0; 0 never asks again.
        max_ms: the longest wait, >= `initial_ms`.
    Raises: ValueError: an argument is out of its range.
    Source: apache/flink InputChannel.increaseBackoff.
    """

    def __init__(self, initial_ms: int = 100, max_ms: int = 10_000) -> None:
        if not 0 <= initial_ms <= max_ms:
            raise ValueError(f"a request backoff needs 0 <= initial <= maximum, found {initial_ms} ms and {max_ms} ms")
        self._initial_ms, self._max_ms = initial_ms, max_ms
        self._current_ms = 0

    def next_ms(self) -> int | None:
        """Return the wait before the next request; None when there are to be no more."""
        if self._initial_ms == 0 or self._current_ms >= self._max_ms:
            return None
        self._current_ms = min(2 * self._current_ms or self._initial_ms, self._max_ms)
        return self._current_ms
