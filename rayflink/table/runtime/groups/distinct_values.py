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
    """Adds a column to rows for each argument, which says whether they change which values their group has.

    Args:
        columns: types of the rows' columns.
        keys: numbers of the columns to group by.
        arguments: the values, those of one column with several filters.
        ttl_ms: how long a value is known that does not come again; 0: for ever.
        retracts: whether rows may be taken back.
        state_identity: which rows of the query the state belongs to.
        is_split: rows are partitioned by the values as well, not by the group alone.
    """

    def __init__(
        self, columns: Sequence[pa.DataType], keys: Sequence[int], arguments: Sequence[DistinctArgument], ttl_ms: int,
        retracts: bool, state_identity: str, is_split: bool = False,
    ) -> None:  # fmt: skip
        [column] = {argument.column for argument in arguments}
        self._keys = tuple(dict.fromkeys((*keys, column))) if is_split else tuple(keys)
        self._more = [] if is_split else [column]
        self._arguments, self._puts_again = tuple(arguments), retracts or ttl_ms > 0
        kinds, more = ([columns[column] for column in chosen] for chosen in (self._keys, self._more))
        identity = f"{'split ' if is_split else ''}distinct values: {state_identity}"
        super().__init__(TableState(kinds, more, [pa.int64()] * len(arguments), ttl_ms, identity))

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        kinds, rows = kinds_of(rows), without_kinds(rows)
        signs = signs_of(kinds, rows.num_rows)
        schema, columns = rows.schema, rows.columns
        for changes in self._changes(rows, [counting_weights(rows, argument, signs) for argument in self._arguments]):
            schema = schema.append(pa.field(f"{WEIGHT}{len(columns)}", pa.int8(), nullable=False))
            columns.append(to_arrow(changes.astype(np.int8), pa.int8()))
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        yield ArrowBatch(rows if kinds is None else with_kinds(rows, kinds))

    def _changes(self, rows: pa.RecordBatch, weights: Sequence[Numbers]) -> list[Numbers]:
        """Count the values of rows for each argument, and return 1 where one comes, and -1 where its last one goes."""
        changes = [np.zeros(rows.num_rows, dtype=np.int64) for _ in weights]
        chosen = np.flatnonzero(np.logical_or.reduce([weight != 0 for weight in weights]))
        if not len(chosen):
            return changes
        state, now_ms = self._state, self._state.now_ms
        keys = state.keys_of([rows.column(key) for key in self._keys], rows.num_rows)
        values = [rows.column(column) for column in self._more]
        entries = state.find(take_rows([*keys, *values], chosen), len(chosen), now_ms)
        order = np.argsort(entries.codes, kind="stable")
        codes = entries.codes[order]
        segments = Segments(first_of_runs(codes))
        before, after = [], []
        for number, stored in enumerate(entries.stored):
            counts = np.zeros(len(entries.rows), dtype=np.int64)
            counts[entries.rows >= 0] = to_numpy(stored)
            added = weights[number][chosen][order]
            running = segments.sums(added, counts[codes[segments.starts]])
            changes[number][chosen[order]] = (running > 0).astype(np.int64) - (running - added > 0)
            final = np.empty(len(counts), dtype=np.int64)
            final[codes[segments.starts]] = running[segments.lasts]
            before.append(counts)
            after.append(final)
        self._store(entries, before, after, now_ms)
        return changes

    def _store(self, entries: FoundKeys, before: Sequence[Numbers], after: list[Numbers], now_ms: int) -> None:
        if self._puts_again:
            is_present = np.logical_or.reduce([counts != 0 for counts in after])
            self._state.store(entries, is_present, [to_arrow(counts, pa.int64()) for counts in after], now_ms)
            return
        after = [np.minimum(counts, 1) for counts in after]  # values stay, so it is enough that they were there
        is_other = np.logical_or.reduce([was != now for was, now in zip(before, after, strict=True)])
        changed = np.flatnonzero(is_other)
        if len(changed):
            chosen = FoundKeys(entries.codes, take_rows(entries.keys, changed), entries.rows[changed], entries.stored)
            columns = [to_arrow(counts[changed], pa.int64()) for counts in after]
            self._state.store(chosen, np.ones(len(changed), dtype=np.bool_), columns, now_ms)


__all__ = ["WEIGHT", "DistinctValuesOperator"]
