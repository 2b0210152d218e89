"""Results that replace others: -U and +U where a row differs from what was shown of it, +I where nothing was."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind

from ..functions.nested_equality import equal_or_both_null

if TYPE_CHECKING:
    from numpy.typing import NDArray


def signs_of(kinds: NDArray[np.int8] | None, rows: int) -> NDArray[np.int64]:
    """Return 1 for each row that comes, and -1 for each that is taken back: int64[rows].

    Args:
        kinds: of the rows; None: all come.
    """
    signs = np.ones(rows, dtype=np.int64)
    if kinds is not None:
        signs[(kinds == RowKind.UPDATE_BEFORE.value) | (kinds == RowKind.DELETE.value)] = -1
    return signs


def changed(fresh: Sequence[pa.Array], shown: Sequence[pa.Array], has_shown: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows differ from what was emitted: bool[n].

    Args:
        fresh: columns of results.
        shown: what was shown of them.
        has_shown: of which rows anything was.
    """
    same = has_shown.copy()
    for new, old in zip(fresh, shown, strict=True):
        same &= equal_or_both_null(new, old).to_numpy(zero_copy_only=False)
    is_other: NDArray[np.bool_] = ~same
    return is_other


def changelog(rows: pa.RecordBatch, before: pa.RecordBatch, has_before: NDArray[np.bool_]) -> pa.RecordBatch:
    """Return rows that replace others as changes: each +I, or -U and +U one after the other.

    >>> new, old = pa.record_batch({"n": [1, 5]}), pa.record_batch({"n": [0, 4]})
    >>> changelog(new, old, np.array([False, True])).to_pydict()
    {'n': [1, 4, 5], '$row_kind': [0, 1, 2]}

    Args:
        rows: what holds now.
        before: what held until now, in the same places.
        has_before: whether anything did: bool[n].
    """
    count = rows.num_rows
    own, earlier = np.arange(count), np.flatnonzero(has_before)
    places = np.concatenate([2 * own + 1, 2 * earlier])
    order = np.argsort(places, kind="stable")
    after = np.where(has_before, RowKind.UPDATE_AFTER.value, RowKind.INSERT.value)
    kinds = np.concatenate([after, np.full(len(earlier), RowKind.UPDATE_BEFORE.value)])[order].astype(np.int8)
    taken: Any = pa.array(np.concatenate([own, count + earlier])[order])
    both = pa.Table.from_batches([rows, before]).combine_chunks().to_batches()
    whole = both[0] if both else rows
    return with_kinds(whole.take(taken), kinds)


def replaced_rows(
    after: pa.RecordBatch, before: pa.RecordBatch, has_after: NDArray[np.bool_], has_before: NDArray[np.bool_],
    with_before: bool = True,
) -> pa.RecordBatch:  # fmt: skip
    """Return rows that come, replace others, or go, as changes: +I, -U and +U, or -D, one after the other.

    >>> new, old = pa.record_batch({"n": [1, 5, 0]}), pa.record_batch({"n": [0, 4, 3]})
    >>> replaced_rows(new, old, np.array([True, True, False]), np.array([False, True, True])).to_pydict()
    {'n': [1, 4, 5, 3], '$row_kind': [0, 1, 2, 3]}

    Args:
        after: what holds now.
        before: what held until now, in the same places.
        has_after, has_before: whether anything does, and did: bool[n].
        with_before: whether an update includes the row before.
    """
    count = after.num_rows
    now, earlier = np.flatnonzero(has_after), np.flatnonzero(has_before & (with_before | ~has_after))
    order = np.argsort(np.concatenate([2 * now + 1, 2 * earlier]), kind="stable")
    fresh = np.where(has_before[now], RowKind.UPDATE_AFTER.value, RowKind.INSERT.value)
    gone = np.where(has_after[earlier], RowKind.UPDATE_BEFORE.value, RowKind.DELETE.value)
    kinds = np.concatenate([fresh, gone])[order].astype(np.int8)
    both = pa.Table.from_batches([after, before]).combine_chunks().to_batches()
    chosen = (both[0] if both else after).take(pa.array(np.concatenate([now, count + earlier])[order]))
    return with_kinds(chosen, kinds) if kinds.any() else chosen


__all__ = ["changed", "changelog", "replaced_rows", "signs_of"]
