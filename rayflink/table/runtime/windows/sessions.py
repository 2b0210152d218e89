"""Intervals of time by key that are joined where they meet. Pure.

Source: apache/flink TimeWindow.mergeWindows: intervals that touch are one.
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
    """Intervals that were joined.

    Args:
        of: intp[n]: which session each interval is part of, in [0, m).
        keys: intp[m]: the group of each session's key.
        starts, ends: int64[m].
    """

    of: Codes
    keys: Codes
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


def merged(keys: Codes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Sessions:
    """Intervals, each of a key, as sessions in order of key and start.

    Args:
        keys: intp[n], n > 0.
        starts, ends: int64[n].
    """
    order = _ascending(keys, starts)
    own, begin, end = keys[order], starts[order], ends[order]
    reached = _reached(own, end)
    opens = np.empty(len(order), dtype=np.bool_)
    opens[0] = True
    np.not_equal(own[1:], own[:-1], out=opens[1:])
    opens[1:] |= begin[1:] > reached[:-1]
    firsts = np.flatnonzero(opens)
    of = np.empty(len(order), dtype=np.intp)
    of[order] = np.cumsum(opens) - 1
    return Sessions(of, own[firsts], begin[firsts], np.maximum.reduceat(end, firsts))


def _ascending(keys: Codes, starts: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the order of intervals by key and start."""
    least = int(starts.min())
    span = int(starts.max()) - least + 1
    if span * (int(keys.max()) + 1) < 1 << 62:
        return np.argsort(keys * span + (starts - least))
    return np.lexsort((starts, keys))


def _reached(keys: Codes, ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the greatest end of a key so far; keys ascend: int64[n]."""
    least, most = int(ends.min()), int(ends.max())
    span = most - least + 1
    if span * (int(keys[-1]) + 1) < 1 << 62:
        lifted = keys * span
        return np.maximum.accumulate(lifted + (ends - least)) - lifted + least
    distinct, ranks = np.unique(ends, return_inverse=True)
    lifted = keys * len(distinct)
    found: NDArray[np.int64] = distinct[np.maximum.accumulate(lifted + ranks) - lifted]
    return found


@dataclass
class _Key:
    starts: list[int] = field(default_factory=list)
    """Of intervals of one gap, ascending."""
    others: list[tuple[int, int]] = field(default_factory=list)


def accepted(
    keys: Sequence[int], starts: Sequence[int], is_late: Sequence[bool], gap: int, known: Sequence[tuple[int, int, int]]
) -> list[bool]:
    """Return which records join a session, one after the other: a late one only if it meets an existing session.

    This is a loop of Python, for records that came late and whose key has a session that could take them.

    Args:
        keys, starts: of records, in the order in which they came; each is an interval of one gap.
        is_late: whether the record by itself is late.
        known: (key, start, end) of the sessions there are.
    """
    by_key: dict[int, _Key] = {}
    for key, start, end in known:
        by_key.setdefault(key, _Key()).others.append((start, end))
    found = []
    for key, start, late in zip(keys, starts, is_late, strict=True):
        there = by_key.setdefault(key, _Key())
        if late:
            at = bisect_left(there.starts, start - gap)
            late = not (at < len(there.starts) and there.starts[at] <= start + gap) and not any(
                first <= start + gap and start <= stop for first, stop in there.others
            )
        if not late:
            insort(there.starts, start)
        found.append(not late)
    return found


__all__ = ["Sessions", "accepted", "merged"]
