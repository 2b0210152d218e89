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
    """Pairs of rows: left row i matches the `count[i]` right rows order[first[i]], order[first[i] + 1]..."""

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
            rows = np.arange(least, most + 1)
            counts = np.minimum(totals[rows], stop) - np.maximum(begins[rows], start)
            left = np.repeat(rows, counts)
            right = self.order[self.first[left] + (np.arange(start, stop) - begins[left])]
            yield left, right.astype(np.intp, copy=False)


def match_keys(
    left: Sequence[pa.Array], right: Sequence[pa.Array], nulls_match: Sequence[bool], left_rows: int, right_rows: int
) -> Matches:
    """Return the pairs of rows with equal keys; without a key each left row matches all right ones.

    Args:
        left, right: columns of the key, of the same types.
        nulls_match: of each column, whether a null is equal to a null.
    """
    if not left:
        first, count = np.zeros(left_rows, dtype=np.intp), np.full(left_rows, right_rows, dtype=np.intp)
        return Matches(np.arange(right_rows), first, count)
    columns = [combine_chunks(pa.chunked_array(pair)) for pair in zip(left, right, strict=True)]
    groups = grouped(columns, left_rows + right_rows)
    codes, group_count = groups.codes, groups.count
    can_match = np.ones(left_rows + right_rows, dtype=np.bool_)
    for column, nulls in zip(columns, nulls_match, strict=True):
        if column.null_count and not nulls:
            can_match &= column.is_valid().to_numpy(zero_copy_only=False)
    if not can_match.all():  # the others form a group of left rows and one of right rows, which do not match
        codes = np.where(can_match, codes, group_count)
        codes[left_rows:][~can_match[left_rows:]] = group_count + 1
        group_count += 2
    left_codes, right_codes = codes[:left_rows], codes[left_rows:]
    sizes = np.bincount(right_codes, minlength=group_count)
    return Matches(np.argsort(right_codes, kind="stable"), (np.cumsum(sizes) - sizes)[left_codes], sizes[left_codes])


__all__ = ["BLOCK_PAIRS", "Matches", "match_keys"]
