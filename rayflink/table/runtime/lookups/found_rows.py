"""Rows that were found for keys, those of one key behind one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ..aggregates.partial_aggregates import concatenated
from ..aggregates.reductions import combine_chunks
from ..joins.join_pairs import match_keys
from ..keyed_state.key_rows import take_rows
from .lookup_function import LookupFailed, LookupRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class FoundRows:
    """Rows by key: key i has the `counts[i]` rows from number `firsts[i]` on.

    Args:
        columns: of the rows.
        firsts: int64[keys].
        counts: int64[keys].
    """

    columns: list[pa.Array]
    firsts: Numbers
    counts: Numbers

    @classmethod
    def of(cls, columns: Sequence[pa.Array], keys: Numbers, key_count: int) -> FoundRows:
        """Return rows, given the number of each one's key."""
        counts = np.bincount(keys, minlength=key_count)
        if len(keys) > 1 and (np.diff(keys) < 0).any():
            columns = take_rows(columns, np.argsort(keys, kind="stable"))
        return cls(list(columns), np.cumsum(counts) - counts, counts)

    @classmethod
    def nothing(cls, kinds: Sequence[pa.DataType], key_count: int) -> FoundRows:
        """Return no rows for a number of keys."""
        zeros = np.zeros(key_count, dtype=np.int64)
        return cls([pa.array([], kind) for kind in kinds], zeros, zeros)

    def row_numbers(self) -> Numbers:
        """Return the numbers of the rows of all keys, key by key: int64[n]."""
        total = int(self.counts.sum())
        starts = np.cumsum(self.counts) - self.counts
        numbers: Numbers = np.repeat(self.firsts - starts, self.counts) + np.arange(total)
        return numbers

    def with_rows_of(self, keys: Numbers, others: FoundRows) -> FoundRows:
        """Return the same with the rows of some keys, by their numbers, replaced by others."""
        firsts, counts = self.firsts.copy(), self.counts.copy()
        firsts[keys], counts[keys] = others.firsts + len(self.columns[0]), others.counts
        return FoundRows(concatenated([self.columns, others.columns]), firsts, counts)

    def among(self, mask: NDArray[np.bool_], columns: Sequence[pa.Array]) -> FoundRows:
        """Return the rows for which a mask is true, with other columns."""
        before = np.concatenate([[0], np.cumsum(mask)])
        firsts, stops = before[self.firsts], before[self.firsts + self.counts]
        return FoundRows(list(columns), firsts, stops - firsts)


def rows_in_order(answer: LookupRows, keys: pa.RecordBatch, schema: pa.Schema, table: str) -> FoundRows:
    """Return what a table has answered as rows by key, with the columns of a schema.

    Raises:
        LookupFailed: columns are missing or of another type, or a number of a key is out of range.
    """
    if not isinstance(answer, LookupRows):
        problem = f"the lookup in {table} returned a {type(answer).__name__}"
        raise LookupFailed(problem, "return LookupRows(rows, keys) from look_up()")
    rows = answer.rows
    names = list(dict.fromkeys([*schema.names, *(keys.schema.names if answer.keys is None else ())]))
    missing = [name for name in names if name not in rows.schema.names]
    if missing:
        problem = f"rows of the lookup in {table} have no column {missing[0]!r}, only {', '.join(rows.schema.names)}"
        raise LookupFailed(problem, "return all columns of the table, with their names")
    columns = [_column(rows, field, table) for field in schema]
    if answer.keys is not None:
        numbers = np.asarray(answer.keys, dtype=np.int64)
        in_range = not len(numbers) or 0 <= numbers.min() <= numbers.max() < len(keys)
        if len(numbers) != rows.num_rows or not in_range:
            problem = f"the lookup in {table} gave {len(numbers)} numbers of keys for {rows.num_rows} rows"
            raise LookupFailed(problem, f"give each row the number of its key, in [0, {len(keys)})")
        return FoundRows.of(columns, numbers, len(keys))
    own = [_column(rows, field, table) for field in keys.schema]
    matches = match_keys(keys.columns, own, [False] * len(own), len(keys), rows.num_rows)
    return FoundRows(take_rows(columns, matches.order), matches.first, matches.count)


def _column(rows: pa.RecordBatch | pa.Table, field: pa.Field, table: str) -> pa.Array:
    column = rows.column(field.name)
    column = combine_chunks(column) if isinstance(column, pa.ChunkedArray) else column
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        problem = f"column {field.name!r} of the lookup in {table} is {column.type}: {error}"
        raise LookupFailed(problem, f"return it as {field.type}, which the table declares") from error


__all__ = ["FoundRows", "rows_in_order"]
