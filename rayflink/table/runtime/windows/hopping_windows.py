"""Hopping windows: windows of one size that begin at regular steps and overlap. Pure.

Source: apache/flink SliceAssigners.HoppingSliceAssigner: a slice is the greatest common divisor of size and slide.
"""

from __future__ import annotations

from math import gcd


class HoppingWindows:
    """Assigns slices to windows that overlap; a `SliceAssigner`.

    >>> hop = HoppingWindows(30, 10, 0)
    >>> hop.first_window(10), hop.last_window(10)
    (10, 30)

    Args:
        size_ms: length of a window.
        slide_ms: distance from one window to the next.
        offset_ms: by which windows are shifted.
    """

    shares_slices = True

    def __init__(self, size_ms: int, slide_ms: int, offset_ms: int) -> None:
        self._size_ms, self.step_ms, self.offset_ms = size_ms, slide_ms, offset_ms
        self.slice_ms = gcd(size_ms, slide_ms)
        self.slices_per_window = size_ms // self.slice_ms

    def window_start(self, end: int) -> int:
        return end - self._size_ms

    def first_window(self, slice_end: int) -> int:
        behind = slice_end - self.offset_ms - self._size_ms
        return -(-behind // self.step_ms) * self.step_ms + self.offset_ms + self._size_ms

    def last_window(self, slice_end: int) -> int:
        start = (slice_end - self.slice_ms - self.offset_ms) // self.step_ms * self.step_ms
        return start + self.offset_ms + self._size_ms

    def border(self, window: int) -> int:
        return (window - self.offset_ms) // self._size_ms * self._size_ms + self.offset_ms


__all__ = ["HoppingWindows"]
