"""The sizes of a keyed table's segments by key group, for those who look at a checkpoint."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

import numpy as np

from rayflink.state.snapshots import Blob, size_of
from rayflink.state.state_sizes import UNKNOWN, GroupSize, StateSize

from .table_segments import Segment

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Counts = NDArray[np.int64]

TABLE = "table"
"""The kind of the state, and the name of the only table of an operator."""


class SegmentGroups:
    """Remembers of each segment how many rows each key group has in it.

    Args:
        owned: the key groups of the subtask.
    """

    def __init__(self, owned: range) -> None:
        self._owned = owned
        self._rows: Mapping[str, Counts] = {}

    def add(self, segment: str, group_rows: Counts) -> None:
        """Note the rows of a segment.

        Args:
            group_rows: int64[n], the number of rows of each key group.
        """
        self._rows = {**self._rows, segment: group_rows[self._owned.start : self._owned.stop].copy()}

    def keep(self, segments: Collection[str]) -> None:
        """Forget all other segments."""
        self._rows = {name: rows for name, rows in self._rows.items() if name in segments}

    def size(
        self, name: str, segments: tuple[Segment, ...], files: Mapping[str, Blob], new: Collection[str], live: int
    ) -> StateSize:
        """Return the size of a table; a segment whose rows are not known counts evenly for all key groups.

        Args:
            name: of the table; "": it is the only one of its operator.
            segments: of the checkpoint.
            files: of the segments.
            new: segments that were written for this checkpoint.
            live: rows of the table, which may be in several segments.
        """
        whole = np.zeros(len(self._owned))
        for segment in segments:
            rows = self._rows.get(segment.name)
            shares = np.ones(len(self._owned)) if rows is None or not rows.sum() else rows / rows.sum()
            whole += size_of(files[segment.name]) * shares / shares.sum()
        present = np.flatnonzero(whole)
        of_rows = whole * live / whole.sum() if len(present) else whole
        groups = tuple(
            GroupSize(self._owned.start + place, self._owned.start + place + 1, round(whole[place]),
                      round(of_rows[place]) if live else UNKNOWN)
            for place in present.tolist()
        )  # fmt: skip
        written = sum(size_of(files[segment]) for segment in new)
        return StateSize(name or TABLE, TABLE, written, groups, is_estimate=True)


__all__ = ["TABLE", "SegmentGroups"]
