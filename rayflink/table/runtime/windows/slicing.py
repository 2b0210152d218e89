"""Windows as slices: each row lies in one slice, and windows are made of slices that follow one another. Pure.

A slice and a window go by their ends, local times in the window's zone.

Source: apache/flink SliceAssigners, SlicingWindowProcessor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rayflink.common.records.batches import MAX_TIMESTAMP

from ...plan.logical import WindowKind
from ..aggregates.window_spec import WindowSpec
from .zone_shift import last_over, timer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Slicing:
    """The slices of windows: the slice of a time, and the slices of a window.

    Args:
        spec: windows that are not sessions.
    """

    def __init__(self, spec: WindowSpec) -> None:
        self._zone = spec.shift_zone
        self._is_attached = spec.end_column is not None
        self._kind, self._size, self._offset = spec.kind, spec.size_ms, spec.offset_ms
        self.slice_ms, self._step = spec.slice_ms, spec.slide_ms
        self.is_alone = self._is_attached or self._kind is WindowKind.TUMBLE
        """Whether each slice is a window."""

    def slice_ends(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ends of the slices in which local times lie: int64[n]."""
        shifted = times - self._offset
        shifted //= self.slice_ms
        shifted += 1
        shifted *= self.slice_ms
        shifted += self._offset
        return shifted

    def slice_end(self, time: int) -> int:
        """Return the same of one time."""
        return ((time - self._offset) // self.slice_ms + 1) * self.slice_ms + self._offset

    def window_start(self, end: int) -> int:
        """Begin of the window with this end."""
        if self._kind is WindowKind.CUMULATE:
            return (end - 1 - self._offset) // self._size * self._size + self._offset
        return end - self._size

    def last_window(self, slice_end: int) -> int:
        """End of the last window that has the slice."""
        if self.is_alone:
            return slice_end
        if self._kind is WindowKind.CUMULATE:
            return self.window_start(slice_end) + self._size
        return (slice_end - self.slice_ms - self._offset) // self._step * self._step + self._offset + self._size

    def first_window(self, slice_end: int) -> int:
        """End of the first window that has the slice."""
        if self.is_alone or self._kind is WindowKind.CUMULATE:
            return slice_end
        behind = slice_end - self._offset - self._size
        return -(-behind // self._step) * self._step + self._offset + self._size

    @property
    def slices_of_a_window(self) -> int:
        """Return the largest number of slices in a window."""
        return 1 if self.is_alone else self._size // self.slice_ms

    def border(self, window: int) -> int:
        """Return a time that lies in the window and in all others of its group; for growing windows their start."""
        if self._kind is WindowKind.CUMULATE:
            return self.window_start(window)
        return (window - self._offset) // self._size * self._size + self._offset

    def fires_at(self, end: int) -> int:
        """Return the progress of time, as an instant, at which the window with this end is over."""
        return timer_of(end - 1, self._zone)

    def windows_due(self, slices: Sequence[int], after: int, until: int) -> Iterator[tuple[int, int, int]]:
        """Yield the windows that have a slice and are over at `until`, but were not at `after`.

        Args:
            slices: ends of slices, ascending.
            after, until: progresses of time.
        Yields:
            (end of a window, first, behind the last of its slices in `slices`), by their ends.
        """
        over, due = (last_over(progress, self._zone) + 1 for progress in (after, until))
        for at in range(max(bisect_right(slices, over) - 1, 0), len(slices)):
            end = self.first_window(slices[at])
            if end > due:
                return
            if self.is_alone:
                if end > over:
                    yield end, at, at + 1
                continue
            last = min(self.last_window(slices[at]), due)
            following = slices[at + 1] if at + 1 < len(slices) else last + 1
            if end <= over:
                end += ((over - end) // self._step + 1) * self._step
            while end <= last and end < following:
                yield end, bisect_right(slices, self.window_start(end), 0, at + 1), at + 1
                end += self._step

    def next_firing(self, slices: Sequence[int], after: int) -> int | None:
        """Return the least progress at which a window with one of these slices is over; None: there is none."""
        first = next(self.windows_due(slices, after, MAX_TIMESTAMP), None)
        return None if first is None else self.fires_at(first[0])


__all__ = ["Slicing"]
