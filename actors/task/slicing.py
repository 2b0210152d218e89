"""Sizes slices: how many records a task processes before it reads its mail again, learnt from recent costs."""

from __future__ import annotations

from typing import Protocol

_EXPLORES = 16
"""Number of slices of one record among which one has two, which shows whether a record costs the time or the batch."""
MOST_POLLED = 1 << 17
"""Records that a source is asked for at once; columns are cheaper together, and slices are bounded by their time."""


class Monotonic(Protocol):
    """A clock for durations."""

    def monotonic(self) -> float:
        """Return seconds."""
        ...


class Slicer:
    """Sizes slices so that one takes about `target_ms`.

    A slice is at least one record: a function that takes a second a record makes slices of a second. Work that costs
    the same whatever the number of records, which slices of two sizes show, makes slices that take twice as long at
    most: smaller ones would only repeat it. Of slices of one record, one in 16 has two, so that this is found out.

    Args:
        clock: measures the slices.
        target_ms: how long a slice should take, > 0.
        first: records of the first slice, before anything was measured.
    """

    def __init__(self, clock: Monotonic, target_ms: float = 10.0, first: int = 1) -> None:
        self._clock = clock
        self._target_s = target_ms / 1000
        self._limit = float(first)
        self._expected = 0
        self._started = 0.0
        self._spent = 0.0
        self._base = self._other = (0, 0.0)
        """Records of slices of two sizes, the later one first, and what they took."""
        self.longest_ms = 0.0
        self._until_larger = _EXPLORES

    def rows(self, available: int) -> int:
        """Return how many of `available` records (>= 1) to take now."""
        limit = int(self._limit)
        if limit <= 1:
            self._until_larger -= 1
            if self._until_larger <= 0 and available > 1:
                self._until_larger, limit = _EXPLORES, 2
        return max(1, min(available, limit))

    def expect(self, rows: int) -> None:
        """Expect work on `rows` records."""
        self._learn()
        self._expected, self._spent = rows, 0.0

    def begin(self) -> None:
        """Start or resume the measurement."""
        self._started = self._clock.monotonic()

    def end(self) -> None:
        """Pause the measurement."""
        took = self._clock.monotonic() - self._started
        self._spent += took
        self.longest_ms = max(self.longest_ms, took * 1000)

    def may_continue(self) -> bool:
        """Return whether this step's time is not yet used up."""
        return self._clock.monotonic() - self._started < self._target_s

    def _fitting(self, rows: int, spent: float) -> float:
        """Return the records of a slice, by the cost of a slice and that of a record."""
        if abs(rows - self._base[0]) * 4 >= max(rows, self._base[0]):
            self._other, self._base = self._base, (rows, spent)
        other_rows, other_spent = self._other
        each = spent / rows
        if other_rows and other_rows != rows:
            each = min(max((spent - other_spent) / (rows - other_rows), 0.0), each)
        fixed = spent - each * rows
        wanted = max(self._target_s - fixed, fixed)
        return wanted / each if each else float(1 << 20)

    def _learn(self) -> None:
        rows, spent = self._expected, self._spent
        if not rows:
            return
        if spent <= 0:
            self._limit = min(self._limit * 2, 1 << 20)
            return
        fitting = self._fitting(rows, spent)
        # grow by doubling at most, so that a few cheap records do not open the way for a flood of dear ones
        self._limit = max(1.0, min(fitting, self._limit * 2, 1 << 20))
