"""Changes of rows as upserts: what replaces the row of its key, and what deletes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.common.types import RowKind

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

_BEFORE, _AFTER, _DELETE = RowKind.UPDATE_BEFORE.value, RowKind.UPDATE_AFTER.value, RowKind.DELETE.value


def as_upserts(data: pyarrow.RecordBatch, key: Sequence[str]) -> pyarrow.RecordBatch:
    """Return rows without those that stand before an update.

    A row before an update is left out if the row after it follows and has the same key. Otherwise it becomes a
    deletion: the row after it was filtered out, or has another key.

    >>> import pyarrow
    >>> rows = pyarrow.record_batch({"k": [1, 1, 2, 3], "n": [5, 6, 7, 8]})
    >>> changes = with_kinds(rows, [_BEFORE, _AFTER, _BEFORE, _AFTER])
    >>> as_upserts(changes, ["k"]).to_pydict()
    {'k': [1, 2, 3], 'n': [6, 7, 8], '$row_kind': [2, 3, 2]}

    Args:
        key: names of the columns of the key.
    """
    import pyarrow

    kinds = kinds_of(data)
    if kinds is None or not (kinds == _BEFORE).any():
        return data
    followed = np.zeros(len(kinds), np.bool_)
    followed[:-1] = (kinds[:-1] == _BEFORE) & (kinds[1:] == _AFTER)
    for name in key:
        column = data.column(data.schema.get_field_index(name))
        followed[:-1] &= _equals_next(column)
    rows = with_kinds(without_kinds(data), np.where(kinds == _BEFORE, _DELETE, kinds).astype(np.int8))
    return rows.filter(pyarrow.array(~followed)) if followed.any() else rows


def _equals_next(column: pyarrow.Array) -> NDArray[np.bool_]:
    """Return bool[n - 1], whether each value equals the next one; NULL equals nothing."""
    from pyarrow import compute

    equal = compute.fill_null(compute.equal(column.slice(0, len(column) - 1), column.slice(1)), False)
    is_equal: NDArray[np.bool_] = equal.to_numpy(zero_copy_only=False)
    return is_equal


def last_of_each_key(data: pyarrow.RecordBatch, key: Sequence[str]) -> pyarrow.RecordBatch:
    """Return the last row of each key, in their order.

    >>> import pyarrow
    >>> last_of_each_key(pyarrow.record_batch({"k": [1, 2, 1], "n": [5, 6, 7]}), ["k"]).to_pydict()
    {'k': [2, 1], 'n': [6, 7]}
    """
    import pyarrow

    rows = pyarrow.table({f"{index}": data.column(name) for index, name in enumerate(key)})
    numbered = rows.append_column("row", pyarrow.array(np.arange(data.num_rows)))
    last = numbered.group_by([f"{index}" for index in range(len(key))]).aggregate([("row", "max")])
    if last.num_rows == data.num_rows:
        return data
    return data.take(pyarrow.array(np.sort(last.column("row_max").to_numpy())))


def is_deletion(data: pyarrow.RecordBatch) -> NDArray[np.bool_] | None:
    """Return bool[n], whether each row deletes the row of its key; None: no row does."""
    kinds = kinds_of(data)
    if kinds is None:
        return None
    deletes = kinds == _DELETE
    return deletes if deletes.any() else None


__all__ = ["as_upserts", "is_deletion", "last_of_each_key"]
