"""The rows that changed between barriers, and which segments of earlier checkpoints a new one goes on from.

As long as a checkpoint may go on from a segment, the changes behind the segment's barrier are remembered. So small
segments are merged without reading them: the rows that changed since the first of them are written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rayflink.state.rocksdb.rocksdb_capture import Increments
from rayflink.state.snapshots import Blob, FileSlice

from .table_segments import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Groups = NDArray[np.uint16]
    Truths = NDArray[np.bool_]

RUN = 8
"""Segments of about one size that are merged."""
_LEAST_SEGMENT = 4096
"""Segments with fewer rows count as of one size."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes up to a barrier, since the barrier before it.

    Args:
        upto: number of the barrier.
        rows: which rows were stored or changed, in packed bits; `count` of them.
        count: how many numbers there were.
        vacated: numbers of rows that were removed, and their key groups.
    """

    upto: int
    rows: NDArray[np.uint8]
    count: int
    vacated: tuple[Rows, Groups]

    @staticmethod
    def of(upto: int, rows: Truths, vacated: tuple[Rows, Groups]) -> Changes:
        """Return the changes with these rows."""
        return Changes(upto, np.packbits(rows), len(rows), vacated)


def changed_rows(changes: Sequence[Changes]) -> Truths:
    """Return which rows changed in any of them: bool[n]."""
    bits, count = _changed_bits(changes)
    rows: Truths = np.unpackbits(bits, count=count).view(np.bool_)
    return rows


def _changed_bits(changes: Sequence[Changes]) -> tuple[NDArray[np.uint8], int]:
    """Return the same as packed bits, and how many they are."""
    bits = np.zeros(max((len(interval.rows) for interval in changes), default=0), dtype=np.uint8)
    for interval in changes:
        bits[: len(interval.rows)] |= interval.rows
    return bits, max((interval.count for interval in changes), default=0)


def vacated_rows(changes: Sequence[Changes]) -> tuple[Rows, Groups]:
    """Return the numbers that were vacated in any of them, with their key groups, each pair once."""
    rows = np.concatenate([np.zeros(0, dtype=np.int64), *(interval.vacated[0] for interval in changes)])
    groups = np.concatenate([np.zeros(0, dtype=np.uint16), *(interval.vacated[1] for interval in changes)])
    pairs = np.unique(rows << 16 | groups)
    return pairs >> 16, (pairs & 0xFFFF).astype(np.uint16)


def _merged(first: Changes, second: Changes) -> Changes:
    both = (first, second)
    return Changes(second.upto, *_changed_bits(both), vacated_rows(both))


@dataclass(frozen=True, slots=True)
class Base:
    """Has the segments from which a checkpoint may go on, and the changes behind them.

    Args:
        upto: the number of the checkpoint's own barrier.
        segments: of an earlier checkpoint, the oldest first; none: all rows are to be written.
        files: the places of these segments' files.
        changes: behind the first of the segments.
    """

    upto: int
    segments: tuple[Segment, ...]
    files: Mapping[str, Blob]
    changes: tuple[Changes, ...]

    def behind(self, segments: int) -> list[Changes]:
        """Return the changes that the first segments do not have, a number of them."""
        return [interval for interval in self.changes if interval.upto > self.segments[segments - 1].upto]

    def reusable(self, live: int) -> int:
        """Return how many of the segments the checkpoint goes on from, 0 if all rows are to be written.

        Args:
            live: rows of the table.
        """
        count = len(self.segments)
        if not count:
            return 0
        fresh = self.behind(count)
        rows = int(changed_rows(fresh).sum()) + sum(len(interval.vacated[0]) for interval in fresh)
        while True:
            run = 0
            while run < count - 1 and _level(self.segments[count - 1 - run].rows) <= _level(rows):
                run += 1
            if run < RUN - 1:
                break
            rows += sum(segment.rows for segment in self.segments[count - run : count])
            count -= run
        return 0 if rows + sum(segment.rows for segment in self.segments[1:count]) >= live else count


def _level(rows: int) -> int:
    return (max(rows // _LEAST_SEGMENT, 1).bit_length() - 1) // (RUN.bit_length() - 1)


class ChangesByBarrier:
    """The changes of a table between its barriers, as far as a checkpoint may need them."""

    def __init__(self) -> None:
        self._upto = 0
        self._changes: list[Changes] = []
        self._segments: tuple[Segment, ...] = ()
        """Those of the last checkpoint that is complete."""
        self._increments = Increments()
        self._under_way: dict[int, Base] = {}
        self._written: dict[int, tuple[Segment, ...]] = {}

    def begin(self, checkpoint_id: int, rows: Truths, vacated: tuple[Rows, Groups]) -> Base:
        """Begin a checkpoint with what has changed since the last barrier."""
        self._upto += 1
        self._changes.append(Changes.of(self._upto, rows, vacated))
        files = self._increments.begin(checkpoint_id)
        count = 0
        while count < len(self._segments) and self._segments[count].name in files:
            count += 1
        segments = self._segments[:count]
        changes = [interval for interval in self._changes if segments and interval.upto > segments[0].upto]
        base = Base(self._upto, segments, {segment.name: files[segment.name] for segment in segments}, tuple(changes))
        self._under_way[checkpoint_id] = base
        self._forget()
        return base

    def stored(self, checkpoint_id: int, segments: tuple[Segment, ...], files: Mapping[str, Blob]) -> None:
        """Note the segments of this checkpoint; may be called by any thread, before it is confirmed.

        Args:
            files: those to which later checkpoints may refer.
        """
        is_shared = all(isinstance(files.get(segment.name), FileSlice) for segment in segments)
        self._increments.stored(checkpoint_id, files if is_shared else {})
        self._written[checkpoint_id] = segments if is_shared else ()

    def start_from(self, segments: tuple[Segment, ...], files: Mapping[str, Blob], changes: Sequence[Changes]) -> None:
        """Let checkpoints go on from these segments, from which the table was restored."""
        self._increments.start_from(files)
        self._segments, self._changes = segments, list(changes)
        self._upto = max((segment.upto for segment in segments), default=0)

    def confirm(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete."""
        self._increments.confirm(checkpoint_id)
        if checkpoint_id in self._written:
            self._segments = self._written[checkpoint_id]
        for entries in (self._under_way, self._written):
            for number in [number for number in list(entries) if number <= checkpoint_id]:  # another thread adds
                del entries[number]
        self._forget()

    def abort(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete."""
        self._increments.abort(checkpoint_id)
        self._under_way.pop(checkpoint_id, None)
        self._written.pop(checkpoint_id, None)
        self._forget()

    def _forget(self) -> None:
        """Forget changes that no checkpoint needs, and merge those between barriers that none begins at."""
        lists = [[segment.upto for segment in self._segments]]
        lists += [[*(segment.upto for segment in base.segments), base.upto] for base in self._under_way.values()]
        firsts = [uptos[0] for uptos in lists if uptos]
        first = min(firsts, default=self._upto)
        barriers = {upto for uptos in lists for upto in uptos}
        changes: list[Changes] = []
        for interval in self._changes:
            if interval.upto > first:
                if changes and changes[-1].upto not in barriers:
                    interval = _merged(changes.pop(), interval)
                changes.append(interval)
        self._changes = changes


__all__ = ["RUN", "Base", "Changes", "ChangesByBarrier", "changed_rows", "vacated_rows"]
