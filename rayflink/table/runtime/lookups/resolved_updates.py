"""Rows of a lookup join over rows that change: what was found when a row came is what is taken back with it.

A table may have changed by the time at which a row is replaced or deleted. So the rows that were found for each key of
the input are stored when they come. For the first row with the key that is taken back all of them are emitted with its
kind, in place of what it found itself, and forgotten.

Source: apache/flink KeyedLookupJoinWrapper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rayflink.common.records.batches import ArrowBatch, Batch, Element
from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.operators.base import OperatorContext

from ..aggregates.partial_aggregates import concatenated
from ..groups.group_rows import signs_of
from ..groups.segments import Segments, first_of_runs
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec, RowForm
from ..keyed_state.keyed_table import EXPIRED
from ..keyed_state.runs import ranges
from ..keyed_state.stored_table import StoredTable
from ..keyed_state.table_operator import KeyedTableOperator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..groups.segments import Numbers, Truths

_NO_KEY = pa.array([0], pa.int8())
"""The key of all rows, where the input has one row at most."""


@dataclass(frozen=True)
class ResolvedSpec:
    """The rows of a lookup join whose input changes.

    Args:
        key: numbers of the columns that identify a row of the input; none: it has one row at most.
        keeps_misses: whether a row without found rows is emitted, with nulls.
        ttl_ms: how long found rows are known; 0: for ever.
        state_identity: which rows of the query the state belongs to.
    """

    key: tuple[int, ...]
    keeps_misses: bool
    ttl_ms: int
    state_identity: str


class _Taken(NamedTuple):
    """The rows of a batch, key by key, of which some are taken back within it.

    Args:
        come: places of the rows that come, in the batch.
        first_begins: for each key of `keys` the place of the first row that is taken back.
        keys: the keys that have some.
        consumers: for each of `come` the place of the row that takes it back; -1: it stays.
    """

    come: Numbers
    first_begins: Numbers
    keys: Numbers
    consumers: Numbers


class ResolveUpdatesOperator(KeyedTableOperator):
    """Emits for a row that is taken back the rows that were found when it came.

    The input is the result of a left join, with a last column that is NULL where nothing was found; of equal keys a row
    is taken back before another one comes.

    Args:
        spec: the rows.
        schema: of the result, which has all columns but the last.
    """

    def __init__(self, spec: ResolvedSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        others = [number for number in range(len(schema)) if number not in spec.key]
        self._order = [*spec.key, *others]
        kinds = [schema.types[number] for number in self._order]
        self._kinds = kinds if spec.key else [_NO_KEY.type, *kinds]
        self._width = len(spec.key) or 1
        self._forms = KeyForms(self._kinds[: self._width])
        multiset = MultisetSpec(tuple(self._kinds), self._width, RowForm.APPENDED, 0, False, spec.ttl_ms)
        self._rows = KeyedMultiset(multiset)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._memory, self._clock = FrameMemory(ctx), ctx.clock
        self._rows.table.open(self._memory)
        if ctx.metrics is not None and self._spec.ttl_ms:
            self._rows.table.expired = ctx.metrics.counter(EXPIRED).inc
        self._stored = StoredTable(self._rows.table, self._spec.state_identity, ctx)

    def close(self) -> None:
        self._memory.release()

    @property
    def stored(self) -> StoredTable:
        return self._stored

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        return self._resolved(batch.data) if len(batch) else ()

    def _resolved(self, batch: pa.RecordBatch) -> list[Element]:
        kinds, rows = kinds_of(batch), without_kinds(batch)
        count, now_ms = rows.num_rows, int(self._clock.now_ms())
        columns = [rows.column(number).cast(kind) for number, kind in enumerate(self._schema.types)]
        columns = [columns[number] for number in self._order]
        if not self._spec.key:
            columns = [_NO_KEY.take(pa.array(np.zeros(count, dtype=np.int64))), *columns]
        is_shown = rows.column(len(self._schema)).is_valid().to_numpy(zero_copy_only=False) | self._spec.keeps_misses
        encoded = self._forms.encode(columns[: self._width])
        codes, firsts = distinct_keys(encoded, fingerprints(encoded))
        taken = _taken_back(codes, signs_of(kinds, count), is_shown)
        stored, owners = self._draw(take_rows(columns[: self._width], firsts[taken.keys]), now_ms)
        stays = taken.consumers < 0
        left = taken.come[stays]
        if len(left):
            self._rows.change(take_rows(columns, left), np.ones(len(left), dtype=np.int64), None, now_ms)
        places = np.concatenate([taken.come, count + np.arange(len(owners)), taken.come[~stays]])
        moments = np.concatenate([taken.come, taken.first_begins[owners], taken.consumers[~stays]])
        if not len(places):
            return []
        order = np.argsort(moments, kind="stable")
        everything = concatenated([columns, stored]) if len(owners) else columns
        shown = take_rows(everything, places[order])
        result = self._batch(shown)
        return [ArrowBatch(result if kinds is None else with_kinds(result, kinds[moments[order]]))]

    def _draw(self, keys: Columns, now_ms: int) -> tuple[Columns, Numbers]:
        """Forget the stored rows of keys, and return them, and the place of each one's key in `keys`."""
        nothing = np.zeros(0, dtype=np.int64)
        if not len(self._rows.table) or not len(keys[0]):
            return [], nothing
        stored = self._rows.find(keys)
        numbers = stored.order[ranges(stored.first, stored.count)].astype(np.int64)
        owners = np.repeat(np.arange(len(stored.count)), stored.count)
        if not len(numbers):
            return [], nothing
        is_known = ~self._rows.is_over(numbers, now_ms) if self._spec.ttl_ms else np.ones(len(numbers), dtype=np.bool_)
        columns = self._rows.take(numbers[is_known]) if is_known.any() else []
        self._rows.table.remove(numbers)
        return columns, owners[is_known]

    def _batch(self, columns: Columns) -> pa.RecordBatch:
        in_order: Columns = columns[len(columns) - len(self._order) :]
        places = np.argsort(self._order)
        return pa.RecordBatch.from_arrays([in_order[place] for place in places], schema=self._schema)


