"""Panes: the slices of time between two borders of overlapping windows, and the windows each is part of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .assigners import AlignedWindows
from .window import TimeWindow


class Panes:
    """The panes of aligned windows: every window is a row of whole panes, one or two for each slide.

    >>> from rayflink.operators.windows.assigners import SlidingEventTimeWindows
    >>> panes = Panes(SlidingEventTimeWindows.of(10, 4))
    >>> panes.starts([0, 1, 2, 3, 4]), panes.inside(0, 10)
    ([0, 0, 2, 2, 4], [0, 2, 4, 6, 8])

    Args:
        assigner: of windows at least as long as their slide.
    """

    def __init__(self, assigner: AlignedWindows[Any]) -> None:
        self.size_ms, self.slide_ms = assigner.size_ms, assigner.slide_ms
        self.offset_ms = assigner.offset_ms
        self.cut_ms = self.size_ms % self.slide_ms
        """The offset in a slide at which a window ends; 0 where the next one begins there."""
        self._block_ms = self.size_ms - self.cut_ms

    def starts(self, stamps: list[int]) -> list[int]:
        """Return the start of the pane of each timestamp."""
        slide, offset, cut = self.slide_ms, self.offset_ms, self.cut_ms
        if not cut:
            return [stamp - (stamp - offset) % slide for stamp in stamps]
        return [stamp - passed if (passed := (stamp - offset) % slide) < cut else stamp - passed + cut
                for stamp in stamps]  # fmt: skip

    def start(self, stamp: int) -> int:
        """Return the start of the pane of one timestamp."""
        passed = (stamp - self.offset_ms) % self.slide_ms
        return stamp - passed if passed < self.cut_ms or not self.cut_ms else stamp - passed + self.cut_ms

    def pane(self, start: int) -> TimeWindow:
        """Return the pane that begins there, as the namespace of its state."""
        if not self.cut_ms:
            return TimeWindow(start, start + self.slide_ms)
        at_border = (start - self.offset_ms) % self.slide_ms == 0
        return TimeWindow(start, start + (self.cut_ms if at_border else self.slide_ms - self.cut_ms))

    def inside(self, start: int, end: int) -> list[int]:
        """Return the starts of the panes in [start, end), whose borders are borders of panes."""
        whole = list(range(start + (self.offset_ms - start) % self.slide_ms, end, self.slide_ms))
        if not self.cut_ms:
            return whole
        cut = start + (self.offset_ms + self.cut_ms - start) % self.slide_ms
        return sorted((*whole, *range(cut, end, self.slide_ms)))

    def window(self, start: int) -> TimeWindow:
        """Return the window that begins there."""
        return TimeWindow(start, start + self.size_ms)

    def earliest(self, pane_start: int) -> int:
        """Return the start of the earliest window that has the pane."""
        before = pane_start - self.size_ms
        return before + self.slide_ms - (before - self.offset_ms) % self.slide_ms

    def latest(self, pane_start: int) -> int:
        """Return the start of the latest window that has the pane."""
        return pane_start - (pane_start - self.offset_ms) % self.slide_ms

    def window_starts(self, first: int, last: int) -> Iterator[int]:
        """Return the starts of windows from `last` back to `first`, which is the start of one too."""
        return iter(range(last, first - 1, -self.slide_ms))

    def pivot(self, window_start: int) -> int:
        """Return the border that divides the window: panes before it are merged backwards, the others forwards.

        The same for about size / slide windows, which therefore share the joined panes of both sides.
        """
        return window_start + (self.offset_ms - window_start) % self._block_ms


__all__ = ["Panes"]
