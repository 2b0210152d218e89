"""The first rows of each key of a stream in an order, with their numbers, and the changes that rows make of them.

The changes of all rows that come together are shown as one: for each key and number the row that had it, and the one
that has it now. Of an input whose rows stay, only the rows that are among the first ones are stored; of one that takes
rows back, all rows are, since any of them may move up.

Source: apache/flink AppendOnlyTopNFunction, RetractableTopNFunction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.operators.base import OperatorContext

from ..aggregates.reductions import to_arrow
from ..changes import changed, replaced_rows
from ..groups.group_rows import signs_of
from ..groups.segments import Segments, first_of_runs
from ..joins.join_pairs import Matches
from ..keyed_state.comparable_keys import KeyForms, distinct_keys, fingerprints
from ..keyed_state.frame_memory import Columns, FrameMemory
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec, RowForm
from ..keyed_state.keyed_table import EXPIRED
from ..keyed_state.stored_table import StoredTable
from ..ranks.ordering import OrderKey, order_numbers, order_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_NO_KEY = pa.array([0], pa.int8())
"""The key of all rows, where there are no columns to partition by."""
_SEQUENCE_BITS = 20
_NUMBER_ROOM = np.int64(1 << 40)


@dataclass(frozen=True)
class TopSpec:
    """The first rows of keys.

    Args:
        columns: types of the input's columns.
        partition: numbers of the columns of the key; none: all rows have one.
        order: of the rows of a key; equal ones are in the order in which they came.
        first, last: numbers of the rows that are wanted, from 1.
        retracts: whether rows may be taken back.
        ttl_ms: how long a row is known that does not come again; 0: for ever.
        with_before: whether an update includes the row before.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    partition: tuple[int, ...]
    order: tuple[OrderKey, ...]
    first: int
    last: int
    retracts: bool = False
    ttl_ms: int = 0
    with_before: bool = True
    state_identity: str = ""


class _Top(NamedTuple):
    """The first rows of some keys, key by key.

    Args:
        codes: the key of each row.
        numbers: of the rows, from 1.
        columns: of the rows.
        others: numbers of stored rows that are not among the first ones.
    """

    codes: Numbers
    numbers: Numbers
    columns: Columns
    others: Numbers

    @property
    def places(self) -> Numbers:
        """Return one number for key and number of each row, in ascending order."""
        places: Numbers = self.codes * _NUMBER_ROOM + self.numbers
        return places


