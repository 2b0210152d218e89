"""Event time that goes on by the clock while all sources are idle, so that open windows close. Pure, time is given."""

from __future__ import annotations

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP


class IdleAdvance:
    """Says where event time stands in a task whose inputs are all idle.

    From the timeout on it is the watermark at which they became idle and the time that has passed since. Half of the
    timeout earlier the task takes part in its consumers' watermarks again, so that those of several tasks that became
    idle one after the other are waited for. Without a watermark there is nothing to go on from.

    Args:
        timeout_ms: processing time, above 0; None: event time stands still.
        interval_ms: between two steps, above 0.
    """

    def __init__(self, timeout_ms: int | None, interval_ms: int) -> None:
        self._timeout_ms, self._interval_ms = timeout_ms, interval_ms
        self._since: tuple[int, int] | None = None
        self.next_ms: int | None = None
        """Epoch milliseconds of the next step; None while event time follows its watermarks."""

    def seen(self, all_idle: bool, watermark: int, now_ms: int) -> None:
        """Take note of an event: whether all inputs are idle after it, and the watermark."""
        if self._timeout_ms is None:
            return
        if not all_idle or not MIN_TIMESTAMP < watermark < MAX_TIMESTAMP:
            self._since = self.next_ms = None
        elif self._since is None:
            self._since = (now_ms, watermark)
            self.next_ms = now_ms + self._timeout_ms // 2

    def due(self, now_ms: int) -> int | None:
        """Return the watermark to advance to now, at first the current one; None when it is not time for a step."""
        if self._since is None or self.next_ms is None or now_ms < self.next_ms:
            return None
        assert self._timeout_ms is not None
        since_ms, watermark = self._since
        if now_ms - since_ms < self._timeout_ms:
            self.next_ms = since_ms + self._timeout_ms
            return watermark
        self.next_ms = now_ms + self._interval_ms
        return min(watermark + now_ms - since_ms, MAX_TIMESTAMP - 1)
