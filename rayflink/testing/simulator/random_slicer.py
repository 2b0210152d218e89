"""Slices of input whose size is drawn from the seed."""

from __future__ import annotations

import random

from rayflink.actors.task.slicing import Monotonic, Slicer


class RandomSlicer(Slicer):
    """Slices of random size that stop at random, whatever the records cost."""

    def __init__(self, clock: Monotonic, draw: random.Random) -> None:
        super().__init__(clock)
        self._draw = draw

    def rows(self, available: int) -> int:
        return min(available, self._draw.choice((1, 2, 3, 7, 64, 1024)))

    def may_continue(self) -> bool:
        return self._draw.random() < 0.8


__all__ = ["RandomSlicer"]
