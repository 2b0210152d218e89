"""Pairs of rows with equal keys, in blocks of a bounded size.

Pairs come in the order of the left rows, those of one in the order of the right rows. Arrow's and polars' joins say
nothing of order, and make all pairs at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.grouping import grouped
from ..aggregates.reductions import combine_chunks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Rows = NDArray[np.intp]

BLOCK_PAIRS = 1 << 16


@dataclass(frozen=True)
class Matches:
    """Left row i goes with the right rows order[first[i]], order[first[i] + 1]..., `count[i]` of them."""

    order: Rows
    first: Rows
    count: Rows

    def pairs(self, block: int = BLOCK_PAIRS) -> Iterator[tuple[Rows, Rows]]:
        """Yield numbers of left and right rows, at most this many at once."""
        totals = np.cumsum(self.count)
        total = int(totals[-1]) if len(totals) else 0
        begins = totals - self.count
        for start in range(0, total, block):
            stop = min(start + block, total)
            least, most = np.searchsorted(totals, [start, stop - 1], side="right")
            of = np.arange(least, most + 1)
            shares = np.minimum(totals[of], stop) - np.maximum(begins[of], start)
            left = np.repeat(of, shares)
            yield left, self.order[self.first[left] + (np.arange(start, stop) - begins[left])]


def matches(left: Sequence[pa.Array], right: Sequence[pa.Array], nulls_match: Sequence[bool],
            left_rows: int, right_rows: int) -> Matches:  # fmt: skip
    """Return the rows with equal keys; without a key each with all.

    Args:
        left, right: columns of the key, of the same types.
        nulls_match: of each column, whether a null is equal to a null.
    """
    if not left:
        everything = np.zeros(left_rows, dtype=np.intp), np.full(left_rows, right_rows, dtype=np.intp)
        return Matches(np.arange(right_rows), *everything)
    columns = [combine_chunks(pa.chunked_array(pair)) for pair in zip(left, right, strict=True)]
    groups = grouped(columns, left_rows + right_rows)
    codes, count = groups.codes, groups.count
    known = np.ones(left_rows + right_rows, dtype=np.bool_)
    for column, nulls in zip(columns, nulls_match, strict=True):
        if column.null_count and not nulls:
            known &= column.is_valid().to_numpy(zero_copy_only=False)
    if not known.all():  # no row is equal to them: a group of left rows and one of right ones
        codes = np.where(known, codes, count)
        codes[left_rows:][~known[left_rows:]] = count + 1
        count += 2
    own, other = codes[:left_rows], codes[left_rows:]
    sizes = np.bincount(other, minlength=count)
    return Matches(np.argsort(other, kind="stable"), (np.cumsum(sizes) - sizes)[own], sizes[own])


__all__ = ["BLOCK_PAIRS", "Matches", "matches"]
