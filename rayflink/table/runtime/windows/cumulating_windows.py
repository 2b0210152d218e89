"""Cumulating windows: windows that share a start and grow by a step up to their full size. Pure.

Source: apache/flink SliceAssigners.CumulativeSliceAssigner: a slice is a step.
"""

from __future__ import annotations


class CumulatingWindows:
    """Assigns slices to windows that grow; a `SliceAssigner`.

    >>> cumulate = CumulatingWindows(30, 10, 0)
    >>> cumulate.window_start(20), cumulate.last_window(10)
    (0, 30)

    Args:
        size_ms: length of the longest window, a multiple of the step.
        step_ms: by which windows grow.
        offset_ms: by which windows are shifted.
    """

    shares_slices = True

    def __init__(self, size_ms: int, step_ms: int, offset_ms: int) -> None:
        self._size_ms, self.offset_ms = size_ms, offset_ms
        self.slice_ms = self.step_ms = step_ms
        self.slices_per_window = size_ms // step_ms

    def window_start(self, end: int) -> int:
        return (end - 1 - self.offset_ms) // self._size_ms * self._size_ms + self.offset_ms

    def first_window(self, slice_end: int) -> int:
        return slice_end

    def last_window(self, slice_end: int) -> int:
        return self.window_start(slice_end) + self._size_ms

    def border(self, window: int) -> int:
        return self.window_start(window)


__all__ = ["CumulatingWindows"]
