"""Slices of time: each row lies in one slice, and windows consist of slices that follow one another. Pure.

A slice and a window are identified by their ends, local times in the window's zone. Four assigners know which slices
make up a window: `tumbling_windows`, `hopping_windows`, `cumulating_windows` and `attached_windows`. `Slicing` adds
the zone and decides which windows are over.

Source: apache/flink SliceAssigners, SlicingWindowProcessor.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from rayflink.common.records.batches import MAX_TIMESTAMP

from ...plan.logical import WindowKind
from ..aggregates.window_spec import WindowSpec
from .attached_windows import AttachedWindows
from .cumulating_windows import CumulatingWindows
from .hopping_windows import HoppingWindows
from .tumbling_windows import TumblingWindows
from .zone_shift import last_over, timer_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SliceAssigner(Protocol):
    """The slices and windows of one kind, as arithmetic on local times in milliseconds."""

    slice_ms: int
    """Length of a slice."""
    step_ms: int
    """Distance between the ends of two windows."""
    offset_ms: int
    """Start of a slice; all others are multiples of `slice_ms` away."""

    @property
    def shares_slices(self) -> bool:
        """Return whether several windows contain one slice; else each slice is a window."""
        ...

    @property
    def slices_per_window(self) -> int:
        """Return the largest number of slices in a window."""
        ...

    def window_start(self, end: int) -> int:
        """Return the start of the window with this end."""
        ...

    def first_window(self, slice_end: int) -> int:
        """Return the end of the first window that contains the slice."""
        ...

    def last_window(self, slice_end: int) -> int:
        """Return the end of the last window that contains the slice."""
        ...

    def border(self, window: int) -> int:
        """Return a time within the window that all windows of its group contain; of growing windows their start."""
        ...


def slice_assigner(spec: WindowSpec) -> SliceAssigner:
    """Return the assigner of windows that are not sessions."""
    assigner: SliceAssigner
    if spec.kind is WindowKind.HOP:
        assigner = HoppingWindows(spec.size_ms, spec.slide_ms, spec.offset_ms)
    elif spec.kind is WindowKind.CUMULATE:
        assigner = CumulatingWindows(spec.size_ms, spec.slide_ms, spec.offset_ms)
    else:
        assigner = TumblingWindows(spec.size_ms, spec.offset_ms)
    return assigner if spec.end_column is None else AttachedWindows(assigner)


class Slicing:
    """Finds the slice of a time, and the windows that are over at a progress of time.

    Args:
        spec: windows that are not sessions.
    """

    def __init__(self, spec: WindowSpec) -> None:
        self._zone = spec.shift_zone
        self.assigner = slice_assigner(spec)
        self.slice_ms, self._offset_ms = self.assigner.slice_ms, self.assigner.offset_ms

    def slice_ends(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the ends of the slices in which local times lie: int64[n]."""
        shifted = times - self._offset_ms
        shifted //= self.slice_ms
        shifted += 1
        shifted *= self.slice_ms
        shifted += self._offset_ms
        return shifted

    def slice_end(self, time: int) -> int:
        """Return the end of the slice in which one local time lies."""
        return ((time - self._offset_ms) // self.slice_ms + 1) * self.slice_ms + self._offset_ms

    def fires_at(self, window: int) -> int:
        """Return the progress of time, as an instant, at which the window with this end is over."""
        return timer_of(window - 1, self._zone)

    def expires_at(self, slice_end: int) -> int:
        """Return the progress of time at which all windows that contain the slice are over."""
        return timer_of(self.assigner.last_window(slice_end) - 1, self._zone)

    def windows_due(self, slices: Sequence[int], after: int, until: int) -> Iterator[tuple[int, int, int]]:
        """Yield the windows that have a slice and are over at `until`, but were not at `after`.

        Args:
            slices: ends of slices, ascending.
            after, until: progresses of time.
        Yields:
            (end of a window, first, behind the last of its slices in `slices`), by their ends.
        """
        assigner = self.assigner
        over, due = (last_over(progress, self._zone) + 1 for progress in (after, until))
        for index in range(max(bisect_right(slices, over) - 1, 0), len(slices)):
            end = assigner.first_window(slices[index])
            if end > due:
                return
            if not assigner.shares_slices:
                if end > over:
                    yield end, index, index + 1
                continue
            last = min(assigner.last_window(slices[index]), due)
            following = slices[index + 1] if index + 1 < len(slices) else last + 1
            if end <= over:
                end += ((over - end) // assigner.step_ms + 1) * assigner.step_ms
            while end <= last and end < following:
                yield end, bisect_right(slices, assigner.window_start(end), 0, index + 1), index + 1
                end += assigner.step_ms

    def next_firing(self, slices: Sequence[int], after: int) -> int | None:
        """Return the least progress at which a window with one of these slices is over; None: there is none."""
        first = next(self.windows_due(slices, after, MAX_TIMESTAMP), None)
        return None if first is None else self.fires_at(first[0])


__all__ = ["SliceAssigner", "Slicing", "slice_assigner"]
