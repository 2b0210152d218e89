"""The state of sessions: those that were joined before, and recent parts that may belong to them.

A settled session that ends has to be joined with recent parts only, and a recent part that ends with the settled
sessions of its key, which are found by their hashes; so a watermark costs little more than what it ends. All are joined
anew when joining recent parts has cost as much as that would have. What exceeds the managed memory goes to files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.state.keys.key_columns import hash_columns

from ..aggregates.grouping import Groups, grouped
from ..aggregates.partial_aggregates import Partials, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory, divided, size_of
from .sessions import merged
from .slice_store import LEAST_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

SESSION_FIELDS = (pa.field("start", pa.int64()), pa.field("end", pa.int64()), pa.field("arrival", pa.int64()))
"""The session of a partial row, and the number of the first record in it."""
START, END, ARRIVAL = -3, -2, -1
_BUCKETS = 1 << 16


class _Settled:
    """Sessions none of which meet, and which of them are still there.

    Args:
        columns: of at least one.
        buckets: of their keys' hashes.
        size: bytes in memory; 0 where they are in a file.
    """

    def __init__(self, columns: Columns, buckets: NDArray[np.uint16], size: int) -> None:
        self.columns, self.buckets, self.size = columns, buckets, size
        self.ends: NDArray[np.int64] = to_numpy(columns[END])
        self.left: NDArray[np.bool_] = np.ones(len(buckets), dtype=np.bool_)

    def taken(self, wanted: NDArray[np.bool_]) -> list[Columns]:
        """Take out those that are wanted and there: one piece, or none."""
        found = self.left & wanted
        if not found.any():
            return []
        self.left = self.left & ~found  # a snapshot may have the former
        return [filtered(self.columns, found)]

    def there(self) -> list[Columns]:
        """Return the columns that are there: one piece, or none."""
        return [filtered(self.columns, self.left)] if self.left.any() else []


class SessionStore:
    """Partial rows, each with its `SESSION_FIELDS`.

    Args:
        partials: says how partial rows are joined.
    """

    def __init__(self, partials: Partials) -> None:
        self._partials = partials
        self._memory: FrameMemory | None = None
        self._settled: list[_Settled] = []
        """Parts of the state, each with all settled sessions of its keys."""
        self._recent: list[Columns] = []
        self._recent_least: int | None = None
        self._recent_weight = self._recent_size = self._settled_weight = self._work = 0

    def open(self, memory: FrameMemory) -> None:
        """Keep to this memory."""
        self._memory = memory

    def add(self, columns: Columns) -> None:
        """Add partial rows, at least one."""
        self._recent.append(columns)
        least = int(to_numpy(columns[END]).min())
        self._recent_least = least if self._recent_least is None else min(least, self._recent_least)
        self._recent_weight += self._partials.weight(columns)
        self._recent_size += size_of(columns)
        if self._recent_weight > max(LEAST_WEIGHT, self._settled_weight):
            self._settle()
        self._keep_to_memory()

    @property
    def least_end(self) -> int | None:
        """Return the least end of a session or a part of one; None: there is none."""
        known = [int(one.ends[one.left].min()) for one in self._settled if one.left.any()]
        return min(known if self._recent_least is None else [*known, self._recent_least], default=None)

    def pieces(self) -> list[Columns]:
        """Return all rows, as they are kept."""
        return [*(piece for one in self._settled for piece in one.there()), *self._recent]

    def frame(self) -> Callable[[], Columns | None]:
        """Gives all rows as they are now, joined, when it is called later; None where there are none."""
        settled, recent = [(one.columns, one.left) for one in self._settled], list(self._recent)

        def frame() -> Columns | None:
            pieces = [filtered(columns, left) for columns, left in settled if left.any()] + recent
            return self.merge(pieces) if pieces else None

        return frame

    def merge(self, pieces: Sequence[Columns]) -> Columns:
        """Partial rows as one for each session."""
        *partial, starts, ends, arrived = concatenated(pieces)
        groups = grouped(partial[: self._partials.width], len(starts))
        sessions, places = sessions_of(groups, to_numpy(starts), to_numpy(ends), to_numpy(arrived))
        return self._partials.merge(partial, sessions) + places

    def over(self, bound: int) -> Columns | None:
        """Take out the sessions that end at `bound` or before; None: there are none."""
        least = self.least_end
        if least is None or least > bound:
            return None
        parts = [piece for one in self._settled for piece in one.taken(one.ends <= bound)]
        if self._recent:
            recent = self.merge(self._recent) if len(self._recent) > 1 else self._recent[0]
            parts.append(recent)
            ending = filtered(recent, to_numpy(recent[END]) <= bound)
            if len(ending[END]):
                parts += [
                    piece for one in self._settled for piece in one.taken(self._have_keys_of(ending, one.buckets))
                ]
        whole = self.merge(parts) if len(parts) > 1 else parts[0]
        ended = to_numpy(whole[END]) <= bound
        self._forget_recent()
        self._work += len(ended)
        if not ended.all():
            self.add(filtered(whole, ~ended))
        if self._recent and self._work >= sum(np.count_nonzero(one.left) for one in self._settled):
            self._settle()
        self._settled = [one for one in self._settled if one.left.any()]
        self._keep_to_memory()
        return filtered(whole, ended) if ended.any() else None

    def of_keys(self, keys: Sequence[pa.Array]) -> list[Columns]:
        """Keys, starts and ends of rows that may have one of these keys: of all that have one, and of some others.

        Their other columns may be large, and are left alone: this is asked for each batch with late rows.
        """
        parts = [(one.columns, one.left & self._have_keys_of(keys, one.buckets)) for one in self._settled]
        parts += [(one, self._have_keys_of(keys, self._buckets_of(one))) for one in self._recent]
        width = self._partials.width
        return [filtered([*one[:width], one[START], one[END]], there) for one, there in parts if there.any()]

    def _settle(self) -> None:
        """Join all, in parts where the memory is short."""
        pieces = self.pieces()
        parts = 1
        if self._memory is not None and self._partials.width:
            parts = self._memory.parts(sum(map(size_of, pieces)))
        if parts == 1:
            whole = self.merge(pieces)
            self._settled = [_Settled(whole, self._buckets_of(whole), size_of(whole))]
        else:
            assert self._memory is not None
            own = ([one for one in part if len(one[END])] for part in divided(pieces, self._partials.width, parts))
            filed = self._memory.written(self.merge(part) for part in own if part)
            self._settled = [_Settled(one, self._buckets_of(one), 0) for one in filed]
        self._settled_weight, self._work = sum(self._partials.weight(one.columns) for one in self._settled), 0
        self._forget_recent()

    def _keep_to_memory(self) -> None:
        """Write all to a file when it exceeds the memory."""
        size = self._recent_size + sum(one.size for one in self._settled)
        if self._memory is None or self._memory.hold(size):
            return
        for one in self._settled:
            if one.size:
                (one.columns,) = self._memory.written([one.columns])
                one.ends, one.size = to_numpy(one.columns[END]), 0
        if self._recent_size:
            self._recent = self._memory.written([self.merge(self._recent)])
            self._recent_size = 0
        self._memory.hold(0)

    def _forget_recent(self) -> None:
        self._recent, self._recent_least, self._recent_weight, self._recent_size = [], None, 0, 0

    def _buckets_of(self, columns: Sequence[pa.Array]) -> NDArray[np.uint16]:
        if not self._partials.width:
            return np.zeros(len(columns[END]), dtype=np.uint16)
        return hash_columns(columns[: self._partials.width]).astype(np.uint16)

    def _have_keys_of(self, keys: Sequence[pa.Array], buckets: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """Return which buckets have one of the keys: bool[n]."""
        if not self._partials.width:
            return np.ones(len(buckets), dtype=np.bool_)
        there = np.zeros(_BUCKETS, dtype=np.bool_)
        there[self._buckets_of(keys)] = True
        return there[buckets]


def sessions_of(
    groups: Groups, starts: NDArray[np.int64], ends: NDArray[np.int64], arrived: NDArray[np.int64]
) -> tuple[Groups, Columns]:
    """Return rows grouped by their sessions, and the columns of `SESSION_FIELDS` of these."""
    found = merged(groups.codes, starts, ends)
    count = len(found.keys)
    first = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first, found.of, arrived)
    taken = pa.array(found.keys)
    columns = [to_arrow(part, pa.int64()) for part in (found.starts, found.ends, first)]
    return Groups(found.of, count, [key.take(taken) for key in groups.keys]), columns


def filtered(columns: Columns, keep: Any) -> Columns:
    """Return the rows to keep."""
    wanted = pa.array(keep)
    return [one.filter(wanted) for one in columns]


__all__ = ["ARRIVAL", "END", "SESSION_FIELDS", "START", "SessionStore", "sessions_of"]