def _taken_back(codes: NDArray[np.intp], signs: Numbers, is_shown: Truths) -> _Taken:
    """Return which rows come, and which of them are taken back within a batch.

    Args:
        codes: the key of each row.
        signs: 1 for each row that comes, -1 for each that is taken back.
        is_shown: which rows that come are emitted and stored.
    """
    order = np.argsort(codes, kind="stable")
    keys, is_gone = codes[order].astype(np.int64), signs[order] < 0
    is_first = first_of_runs(keys)
    is_begin = is_gone & (is_first | ~np.append(False, is_gone[:-1]))
    segments = Segments(is_first)
    turns = segments.sums(is_begin.astype(np.int64), np.zeros(len(segments), dtype=np.int64))
    come, begins = np.flatnonzero(~is_gone & is_shown[order]), np.flatnonzero(is_begin)
    room = int(turns.max(initial=0)) + 2
    of_begins, of_rows = keys[begins] * room + turns[begins], keys[come] * room + turns[come] + 1
    spots = np.searchsorted(of_begins, of_rows)
    is_consumed = np.zeros(len(come), dtype=np.bool_)
    within = np.flatnonzero(spots < len(begins))
    is_consumed[within] = of_begins[spots[within]] == of_rows[within]
    consumers = np.full(len(come), -1, dtype=np.int64)
    consumers[is_consumed] = order[begins[spots[is_consumed]]]
    first_begins = begins[turns[begins] == 1]
    return _Taken(order[come].astype(np.int64), order[first_begins].astype(np.int64), keys[first_begins], consumers)


__all__ = ["ResolveUpdatesOperator", "ResolvedSpec"]
