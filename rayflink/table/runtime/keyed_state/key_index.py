"""Finds the number of a row by 32 bits of its key's digest: a hash table of pages that split one at a time.

The upper bits of a print choose the page, by a directory that doubles; the lower ones a bucket of eight places in it,
the next one where that is full. So a lookup reads a line of the processor's cache or two, and growth moves no more
than the pages that are full: these are not all full at once, for each page has a bound of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .runs import first_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Prints = NDArray[np.uint32]
    Rows = NDArray[np.int64]
    IsKey = Callable[[NDArray[np.int64], Rows], NDArray[np.bool_]]

WIDTH = 8
"""Places of a bucket: their prints fill half a line of the cache."""
BUCKETS = 1 << 12
"""Buckets of a page."""
PLACES = WIDTH * BUCKETS
PAGE_BYTES = 8 * PLACES
MOST_AT_ONCE = 16
"""Pages that are split in one step, which takes a few times their memory."""
MOST_DEPTH = 20
"""Upper bits of a print that choose the page at most: the lower ones choose the bucket."""
_ADDED_AT_ONCE = 1 << 16
_NO_ROW = -1


class TooManyEqualPrints(RuntimeError):
    """More keys with equal digests than a page holds."""

    def __str__(self) -> str:
        return (
            f"more than {PLACES} keys share the lower 32 bits of their digests, which only chosen keys do; "
            "key by another column as well"
        )


class KeyIndex:
    """Maps prints, uint32 and never 0, to numbers of rows below 2**32."""

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
        """Return the bytes in memory: those of pages in use; room for more takes none before it is used."""
        return 0 if self._is_filed else self.pages * PAGE_BYTES

    def file(self, allocate: Callable[[tuple[int, int], Any], NDArray[Any]]) -> None:
        """Move the pages to files; `allocate` returns arrays of zeros in them."""
        self._allocate = allocate
        self._move(len(self._prints))

    def find(self, prints: Prints, is_key: IsKey) -> Rows:
        """Return the row of each print for which `is_key` is true: int64[n], -1 where there is none.

        Args:
            is_key: called with (places in `prints`, rows with equal prints).
        """
        places = self._places(prints, is_key)
        rows = np.full(len(prints), _NO_ROW, dtype=np.int64)
        is_known = places >= 0
        rows[is_known] = self._rows.reshape(-1)[places[is_known]]
        return rows

    def replace(self, prints: Prints, rows: Rows, others: Rows) -> None:
        """Replace rows by others with the same prints."""
        places = self._places(prints, lambda which, stored: stored == rows[which])
        self._rows.reshape(-1)[places] = others

    def _places(self, prints: Prints, is_key: IsKey) -> NDArray[np.int64]:
        """Return the place of each print in the table: int64[n], -1 where there is none."""
        places = np.full(len(prints), -1, dtype=np.int64)
        rows = self._rows.reshape(-1)
        left, left_prints, buckets = np.arange(len(prints)), prints, self._buckets(prints)
        while len(left):
            stored = self._prints[buckets]
            hits = np.flatnonzero(stored == left_prints[:, None])
            if len(hits):
                lookups = hits // WIDTH
                hit_places = buckets[lookups] * WIDTH + hits % WIDTH
                which = left[lookups]
                is_equal = is_key(which, rows[hit_places].astype(np.int64))
                places[which[is_equal]] = hit_places[is_equal]
            goes_on = (stored[:, -1] != 0) & (places[left] < 0)
            left, left_prints, buckets = left[goes_on], left_prints[goes_on], _next(buckets[goes_on])
        return places

    def _buckets(self, prints: Prints) -> NDArray[np.int64]:
        wide = prints.astype(np.int64)
        pages: NDArray[np.int64] = self._directory[wide >> (32 - self._depth)]
        return pages * BUCKETS + (wide & (BUCKETS - 1))

    def add(self, prints: Prints, rows: Rows) -> None:
        """Add rows that are not in the index.

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

    def add_many(self, prints: Prints, rows: Rows) -> None:
        """Add many rows that are not in the index, page by page, so that few lines of pages are read from memory.

        Raises:
            TooManyEqualPrints: they cannot be distinguished.
        """
        order = np.argsort(prints)
        for first in range(0, len(order), _ADDED_AT_ONCE):
            some = order[first : first + _ADDED_AT_ONCE]
            self.add(prints[some], rows[some])

    def _put(self, prints: Prints, rows: Rows) -> None:
        buckets = self._buckets(prints)
        self._counts += np.bincount(buckets // BUCKETS, minlength=self.pages)
        all_prints, all_rows = self._prints.reshape(-1), self._rows.reshape(-1)
        narrow = rows.astype(np.uint32)
        while len(prints):
            taken = np.count_nonzero(self._prints[buckets], axis=1)
            is_full = taken == WIDTH
            places = buckets * WIDTH + taken
            open_ = np.flatnonzero(~is_full)
            all_rows[places[open_]] = narrow[open_]  # of several for one place the last one wins
            is_placed = np.zeros(len(prints), dtype=np.bool_)
            is_placed[open_] = all_rows[places[open_]] == narrow[open_]
            all_prints[places[is_placed]] = prints[is_placed]
            buckets = np.where(is_full, _next(buckets), buckets)[~is_placed]
            prints, narrow = prints[~is_placed], narrow[~is_placed]

    def remove(self, prints: Prints, rows: Rows) -> None:
        """Remove rows, each once, which are in the index with these prints."""
        places = self._places(prints, lambda which, stored: stored == rows[which])
        self._prints.reshape(-1)[places] = 0
        buckets = _distinct(places // WIDTH)
        self._counts -= np.bincount(places // PLACES, minlength=self.pages)
        was_full = self._prints[buckets, -1] != 0
        was_full |= np.isin(buckets, places[places % WIDTH == WIDTH - 1] // WIDTH)
        self._compact(buckets)
        self._put_back(_next(buckets[was_full]))

    def _compact(self, buckets: NDArray[np.int64]) -> None:
        """Move the free places of buckets behind the others."""
        entries = self._prints[buckets].astype(np.uint64) << np.uint64(32) | self._rows[buckets]
        self._prints[buckets], self._rows[buckets] = _descending(entries)

    def _put_back(self, buckets: NDArray[np.int64]) -> None:
        """Put entries that are behind buckets which are not full any more to where they are looked for."""
        strays: list[tuple[Prints, NDArray[np.uint32]]] = []
        while len(buckets):
            buckets = _distinct(buckets)
            prints = self._prints[buckets]
            is_full = prints[:, -1] != 0
            is_stray = (prints != 0) & ((prints & (BUCKETS - 1)) != (buckets & (BUCKETS - 1))[:, None])
            if is_stray.any():
                strays.append((prints[is_stray], self._rows[buckets][is_stray]))
                self._counts -= np.bincount(buckets[np.nonzero(is_stray)[0]] // BUCKETS, minlength=self.pages)
                self._prints[buckets] = np.where(is_stray, np.uint32(0), prints)
                self._compact(buckets)
            buckets = _next(buckets[is_full])
        for prints, rows in strays:
            self._put(prints, rows.astype(np.int64))

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
        """Move the entries whose print has a bit set from pages to others, which are new."""
        prints = self._prints.reshape(-1, BUCKETS, WIDTH)[pages]
        rows = self._rows.reshape(-1, BUCKETS, WIDTH)[pages]
        is_used = prints != 0
        is_home = is_used & ((prints & (BUCKETS - 1)) == np.arange(BUCKETS, dtype=np.uint32)[:, None])
        is_upper = (prints >> bits.astype(np.uint32)[:, None, None] & 1).astype(np.bool_)
        entries = prints.astype(np.uint64) << np.uint64(32) | rows
        for numbers, chosen in ((pages, is_home & ~is_upper), (others, is_home & is_upper)):
            prints, rows = _descending(np.where(chosen, entries, np.uint64(0)))
            self._prints.reshape(-1, BUCKETS, WIDTH)[numbers] = prints
            self._rows.reshape(-1, BUCKETS, WIDTH)[numbers] = rows
            self._counts[numbers] = np.count_nonzero(chosen, axis=(1, 2))
        strays = entries[is_used & ~is_home]  # of buckets that were full
        self._put((strays >> np.uint64(32)).astype(np.uint32), (strays & np.uint64(0xFFFF_FFFF)).astype(np.int64))

    def _move(self, buckets: int) -> None:
        """Move to arrays of a number of buckets."""
        buckets = -(-buckets // BUCKETS) * BUCKETS
        prints, rows = (self._allocate((buckets, WIDTH), np.uint32) for _ in range(2))
        prints[: len(self._prints)], rows[: len(self._rows)] = self._prints, self._rows
        self._prints, self._rows = prints, rows
        self._is_filed = self._allocate is not np.zeros

    def _entries(self, pages: NDArray[np.int64]) -> tuple[Prints, Rows]:
        prints = self._prints.reshape(-1, PLACES)[pages]
        is_used = prints != 0
        return prints[is_used], self._rows.reshape(-1, PLACES)[pages][is_used].astype(np.int64)

    def sweep(self, page: int, is_over: Callable[[Rows], NDArray[np.bool_]]) -> Rows:
        """Remove the rows of a page that are over, and return them."""
        prints, rows = self._entries(np.array([page]))
        over = is_over(rows)
        if over.any():
            self._prints.reshape(-1, PLACES)[page] = 0
            self._counts[page] = 0
            self._put(prints[~over], rows[~over])
        return rows[over]

    def shrink(self) -> None:
        """Use fewer pages where most places are free."""
        if self.pages > 1 and len(self) * 8 < self.pages * PLACES:
            prints, rows = self._entries(np.arange(self.pages))
            self._begin(0)
            self.add(prints, rows)


def _descending(entries: NDArray[np.uint64]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the prints and rows of buckets' entries, so that free places come last."""
    ordered = np.sort(entries, axis=-1)[..., ::-1]
    return ordered >> np.uint64(32), ordered & np.uint64(0xFFFF_FFFF)


def _distinct(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each bucket once, ascending."""
    ordered = np.sort(buckets)
    return ordered[first_of_runs(ordered)]


def _next(buckets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the next bucket of each one's page; behind the last the first."""
    return (buckets & ~(BUCKETS - 1)) | ((buckets + 1) & (BUCKETS - 1))


def _bounds(pages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the largest number of rows of each page: five to eight tenths of its slots."""
    return (PLACES * (0.5 + 0.3 * (pages * 0.6180339887498949 % 1.0))).astype(np.int64)


__all__ = ["BUCKETS", "PLACES", "KeyIndex", "TooManyEqualPrints"]
