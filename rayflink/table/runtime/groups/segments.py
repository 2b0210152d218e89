"""Rows that lie group by group: running sums and the like within each group, without a loop over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..keyed_state.runs import first_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

LONG = 64
"""Segments of more rows are accumulated one by one; there are few of them. Others step by step, all at once."""


class Segments:
    """Rows in segments of at least one row each, one segment behind the other.

    >>> segments = Segments(np.array([True, False, True]))
    >>> segments.sums(np.array([1, 2, 3]), np.array([10, 0])).tolist()
    [11, 13, 3]

    Args:
        is_first: which rows are the first of their segments: bool[n], beginning with True.
    """

    def __init__(self, is_first: Truths) -> None:
        self.rows = len(is_first)
        self.starts: Numbers = np.flatnonzero(is_first).astype(np.int64)
        self.stops: Numbers = np.append(self.starts[1:], self.rows).astype(np.int64)
        self.codes: Numbers = np.cumsum(is_first) - 1
        """The segment of each row: int64[n]."""

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lasts(self) -> Numbers:
        """Return the last row of each segment."""
        return self.stops - 1

    def sums(self, numbers: Numbers, base: Numbers) -> Numbers:
        """Return running sums of whole numbers, int64[n], which wrap.

        Args:
            base: where the sum of each segment begins.
        """
        totals = np.cumsum(numbers)
        before = totals[self.starts] - numbers[self.starts]
        running: Numbers = totals + (base - before)[self.codes]
        return running

    def accumulated(self, function: np.ufunc, values: NDArray[Any], base: NDArray[Any]) -> NDArray[Any]:
        """Return `function` of all values of a segment up to each row, one after the other.

        Args:
            function: a ufunc of two numbers.
            base: what comes before the first row of each segment.
        """
        results: NDArray[Any] = values.copy()
        results[self.starts] = function(base, values[self.starts])
        lengths = self.stops - self.starts
        for segment in np.flatnonzero(lengths > LONG).tolist():
            part = results[self.starts[segment] : self.stops[segment]]
            function.accumulate(part, out=part)
        step, left = 1, np.flatnonzero(lengths <= LONG)
        while len(left := left[lengths[left] > step]):
            rows = self.starts[left] + step
            results[rows] = function(results[rows - 1], results[rows])
            step += 1
        return results

    def first_rows(self, is_chosen: Truths) -> Numbers:
        """Return the first chosen row of each segment, and the number of all rows where it has none."""
        rows = np.where(is_chosen, np.arange(self.rows), self.rows)
        first: Numbers = np.minimum.reduceat(rows, self.starts)
        has_any = first < self.stops
        rows = np.where(has_any, first, self.rows)
        return rows

    def last_rows(self, is_chosen: Truths) -> Numbers:
        """Return the last chosen row up to each row in its segment, int64[n]; -1: there is none."""
        rows = np.maximum.accumulate(np.where(is_chosen, np.arange(self.rows), -1))
        lasts: Numbers = np.where(rows >= self.starts[self.codes], rows, -1)
        return lasts


def greatest_in_spans(starts: Numbers, stops: Numbers, ranks: Numbers, rows: int) -> Numbers:
    """Return the greatest rank of the spans over each row, int64[rows]; -1: no span lies over it.

    Each span is covered by two blocks whose length is a power of two; blocks are halved from the longest on.

    >>> greatest_in_spans(np.array([0, 1]), np.array([3, 2]), np.array([4, 7]), 4).tolist()
    [4, 7, 4, -1]

    Args:
        starts, stops: the first row of each span, and the one behind its last.
        ranks: from 0 on.
    """
    best = np.full(rows, -1, dtype=np.int64)
    lengths = stops - starts
    is_long = lengths > 0
    starts, stops, ranks, lengths = starts[is_long], stops[is_long], ranks[is_long], lengths[is_long]
    if not len(starts):
        return best
    levels = np.frexp(lengths)[1] - 1
    top = int(levels.max())
    for level in range(top, -1, -1):
        half = 1 << level
        if level < top:
            halved = best.copy()
            halved[half:] = np.maximum(best[half:], best[:-half])
            best = halved
        is_of_level = levels == level
        np.maximum.at(best, starts[is_of_level], ranks[is_of_level])
        np.maximum.at(best, stops[is_of_level] - half, ranks[is_of_level])
    return best


__all__ = ["Segments", "first_of_runs", "greatest_in_spans"]
