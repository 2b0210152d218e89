"""The rows that a table's key has in a query, in the order in which they came: the last one is the row of the table.

An update of a query whose rows have another key than the table comes as a row that goes and one that comes, and both
may meet rows of other keys of the query. So all rows of a key are stored, and when the last one goes the one before it
is shown again.

Source: apache/flink SinkUpsertMaterializer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from rayflink.common.records.row_kinds import kinds_of, with_kinds, without_kinds
from rayflink.common.types import RowKind

from ..aggregates.grouping import grouped
from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import to_arrow
from ..groups.group_rows import signs_of
from ..groups.segments import Segments, first_of_runs, greatest_in_spans
from ..groups.table_state import TableState
from ..keyed_state.comparable_keys import KeyForms
from ..keyed_state.frame_memory import Columns
from ..keyed_state.key_rows import take_rows
from ..keyed_state.keyed_table import IndexForm

if TYPE_CHECKING:
    from ..groups.segments import Numbers, Truths

INSERT, BEFORE, AFTER, DELETE = (kind.value for kind in RowKind)


@dataclass(frozen=True)
class MaterializeSpec:
    """The rows that are written to a table.

    Args:
        columns: types of the columns.
        keys: numbers of the columns of the table's key.
        compared: numbers of the columns by which a row that goes is found among those of its key.
        ttl_ms: how long a row is known that has come; 0: for ever.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    keys: tuple[int, ...]
    compared: tuple[int, ...]
    ttl_ms: int = 0
    state_identity: str = ""


class _Stored(NamedTuple):
    """Rows that are stored, key by key in the order in which they came.

    Args:
        numbers: of the rows in the table.
        codes: of their keys.
        columns: those that are not of the key.
        has_row: which keys have any row, whether it is among these or not.
    """

    numbers: Numbers
    codes: Numbers
    columns: Columns
    has_row: Truths


class _Lives(NamedTuple):
    """The events between which rows are there: stored ones, then those that come, in the order of events.

    Args:
        stops: the event that takes each row back, of stored ones and of those that come; -1: none does.
        is_dropped: which events take back what is not there.
    """

    stored_stops: Numbers
    stops: Numbers
    is_dropped: Truths


