"""The numbers of rows that were removed since the last checkpoint, which the next one writes down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .runs import first_of_runs, stable_order

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]
    Groups = NDArray[np.uint16]

LEAST_NUMBERS = 1 << 16
"""The count up to which equal numbers are not looked for."""


class VacatedNumbers:
    """Numbers of removed rows, each once, with the key group of the row that had it at the last call of `take`.

    A number that is used again and vacated again stands for a row that no checkpoint knows, so the first time counts.
    Without checkpoints there are at most twice as many as the table has ever had rows.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Rows, Groups]] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, rows: Rows, groups: Groups, top: int) -> None:
        """Add the numbers of removed rows.

        Args:
            groups: the key group of each.
            top: above the number of any row of the table.
        """
        self._parts.append((rows, groups))
        self._count += len(rows)
        if self._count > 2 * max(top, LEAST_NUMBERS):
            self._merge()

    def take(self) -> tuple[Rows, Groups]:
        """Return all numbers, ascending, and their key groups; none is left behind that."""
        self._merge()
        parts, self._parts, self._count = self._parts, [], 0
        return parts[0] if parts else (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint16))

    def _merge(self) -> None:
        if self._parts:
            rows = np.concatenate([rows for rows, _ in self._parts])
            order = stable_order(rows)
            firsts = order[first_of_runs(rows[order])]
            self._parts = [(rows[firsts], np.concatenate([groups for _, groups in self._parts])[firsts])]
            self._count = len(firsts)


__all__ = ["LEAST_NUMBERS", "VacatedNumbers"]
