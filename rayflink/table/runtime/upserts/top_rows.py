"""The first rows of each key of a stream in an order, with their numbers, and the changes that rows make of them.

The changes of all rows that come together are shown as one: for each key and number the row that had it, and the one
that has it now. Of an input whose rows stay, only the rows that are among the first ones are stored; of one that takes
rows back, all rows are, since any of them may move up. Of a key with very many of these the best ones are remembered,
so that a batch does not read the others (`best_rows`).

Source: apache/flink AppendOnlyTopNFunction, RetractableTopNFunction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.operators.base import OperatorContext

from ..aggregates.partial_aggregates import concatenated
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
from .best_rows import Best, BestRows, Name, NewRows, bounds_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

_NO_KEY = pa.array([0], pa.int8())
"""The key of all rows, where there are no columns to partition by."""
_NONE = np.zeros(0, dtype=np.int64)
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
        newest_first: of rows that are equal in the order, the one that came last is the first.
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
    newest_first: bool = False


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


class _Keys(NamedTuple):
    """Keys, no two of them equal: their columns, and these in the form in which they are compared."""

    columns: Columns
    encoded: Columns


class _Ordered(NamedTuple):
    """Rows of keys, and behind them the bounds of hot keys, with their order.

    Args:
        codes: the key of each row.
        numbers: of the stored rows.
        columns: of the rows.
        sequences: when each came.
        times: how many equal rows each stands for, 0 for a bound; None: one each.
        order: places of the rows, key by key.
        is_behind: which of `order` are behind the bound of their key, or are bounds.
    """

    codes: Numbers
    numbers: Numbers
    columns: Columns
    sequences: Numbers
    times: Numbers | None
    order: Numbers
    is_behind: NDArray[np.bool_]

    def short(self, best: Mapping[int, Best], wanted: int) -> Numbers:
        """Return the hot keys that have fewer rows than are wanted up to their bounds."""
        if not best:
            return _NONE
        assert self.times is not None, "keys are hot where rows are taken back"
        within = self.order[~self.is_behind]
        hot = np.fromiter(best, np.int64, len(best))
        rows = np.bincount(self.codes[within], self.times[within], minlength=int(hot.max()) + 1)
        too_few: Numbers = hot[rows[hot] < wanted]
        return too_few

    def up_to_bounds(self, keys: Numbers) -> list[Numbers]:
        """Return the places of the rows of keys up to their bounds, in their order."""
        codes = self.codes[self.order]
        firsts, stops = np.searchsorted(codes, keys), np.searchsorted(codes, keys, "right")
        spans = [slice(first, stop) for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True)]
        return [self.order[span][~self.is_behind[span]] for span in spans]


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
        keeps_first = not spec.newest_first
        self.rows = KeyedMultiset(MultisetSpec(tuple(columns), self._width, form, 0, True, spec.ttl_ms, keeps_first))
        encoded = self._forms.encode([pa.array([], kind) for kind in columns[: self._width]])
        self._best = BestRows(self.rows, [column.type for column in encoded], spec.last)
        self._kinds = columns
        self._sequence = 0
        """Number of the next row; a greater one came later."""

    def open(self, ctx: OperatorContext) -> StoredTable:
        """Take memory and metrics, and return what takes the snapshots."""
        self._memory, self._clock = FrameMemory(ctx), ctx.clock
        self.rows.table.open(self._memory)
        if ctx.metrics is not None and self._spec.ttl_ms:
            self.rows.table.expired = ctx.metrics.counter(EXPIRED).inc
        return StoredTable(self.rows.table, f"first rows: {self._spec.state_identity}", ctx)

    def has_restored(self) -> None:
        """Go on behind the rows that are stored."""
        self._sequence = self.rows.greatest_match() + 1

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
        codes, firsts = distinct_keys(encoded, fingerprints(encoded))
        keys = _Keys(take_rows(columns[: self._width], firsts), take_rows(encoded, firsts))
        signs = signs_of(kinds, count)
        self.rows.table.beside = self._best.size
        before = self._top(keys, None, now_ms)
        self.rows.change(columns, signs, np.arange(self._sequence, self._sequence + count), now_ms)
        self._sequence += count
        after = self._top(keys, self._new_rows(keys, columns, codes, signs), now_ms)
        if not self._spec.retracts and len(after.others):
            self.rows.table.remove(after.others)
        return self._changes(before, after)

    def _new_rows(self, keys: _Keys, columns: Columns, codes: NDArray[np.intp], signs: Numbers) -> NewRows | None:
        """Return the rows of a batch that have come, of hot keys at least; None where no key is hot."""
        if not self._best:
            return None
        come = np.flatnonzero((signs > 0) & self._best.may_know(keys.encoded)[codes])
        rows = self.rows.lookup(take_rows(columns, come))
        numbers, firsts = np.unique(rows, return_index=True)
        first = np.searchsorted(numbers, 0)
        return NewRows(codes[come[firsts[first:]]].astype(np.int64), numbers[first:])

    def _top(self, keys: _Keys, new: NewRows | None, now_ms: int) -> _Top:
        """Return the first rows of keys, of which no two are equal.

        Args:
            new: rows that have come since this was called last.
        """
        stored = self.rows.find(keys.columns)
        names = self._best.names(keys.encoded, stored.count > self._best.most) if self._spec.retracts else {}
        best = self._best.of(names)
        counts = stored.count.copy()
        counts[list(best)] = 0
        pairs = list(Matches(cast("Numbers", stored.order), stored.first, counts).pairs())
        codes = np.concatenate([np.zeros(0, dtype=np.int64), *(own for own, _ in pairs)])
        numbers = np.concatenate([np.zeros(0, dtype=np.int64), *(rows for _, rows in pairs)]).astype(np.int64)
        if best:
            best_codes, best_numbers = self._best.candidates(best, new)
            codes, numbers = np.append(codes, best_codes), np.append(numbers, best_numbers)
        if self._spec.ttl_ms and len(numbers):
            is_left = ~self.rows.is_over(numbers, now_ms)
            codes, numbers = codes[is_left], numbers[is_left]
        ordered = self._ordered(codes, numbers, best)
        short = ordered.short(best, self._spec.last)
        if len(short):
            for code in short.tolist():
                self._best.forget(names[code])
            return self._top(keys, new, now_ms)
        if names:
            up_to_bounds = ordered.up_to_bounds(np.fromiter(names, np.int64, len(names)))
            for (code, name), chosen in zip(names.items(), up_to_bounds, strict=True):
                self._remember(name, chosen, ordered, code not in best)
        return self._first(ordered)

    def _ordered(self, codes: Numbers, numbers: Numbers, best: Mapping[int, Best]) -> _Ordered:
        """Return rows of keys in their order, and behind them the bounds of what is remembered of hot keys."""
        rows = len(numbers)
        columns = self.rows.take(numbers) if rows else [pa.array([], kind) for kind in self._kinds]
        sequences, times = self.rows.matches(numbers), self.rows.counts(numbers)
        if best:
            bound_codes, bounds, bound_sequences = bounds_of(best)
            codes, sequences = np.append(codes, bound_codes), np.append(sequences, bound_sequences)
            columns = concatenated([columns, bounds])
            times = None if times is None else np.append(times, np.zeros(len(bound_codes), dtype=np.int64))
        if not len(codes):
            return _Ordered(codes, numbers, columns, sequences, times, codes, np.zeros(0, dtype=np.bool_))
        arrival = -sequences if self._spec.newest_first else sequences
        order = order_of([codes, *order_numbers(columns, self._order), arrival], len(codes))
        is_behind = np.zeros(len(order), dtype=np.bool_)
        if best:
            keys = Segments(first_of_runs(codes[order]))
            is_behind = keys.sums((order >= rows).astype(np.int64), np.zeros(len(keys), dtype=np.int64)) > 0
        return _Ordered(codes, numbers, columns, sequences, times, order, is_behind)

    def _remember(self, name: Name, chosen: Numbers, ordered: _Ordered, are_all: bool) -> None:
        """Remember the best rows of a hot key.

        Args:
            chosen: places of its rows up to its bound.
            are_all: all rows of the key were read.
        """
        if are_all or len(chosen) > self._best.most:
            chosen = chosen[: self._best.fewest]
        if len(chosen):
            sequences, bound = ordered.sequences[chosen], take_rows(ordered.columns, chosen[-1:])
            self._best.put(name, Best(ordered.numbers[chosen], sequences, bound, int(sequences[-1])))

    def _first(self, ordered: _Ordered) -> _Top:
        """Return the first rows of keys."""
        codes, order = ordered.codes, ordered.order
        if ordered.times is not None:
            order = np.repeat(order, ordered.times[order])
        if not len(order):
            return _Top(_NONE, _NONE, [pa.array([], kind) for kind in self._kinds], _NONE)
        segments = Segments(first_of_runs(codes[order]))
        ranks = np.arange(len(order)) - segments.starts[segments.codes] + 1
        is_wanted = (ranks >= self._spec.first) & (ranks <= self._spec.last)
        chosen = order[is_wanted]
        others = _NONE if self._spec.retracts else ordered.numbers[order[ranks > self._spec.last]]
        return _Top(codes[chosen], ranks[is_wanted], take_rows(ordered.columns, chosen), others)

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
