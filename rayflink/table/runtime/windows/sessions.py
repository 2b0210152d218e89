"""Intervals of time by key that are merged where they meet. Pure.

Source: apache/flink TimeWindow.mergeWindows: intervals that touch are merged.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregates.grouping import Codes


@dataclass(frozen=True)
class Sessions:
    """Intervals merged to sessions.

    Args:
        codes: intp[n]: the session that each interval is part of, in [0, m).
        keys: intp[m]: the group of each session's key.
        starts, ends: int64[m].
    """

    codes: Codes
    keys: Codes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def merge_intervals(keys: Codes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Sessions:
    """Merge intervals, each of a key, to sessions in order of key and start.

    Args:
        keys: intp[n], n > 0.
        starts, ends: int64[n].
    """
    order = _ascending(keys, starts)
    sorted_keys, sorted_starts, sorted_ends = keys[order], starts[order], ends[order]
    greatest_ends = _greatest_ends(sorted_keys, sorted_ends)
    is_first = np.empty(len(order), dtype=np.bool_)
    is_first[0] = True
    np.not_equal(sorted_keys[1:], sorted_keys[:-1], out=is_first[1:])
    is_first[1:] |= sorted_starts[1:] > greatest_ends[:-1]
    firsts = np.flatnonzero(is_first)
    codes = np.empty(len(order), dtype=np.intp)
    codes[order] = np.cumsum(is_first) - 1
    return Sessions(codes, sorted_keys[firsts], sorted_starts[firsts], np.maximum.reduceat(sorted_ends, firsts))


def _ascending(keys: Codes, starts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order of intervals by key and start."""
    least = int(starts.min())
    span = int(starts.max()) - least + 1
    if span * (int(keys.max()) + 1) < 1 << 62:
        return np.argsort(keys * span + (starts - least))
    return np.lexsort((starts, keys))


def _greatest_ends(keys: Codes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the greatest end of a key so far; keys ascend: int64[n]."""
    least, most = int(ends.min()), int(ends.max())
    span = most - least + 1
    if span * (int(keys[-1]) + 1) < 1 << 62:
        lifted = keys * span
        return np.maximum.accumulate(lifted + (ends - least)) - lifted + least
    distinct, ranks = np.unique(ends, return_inverse=True)
    lifted = keys * len(distinct)
    greatest: NDArray[np.int64] = distinct[np.maximum.accumulate(lifted + ranks) - lifted]
    return greatest


@dataclass
class _Key:
    """The intervals of a key: starts of those of one gap, ascending, and the bounds of existing sessions."""

    starts: list[int] = field(default_factory=list)
    sessions: list[tuple[int, int]] = field(default_factory=list)


def accept_late(
    keys: Sequence[int],
    starts: Sequence[int],
    is_late: Sequence[bool],
    gap: int,
    sessions: Sequence[tuple[int, int, int]],
) -> list[bool]:
    """Return which records join a session, one after the other: a late one only if it meets an existing session.

    This is a loop of Python, for records that came late and whose key has a session that could accept them.

    Args:
        keys, starts: of records, in the order in which they came; each is an interval of one gap.
        is_late: whether the record by itself is late.
        sessions: (key, start, end) of the existing ones.
    """
    by_key: dict[int, _Key] = {}
    for key, start, end in sessions:
        by_key.setdefault(key, _Key()).sessions.append((start, end))
    accepted = []
    for key, start, late in zip(keys, starts, is_late, strict=True):
        known = by_key.setdefault(key, _Key())
        if late:
            index = bisect_left(known.starts, start - gap)
            late = not (index < len(known.starts) and known.starts[index] <= start + gap) and not any(
                first <= start + gap and start <= stop for first, stop in known.sessions
            )
        if not late:
            insort(known.starts, start)
        accepted.append(not late)
    return accepted


__all__ = ["Sessions", "accept_late", "merge_intervals"]
