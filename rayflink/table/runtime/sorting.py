"""ORDER BY and LIMIT over all rows of a bounded query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rayflink.common.batches import ArrowBatch, Batch, Element
from rayflink.operators.base import Operator

if TYPE_CHECKING:
    import pyarrow

BLOCK_ROWS = 1 << 16


class SortOperator(Operator):
    """Gives all rows at their end, in an order; without keys the first ones as they come.

    A batch query starts anew when it fails, so the rows are no state.

    Args:
        keys: (number of a column, descending, nulls first) each.
        offset: rows to leave out first.
        limit: rows to give at most; None: all.
    """

    def __init__(self, keys: Sequence[tuple[int, bool, bool]], offset: int, limit: int | None) -> None:
        self._keys, self._offset, self._limit = tuple(keys), offset, limit
        self._held: list[pyarrow.RecordBatch] = []
        self._rows = 0

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        wanted = None if self._limit is None else self._offset + self._limit
        if self._keys or wanted is None or self._rows < wanted:
            self._held.append(batch.data)
            self._rows += len(batch)
        return ()

    def finish(self) -> Iterable[Element]:
        import pyarrow

        if not self._held:
            return
        table = pyarrow.Table.from_batches(self._held)
        self._held = []
        if self._keys:
            table = table.take(_order(table, self._keys))
        stop = table.num_rows if self._limit is None else self._offset + self._limit
        for block in table.slice(self._offset, max(0, stop - self._offset)).combine_chunks().to_batches(BLOCK_ROWS):
            if block.num_rows:
                yield ArrowBatch(block)


def _order(table: pyarrow.Table, keys: Sequence[tuple[int, bool, bool]]) -> pyarrow.Array:
    """Numbers of the rows in order; each key has its own place for nulls, which is a key before it."""
    import pyarrow
    from pyarrow import compute

    columns, order = {}, []
    for number, (at, down, nulls_first) in enumerate(keys):
        column = table.column(at)
        if column.null_count:
            columns[f"n{number}"] = compute.is_null(column)
            order.append((f"n{number}", "descending" if nulls_first else "ascending"))
        columns[f"k{number}"] = column
        order.append((f"k{number}", "descending" if down else "ascending"))
    return compute.sort_indices(pyarrow.table(columns), sort_keys=order)
