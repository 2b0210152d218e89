"""Attached windows: rows bring the bounds of their window in columns, from a window function or operator before. Pure.

Source: apache/flink SliceAssigners.WindowedSliceAssigner.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .slicing import SliceAssigner


class AttachedWindows:
    """Takes each end of a window as a slice and window of its own; a `SliceAssigner`.

    Args:
        assigned_by: the windows that rows were assigned to before.
    """

    shares_slices = False
    slices_per_window = 1

    def __init__(self, assigned_by: SliceAssigner) -> None:
        self._assigned_by = assigned_by
        self.slice_ms, self.step_ms, self.offset_ms = assigned_by.slice_ms, assigned_by.step_ms, assigned_by.offset_ms

    def window_start(self, end: int) -> int:
        return self._assigned_by.window_start(end)

    def first_window(self, slice_end: int) -> int:
        return slice_end

    def last_window(self, slice_end: int) -> int:
        return slice_end

    def border(self, window: int) -> int:
        return window


__all__ = ["AttachedWindows"]
