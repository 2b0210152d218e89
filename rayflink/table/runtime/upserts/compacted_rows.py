"""The row that each key of a table has when the changes up to a watermark have cancelled each other.

The changes of a row that moves from one key to another are sent by different subtasks, so that a key may have two rows
for a moment. It is known which rows it has when the watermark has passed the changes: rows that come and go by then
leave nothing behind, and what is left is one row, none, or a conflict.

If the query has a key, a row replaces the one before it, and a deletion finds its row by that key, since a value that
differs each time would not be found. A deletion that comes late, behind the row that follows, would delete that one:
its values say that it is of the row before, so it is ignored.

Source: apache/flink WatermarkCompactingSinkMaterializer, FLIP-558.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind

from ...plan.conflicts import OnConflict
from ...plan.typed import RowError
from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..changes import changed
from ..groups.segments import Segments, first_of_runs
from ..groups.table_state import TableState
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows

if TYPE_CHECKING:
    from ..groups.segments import Numbers, Truths


@dataclass(frozen=True)
class CompactSpec:
    """The rows that are written to a table.

    Args:
        columns: types of the columns.
        names: of the columns, for messages.
        keys: numbers of the columns of the table's key.
        row_key: numbers of the columns of the key of the query; none: it has no key, and whole rows are compared.
        on_conflict: the treatment of several rows of a key.
        ttl_ms: how long the row of a key is known of which no change comes; 0: for ever.
        table: its name, for messages.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    names: tuple[str, ...]
    keys: tuple[int, ...]
    row_key: tuple[int, ...]
    on_conflict: OnConflict
    ttl_ms: int = 0
    table: str = ""
    state_identity: str = ""


class Compacted(NamedTuple):
    """The changes of a table that the changes of rows up to a watermark leave.

    Args:
        rows: changes of the table, at most one of each key.
        conflicts: rows that were dropped since their key has another one.
        unknown: rows that were taken back that are not there.
    """

    rows: pa.RecordBatch
    conflicts: int
    unknown: int


class _Events(NamedTuple):
    """Stored rows, then changes in the order of their times.

    Args:
        codes: the key of each.
        signs: 1 for a row that comes or is stored, and -1 for one that goes.
        rows: a number for each row, the same for equal ones.
        ids: the same for each key of the query, or of `rows` if it has none.
    """

    codes: Numbers
    signs: Numbers
    rows: Numbers
    ids: Numbers

    def take(self, places: Numbers) -> _Events:
        return _Events(self.codes[places], self.signs[places], self.rows[places], self.ids[places])


class _Left(NamedTuple):
    """The rows that are left, each once: the place of its last event, the event since which it is there, and how often.

    Args:
        codes: their keys.
    """

    places: Numbers
    since: Numbers
    counts: Numbers
    codes: Numbers
    unknown: int


