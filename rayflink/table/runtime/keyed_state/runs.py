"""Runs of equal numbers, and ranges of numbers, without a loop over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


def first_of_runs(codes: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows are the first of a run of equal codes: bool[n]."""
    is_first: NDArray[np.bool_] = np.ones(len(codes), dtype=np.bool_)
    is_first[1:] = codes[1:] != codes[:-1]
    return is_first


def stable_order(codes: NDArray[np.integer[Any]]) -> Numbers:
    """Return the order that sorts numbers below 2**32, equal ones in their own order.

    >>> stable_order(np.array([7, 3, 7, 3])).tolist()
    [1, 3, 0, 2]
    """
    bits = max(len(codes) - 1, 1).bit_length()
    if bits > 31:
        return np.argsort(codes, kind="stable")
    ordered = np.sort(codes.astype(np.int64) << bits | np.arange(len(codes)))
    order: Numbers = ordered & ((1 << bits) - 1)
    return order


def ranges(starts: Numbers, counts: Numbers) -> Numbers:
    """Return the numbers of ranges, one range behind the other: int64[sum of counts].

    >>> ranges(np.array([10, 5]), np.array([3, 2])).tolist()
    [10, 11, 12, 5, 6]
    """
    ends = np.cumsum(counts)
    numbers: Numbers = np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers


__all__ = ["first_of_runs", "ranges", "stable_order"]
