"""Windows that share slices, joined with little work: what one window has joined is kept for those that follow.

Of windows that grow, the join so far is extended. Of windows that hop, a border divides each: behind the border slices
are joined one after the other, before it backwards, once for all windows. How they are bracketed depends on the borders
and on the slices alone, so that neither batches nor a restore change a sum of floating point numbers.

Source: van Herk and Gil/Werman, running maxima by blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..keyed_state.frame_memory import Columns
from .slice_store import SliceStore
from .slicing import Slicing

LEAST_SLICES = 4
"""Windows of fewer slices are joined as they are."""
_SHARE = 4
"""A join is kept where what it spares is at least such a part of it, so that all of them are at most so much larger."""


class RunningWindows:
    """Gives the pieces that make up a window.

    Args:
        store: the slices.
        slicing: their windows.
    """

    def __init__(self, store: SliceStore, slicing: Slicing) -> None:
        self._store, self._slicing = store, slicing
        self._is_worth_it = slicing.slices_of_a_window >= LEAST_SLICES
        self.forget()

    def forget(self) -> None:
        """Let go of all joins."""
        self._border: int | None = None
        self._before: list[tuple[int, Columns]] = []
        """(end of the first slice in it, join of the slices from there to the border), the longest last."""
        self._behind: Columns | None = None
        self._until = -(2**63)

    def changed(self, end: int) -> None:
        """Mark that rows came to the slice with this end."""
        if end <= self._until:
            self.forget()

    def pieces(self, window: int, ends: Sequence[int]) -> list[Columns]:
        """Return the pieces of a window, in order of their slices.

        Args:
            window: its end; windows come in order.
            ends: of its slices, ascending.
        """
        if not self._is_worth_it or self._store.is_short_of_memory:
            return [piece for end in ends for piece in self._store.pieces(end)]
        border = self._slicing.border(window)
        if border != self._border:
            self.forget()
            self._border = border
            self._join_before([end for end in ends if end <= border])
        fresh = [end for end in ends if end > max(border, self._until)]
        self._until = max(window, self._until)
        if fresh:
            behind = [] if self._behind is None else [self._behind]
            self._behind = self._store.merge([*behind, *self._of(fresh)])
        first = ends[0]
        while self._before and self._before[-1][0] < first:
            self._before.pop()
        joined_from = self._before[-1][0] if self._before else border + 1
        found = self._of([end for end in ends if end < joined_from and end <= border])
        found += [self._before[-1][1]] if self._before else []
        return found + ([] if self._behind is None else [self._behind])

    def _of(self, ends: Sequence[int]) -> list[Columns]:
        return [piece for end in ends for piece in self._store.pieces(end)]

    def _join_before(self, ends: Sequence[int]) -> None:
        """Join slices backwards from the border."""
        waiting: list[Columns] = []
        fresh = 0
        last: Columns | None = None
        for end in reversed(ends):
            pieces = self._store.pieces(end)
            waiting[:0] = pieces
            fresh += sum(map(self._store.weight, pieces))
            if last is None or fresh * _SHARE >= self._store.weight(last):
                last = self._store.merge(waiting if last is None else [*waiting, last])
                self._before.append((end, last))
                waiting, fresh = [], 0


__all__ = ["LEAST_SLICES", "RunningWindows"]
