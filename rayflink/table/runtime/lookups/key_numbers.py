"""Numbers of keys: an index of columns that finds the number of each key of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..keyed_state.comparable_keys import KeyForms, equal_keys, fingerprints
from ..keyed_state.key_index import KeyIndex
from ..keyed_state.key_rows import KeyRows, take_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


class KeyNumbers:
    """Keys, numbered from 0 as they are added.

    >>> keys = KeyNumbers([pa.int64()])
    >>> keys.add([pa.array([7, 9])]).tolist(), keys.find([pa.array([9, 8])]).tolist()
    ([0, 1], [1, -1])

    Args:
        kinds: types of their columns.
    """

    def __init__(self, kinds: Sequence[pa.DataType]) -> None:
        self._forms, self._index, self._rows = KeyForms(kinds), KeyIndex(), KeyRows()

    def __len__(self) -> int:
        return len(self._rows)

    def find(self, keys: Sequence[pa.Array]) -> Numbers:
        """Return the number of each key: int64[n], -1 of one that is not known."""
        encoded = self._forms.encode(keys)
        return self._index.find(fingerprints(encoded), partial(self._is_equal, encoded))

    def add(self, keys: Sequence[pa.Array]) -> Numbers:
        """Add keys that are not known, each once, and return their numbers: int64[n]."""
        encoded = self._forms.encode(keys)
        numbers = self._rows.append(encoded, len(keys[0]))
        self._index.add_many(fingerprints(encoded), numbers)
        return numbers

    def take(self, numbers: Numbers) -> list[pa.Array]:
        """Return the columns of some keys, at least one."""
        return self._forms.decode(gathered(self._rows, numbers))

    def _is_equal(self, keys: Sequence[pa.Array], which: Numbers, numbers: Numbers) -> NDArray[np.bool_]:
        is_equal = np.ones(len(numbers), dtype=np.bool_)
        for column, other in zip(take_rows(keys, which), gathered(self._rows, numbers), strict=True):
            is_equal &= equal_keys(column, other)
        return is_equal


def gathered(rows: KeyRows, numbers: Numbers) -> list[pa.Array]:
    """Return the columns of some rows, at least one, in the order of their numbers."""
    columns, order = rows.gather(numbers)
    if len(order) < 2 or (np.diff(order) == 1).all():
        return list(columns)
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    return take_rows(columns, places)


__all__ = ["KeyNumbers", "gathered"]
