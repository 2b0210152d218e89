"""Finds the number of a row by 32 bits of its key's digest: a hash table of pages that split one at a time.

The upper bits of a print choose the page, by a directory that doubles; the lower ones a bucket of eight places in it,
the next one where that is full. So a lookup reads a line of the processor's cache or two, and growth moves no more
than the pages that are full: these are not all full at once, for each page has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Prints = NDArray[np.uint32]
    Rows = NDArray[np.int64]
    IsKey = Callable[[NDArray[np.int64], Rows], NDArray[np.bool_]]

WIDTH = 8
"""Places of a bucket: their prints fill half a line of the cache."""
BUCKETS = 1 << 12
"""Of a page."""
PLACES = WIDTH * BUCKETS
PAGE_BYTES = 8 * PLACES
MOST_AT_ONCE = 16
"""Pages that are split in one step, which takes a few times their memory."""
MOST_DEPTH = 20
"""With this many upper bits of a print and those that choose the bucket none is left to split by."""
_NO_ROW = -1


class TooManyEqualPrints(RuntimeError):
    """More keys with equal digests than a page holds."""

    def __str__(self) -> str:
        return (
            f"more than {PLACES} keys share the lower 32 bits of their digests, which only chosen keys do; "
            "key by another column as well"
        )


class KeyIndex:
    """Numbers of rows by prints, uint32, none of which is 0; rows are below 2**32."""

    def __init__(self) -> None:
        self._allocate: Callable[[tuple[int, int], Any], NDArray[Any]] = np.zeros
        self._is_filed = False
        self._begin(0)

    def _begin(self, depth: int) -> None:
        pages = 1 << depth
        self._prints = self._allocate((pages * BUCKETS, WIDTH), np.uint32)
        self._rows = self._allocate((pages * BUCKETS, WIDTH), np.uint32)
        self._directory = np.arange(pages)
        self._depth = depth
        self._depths, self._counts = np.full(pages, depth), np.zeros(pages, dtype=np.int64)

    def expect(self, rows: int) -> None:
        """Prepare for a number of rows, while there are none."""
        assert not len(self), f"there are {len(self)} rows"
        self._begin(min(max(2 * rows // PLACES, 1).bit_length() - 1, MOST_DEPTH))

    @property
    def pages(self) -> int:
        """Return the number of pages."""
        return len(self._counts)

    def __len__(self) -> int:
        return int(self._counts.sum())

    @property
    def size(self) -> int:
        """Bytes in memory: pages that are there; room for more takes none before it is used."""
        return 0 if self._is_filed else self.pages * PAGE_BYTES

    def file(self, allocate: Callable[[tuple[int, int], Any], NDArray[Any]]) -> None:
        """Have the pages in files from now on; `allocate` gives arrays of zeros in them."""
        self._allocate = allocate
        self._move(len(self._prints))

    def find(self, prints: Prints, is_key: IsKey) -> Rows:
        """Return the row of each print for which `is_key` says so: int64[n], -1 where there is none.

        Args:
            is_key: asked about (places in `prints`, rows with equal prints).
        """
        places = self._places(prints, is_key)
        found = np.full(len(prints), _NO_ROW, dtype=np.int64)
        known = places >= 0
        found[known] = self._rows.reshape(-1)[places[known]]
        return found

    def replace(self, prints: Prints, rows: Rows, others: Rows) -> None:
        """Put other rows in the place of some that are there."""
        places = self._places(prints, lambda which, found: found == rows[which])
        self._rows.reshape(-1)[places] = others

    def _places(self, prints: Prints, is_key: IsKey) -> NDArray[np.int64]:
        found = np.full(len(prints), -1, dtype=np.int64)
        rows = self._rows.reshape(-1)
        left, own, buckets = np.arange(len(prints)), prints, self._buckets(prints)
        while len(left):
            held = self._prints[buckets]
            at = np.flatnonzero(held == own[:, None])
            if len(at):
                who = at // WIDTH
                places = buckets[who] * WIDTH + at % WIDTH
                which = left[who]
                good = is_key(which, rows[places].astype(np.int64))
                found[which[good]] = places[good]
            goes_on = (held[:, -1] != 0) & (found[left] < 0)
            left, own, buckets = left[goes_on], own[goes_on], _next(buckets[goes_on])
        return found

    def _buckets(self, prints: Prints) -> NDArray[np.int64]:
        wide = prints.astype(np.int64)
        found: NDArray[np.int64] = self._directory[wide >> (32 - self._depth)] * BUCKETS + (wide & (BUCKETS - 1))
        return found

    def add(self, prints: Prints, rows: Rows) -> None:
        """Add rows that are not there.

        Raises:
            TooManyEqualPrints: they cannot be distinguished.
        """
        while True:
            wanted = self._counts + np.bincount(self._buckets(prints) // BUCKETS, minlength=self.pages)
            numbers = np.arange(self.pages)
            full = np.flatnonzero((wanted > _bounds(numbers)) & (self._depths < MOST_DEPTH))
            if not len(full):
                break
            self._split(full)
        if (wanted >= PLACES).any():
            raise TooManyEqualPrints
        self._put(prints, rows)

    def _put(self, prints: Prints, rows: Rows) -> None:
        buckets = self._buckets(prints)
        self._counts += np.bincount(buckets // BUCKETS, minlength=self.pages)
        own_prints, own_rows = self._prints.reshape(-1), self._rows.reshape(-1)
        narrow = rows.astype(np.uint32)
        while len(prints):
            taken = np.count_nonzero(self._prints[buckets], axis=1)
            is_full = taken == WIDTH
            places = buckets * WIDTH + taken
            open_ = np.flatnonzero(~is_full)
            own_rows[places[open_]] = narrow[open_]  # of several for one place the last has it
            has_it = np.zeros(len(prints), dtype=np.bool_)
            has_it[open_] = own_rows[places[open_]] == narrow[open_]
            own_prints[places[has_it]] = prints[has_it]
            buckets = np.where(is_full, _next(buckets), buckets)[~has_it]
            prints, narrow = prints[~has_it], narrow[~has_it]

    def _split(self, pages: NDArray[np.int64]) -> None:
        fresh = np.arange(self.pages, self.pages + len(pages))
        depths = self._depths[pages]
        while int(depths.max()) >= self._depth:
            self._directory = np.repeat(self._directory, 2)
            self._depth += 1
        halves = np.full(self.pages, -1, dtype=np.int64)
        halves[pages] = fresh
        shifts = np.maximum(self._depth - 1 - self._depths[self._directory], 0)
        other = halves[self._directory]
        is_upper = (np.arange(len(self._directory)) >> shifts & 1).astype(np.bool_)
        self._directory = np.where((other >= 0) & is_upper, other, self._directory)
        self._depths[pages] = depths + 1
        self._depths = np.concatenate([self._depths, depths + 1])
        self._counts = np.concatenate([self._counts, np.zeros(len(pages), dtype=np.int64)])
        if self.pages * BUCKETS > len(self._prints):
            self._move(self.pages * BUCKETS * 2)
        for first in range(0, len(pages), MOST_AT_ONCE):
            part = slice(first, first + MOST_AT_ONCE)
            self._divide(pages[part], fresh[part], 31 - depths[part])

    def _divide(self, pages: NDArray[np.int64], others: NDArray[np.int64], bits: NDArray[np.int64]) -> None:
        """Move what has a bit of its print set from pages to others, which are new."""
        prints = self._prints.reshape(-1, BUCKETS, WIDTH)[pages]
        rows = self._rows.reshape(-1, BUCKETS, WIDTH)[pages]
        there = prints != 0
        is_home = there & ((prints & (BUCKETS - 1)) == np.arange(BUCKETS, dtype=np.uint32)[:, None])
        is_upper = (prints >> bits.astype(np.uint32)[:, None, None] & 1).astype(np.bool_)
        entries = prints.astype(np.uint64) << np.uint64(32) | rows
        for numbers, chosen in ((pages, is_home & ~is_upper), (others, is_home & is_upper)):
            sorted_ = np.sort(np.where(chosen, entries, np.uint64(0)), axis=2)[:, :, ::-1]  # free places come last
            self._prints.reshape(-1, BUCKETS, WIDTH)[numbers] = sorted_ >> np.uint64(32)
            self._rows.reshape(-1, BUCKETS, WIDTH)[numbers] = sorted_ & np.uint64(0xFFFF_FFFF)
            self._counts[numbers] = np.count_nonzero(chosen, axis=(1, 2))
        strays = there & ~is_home  # of buckets that were full
        self._put(prints[strays], rows[strays].astype(np.int64))

    def _move(self, buckets: int) -> None:
        """Have arrays of this many buckets."""
        buckets = -(-buckets // BUCKETS) * BUCKETS
        prints, rows = (self._allocate((buckets, WIDTH), np.uint32) for _ in range(2))
        prints[: len(self._prints)], rows[: len(self._rows)] = self._prints, self._rows
        self._prints, self._rows = prints, rows
        self._is_filed = self._allocate is not np.zeros

    def _entries(self, pages: NDArray[np.int64]) -> tuple[Prints, Rows]:
        prints = self._prints.reshape(-1, PLACES)[pages]
        there = prints != 0
        return prints[there], self._rows.reshape(-1, PLACES)[pages][there].astype(np.int64)

    def sweep(self, page: int, is_over: Callable[[Rows], NDArray[np.bool_]]) -> Rows:
        """Take the rows out of a page that are over."""
        prints, rows = self._entries(np.array([page]))
        over = is_over(rows)
        if over.any():
            self._prints.reshape(-1, PLACES)[page] = 0
            self._counts[page] = 0
            self._put(prints[~over], rows[~over])
        return rows[over]

    def shrink(self) -> None:
        """Have fewer pages where most places are free."""
        if self.pages > 1 and len(self) * 8 < self.pages * PLACES:
            prints, rows = self._entries(np.arange(self.pages))
            self._begin(0)
            self.add(prints, rows)


def _next(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next bucket of each one's page; behind the last the first."""
    return (buckets & ~(BUCKETS - 1)) | ((buckets + 1) & (BUCKETS - 1))


def _bounds(pages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest number of rows of each page: five to eight tenths of its slots."""
    return (PLACES * (0.5 + 0.3 * (pages * 0.6180339887498949 % 1.0))).astype(np.int64)


__all__ = ["BUCKETS", "PLACES", "KeyIndex", "TooManyEqualPrints"]
