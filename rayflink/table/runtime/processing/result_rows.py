"""The rows that a process table function gives, until they are columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rayflink.common.errors import shorten
from rayflink.common.records.batches import ArrowBatch, Element
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import Row, RowKind
from rayflink.user_types import UserValue

from ...plan.changelog import Change, ChangelogMode
from ...plan.typed import RowError
from ...user_functions.user_kernels import rows_of_call, values_of_row
from .process_spec import ProcessSpec

Leading = Callable[[Sequence[int]], list[pa.Array]]
"""Returns the columns that stand before those of the function, for the places of calls."""


def kinds_in(mode: ChangelogMode) -> frozenset[RowKind]:
    """Return the kinds that rows may have.

    >>> sorted(kind.name for kind in kinds_in(ChangelogMode.upsert()))
    ['DELETE', 'INSERT', 'UPDATE_AFTER']
    """
    kinds = {RowKind.INSERT: Change.INSERT, RowKind.UPDATE_AFTER: Change.UPDATE, RowKind.DELETE: Change.DELETE}
    if mode.before:
        kinds[RowKind.UPDATE_BEFORE] = Change.UPDATE
    return frozenset(kind for kind, change in kinds.items() if change in mode.changes)


class ResultRows:
    """Gathers the results of calls; `take` returns them as a batch.

    Args:
        spec: of the call.
        leading: returns the columns before those of the function.
    """

    def __init__(self, spec: ProcessSpec, leading: Leading) -> None:
        self._spec, self._leading = spec, leading
        self._fields = spec.kernel.declaration.result.fields
        self._kinds_known = kinds_in(spec.mode)
        self._clear()

    def _clear(self) -> None:
        self.count = 0
        self._places: list[int] = []
        self._values: list[Sequence[UserValue]] = []
        self._kinds: dict[int, RowKind] = {}
        """Kinds of rows that are no new ones, by their numbers."""
        self._times: list[int | None] = []

    def add(self, place: int, results: UserValue, time_ms: int | None) -> None:
        """Add what a call gave.

        Args:
            place: number of the call, by which the columns before those of the function are found.
            time_ms: of its row or timer.

        Raises:
            RowError: a row has another width, or a kind that the function has not declared.
        """
        width, values = len(self._fields), self._values
        for result in results if type(results) is list else rows_of_call(results):
            if type(result) is Row:
                self._note_kind(result, len(values))
            is_plain = type(result) is tuple and len(result) == width
            values.append(result if is_plain else values_of_row(result, width, self._spec.kernel.name))
        count = len(values) - self.count
        self._places += [place] * count
        self._times += [time_ms] * count
        self.count += count

    def _note_kind(self, row: Row, number: int) -> None:
        """Note the kind of a row, unless it is a new one."""
        kind = row.get_row_kind()
        if kind is RowKind.INSERT:
            return
        if kind not in self._kinds_known:
            problem = f"function {self._spec.kernel.name} returned {shorten(row, 80)}, which is {kind.name}"
            raise RowError(problem, f"its rows are {self._spec.mode}; make it a ChangelogFunction that says so")
        self._kinds[number] = kind

    def take(self) -> list[Element]:
        """Return the rows as a batch; none where there are none."""
        if not self.count:
            return []
        columns = self._leading(self._places)
        by_column = zip(*self._values, strict=True) if self._fields else ()
        columns += [self._spec.kernel.column_of(list(values), field.type)
                    for values, field in zip(by_column, self._fields, strict=True)]  # fmt: skip
        if self._spec.has_time:
            columns.append(pa.array(self._times, pa.int64()))
        columns = [_cast(column, kind) for column, kind in zip(columns, self._spec.schema.types, strict=True)]
        batch = pa.RecordBatch.from_arrays(columns, schema=self._spec.schema)
        kinds = np.zeros(self.count, np.int8)
        for number, kind in self._kinds.items():
            kinds[number] = kind.value
        self._clear()
        return [ArrowBatch(with_kinds(batch, kinds) if kinds.any() else batch)]


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column in its type; numbers are milliseconds where a time is wanted."""
    if column.type == kind:
        return column
    if pa.types.is_timestamp(kind) and pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("ms", kind.tz))
    return column.cast(kind)


__all__ = ["Leading", "ResultRows", "kinds_in"]
