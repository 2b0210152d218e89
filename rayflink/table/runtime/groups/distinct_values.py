"""The values of a DISTINCT aggregate, by group and value: which rows bring a new value, and which take the last.

They are the state of an operator before the aggregation, so that a change costs time in the rows that come, not in
the values of a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds

from ..aggregates.reductions import to_arrow, to_numpy
from ..keyed_state.key_rows import take_rows
from .group_rows import DistinctArgument, counting_weights, signs_of
from .segments import Segments, first_of_runs
from .table_state import FoundKeys, TableOperator, TableState

if TYPE_CHECKING:
    from .segments import Numbers

WEIGHT = "$weight"
"""The column that is added: 1 where a row brings a value, -1 where it takes the last of it, else 0."""


class DistinctValuesOperator(TableOperator):
    """Adds a column to rows that says whether they change which values their group has.

    Args:
        columns: types of the rows' columns.
        keys: numbers of the columns to group by.
        argument: the values.
        ttl_ms: how long a value is known that does not come again; 0: for ever.
        retracts: whether rows may be taken back.
        state_identity: which rows of the query the state belongs to.
        is_split: rows are partitioned by the values as well, not by the group alone.
    """

    def __init__(
        self, columns: Sequence[pa.DataType], keys: Sequence[int], argument: DistinctArgument, ttl_ms: int,
        retracts: bool, state_identity: str, is_split: bool = False,
    ) -> None:  # fmt: skip
        self._keys = tuple(dict.fromkeys((*keys, argument.column))) if is_split else tuple(keys)
        self._more = [] if is_split else [argument.column]
        self._argument, self._puts_again = argument, retracts or ttl_ms > 0
        kinds, more = ([columns[column] for column in chosen] for chosen in (self._keys, self._more))
        identity = f"{'split ' if is_split else ''}distinct values: {state_identity}"
        super().__init__(TableState(kinds, more, [pa.int64()], ttl_ms, identity))

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        kinds, rows = kinds_of(rows), without_kinds(rows)
        weights = self._changes(rows, counting_weights(rows, self._argument, signs_of(kinds, rows.num_rows)))
        field = pa.field(f"{WEIGHT}{rows.num_columns}", pa.int8(), nullable=False)
        columns = [*rows.columns, to_arrow(weights.astype(np.int8), pa.int8())]
        rows = pa.RecordBatch.from_arrays(columns, schema=rows.schema.append(field))
        yield ArrowBatch(rows if kinds is None else with_kinds(rows, kinds))

    def _changes(self, rows: pa.RecordBatch, weights: Numbers) -> Numbers:
        """Count the values of rows, and return 1 where one comes, and -1 where its last one goes."""
        changes = np.zeros(len(weights), dtype=np.int64)
        chosen = np.flatnonzero(weights)
        if not len(chosen):
            return changes
        state, now_ms = self._state, self._state.now_ms
        keys = state.keys_of([rows.column(key) for key in self._keys], rows.num_rows)
        values = [rows.column(column) for column in self._more]
        found = state.find(take_rows([*keys, *values], chosen), len(chosen), now_ms)
        counts = np.zeros(len(found.rows), dtype=np.int64)
        counts[found.rows >= 0] = to_numpy(found.stored[0])
        order = np.argsort(found.codes, kind="stable")
        codes, added = found.codes[order], weights[chosen][order]
        segments = Segments(first_of_runs(codes))
        after = segments.sums(added, counts[codes[segments.starts]])
        before = after - added
        changes[chosen[order]] = (after > 0).astype(np.int64) - (before > 0)
        final = np.empty(len(counts), dtype=np.int64)
        final[codes[segments.starts]] = after[segments.lasts]
        self._store(found, final, now_ms)
        return changes

    def _store(self, found: FoundKeys, counts: Numbers, now_ms: int) -> None:
        if self._puts_again:
            self._state.store(found, counts != 0, [to_arrow(counts, pa.int64())], now_ms)
            return
        new = np.flatnonzero(found.rows < 0)
        if len(new):
            ones = pa.array(np.ones(len(new), dtype=np.int64))
            self._state.table.add(take_rows(found.keys, new), [ones], now_ms)


__all__ = ["WEIGHT", "DistinctValuesOperator"]