class TopRows:
    """Follows the first rows of keys.

    Args:
        spec: the rows.
        schema: of the result: the columns of the input, and the row's number.
    """

    def __init__(self, spec: TopSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        others = [number for number in range(len(spec.columns)) if number not in spec.partition]
        self._state_order = [*spec.partition, *others]
        kinds = [spec.columns[number] for number in self._state_order]
        self._has_key = bool(spec.partition)
        columns = kinds if self._has_key else [_NO_KEY.type, *kinds]
        self._width = len(spec.partition) or 1
        self._places = {number: place + (not self._has_key) for place, number in enumerate(self._state_order)}
        self._order = [(self._places[column], descending, nulls) for column, descending, nulls in spec.order]
        self._forms = KeyForms(columns[: self._width])
        form = RowForm.COUNTED if spec.retracts else RowForm.APPENDED
        self.rows = KeyedMultiset(MultisetSpec(tuple(columns), self._width, form, 0, True, spec.ttl_ms))
        self._kinds = columns
        self._sequence = 0

    def open(self, ctx: OperatorContext) -> StoredTable:
        """Take memory and metrics, and return what takes the snapshots."""
        self._memory, self._clock = FrameMemory(ctx), ctx.clock
        self.rows.table.open(self._memory)
        if ctx.metrics is not None and self._spec.ttl_ms:
            self.rows.table.expired = ctx.metrics.counter(EXPIRED).inc
        return StoredTable(self.rows.table, f"first rows: {self._spec.state_identity}", ctx)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.release()

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the changes of the first rows that rows make, at least one."""
        kinds, rows = kinds_of(batch), without_kinds(batch)
        count, now_ms = rows.num_rows, int(self._clock.now_ms())
        columns = [rows.column(number).cast(self._spec.columns[number]) for number in self._state_order]
        if not self._has_key:
            columns = [_NO_KEY.take(pa.array(np.zeros(count, dtype=np.int64))), *columns]
        encoded = self._forms.encode(columns[: self._width])
        _, firsts = distinct_keys(encoded, fingerprints(encoded))
        keys = take_rows(columns[: self._width], firsts)
        before = self._top(keys, now_ms)
        self.rows.change(columns, signs_of(kinds, count), self._next_sequence(count, now_ms), now_ms)
        after = self._top(keys, now_ms)
        if not self._spec.retracts and len(after.others):
            self.rows.table.remove(after.others)
        return self._changes(before, after)

    def _next_sequence(self, count: int, now_ms: int) -> Numbers:
        """Return numbers in the order in which rows come, also behind those that were given before a restart."""
        self._sequence = max(self._sequence, now_ms << _SEQUENCE_BITS)
        numbers = np.arange(self._sequence, self._sequence + count)
        self._sequence += count
        return numbers

    def _top(self, keys: Columns, now_ms: int) -> _Top:
        """Return the first rows of keys, of which no two are equal."""
        stored = self.rows.find(keys)
        pairs = list(Matches(cast("Numbers", stored.order), stored.first, stored.count).pairs())
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(own for own, _ in pairs)])
        numbers = np.concatenate([np.zeros(0, dtype=np.int64), *(rows for _, rows in pairs)]).astype(np.int64)
        if self._spec.ttl_ms and len(numbers):
            is_left = ~self.rows.is_over(numbers, now_ms)
            codes, numbers = codes[is_left], numbers[is_left]
        if not len(numbers):
            return _Top(codes, numbers, [pa.array([], kind) for kind in self._kinds], numbers)
        columns = self.rows.take(numbers)
        order = order_of([codes, *order_numbers(columns, self._order), self.rows.matches(numbers)], len(codes))
        times = self.rows.counts(numbers)
        if times is not None:
            order = np.repeat(order, times[order])
        segments = Segments(first_of_runs(codes[order]))
        ranks = np.arange(len(order)) - segments.starts[segments.codes] + 1
        is_wanted = (ranks >= self._spec.first) & (ranks <= self._spec.last)
        chosen = order[is_wanted]
        others = numbers[order[ranks > self._spec.last]]
        return _Top(codes[chosen], ranks[is_wanted], take_rows(columns, chosen), others)

    def _changes(self, before: _Top, after: _Top) -> pa.RecordBatch:
        places = np.union1d(before.places, after.places)
        shown = []
        for top in (before, after):
            spots = np.searchsorted(top.places, places)
            spots = np.minimum(spots, max(len(top.places) - 1, 0))
            has_row = top.places[spots] == places if len(top.places) else np.zeros(len(places), dtype=np.bool_)
            taken = pa.array(spots, mask=~has_row)
            columns = [column.take(taken) if len(column) else pa.nulls(len(places), column.type)
                       for column in top.columns]  # fmt: skip
            shown.append((has_row, columns))
        (had_row, earlier), (has_row, later) = shown
        both = had_row & has_row
        is_shown = ~both | changed(later, earlier, both)
        chosen = np.flatnonzero(is_shown)
        ranks = to_arrow((places % _NUMBER_ROOM)[chosen], pa.int64())
        return replaced_rows(
            self._batch(take_rows(later, chosen), ranks), self._batch(take_rows(earlier, chosen), ranks),
            has_row[chosen], had_row[chosen], self._spec.with_before,
        )  # fmt: skip

    def _batch(self, columns: Columns, ranks: pa.Array) -> pa.RecordBatch:
        in_order = [columns[self._places[number]] for number in range(len(self._spec.columns))]
        arrays = [column if column.type == field.type else column.cast(field.type)
                  for column, field in zip([*in_order, ranks], self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


__all__ = ["TopRows", "TopSpec"]
