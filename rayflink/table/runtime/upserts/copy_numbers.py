"""Numbers equal rows of a changelog, so that what follows can tell them apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds

from ..aggregates.reductions import to_arrow, to_numpy
from ..groups.group_rows import signs_of
from ..groups.table_state import TableOperator, TableState
from ..keyed_state.key_rows import take_rows
from ..keyed_state.running_counts import running_counts
from .last_row_operators import UNKNOWN_DELETES


@dataclass(frozen=True)
class CopySpec:
    """The rows of a changelog that have no key.

    Args:
        columns: types of the columns.
        ttl_ms: how long the number of equal rows is known if none comes or goes; 0: for ever.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    ttl_ms: int
    state_identity: str


class CopyNumberOperator(TableOperator):
    """Adds to each row its number among equal ones, from 1 on; the one that came last is taken back first.

    A row that is taken back and is not there is dropped and counted.

    Args:
        spec: the rows.
        schema: of the result: the columns, and behind them the number.
    """

    def __init__(self, spec: CopySpec, schema: pa.Schema) -> None:
        super().__init__(TableState(spec.columns, [], [pa.int64()], spec.ttl_ms, spec.state_identity))
        self._schema = schema

    def add(self, rows: pa.RecordBatch) -> Iterable[Element]:
        kinds, count = kinds_of(rows), rows.num_rows
        columns = self._state.keys_of(without_kinds(rows).columns, count)
        now_ms, signs = self._state.now_ms, signs_of(kinds, count)
        keys = self._state.find(columns, count, now_ms)
        present = np.zeros(len(keys.rows), dtype=np.int64)
        present[keys.rows >= 0] = to_numpy(keys.stored[0])
        around = running_counts(keys.codes, signs, present)
        present[keys.codes] = around.after  # of equal rows the last one says how many there are
        self._state.store(keys, present > 0, [to_arrow(present, pa.int64())], now_ms)
        is_known = (signs > 0) | (around.before > 0)
        columns = [*columns, to_arrow(np.maximum(around.before, around.after), pa.int64())]
        if not is_known.all():
            self._count_unknown(int((~is_known).sum()))
            places = np.flatnonzero(is_known)
            columns, kinds = take_rows(columns, places), None if kinds is None else kinds[places]
        result = pa.RecordBatch.from_arrays(columns, schema=self._schema)
        return [ArrowBatch(result if kinds is None else with_kinds(result, kinds))] if result.num_rows else []

    def _count_unknown(self, rows: int) -> None:
        if self.ctx.metrics is not None:
            self.ctx.metrics.counter(UNKNOWN_DELETES).inc(rows)


__all__ = ["CopyNumberOperator", "CopySpec"]
