"""The last row of each key, and the changes that rows make of it.

Source: apache/flink DeduplicateFunctionHelper.processLastRowOnChangelog.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..groups.segments import Numbers, Truths


@dataclass(frozen=True)
class LastRowSpec:
    """The rows of which the last of each key is followed.

    Args:
        columns: types of the input's columns.
        keys: numbers of the columns of the key; none: all rows have one.
        ttl_ms: how long a key is known of which no row comes; 0: for ever.
        with_before: whether an update includes the row before.
        state_identity: which rows of the query the state belongs to.
    """

    columns: tuple[pa.DataType, ...]
    keys: tuple[int, ...]
    ttl_ms: int = 0
    with_before: bool = True
    state_identity: str = ""


class LastRows:
    """Replaces the last rows of keys, and computes the changes.

    Each row is worked by itself: one that is replaced within a batch is shown. A row that equals the one before it
    changes nothing, unless keys expire: then it shows that its key is in use, as in Flink. The row before an update is
    ignored where it comes: the last row is known.

    Args:
        spec: the rows.
        schema: of the result.
    """

    def __init__(self, spec: LastRowSpec, schema: pa.Schema) -> None:
        self._spec, self._schema = spec, schema
        self._others = [number for number in range(len(spec.columns)) if number not in spec.keys]
        kinds, values = ([spec.columns[number] for number in numbers] for numbers in (spec.keys, self._others))
        self.state = TableState(kinds, [], values, spec.ttl_ms, f"last rows: {spec.state_identity}")

    def add(self, batch: pa.RecordBatch) -> tuple[pa.RecordBatch, int]:
        """Return the changes that rows make, in their order, and how many deletions found no row."""
        is_present, rows = _rows_that_count(batch)
        columns = [column if column.type == kind else column.cast(kind)
                   for column, kind in zip(rows.columns, self._spec.columns, strict=True)]  # fmt: skip
        now_ms, count = self.state.now_ms, rows.num_rows
        known = self.state.find(self.state.keys_of([columns[key] for key in self._spec.keys], count), count, now_ms)
        order = np.argsort(known.codes, kind="stable")
        codes, is_present = known.codes[order], is_present[order]
        segments = Segments(first_of_runs(codes))
        had_row, versions = _versions(known, codes, is_present, segments)
        values = take_rows([columns[number] for number in self._others], order)
        self._store(known, codes, is_present, values, segments, now_ms)
        before = take_rows(concatenated([values, known.stored]), versions) if values else []
        both = is_present & had_row
        is_shown = is_present | had_row
        if not self._spec.ttl_ms:
            is_shown &= ~both | changed(values, before, both) if values else ~both
        shown = np.flatnonzero(is_shown)
        shown = shown[np.argsort(order[shown], kind="stable")]
        keys = take_rows([columns[key] for key in self._spec.keys], order[shown])
        changes = replaced_rows(
            self._batch(keys, take_rows(values, shown), len(shown)),
            self._batch(keys, take_rows(before, shown), len(shown)),
            is_present[shown], had_row[shown], self._spec.with_before,
        )  # fmt: skip
        return changes, int((~is_present & ~had_row).sum())

    def _store(
        self, known: FoundKeys, codes: Numbers, is_present: Truths, values: Columns, segments: Segments, now_ms: int
    ) -> None:  # fmt: skip
        """Store the last row of each key, or remove it where it was deleted."""
        lasts = np.empty(len(segments), dtype=np.int64)
        lasts[codes[segments.starts]] = segments.lasts
        self.state.store(known, is_present[lasts], take_rows(values, lasts), now_ms)

    def _batch(self, keys: Columns, values: Columns, rows: int) -> pa.RecordBatch:
        numbers = [*self._spec.keys, *self._others]
        by_number = dict(zip(numbers, [*keys, *values], strict=True))
        columns = [by_number[number] for number in range(len(numbers))]
        columns = [column if column.type == field.type else column.cast(field.type)
                   for column, field in zip(columns, self._schema, strict=True)]  # fmt: skip
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)


def _rows_that_count(batch: pa.RecordBatch) -> tuple[Truths, pa.RecordBatch]:
    """Return rows without those before updates, and whether each is there, or is deleted: bool[n]."""
    kinds, rows = kinds_of(batch), without_kinds(batch)
    if kinds is None:
        return np.ones(rows.num_rows, dtype=np.bool_), rows
    counts = kinds != RowKind.UPDATE_BEFORE.value
    if not counts.all():
        kinds, rows = kinds[counts], rows.filter(pa.array(counts))
    return kinds != RowKind.DELETE.value, rows


def _versions(
    known: FoundKeys, codes: NDArray[np.intp], is_present: Truths, segments: Segments
) -> tuple[Truths, Numbers]:
    """Return whether there was a row before each one, and which: of the rows themselves, then of those stored."""
    count = len(codes)
    had_row = np.append(False, is_present[:-1])
    had_row[segments.starts] = known.rows[codes[segments.starts]] >= 0
    numbers = np.cumsum(known.rows >= 0) - 1
    versions = np.arange(count) - 1
    versions[segments.starts] = count + numbers[codes[segments.starts]]
    return had_row, np.where(had_row, versions, 0)


__all__ = ["LastRowSpec", "LastRows"]
