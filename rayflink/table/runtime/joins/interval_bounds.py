"""The time for which an interval join stores rows.

A pair (l, r) fulfils lower <= time(r) - time(l) <= upper. Let W be the watermark. What is known of the times of rows
that are still to come on a side, those that are late left out:

- A time attribute t has t > W, which is what a watermark says. The window_time of a window, too: it is end - 1, and
  an aggregate or a window join gives the rows of a window before the watermark that is end - 1 or more, so end - 1 >
  W.
- The window_end of the same row is window_time + 1, so it is > W + 1. A row of a windowing table function has time t
  > W and t <= end - 1, which gives the same.
- Its window_start is at least end - size, where size is that of the longest window, so it is > W + 1 - size. A
  session has no longest one, and its start no bound.
- Where windows lie in the local time of a zone, W is the last local time that is over for good at the watermark.

So a side has a number s, its shift: 0, 1 or 1 - size, and times to come are > W + s. Write L and R for W + s of the
left and of the right side. Then:

- A left row l has partners to come only with times > R and <= time(l) + upper. There are none when and only when
  time(l) + upper <= R. So exactly the left rows with time(l) <= R - upper may be forgotten.
- A right row r has partners to come only with times > L and <= time(r) - lower. So exactly the right rows with
  time(r) <= L + lower may be forgotten.

"Exactly" as whole numbers of milliseconds go: one more millisecond, and a row with that time could come. An outer
join gives a row without a partner when it is forgotten, since no partner can come after that.

Rows of the result carry both times. A pair is given when its second row comes. If that is r, then time(r) > R held
before, and time(l) >= time(r) - upper > R - upper = L + (R - L) - upper. So time(l) > L - d for d >= upper + s(left)
- s(right); in the same way time(r) > R - d for d >= -lower + s(right) - s(left). A row that is given as it is
forgotten was not to be forgotten at the watermark before, so the same holds for it. Hence the watermark is passed on
d milliseconds late, with d the greater of both and 0, and is true of both times. Where clocks are set back and forth,
d is an hour more: local times of two instants may be as much nearer to one another than these.

Source: apache/flink TimeIntervalJoin, which rounds up when it forgets rows, and delays by the greater of both sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP

from ..windows.zone_shift import is_utc, last_over

_HOUR_MS = 3_600_000


@dataclass(frozen=True)
class SideTime:
    """The times of a side.

    Args:
        column: number of the column; None: the time at which a row comes.
        shift_ms: times to come are greater than the watermark and this.
        zone: whose local times they are.
    """

    column: int | None
    shift_ms: int = 0
    zone: str = "UTC"

    def passed(self, progress: int) -> int:
        """Return the time that all rows to come are later than, at this watermark."""
        if progress in (MAX_TIMESTAMP, MIN_TIMESTAMP):
            return progress
        return last_over(progress, self.zone) + self.shift_ms


@dataclass(frozen=True)
class IntervalBounds:
    """The bounds of the times of a pair: `lower_ms` <= right time - left time <= `upper_ms`."""

    left: SideTime
    right: SideTime
    lower_ms: int
    upper_ms: int

    @property
    def sides(self) -> tuple[SideTime, SideTime]:
        """Return both sides, the left one first."""
        return self.left, self.right

    def partners(self, side: int) -> tuple[int, int]:
        """Return the distance of the times of partners from that of a row: (least, most)."""
        return (-self.upper_ms, -self.lower_ms) if side else (self.lower_ms, self.upper_ms)

    def droppable_until(self, side: int, progress: int) -> int:
        """Return the time up to which rows of a side have no partner to come at this watermark."""
        if self.lower_ms > self.upper_ms:  # no pair fulfils both bounds
            return MAX_TIMESTAMP
        passed = self.sides[1 - side].passed(progress)
        if passed in (MAX_TIMESTAMP, MIN_TIMESTAMP):
            return passed
        return min(max(passed - self.partners(side)[1], MIN_TIMESTAMP), MAX_TIMESTAMP)

    @property
    def delay_ms(self) -> int:
        """Return how far the times of results are behind the watermark at most."""
        apart = self.left.shift_ms - self.right.shift_ms
        clocks = 0 if is_utc(self.left.zone) and is_utc(self.right.zone) else _HOUR_MS
        return max(0, self.upper_ms + apart, -self.lower_ms - apart) + clocks


__all__ = ["IntervalBounds", "SideTime"]
