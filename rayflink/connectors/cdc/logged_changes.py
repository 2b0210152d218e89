"""Changes of one table as the log has them, and the rows that they become, by columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rayflink.common.types import RowKind

from .chunks import ChunkMarks

if TYPE_CHECKING:
    import numpy as np
    import pyarrow
    from numpy.typing import NDArray

Rows = TypeVar("Rows")
ChunksOf = Callable[["NDArray[np.int64]"], "list[int]"]
"""Computes the numbers of the chunks of some rows: numbers of rows -> numbers of chunks."""
KeysOf = Callable[["NDArray[np.int64]"], "list[pyarrow.Array]"]
"""Returns the columns of the primary key of some rows."""
_INSERT, _BEFORE, _AFTER, _DELETE = (
    kind.value for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedChanges(Generic[Rows]):
    """Changes as they are in the log, by columns.

    Args:
        rows: of all changes.
        kinds: int8[n]: INSERT, DELETE, or UPDATE_AFTER for an update.
        old: numbers of the rows before, int64[n]; -1: the log lacks it.
        old_is_key: bool[n]: the row before has values of the key only.
        new: numbers of the rows after, int64[n]; -1: the row is deleted.
        commits: positions of the transactions, int64[n].
        xids: what marks of snapshots are asked about: numbers of the transactions, int64[n].
        moments_ms: when they were committed, int64[n] of epoch milliseconds.
    """

    rows: Rows
    kinds: NDArray[np.int8]
    old: NDArray[np.int64]
    old_is_key: NDArray[np.bool_]
    new: NDArray[np.int64]
    commits: NDArray[np.int64]
    xids: NDArray[np.int64]
    moments_ms: NDArray[np.int64]

    def select(self, chosen: NDArray[np.bool_], kinds: NDArray[np.int8]) -> LoggedChanges[Rows]:
        """Return some of the changes, bool[n], of other kinds, int8[n]."""
        return LoggedChanges(
            self.rows, kinds[chosen], self.old[chosen], self.old_is_key[chosen], self.new[chosen],
            self.commits[chosen], self.xids[chosen], self.moments_ms[chosen],
        )  # fmt: skip

    def without_snapshot(self, marks: ChunkMarks | None, chunks_of: ChunksOf) -> LoggedChanges[Rows]:
        """Leave out what the snapshots of the chunks contain; see `surviving` of `rayflink.connectors.cdc.chunks`.

        Args:
            marks: None: there was no snapshot, or it is over.
        """
        import numpy

        if marks is None or not self.kinds.size or self.commits[0] >= marks.high:
            return self
        old, new = self.old, self.new
        before = self._contained(numpy.where(old < 0, new, old), marks, chunks_of)
        after = self._contained(numpy.where(new < 0, old, new), marks, chunks_of)
        is_update = self.kinds == _AFTER
        kinds = numpy.where(is_update & before, _INSERT, self.kinds)
        kinds = numpy.where(is_update & after, _DELETE, kinds).astype(numpy.int8)
        gone = numpy.where(is_update, before & after, numpy.where(self.kinds == _INSERT, after, before))
        return self.select(~gone, kinds)

    def _contained(self, rows: NDArray[np.int64], marks: ChunkMarks, chunks_of: ChunksOf) -> NDArray[np.bool_]:
        """Return whether the snapshot of each row's chunk contains the change's transaction, bool[n]."""
        import numpy

        chunks = chunks_of(rows) if marks.bounds else [0] * len(rows)
        pairs = list(zip(chunks, self.xids.tolist(), strict=True))
        contained = {pair: marks.contains(*pair) for pair in set(pairs)}
        is_contained = numpy.fromiter((contained[pair] for pair in pairs), bool, len(pairs))
        return is_contained & (self.commits < marks.high)

    def emitted(self, upserts: bool, keys_of: KeysOf) -> EmittedRows:
        """Return the rows that the changes become: an update is two, and one of the primary key two others.

        An update of the primary key is a deletion and an insertion, so that no row stays under the old key.

        Args:
            upserts: leave out the rows before updates.
        """
        import numpy

        kinds, old, new = self.kinds, self.old, self.new
        has_both = (kinds == _AFTER) & (old >= 0)
        moves = has_both & (self.old_is_key | self._other_keys(has_both & ~self.old_is_key, keys_of))
        is_two = has_both if not upserts else moves
        counts = 1 + is_two
        first = numpy.cumsum(counts) - counts
        rows = numpy.empty(int(counts.sum()), numpy.int64)
        row_kinds = numpy.empty(rows.size, numpy.int8)
        rows[first] = numpy.where(is_two | (kinds == _DELETE), old, new)
        row_kinds[first] = numpy.where(moves, _DELETE, numpy.where(is_two, _BEFORE, kinds))
        rows[first[is_two] + 1] = new[is_two]
        row_kinds[first[is_two] + 1] = numpy.where(moves, _INSERT, _AFTER)[is_two]
        return EmittedRows(rows, row_kinds, numpy.repeat(self.moments_ms, counts), numpy.repeat(self.commits, counts))

    def _other_keys(self, chosen: NDArray[np.bool_], keys_of: KeysOf) -> NDArray[np.bool_]:
        """Return which of the chosen updates change the primary key, bool[n]."""
        import numpy
        import pyarrow.compute as compute

        differ = numpy.zeros(chosen.size, bool)
        if not chosen.any():
            return differ
        for before, after in zip(keys_of(self.old[chosen]), keys_of(self.new[chosen]), strict=True):
            differs = compute.fill_null(compute.not_equal(before, after), False)
            one_is_null = compute.xor(before.is_null(), after.is_null())
            differ[chosen] |= compute.or_(differs, one_is_null).to_numpy(zero_copy_only=False)
        return differ


@dataclass(frozen=True, slots=True, eq=False)
class EmittedRows:
    """Rows that changes become.

    Args:
        rows: their numbers in the rows of the log, int64[n].
        kinds: int8[n].
        moments_ms: int64[n].
        commits: int64[n].
    """

    rows: NDArray[np.int64]
    kinds: NDArray[np.int8]
    moments_ms: NDArray[np.int64]
    commits: NDArray[np.int64]


__all__ = ["ChunksOf", "EmittedRows", "KeysOf", "LoggedChanges"]
