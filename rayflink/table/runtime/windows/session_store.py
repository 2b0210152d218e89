"""The state of sessions: settled ones, which are merged with one another, and recent parts that may belong to them.

A settled session that ends has to be merged with recent parts only, and a recent part that ends with the settled
sessions of its key, which are found by their hashes; so a watermark costs little more than the sessions that it ends.
All are settled again when merging recent parts has cost as much as that would have. State beyond the managed memory
goes to files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.state.keys.key_columns import hash_columns

from ..aggregates.grouping import Groups, grouped
from ..aggregates.partial_aggregates import PartialAggregates, concatenated
from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.frame_memory import Columns, FrameMemory, divided, size_of
from .sessions import merge_intervals
from .slice_store import LEAST_WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

SESSION_FIELDS = (pa.field("start", pa.int64()), pa.field("end", pa.int64()), pa.field("arrival", pa.int64()))
"""The session of a partial row, and the number of the first record in it."""
START, END, ARRIVAL = -3, -2, -1
_BUCKETS = 1 << 16


class _Settled:
    """Sessions none of which meet.

    Args:
        columns: of at least one session.
        buckets: of the hashes of their keys.
        size: bytes in memory; 0 where the columns are in a file.
    """

    def __init__(self, columns: Columns, buckets: NDArray[np.uint16], size: int) -> None:
        self.columns, self.buckets, self.size = columns, buckets, size
        self.ends: NDArray[np.int64] = to_numpy(columns[END])
        self.is_present: NDArray[np.bool_] = np.ones(len(buckets), dtype=np.bool_)
        """True for each session that was not removed yet."""

    def remove(self, wanted: NDArray[np.bool_]) -> list[Columns]:
        """Remove the sessions that are wanted and present, and return them: one piece, or none."""
        chosen = self.is_present & wanted
        if not chosen.any():
            return []
        self.is_present = self.is_present & ~chosen  # a snapshot may share the array
        return [filter_rows(self.columns, chosen)]

    def present(self) -> list[Columns]:
        """Return the sessions that are present: one piece, or none."""
        return [filter_rows(self.columns, self.is_present)] if self.is_present.any() else []


class SessionStore:
    """Stores partial rows, each with its `SESSION_FIELDS`.

    Args:
        partials: merges partial rows.
    """

    def __init__(self, partials: PartialAggregates) -> None:
        self._partials = partials
        self._memory: FrameMemory | None = None
        self._settled: list[_Settled] = []
        """Parts of the state, each with all settled sessions of its keys."""
        self._recent: list[Columns] = []
        self._recent_least: int | None = None
        self._recent_weight = self._recent_size = self._settled_weight = self._work = 0

    def open(self, memory: FrameMemory) -> None:
        """Use this memory; it is not bounded before."""
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
        known = [int(part.ends[part.is_present].min()) for part in self._settled if part.is_present.any()]
        return min(known if self._recent_least is None else [*known, self._recent_least], default=None)

    def pieces(self) -> list[Columns]:
        """Return all rows, in the pieces in which they are stored."""
        return [*(piece for part in self._settled for piece in part.present()), *self._recent]

    def frame(self) -> Callable[[], Columns | None]:
        """Return a function that returns all rows as they are now, merged; None where there are none."""
        settled, recent = [(part.columns, part.is_present) for part in self._settled], list(self._recent)

        def frame() -> Columns | None:
            pieces = [filter_rows(columns, present) for columns, present in settled if present.any()] + recent
            return self.merge(pieces) if pieces else None

        return frame

    def merge(self, pieces: Sequence[Columns]) -> Columns:
        """Merge partial rows to one for each session."""
        *partial, starts, ends, arrived = concatenated(pieces)
        groups = grouped(partial[: self._partials.width], len(starts))
        sessions, places = sessions_of(groups, to_numpy(starts), to_numpy(ends), to_numpy(arrived))
        return self._partials.merge(partial, sessions) + places

    def take_over(self, bound: int) -> Columns | None:
        """Remove the sessions that end at `bound` or before, and return them; None: there are none."""
        least = self.least_end
        if least is None or least > bound:
            return None
        parts = [piece for part in self._settled for piece in part.remove(part.ends <= bound)]
        if self._recent:
            recent = self.merge(self._recent) if len(self._recent) > 1 else self._recent[0]
            parts.append(recent)
            ending = filter_rows(recent, to_numpy(recent[END]) <= bound)
            if len(ending[END]):
                for part in self._settled:
                    parts += part.remove(self._have_keys_of(ending, part.buckets))
        merged = self.merge(parts) if len(parts) > 1 else parts[0]
        is_over = to_numpy(merged[END]) <= bound
        self._forget_recent()
        self._work += len(is_over)
        if not is_over.all():
            self.add(filter_rows(merged, ~is_over))
        if self._recent and self._work >= sum(np.count_nonzero(part.is_present) for part in self._settled):
            self._settle()
        self._settled = [part for part in self._settled if part.is_present.any()]
        self._keep_to_memory()
        return filter_rows(merged, is_over) if is_over.any() else None

    def bounds_of_keys(self, keys: Sequence[pa.Array]) -> list[Columns]:
        """Return keys, starts and ends of rows that may have one of these keys: of all that have one, and of others.

        Their other columns may be large and are not read: this is called for each batch with late rows.
        """
        parts = [(part.columns, part.is_present & self._have_keys_of(keys, part.buckets)) for part in self._settled]
        parts += [(piece, self._have_keys_of(keys, self._buckets_of(piece))) for piece in self._recent]
        width = self._partials.width
        return [
            filter_rows([*columns[:width], columns[START], columns[END]], chosen)
            for columns, chosen in parts
            if chosen.any()
        ]

    def _settle(self) -> None:
        """Merge all rows, in parts where the memory is short."""
        pieces = self.pieces()
        parts = 1
        if self._memory is not None and self._partials.width:
            parts = self._memory.parts(sum(map(size_of, pieces)))
        if parts == 1:
            merged = self.merge(pieces)
            self._settled = [_Settled(merged, self._buckets_of(merged), size_of(merged))]
        else:
            assert self._memory is not None
            split = divided(pieces, self._partials.width, parts)
            filled = ([piece for piece in part if len(piece[END])] for part in split)
            filed = self._memory.written(self.merge(part) for part in filled if part)
            self._settled = [_Settled(columns, self._buckets_of(columns), 0) for columns in filed]
        self._settled_weight, self._work = sum(self._partials.weight(part.columns) for part in self._settled), 0
        self._forget_recent()

    def _keep_to_memory(self) -> None:
        """Write all to a file when it exceeds the memory."""
        size = self._recent_size + sum(part.size for part in self._settled)
        if self._memory is None or self._memory.reserve(size):
            return
        for part in self._settled:
            if part.size:
                (part.columns,) = self._memory.written([part.columns])
                part.ends, part.size = to_numpy(part.columns[END]), 0
        if self._recent_size:
            self._recent = self._memory.written([self.merge(self._recent)])
            self._recent_size = 0
        self._memory.reserve(0)

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
        has_key = np.zeros(_BUCKETS, dtype=np.bool_)
        has_key[self._buckets_of(keys)] = True
        return has_key[buckets]


def sessions_of(
    groups: Groups, starts: NDArray[np.int64], ends: NDArray[np.int64], arrived: NDArray[np.int64]
) -> tuple[Groups, Columns]:
    """Return rows grouped by their sessions, and the columns of `SESSION_FIELDS` of these."""
    sessions = merge_intervals(groups.codes, starts, ends)
    count = len(sessions.keys)
    first_arrivals = np.full(count, np.iinfo(np.int64).max)
    np.minimum.at(first_arrivals, sessions.codes, arrived)
    key_rows = pa.array(sessions.keys)
    columns = [to_arrow(part, pa.int64()) for part in (sessions.starts, sessions.ends, first_arrivals)]
    return Groups(sessions.codes, count, [key.take(key_rows) for key in groups.keys]), columns


def filter_rows(columns: Columns, chosen: NDArray[np.bool_]) -> Columns:
    """Return the chosen rows."""
    mask = pa.array(chosen)
    return [column.filter(mask) for column in columns]


__all__ = ["ARRIVAL", "END", "SESSION_FIELDS", "START", "SessionStore", "sessions_of"]
