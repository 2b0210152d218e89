"""The last row of each key, and the changes that rows make of it.

Source: apache/flink DeduplicateFunctionHelper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, without_kinds
from rayflink.common.types import RowKind

from ..aggregates.partial_aggregates import concatenated
from ..changes import changed, replaced_rows
from ..groups.segments import Segments, first_of_runs
from ..groups.table_state import FoundKeys, TableState
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from ..windows.input_rows import local_ms

if TYPE_CHECKING:
    from ..groups.segments import Numbers, Truths

_NO_TIME = np.iinfo(np.int64).min


@dataclass(frozen=True)
class LastRowSpec:
    """The rows of which the last of each key is followed.

    Args:
        columns: types of the input's columns.
        keys: numbers of the columns of the key; none: all rows have one.
        ttl_ms: how long a key is known of which no row comes; 0: for ever.
        with_before: whether an update includes the row before.
        state_identity: which rows of the query the state belongs to.
        event_time: number of the column by which a row is the last; of equal times it is the one that came last.
            None: the row that came last is.
        arrival: number of a column with the time at which a row came, in which rows do not differ; None: there is none.
    """

    columns: tuple[pa.DataType, ...]
    keys: tuple[int, ...]
    ttl_ms: int = 0
    with_before: bool = True
    state_identity: str = ""
    event_time: int | None = None
    arrival: int | None = None


class LastRowChanges(NamedTuple):
    """The changes that rows make.

    Args:
        rows: with their kinds.
        earlier: how many rows were earlier than the last one of their key.
        unknown: how many deletions found no row.
    """

    rows: pa.RecordBatch
    earlier: int
    unknown: int


class LastRows:
    """Replaces the last rows of keys, and computes the changes.

    Without `is_folded` each row is worked by itself: one that is replaced within a batch is shown. A row that equals
    the one before it changes nothing, unless keys expire: then it shows that its key is in use, as in Flink; by event
    time each row is shown. The row before an update is ignored where it comes: the last row is known.

    Args:
        spec: the rows.
        schema: of the result; with one field more behind the columns for the row's number, which is 1.
        is_folded: the changes of a key in a batch are one.
    """

    def __init__(self, spec: LastRowSpec, schema: pa.Schema, is_folded: bool = False) -> None:
        self._spec, self._schema, self._is_folded = spec, schema, is_folded
        self._others = [number for number in range(len(spec.columns)) if number not in spec.keys]
        kinds, values = ([spec.columns[number] for number in numbers] for numbers in (spec.keys, self._others))
        self.state = TableState(kinds, [], values, spec.ttl_ms, f"last rows: {spec.state_identity}")

    def add(self, batch: pa.RecordBatch) -> LastRowChanges:
        """Return the changes that rows make, in their order."""
        is_present, rows = _rows_that_count(batch)
        columns = [column if column.type == kind else column.cast(kind)
                   for column, kind in zip(rows.columns, self._spec.columns, strict=True)]  # fmt: skip
        now_ms, count = self.state.now_ms, rows.num_rows
        known = self.state.find(self.state.keys_of([columns[key] for key in self._spec.keys], count), count, now_ms)
        order = np.argsort(known.codes, kind="stable")
        if self._spec.event_time is not None:
            order = order[self._are_latest(columns, known, order)]
        if self._is_folded:
            order = order[np.append(np.diff(known.codes[order]) != 0, True)[: len(order)]]
        earlier = count - len(order) if self._spec.event_time is not None else 0
        if not len(order):
            return LastRowChanges(pa.RecordBatch.from_pylist([], self._schema), earlier, 0)
        codes, is_present = known.codes[order], is_present[order]
        segments = Segments(first_of_runs(codes))
        had_row = np.append(False, is_present[:-1])[: len(order)]
        had_row[segments.starts] = known.rows[codes[segments.starts]] >= 0
        values = take_rows([columns[number] for number in self._others], order)
        versions = concatenated([values, known.stored]) if values else []
        is_shown = is_present | had_row
        if self._spec.event_time is None and not self._spec.ttl_ms:
            previous = _previous(known, codes, segments, np.ones(len(order), dtype=np.bool_), had_row)
            is_shown &= self._differ(values, versions, previous, is_present & had_row)
        previous = _previous(known, codes, segments, is_shown, had_row)
        lasts = segments.last_rows(is_shown)[segments.lasts]
        lasts = lasts[lasts >= 0]
        self._store(known, codes[lasts], is_present[lasts], take_rows(values, lasts), now_ms)
        shown = np.flatnonzero(is_shown)
        shown = shown[np.argsort(order[shown], kind="stable")]
        keys = take_rows([columns[key] for key in self._spec.keys], order[shown])
        changes = replaced_rows(
            self._batch(keys, take_rows(values, shown), len(shown)),
            self._batch(keys, take_rows(versions, previous[shown]), len(shown)),
            is_present[shown], had_row[shown], self._spec.with_before,
        )  # fmt: skip
        return LastRowChanges(changes, earlier, int((~is_present & ~had_row).sum()))

    def _are_latest(self, columns: Columns, known: FoundKeys, order: Numbers) -> Truths:
        """Return which rows are not earlier than those before them with the same key: bool[n]."""
        time = self._spec.event_time
        assert time is not None, "rows have no event time"
        times = local_ms(columns[time], "UTC", f"f{time}")[order]
        stored = np.full(len(known.rows), _NO_TIME, dtype=np.int64)
        stored[known.rows >= 0] = local_ms(known.stored[self._others.index(time)], "UTC", f"f{time}")
        segments = Segments(first_of_runs(known.codes[order]))
        begin = stored[known.codes[order][segments.starts]]
        latest = segments.accumulated(np.maximum, times, begin)
        before = np.append(_NO_TIME, latest[:-1])[: len(latest)]
        before[segments.starts] = begin
        are_latest: Truths = times >= before
        return are_latest

    def _differ(self, values: Columns, versions: Columns, previous: Numbers, both: Truths) -> Truths:
        """Return which rows are not equal to the one before them, where there are both: bool[n]."""
        compared = [place for place, number in enumerate(self._others) if number != self._spec.arrival]
        if not compared:
            return ~both
        before = take_rows([versions[place] for place in compared], previous)
        return ~both | changed([values[place] for place in compared], before, both)

    def _store(self, known: FoundKeys, keys: Numbers, is_present: Truths, values: Columns, now_ms: int) -> None:
        """Store the last rows of some keys, or remove those that were deleted."""
        changed_keys = FoundKeys(keys, take_rows(known.keys, keys), known.rows[keys], [])
        self.state.store(changed_keys, is_present, values, now_ms)

    def _batch(self, keys: Columns, values: Columns, rows: int) -> pa.RecordBatch:
        numbers = [*self._spec.keys, *self._others]
        by_number = dict(zip(numbers, [*keys, *values], strict=True))
        columns = [by_number[number] for number in range(len(numbers))]
        if len(columns) < len(self._schema):
            columns.append(pa.array(np.ones(rows, dtype=np.int64)))
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(columns, self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _rows_that_count(batch: pa.RecordBatch) -> tuple[Truths, pa.RecordBatch]:
    """Return whether each row is there, or is deleted, bool[n], and the rows; those before updates are left out."""
    kinds, rows = kinds_of(batch), without_kinds(batch)
    if kinds is None:
        return np.ones(rows.num_rows, dtype=np.bool_), rows
    counts = kinds != RowKind.UPDATE_BEFORE.value
    if not counts.all():
        kinds, rows = kinds[counts], rows.filter(pa.array(counts))
    return kinds != RowKind.DELETE.value, rows


def _previous(known: FoundKeys, codes: Numbers, segments: Segments, is_chosen: Truths, had_row: Truths) -> Numbers:
    """Return the version of its key before each row: a chosen row, by its place, or a stored one, behind all rows."""
    count = len(codes)
    stored = count + np.cumsum(known.rows >= 0) - 1
    previous = np.append(-1, segments.last_rows(is_chosen)[:-1])[:count]
    previous[segments.starts] = -1
    return np.where(had_row, np.where(previous >= 0, previous, stored[codes]), 0)


__all__ = ["LastRowChanges", "LastRowSpec", "LastRows"]
