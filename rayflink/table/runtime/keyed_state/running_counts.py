"""Counts of equal rows around each of several changes, without a loop over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .runs import first_of_runs, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


class RunningCounts(NamedTuple):
    """The number of equal rows around each change.

    Args:
        before: it: int64[n].
        after: it: int64[n].
    """

    before: Numbers
    after: Numbers


def running_counts(codes: NDArray[np.integer[Any]], signs: Numbers, counts: Numbers) -> RunningCounts:
    """Return the number of equal rows before and after each change; none lets it fall below zero.

    >>> codes, signs = np.array([0, 1, 0, 0, 0, 0]), np.array([1, 1, 1, -1, -1, 1])
    >>> [numbers.tolist() for numbers in running_counts(codes, signs, np.array([0, 3]))]
    [[0, 3, 1, 2, 1, 0], [1, 4, 2, 1, 0, 1]]

    Args:
        codes: the distinct row of each change.
        signs: what each change adds.
        counts: before all changes, of each distinct row.
    """
    order = stable_order(codes)
    ordered = signs[order]
    is_first = first_of_runs(codes[order])
    starts, runs = np.flatnonzero(is_first), np.cumsum(is_first) - 1
    sums = np.cumsum(ordered)
    sums += (counts[codes[order[starts]]] + ordered[starts] - sums[starts])[runs]
    span = sums.max(initial=0) - sums.min(initial=0) + 1
    apart = runs * span  # so that the least sum of a run is not that of an earlier one
    least = np.minimum.accumulate(sums - apart) + apart
    ordered_after = sums - np.minimum(least, 0)
    ordered_before = np.append(0, ordered_after[:-1])[: len(codes)]
    ordered_before[starts] = counts[codes[order[starts]]]
    before, after = np.empty(len(codes), dtype=np.int64), np.empty(len(codes), dtype=np.int64)
    before[order], after[order] = ordered_before, ordered_after
    return RunningCounts(before, after)


__all__ = ["RunningCounts", "running_counts"]
