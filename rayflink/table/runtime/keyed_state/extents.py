"""Extents of a pool of row numbers, each of a power of two, and the arrays that grow with rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.int64]

_LEAST_ROOM = 1024
_SPARSE = 4
"""A pool of which less than this part is in use is sparse."""


class GrowingArray:
    """Numbers in an array that grows.

    Args:
        dtype: of the numbers.
    """

    def __init__(self, dtype: type[np.integer[Any]]) -> None:
        self._allocate: Callable[[tuple[int, ...], Any], NDArray[Any]] = np.zeros
        self._is_filed = False
        self.values: NDArray[Any] = np.zeros(0, dtype=dtype)
        """The numbers, and room for more."""
        self.top = 0
        """How many are in use."""

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return 0 if self._is_filed else self.top * self.values.itemsize

    def reach(self, top: int) -> None:
        """Make room for a number of numbers."""
        if top > len(self.values):
            self._move(max(2 * len(self.values), top, _LEAST_ROOM))
        self.top = max(self.top, top)

    def _move(self, room: int) -> None:
        values = self._allocate((room,), self.values.dtype)
        values[: self.top] = self.values[: self.top]
        self.values = values

    def clear(self) -> None:
        """Forget all numbers."""
        self.values, self.top = self.values[:0].copy(), 0

    def file(self, allocate: Callable[[tuple[int, ...], Any], NDArray[Any]]) -> None:
        """Move the numbers to a file; `allocate` returns arrays of zeros in one."""
        if not self._is_filed:
            self._allocate, self._is_filed = allocate, True
            self._move(max(self.top, 1))


class ExtentPool:
    """A pool of row numbers in extents; those that are free are used again."""

    def __init__(self) -> None:
        self.rows = GrowingArray(np.uint32)
        """The row numbers of all extents."""
        self._free: dict[int, list[Rows]] = {}
        self._free_places = 0

    @property
    def size(self) -> int:
        """Return the bytes in memory."""
        return self.rows.size

    @property
    def is_sparse(self) -> bool:
        """Return whether most of the pool is free."""
        return self.rows.top > _LEAST_ROOM and _SPARSE * (self.rows.top - self._free_places) < self.rows.top

    def take(self, sizes: NDArray[np.uint8]) -> Rows:
        """Return the places where extents of these size classes begin: int64[n]."""
        starts = np.empty(len(sizes), dtype=np.int64)
        for size, count in enumerate(np.bincount(sizes).tolist()):
            if count:
                starts[sizes == size] = self._extents(size, count)
        return starts

    def _extents(self, size: int, wanted: int) -> Rows:
        parts: list[Rows] = []
        free = self._free.get(size, [])
        while wanted and free:
            starts = free.pop()
            if len(starts) > wanted:
                free.append(starts[:-wanted])
                starts = starts[-wanted:]
            parts.append(starts)
            wanted -= len(starts)
            self._free_places -= len(starts) << size
        first = self.rows.top
        self.rows.reach(first + (wanted << size))
        return np.concatenate([*parts, first + (np.arange(wanted) << size)])

    def free(self, starts: Rows, sizes: NDArray[np.uint8]) -> None:
        """Free extents."""
        for size, count in enumerate(np.bincount(sizes).tolist()):
            if count:
                self._free.setdefault(size, []).append(starts[sizes == size])
                self._free_places += count << size

    def clear(self) -> None:
        """Free everything."""
        self._free, self._free_places = {}, 0
        self.rows.clear()


__all__ = ["ExtentPool", "GrowingArray"]
