"""The state of sessions: those joined before, in order of their ends, and recent parts that may belong to them.

A session that ends is at the front of the former. It has to be joined with recent parts only, and a recent part that
ends with the sessions of its key, which are found by their hashes; so a watermark costs little more than what it ends.
All are joined anew when joining recent parts has cost as much as that would have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.state.key_columns import hash_columns

from .frame_memory import Columns
from .grouping import Groups, grouped
from .partials import Partials, concatenated
from .reductions import column, plain
from .sessions import merged
from .slice_store import LEAST_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

SESSION_FIELDS = (pa.field("start", pa.int64()), pa.field("end", pa.int64()), pa.field("arrival", pa.int64()))
"""The session of a partial row, and the number of the first record in it."""
START, END, ARRIVAL = -3, -2, -1
_BUCKETS = 1 << 16


class SessionStore:
    """Partial rows, each with its `SESSION_FIELDS`.

    Args:
        partials: says how partial rows are joined.
    """

    def __init__(self, partials: Partials) -> None:
        self._partials = partials
        self._settled: Columns | None = None
        """Sessions by their ends, none of which meet."""
        self._ends: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._buckets: NDArray[np.uint16] = np.empty(0, dtype=np.uint16)
        self._left: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        """Which of the settled ones are still there."""
        self._recent: list[Columns] = []
        self._recent_least: int | None = None
        self._recent_weight = self._settled_weight = self._work = 0

    def add(self, columns: Columns) -> None:
        """Add partial rows, at least one."""
        self._recent.append(columns)
        least = int(plain(columns[END]).min())
        self._recent_least = least if self._recent_least is None else min(least, self._recent_least)
        self._recent_weight += self._partials.weight(columns)
        if self._recent_weight > max(LEAST_WEIGHT, self._settled_weight):
            self._settle()

    @property
    def least_end(self) -> int | None:
        """The least end of a session or a part of one; None: there is none."""
        settled = int(self._ends[np.argmax(self._left)]) if self._left.any() else None
        known = [end for end in (settled, self._recent_least) if end is not None]
        return min(known, default=None)

    def frame(self) -> Callable[[], Columns | None]:
        """Gives all rows as they are now, joined, when it is called later; None where there are none."""
        settled, left, recent = self._settled, self._left.copy(), list(self._recent)

        def frame() -> Columns | None:
            pieces = [_filtered(settled, left), *recent] if settled is not None and left.any() else recent
            return self.joined(pieces) if pieces else None

        return frame

    def joined(self, pieces: Sequence[Columns]) -> Columns:
        """Partial rows as one for each session."""
        *partial, starts, ends, arrived = concatenated(pieces)
        groups = grouped(partial[: self._partials.width], len(starts))
        sessions, places = sessions_of(groups, plain(starts), plain(ends), plain(arrived))
        return self._partials.joined(partial, sessions) + places

    def over(self, bound: int) -> Columns | None:
        """Take out the sessions that end at `bound` or before; None: there are none."""
        least = self.least_end
        if least is None or least > bound:
            return None
        due = self._left & (self._ends <= bound)
        parts = self._settled_where(due)
        self._left &= ~due
        if self._recent:
            recent = self.joined(self._recent) if len(self._recent) > 1 else self._recent[0]
            parts.append(recent)
            ending = _filtered(recent, plain(recent[END]) <= bound)
            if len(ending[END]) and self._left.any():
                met = self._left & self._have_keys_of(ending, self._buckets)
                parts += self._settled_where(met)
                self._left &= ~met
        whole = self.joined(parts) if len(parts) > 1 else parts[0]
        ended = plain(whole[END]) <= bound
        self._forget_recent()
        if not ended.all():
            self.add(_filtered(whole, ~ended))
        self._work += len(ended)
        if self._recent and self._work >= np.count_nonzero(self._left):
            self._settle()
        return _filtered(whole, ended) if ended.any() else None

    def of_keys(self, keys: Sequence[pa.Array]) -> list[Columns]:
        """Rows that may have one of these keys: all that have one, and some others."""
        found = self._settled_where(self._left & self._have_keys_of(keys, self._buckets))
        found += (_filtered(one, self._have_keys_of(keys, self._buckets_of(one))) for one in self._recent)
        return [one for one in found if len(one[END])]

    def _settle(self) -> None:
        whole = self.joined([*self._settled_where(self._left), *self._recent])
        order = np.argsort(plain(whole[END]), kind="stable")
        taken = pa.array(order)
        self._settled = [one.take(taken) for one in whole]
        self._ends = plain(self._settled[END])
        self._buckets = self._buckets_of(self._settled)
        self._left = np.ones(len(order), dtype=np.bool_)
        self._settled_weight, self._work = self._partials.weight(self._settled), 0
        self._forget_recent()

    def _forget_recent(self) -> None:
        self._recent, self._recent_least, self._recent_weight = [], None, 0

    def _settled_where(self, wanted: NDArray[np.bool_]) -> list[Columns]:
        if self._settled is None or not wanted.any():
            return []
        return [_filtered(self._settled, wanted)]

    def _buckets_of(self, columns: Sequence[pa.Array]) -> NDArray[np.uint16]:
        if not self._partials.width:
            return np.zeros(len(columns[END]), dtype=np.uint16)
        return hash_columns(columns[: self._partials.width]).astype(np.uint16)

    def _have_keys_of(self, keys: Sequence[pa.Array], buckets: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Which of the buckets have one of the keys: bool[n]."""
        if not self._partials.width:
            return np.ones(len(buckets), dtype=np.bool_)
        there = np.zeros(_BUCKETS, dtype=np.bool_)
        there[self._buckets_of(keys)] = True
        return there[buckets]


def sessions_of(
    groups: Groups, starts: NDArray[np.int64], ends: NDArray[np.int64], arrived: NDArray[np.int64]
) -> tuple[Groups, Columns]:
    """Rows grouped by their sessions, and the columns of `SESSION_FIELDS` of these."""
    found = merged(groups.codes, starts, ends)
    count = len(found.keys)
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, found.of, arrived)
    taken = pa.array(found.keys)
    columns = [column(part, pa.int64()) for part in (found.starts, found.ends, first)]
    return Groups(found.of, count, [key.take(taken) for key in groups.keys]), columns


def _filtered(columns: Columns, keep: Any) -> Columns:
    wanted = pa.array(keep)
    return [one.filter(wanted) for one in columns]


__all__ = ["ARRIVAL", "END", "SESSION_FIELDS", "START", "SessionStore", "sessions_of"]
