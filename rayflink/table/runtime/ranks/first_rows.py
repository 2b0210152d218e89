"""The first row of each key by arrival, emitted at once; those that come later are dropped and counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import Element

from ...types import DataType
from ..aggregates.grouping import grouped
from .first_of_key import FirstOfKeyOperator, KeysWithRow, RowChoice, numbered_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..aggregates.grouping import Codes


class FirstByArrival(RowChoice):
    """Emits the first row of each key that comes.

    Args:
        keys: the keys that had their row.
        columns: numbers of the columns of the result.
        schema: of the result; with one field more behind these for the row's number, which is 1.
    """

    def __init__(self, keys: KeysWithRow, columns: Sequence[int], schema: pa.Schema) -> None:
        self._keys, self._columns, self._schema = keys, tuple(columns), schema

    def process(self, rows: pa.RecordBatch) -> Iterable[Element]:
        groups = grouped(self._keys.of(rows), rows.num_rows)
        is_first = self._keys.seen.first(groups.keys, self._keys.now_ms)
        chosen = np.sort(_first_places(groups.codes, groups.count)[is_first])
        self._keys.count_duplicates(rows.num_rows - len(chosen))
        if len(chosen):
            yield numbered_rows([rows.column(index) for index in self._columns], chosen, self._schema)


def _first_places(codes: Codes, count: int) -> NDArray[np.intp]:
    """Return the first row of each group: intp[count]."""
    places = np.empty(count, dtype=np.intp)
    places[codes[::-1]] = np.arange(len(codes))[::-1]
    return places


def first_rows(
    input: DataType, keys: Sequence[int], columns: Sequence[int], schema: pa.Schema, ttl_ms: int, refreshes: bool,
    state_identity: str = "",
) -> FirstOfKeyOperator:  # fmt: skip
    """Return an operator that emits the first row of each key at once.

    Args:
        input: type of the rows that come in.
        keys: numbers of the columns by which they are partitioned; none: all rows have one key.
        columns: numbers of the columns of the result.
        schema: of the result; with one field more behind these for the row's number, which is 1.
        ttl_ms, refreshes: see `SeenKeys`.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """
    known = KeysWithRow(input, keys, ttl_ms, refreshes, state_identity)
    return FirstOfKeyOperator(input, known, FirstByArrival(known, columns, schema))


__all__ = ["FirstByArrival", "first_rows"]
