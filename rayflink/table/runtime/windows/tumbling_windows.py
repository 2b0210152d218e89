"""Tumbling windows: each slice of time is a window of its own. Pure."""

from __future__ import annotations


class TumblingWindows:
    """Assigns slices to windows that follow one another; a `SliceAssigner`.

    >>> TumblingWindows(10, 0).window_start(30)
    20

    Args:
        size_ms: length of a window.
        offset_ms: by which windows are shifted.
    """

    shares_slices = False
    slices_per_window = 1

    def __init__(self, size_ms: int, offset_ms: int) -> None:
        self.slice_ms = self.step_ms = self._size_ms = size_ms
        self.offset_ms = offset_ms

    def window_start(self, end: int) -> int:
        return end - self._size_ms

    def first_window(self, slice_end: int) -> int:
        return slice_end

    def last_window(self, slice_end: int) -> int:
        return slice_end

    def border(self, window: int) -> int:
        return window


__all__ = ["TumblingWindows"]