class CompactedRows:
    """Computes the row of each key of a table from changes that the watermark has passed.

    Args:
        spec: of the rows.
        schema: of the result.
    """

    def __init__(self, spec: CompactSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        self._others = [number for number in range(len(spec.columns)) if number not in spec.keys]
        self._row_key = [self._others.index(number) for number in spec.row_key if number not in spec.keys]
        kinds = [spec.columns[number] for number in self._others]
        self._forms = KeyForms(kinds)
        self._key_forms = KeyForms([kinds[place] for place in self._row_key])
        about = f"row of each key of a table: {spec.state_identity}"
        self.state = TableState([spec.columns[key] for key in spec.keys], [], kinds, spec.ttl_ms, about)

    def compact(self, columns: Columns, signs: Numbers, times: Numbers) -> Compacted:
        """Return the changes of the table that changes of rows make, at least one.

        Args:
            columns: of the rows, in the order in which they came.
            signs: 1 for a row that comes, and -1 for one that goes.
            times: the watermark at which each was sent.

        Raises:
            RowError: a key has several rows, and that is an error.
        """
        spec, state, now_ms = self._spec, self.state, self.state.now_ms
        keys = state.keys_of([columns[key] for key in spec.keys], len(signs))
        entries = state.find(keys, len(signs), now_ms)
        known = np.flatnonzero(entries.rows >= 0)
        codes = np.concatenate([known, entries.codes]).astype(np.int64)
        others = concatenated([entries.stored, [columns[number] for number in self._others]]) if self._others else []
        signs = np.concatenate([np.ones(len(known), dtype=np.int64), signs])
        times = np.concatenate([np.zeros(len(known), dtype=np.int64), times])
        events = self._events(codes, others, signs)
        order = self._uncancelled(events, times, len(known))
        if spec.row_key:
            order = order[~_is_late(events.take(order))]
        left = self._left(events.take(order))
        sizes = np.bincount(left.codes, weights=left.counts, minlength=len(entries.rows)).astype(np.int64)
        firsts = np.flatnonzero(_is_first(left.codes, left.since))
        chosen = np.zeros(len(entries.rows), dtype=np.int64)
        chosen[left.codes[firsts]] = order[left.places[firsts]]
        _, places = np.unique(entries.codes, return_index=True)
        if spec.on_conflict is OnConflict.ERROR and (sizes > 1).any():
            raise self._conflict(take_rows([columns[key] for key in spec.keys], places[sizes > 1][:1]))
        had_row = np.zeros(len(entries.rows), dtype=np.bool_)
        had_row[known] = True
        stored = np.zeros(len(entries.rows), dtype=np.int64)
        stored[known] = np.arange(len(known))
        has_row = sizes > 0
        shown, before = take_rows(others, chosen), take_rows(others, stored)
        kinds = np.where(had_row, RowKind.UPDATE_AFTER.value, RowKind.INSERT.value)
        kinds[had_row & ~has_row] = RowKind.DELETE.value
        is_shown = (has_row != had_row) | (has_row & changed(shown, before, had_row))
        state.store(entries, has_row, shown, now_ms)
        emitted = np.flatnonzero(is_shown)
        key_columns = take_rows([columns[key] for key in spec.keys], places[emitted])
        rows = self._batch(key_columns, take_rows(others, np.where(has_row, chosen, stored)[emitted]))
        conflicts = int((sizes - 1)[sizes > 1].sum())
        return Compacted(with_kinds(rows, kinds[emitted].astype(np.int8)), conflicts, left.unknown)

    def _events(self, codes: Numbers, others: Columns, signs: Numbers) -> _Events:
        rows = ids = self._row_codes(codes, others, self._forms)
        if self._spec.row_key:
            ids = self._row_codes(codes, [others[place] for place in self._row_key], self._key_forms)
        return _Events(codes, signs, rows, ids)

    @staticmethod
    def _uncancelled(events: _Events, times: Numbers, known: int) -> Numbers:
        """Return stored rows, then the changes that no equal one of the same time cancels, by time and arrival."""
        rows = events.rows
        is_change = np.arange(len(rows)) >= known
        order = np.lexsort([np.arange(len(rows)), times, is_change, rows])
        bounds = [np.diff(numbers[order]) != 0 for numbers in (rows, is_change.astype(np.int8), times)]
        segments = Segments(np.append(True, bounds[0] | bounds[1] | bounds[2]))
        ordered = events.signs[order]
        net = np.add.reduceat(ordered, segments.starts)[segments.codes]
        is_left = np.zeros(len(rows), dtype=np.bool_)
        for sign in (1, -1):
            is_such = ordered == sign
            counts = np.cumsum(is_such)
            behind = counts[segments.lasts][segments.codes] - counts
            is_left |= is_such & (net * sign > 0) & (behind < np.abs(net))
        is_left |= ~is_change[order]
        left = np.sort(order[is_left])
        chosen: Numbers = left[np.lexsort([left, times[left], is_change[left]])]
        return chosen

    def _left(self, events: _Events) -> _Left:
        """Return the rows that are there after all events."""
        if not len(events.codes):
            return _Left(events.codes, events.codes, events.codes, events.codes, 0)
        by_key = bool(self._spec.row_key)
        order = np.argsort(events.ids, kind="stable")
        segments = Segments(first_of_runs(events.ids[order]))
        signs = events.signs[order]
        numbers = np.arange(len(order))
        if by_key:  # a row replaces that of its key, and one that goes takes it away
            is_start = np.zeros(len(order), dtype=np.bool_)
            is_start[segments.starts] = True
            is_unknown = (signs < 0) & (is_start | np.append(False, signs[:-1] < 0))
            gone = np.maximum.accumulate(np.where(signs < 0, numbers, -1))
            last = segments.lasts
            since = np.maximum(gone[last] + 1, segments.starts)
            counts = (signs[last] > 0).astype(np.int64)
        else:
            sums, least, is_unknown = _balances(segments, signs)
            last = segments.lasts
            counts = sums[last] - least[last]
            comes = np.cumsum(signs > 0)
            wanted = comes[last] - counts
            since = np.searchsorted(comes, wanted + 1)
        is_there = np.flatnonzero(counts > 0)
        places = order[np.where(by_key, last, since)[is_there]]
        return _Left(
            places, order[since[is_there]], counts[is_there], events.codes[order[segments.starts]][is_there],
            int(is_unknown.sum()),
        )  # fmt: skip

    @staticmethod
    def _row_codes(codes: Numbers, columns: Columns, forms: KeyForms) -> Numbers:
        """Return a number for each key of the table with values, the same for equal ones."""
        rows: Numbers = grouped([pa.array(codes), *forms.encode(columns)], len(codes)).codes.astype(np.int64)
        return rows

    def _conflict(self, key: Columns) -> RowError:
        values = [f"{self._spec.names[number]}={column[0].as_py()!r}"
                  for number, column in zip(self._spec.keys, key, strict=True)]  # fmt: skip
        problem = f"several rows of the query have the primary key {', '.join(values)} of {self._spec.table}"
        return RowError(problem, "let the query give one, or write ON CONFLICT DO NOTHING or DO DEDUPLICATE")

    def _batch(self, keys: Columns, others: Columns) -> pa.RecordBatch:
        by_number = dict(zip([*self._spec.keys, *self._others], [*keys, *others], strict=True))
        columns = [by_number[number] for number in range(len(by_number))]
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(columns, self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _balances(segments: Segments, signs: Numbers) -> tuple[Numbers, Numbers, Truths]:
    """Return running sums, the least ones so far, at most 0, and which deletions are of rows that are not there."""
    zeros = np.zeros(len(segments), dtype=np.int64)
    sums = segments.sums(signs, zeros)
    least = segments.accumulated(np.minimum, sums, zeros)
    before = np.append(0, least[:-1])
    before[segments.starts] = 0
    return sums, least, least < before


def _is_late(events: _Events) -> Truths:
    """Return which deletions are of a row that another one with its key has replaced."""
    is_late = np.zeros(len(events.signs), dtype=np.bool_)
    if (events.signs > 0).all():
        return is_late
    by_row = np.argsort(events.rows, kind="stable")
    _, _, is_unknown = _balances(Segments(first_of_runs(events.rows[by_row])), events.signs[by_row])
    is_late[by_row] = (events.signs[by_row] < 0) & ~is_unknown
    by_id = np.argsort(events.ids, kind="stable")
    rows, comes = events.rows[by_id], np.where(events.signs[by_id] > 0, np.arange(len(by_id)), 0)
    is_late[by_id] &= rows[np.maximum.accumulate(comes)] != rows
    return is_late


def _is_first(codes: Numbers, places: Numbers) -> Truths:
    """Return which rows have the least place of their code."""
    order = np.lexsort([places, codes])
    is_first = np.zeros(len(codes), dtype=np.bool_)
    if len(codes):
        is_first[order[first_of_runs(codes[order])]] = True
    return is_first


__all__ = ["CompactSpec", "Compacted", "CompactedRows"]
