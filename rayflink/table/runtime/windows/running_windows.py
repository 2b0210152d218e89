"""Windows that share slices, merged with little work: the merge of one window is used again by those that follow.

Of windows that grow, the merge so far is extended. Windows that hop are divided by a border: slices behind the border
are merged one after the other, slices before it backwards, once for all windows. The order of merges depends on the
borders and the slices alone, so that neither batches nor a restore change a sum of floating point numbers.

Source: van Herk and Gil/Werman, running maxima by blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..keyed_state.frame_memory import Columns
from .slice_store import SliceStore
from .slicing import SliceAssigner

LEAST_SLICES = 4
"""Windows of fewer slices are merged as they are."""
_SHARE = 4
"""A merge is stored where the rows that were merged anew are at least a quarter of it; this bounds their memory."""


class RunningWindows:
    """Finds the pieces that a window consists of, and stores merges that later windows share.

    Args:
        store: the slices.
        assigner: the windows that they belong to.
    """

    def __init__(self, store: SliceStore, assigner: SliceAssigner) -> None:
        self._store, self._assigner = store, assigner
        self._is_worth_it = assigner.slices_per_window >= LEAST_SLICES
        self.forget()

    def forget(self) -> None:
        """Drop all merges."""
        self._border: int | None = None
        self._before: list[tuple[int, Columns]] = []
        """(end of the first slice in it, merge of the slices from there to the border), the longest last."""
        self._behind: Columns | None = None
        """Merge of the slices from the border to `_until`."""
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
        border = self._assigner.border(window)
        if border != self._border:
            self.forget()
            self._border = border
            self._merge_before([end for end in ends if end <= border])
        fresh = [end for end in ends if end > max(border, self._until)]
        self._until = max(window, self._until)
        if fresh:
            behind = [] if self._behind is None else [self._behind]
            self._behind = self._store.merge([*behind, *self._pieces_of(fresh)])
        first = ends[0]
        while self._before and self._before[-1][0] < first:
            self._before.pop()
        merged_from = self._before[-1][0] if self._before else border + 1
        pieces = self._pieces_of([end for end in ends if end < merged_from and end <= border])
        pieces += [self._before[-1][1]] if self._before else []
        return pieces + ([] if self._behind is None else [self._behind])

    def _pieces_of(self, ends: Sequence[int]) -> list[Columns]:
        return [piece for end in ends for piece in self._store.pieces(end)]

    def _merge_before(self, ends: Sequence[int]) -> None:
        """Merge slices backwards from the border."""
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