class MaterializedRows:
    """Adds rows to those of their key, takes others back, and computes what is shown of the key.

    An update whose row before and row after come one behind the other, with the same key, is shown as one change.

    Args:
        spec: of the rows.
        schema: of the result.
    """

    def __init__(self, spec: MaterializeSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        self._others = [number for number in range(len(spec.columns)) if number not in spec.keys]
        self._compared = [number for number in spec.compared if number not in spec.keys]
        self._forms = KeyForms([spec.columns[number] for number in self._compared])
        kinds = [spec.columns[number] for number in spec.keys]
        values = [*(spec.columns[number] for number in self._others), pa.int64()]
        about = f"rows by key of a table: {spec.state_identity}"
        self.state = TableState(kinds, [], values, spec.ttl_ms, about, IndexForm.PARTITION)
        self._next = 0
        """Number of the next row; a greater one came later."""

    def has_restored(self) -> None:
        """Go on behind the rows that are stored."""
        table = self.state.table
        numbers = [table.numbers(rows, len(self._others)).max() for rows in table.records.in_use() if len(rows)]
        self._next = int(max(numbers, default=-1)) + 1

    def add(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """Return what changes of the table's rows, and how many rows were taken back that are not there."""
        kinds, rows = kinds_of(batch), without_kinds(batch)
        count, now_ms, table = rows.num_rows, self.state.now_ms, self.state.table
        columns = [column if column.type == kind else column.cast(kind)
                   for column, kind in zip(rows.columns, self._spec.columns, strict=True)]  # fmt: skip
        keys = table.comparable(self.state.keys_of([columns[key] for key in self._spec.keys], count))
        groups = grouped(keys, count)
        order = np.argsort(groups.codes, kind="stable")
        codes, signs = groups.codes[order].astype(np.int64), signs_of(kinds, count)[order]
        stored = self._stored(groups.keys, codes, signs, now_ms)
        others = take_rows([columns[number] for number in self._others], order)
        lives = self._lives(stored, codes, signs, others)
        changes = self._shown(stored, codes, signs, lives, kinds is not None and kinds[order] == BEFORE)
        stays = np.flatnonzero((signs > 0) & (lives.stops < 0))
        table.remove(stored.numbers[lives.stored_stops >= 0])
        if len(stays):
            numbers = to_arrow(self._next + order[stays], pa.int64())
            table.add(take_rows(keys, order[stays]), [*take_rows(others, stays), numbers], now_ms)
        self._next += count
        emitted, versions, new_kinds = changes
        emitted_order = np.argsort(order[emitted], kind="stable")
        emitted, versions = emitted[emitted_order], versions[emitted_order]
        values = take_rows(concatenated([others, stored.columns]), versions) if others else []
        result = self._batch(take_rows([columns[key] for key in self._spec.keys], order[emitted]), values)
        return with_kinds(result, new_kinds[emitted_order]), int(lives.is_dropped.sum())

    def _stored(self, keys: Columns, codes: Numbers, signs: Numbers, now_ms: int) -> _Stored:
        """Return the rows of the keys of which rows are taken back."""
        table = self.state.table
        partitions = table.find_partitions(keys)
        has_row, is_needed = partitions.count > 0, np.zeros(len(partitions.count), dtype=np.bool_)
        is_needed[codes[signs < 0]] = True
        if self._spec.ttl_ms:
            is_needed[:] = True
        wanted = np.flatnonzero(is_needed & has_row)
        counts = partitions.count[wanted]
        starts = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(partitions.first[wanted] - starts, counts)
        numbers, owners = partitions.order[places].astype(np.int64), np.repeat(wanted, counts)
        if self._spec.ttl_ms:
            is_left = ~table.is_over(numbers, now_ms)
            numbers, owners = numbers[is_left], owners[is_left]
            has_row = np.zeros(len(has_row), dtype=np.bool_)
            has_row[owners] = True
        arrivals = table.numbers(numbers, len(self._others))
        order = np.lexsort([arrivals, owners])
        numbers, owners = numbers[order], owners[order]
        kinds = [self._spec.columns[number] for number in self._others]
        columns = table.take(numbers)[:-1] if len(numbers) else [pa.nulls(0, kind) for kind in kinds]
        return _Stored(numbers, owners, columns, has_row)

    def _lives(self, stored: _Stored, codes: Numbers, signs: Numbers, others: Columns) -> _Lives:
        """Find for each row that is taken back the first one that equals it."""
        count, total = len(codes), len(codes) + len(stored.codes)
        places = [self._others.index(number) for number in self._compared]
        both = [concatenated([[stored.columns[place]], [others[place]]])[0] for place in places]
        ids = pa.array(np.concatenate([stored.codes, codes]))
        values = grouped([ids, *self._forms.encode(both)], total).codes
        weights = np.concatenate([np.ones(len(stored.codes), dtype=np.int64), signs])
        order = np.argsort(values, kind="stable")
        segments = Segments(first_of_runs(values[order]))
        weights = weights[order]
        zeros = np.zeros(len(segments), dtype=np.int64)
        least = segments.accumulated(np.minimum, segments.sums(weights, zeros), zeros)
        before = np.append(0, least[:-1])
        before[segments.starts] = 0
        is_dropped = least < before
        comes, goes = weights > 0, (weights < 0) & ~is_dropped
        # the n-th row that goes takes the n-th equal one that came
        coming = np.flatnonzero(comes)
        going = np.flatnonzero(goes)
        rank_of_going = segments.sums(goes.astype(np.int64), zeros)[going] - 1
        counts = np.bincount(segments.codes[coming], minlength=len(segments))
        first_coming = np.cumsum(counts) - counts
        taken = coming[first_coming[segments.codes[going]] + rank_of_going]
        stops = np.full(total, -1, dtype=np.int64)
        stops[order[taken]] = order[going] - len(stored.codes)
        dropped = np.zeros(total, dtype=np.bool_)
        dropped[order[is_dropped]] = True
        width = len(stored.codes)
        return _Lives(stops[:width], stops[width:], dropped[total - count :])

    @staticmethod
    def _shown(
        stored: _Stored, codes: Numbers, signs: Numbers, lives: _Lives, is_before: Truths | bool
    ) -> tuple[Numbers, Numbers, Numbers]:
        """Return the events that change what is shown of their key, the version that is shown then, and the kind."""
        count, width = len(codes), len(stored.codes)
        segments = Segments(first_of_runs(codes))
        starts_of_keys = np.zeros(len(stored.has_row), dtype=np.int64)
        stops_of_keys = starts_of_keys.copy()
        starts_of_keys[codes[segments.starts]], stops_of_keys[codes[segments.starts]] = segments.starts, segments.stops
        coming = np.flatnonzero(signs > 0)
        owners = np.concatenate([stored.codes, codes[coming]])
        starts = np.concatenate([starts_of_keys[stored.codes], coming])
        stops = np.concatenate([lives.stored_stops, lives.stops[coming]])
        stops = np.where(stops >= 0, stops, stops_of_keys[owners])
        ranks = np.concatenate([np.arange(width), width + coming])
        best = greatest_in_spans(starts, stops, ranks, count)
        previous = np.append(-1, best[:-1])
        last_stored = np.full(len(stored.has_row), -1, dtype=np.int64)
        last_stored[stored.codes] = np.arange(width)
        previous[segments.starts] = last_stored[codes[segments.starts]]
        had_row = previous >= 0
        had_row[segments.starts] |= stored.has_row[codes[segments.starts]]
        goes = (signs < 0) & ~lives.is_dropped
        is_followed = np.append((signs[1:] > 0) & (codes[1:] == codes[:-1]), False)
        is_paired = goes & is_followed & is_before
        had_row |= np.append(False, is_paired[:-1])
        is_shown = (signs > 0) | (goes & ~is_paired & (best != previous))
        kinds = np.where(had_row, AFTER, INSERT)
        kinds[goes & (best < 0)] = DELETE
        versions = np.where(best < 0, np.arange(count), np.where(best >= width, best - width, count + best))
        emitted = np.flatnonzero(is_shown)
        return emitted, versions[emitted], kinds[emitted].astype(np.int8)

    def _batch(self, keys: Columns, values: Columns) -> pa.RecordBatch:
        numbers: Sequence[int] = [*self._spec.keys, *self._others]
        by_number = dict(zip(numbers, [*keys, *values], strict=True))
        columns = [by_number[number] for number in range(len(numbers))]
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(columns, self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


__all__ = ["MaterializeSpec", "MaterializedRows"]
