"""The rows of hot keys that may be among the first ones, so that a batch does not read all rows of such a key.

They are numbers of stored rows, derived from these: no snapshot has them, and after a restore they are found anew. All
rows of a key up to a bound are among them, where the bound is the worst of them. What was removed since is left out
when they are read, and rows that come are added if they are before the bound. Where too few are left, all rows of the
key are read once more.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..keyed_state.comparable_keys import fingerprints
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..keyed_state.keyed_multiset import KeyedMultiset

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

Name = tuple[Hashable, ...]
"""The values of a key."""
FEWEST_ROWS = 2048
"""Rows of a hot key that are remembered when all of its rows were read, or when there are twice as many."""


class NewRows(NamedTuple):
    """Rows that have just come.

    Args:
        codes: the key of each.
        rows: their numbers, each once.
    """

    codes: Numbers
    rows: Numbers


class Best(NamedTuple):
    """The best rows of a key.

    Args:
        rows, sequences: their numbers, and when they came: what has another sequence now is another row.
        bound: the columns of the worst of them.
        bound_sequence: when that came.
    """

    rows: Numbers
    sequences: Numbers
    bound: Columns
    bound_sequence: int


class BestRows:
    """Remembers the best rows of hot keys.

    Args:
        rows: that are stored.
        kinds: types of the columns of keys, in the form in which they are compared.
        wanted: how many of the first rows are wanted.
    """

    def __init__(self, rows: KeyedMultiset, kinds: Sequence[pa.DataType], wanted: int) -> None:
        self._rows = rows
        self.fewest = max(FEWEST_ROWS, 2 * wanted)
        """Rows of a key that are remembered at least."""
        self._best: dict[Name, Best] = {}
        self._kinds = kinds
        self._prints: NDArray[np.uint32] | None = None
        """Fingerprints of the keys; None: they have changed."""

    @property
    def most(self) -> int:
        """Return the number of rows of a key that are remembered at most; a key with more rows is hot."""
        return 2 * self.fewest

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return sum(best.rows.nbytes + best.sequences.nbytes for best in self._best.values())

    def __bool__(self) -> bool:
        return bool(self._best)

    def names(self, keys: Columns, is_hot: Truths) -> dict[int, Name]:
        """Return the hot ones of keys as values by which their rows are remembered, and forget the rows of the others.

        Args:
            keys: in the form in which they are compared.
            is_hot: which have more than `most` rows.
        """
        if self._best:
            for name in _names(keys, np.flatnonzero(self.may_know(keys) & ~is_hot)).values():
                self.forget(name)
        return _names(keys, np.flatnonzero(is_hot))

    def may_know(self, keys: Columns) -> Truths:
        """Return the keys whose rows may be remembered: bool[n]; of the others none are."""
        if not self._best:
            return np.zeros(len(keys[0]), dtype=np.bool_)
        if self._prints is None:
            parts = zip(zip(*self._best, strict=True), self._kinds, strict=True)
            self._prints = fingerprints([pa.array(part, kind) for part, kind in parts])
        return np.isin(fingerprints(keys), self._prints)

    def of(self, names: Mapping[int, Name]) -> dict[int, Best]:
        """Return the rows of hot keys, as far as they are remembered."""
        return {code: self._best[name] for code, name in names.items() if name in self._best}

    def put(self, name: Name, best: Best) -> None:
        """Remember the rows of a key."""
        if len(self._best) > 2 * len(self._rows.table) // self.most + 1:
            self._best.clear()  # most of these keys have gone
        if name not in self._best:
            self._prints = None
        self._best[name] = best

    def forget(self, name: Name) -> None:
        """Forget the rows of a key."""
        if self._best.pop(name, None) is not None:
            self._prints = None

    def candidates(self, best: Mapping[int, Best], new: NewRows | None) -> tuple[Numbers, Numbers]:
        """Return the rows of keys that may be among the first ones: (key of each, number).

        Args:
            best: what is remembered of these keys.
            new: rows that came since; equal ones may be remembered.
        """
        codes = np.repeat(np.fromiter(best, np.int64, len(best)), [len(each.rows) for each in best.values()])
        rows = np.concatenate([each.rows for each in best.values()])
        is_left = self._rows.are_stored(rows, np.concatenate([each.sequences for each in best.values()]))
        codes, rows = codes[is_left], rows[is_left]
        if new is not None and len(new.rows):
            is_new = np.isin(new.codes, np.fromiter(best, np.int64, len(best))) & ~np.isin(new.rows, rows)
            codes, rows = np.append(codes, new.codes[is_new]), np.append(rows, new.rows[is_new])
        return codes, rows


def _names(keys: Columns, chosen: Numbers) -> dict[int, Name]:
    if not len(chosen):
        return {}
    parts = [column.to_pylist() for column in take_rows(keys, chosen)]
    return dict(zip(chosen.tolist(), zip(*parts, strict=True), strict=True))


def bounds_of(best: Mapping[int, Best]) -> tuple[Numbers, Columns, Numbers]:
    """Return the bounds of keys: (key of each, columns, sequences)."""
    codes = np.fromiter(best, np.int64, len(best))
    sequences = np.array([each.bound_sequence for each in best.values()], dtype=np.int64)
    return codes, concatenated([each.bound for each in best.values()]), sequences


__all__ = ["FEWEST_ROWS", "Best", "BestRows", "Name", "NewRows", "bounds_of"]
