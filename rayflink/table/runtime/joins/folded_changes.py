"""Changes of rows as those that are left of them: rows that come and go in between are left out.

What is taken back stands before what comes, so that a row which replaces another by any key finds it gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import types

from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.common.types import RowKind

from ..changes import changed, signs_of
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]
    Kinds = NDArray[np.int8]

_INSERT, _DELETE = RowKind.INSERT.value, RowKind.DELETE.value


def folded_equal(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return changes as those that are left where equal rows that come and go cancel each other.

    >>> changes = with_kinds(pa.record_batch({"n": [1, 1, 2]}), np.array([0, 3, 3], dtype=np.int8))
    >>> folded_equal(changes).to_pydict()
    {'n': [2], '$row_kind': [3]}

    Args:
        rows: with kinds or without; those with a column that cannot be compared are returned as they are.
    """
    kinds, data = kinds_of(rows), without_kinds(rows)
    if kinds is None or not rows.num_rows or not data.num_columns or any(map(_is_nested, data.schema.types)):
        return rows
    signs, codes = signs_of(kinds, len(kinds)), _codes(data.columns)
    counts = np.bincount(codes, weights=signs).astype(np.int64)
    if (np.bincount(codes) == np.abs(counts)).all() and not _has_returned(signs):
        return rows
    if (kinds == _DELETE).any():  # an update without its other half could be one
        kinds = np.where(signs > 0, np.int8(_INSERT), np.int8(_DELETE))
    chosen = []
    for sign in (-1, 1):
        places = np.flatnonzero(signs == sign)
        last = np.full(len(counts), -1)
        last[codes[places]] = places  # of several for one place the last one wins
        left = np.sort(last[sign * counts > 0])
        chosen.append(np.repeat(left, np.abs(counts[codes[left]])))
    return _taken(data, kinds, np.concatenate(chosen))


def folded_by_key(rows: pa.RecordBatch, key: Sequence[int], takes_upserts: bool = False) -> pa.RecordBatch:
    """Return changes of rows by a unique key as at most two for each: of the row before them, and that behind them.

    Args:
        rows: with kinds or without.
        key: numbers of the columns of the key.
        takes_upserts: UPDATE_AFTER may come without UPDATE_BEFORE, and says that there was a row.
    """
    kinds, data = kinds_of(rows), without_kinds(rows)
    if not rows.num_rows:
        return rows
    kinds = np.full(rows.num_rows, _INSERT, dtype=np.int8) if kinds is None else kinds.copy()
    signs, codes = signs_of(kinds, len(kinds)), _codes([data.column(number) for number in key])
    places = np.arange(len(codes))
    first, last = np.empty(int(codes.max()) + 1, dtype=np.int64), np.empty(int(codes.max()) + 1, dtype=np.int64)
    first[codes[::-1]], last[codes] = places[::-1], places
    comes = signs[last] > 0
    was_there = signs[first] < 0
    replaces = comes & was_there
    is_same = np.zeros(len(first), dtype=np.bool_)
    both = np.flatnonzero(replaces)
    if len(both):
        before, after = (data.take(pa.array(rows_of[both])) for rows_of in (first, last))
        is_same[both] = ~changed(after.columns, before.columns, np.ones(len(both), dtype=np.bool_))
    goes = was_there & ~is_same
    kinds[first[goes & ~comes]] = kinds[last[goes & ~comes]]  # of its end, as no row follows
    unknown = ~was_there & ~comes & (kinds[first] != _INSERT) & takes_upserts  # it replaced a row that was left out
    new = comes & ~is_same
    alone = new & ~was_there
    kinds[last[alone]] = kinds[first[alone]]
    gone = np.concatenate([first[goes], last[unknown]])
    return _taken(data, kinds, np.concatenate([np.sort(gone), np.sort(last[new])]))


def _codes(columns: Sequence[pa.Array]) -> NDArray[np.intp]:
    keys = KeyForms([column.type for column in columns]).encode(columns)
    return distinct_keys(keys, fingerprints(keys))[0]


def _has_returned(signs: Numbers) -> bool:
    """Return whether a row is taken back behind one that comes."""
    return bool((np.diff(signs) < 0).any())


def _taken(data: pa.RecordBatch, kinds: Kinds, chosen: Numbers) -> pa.RecordBatch:
    taken, own = data.take(pa.array(chosen)), kinds[chosen]
    return with_kinds(taken, own) if own.any() else taken


def _is_nested(kind: pa.DataType) -> bool:
    return bool(types.is_nested(kind))


__all__ = ["folded_by_key", "folded_equal"]
