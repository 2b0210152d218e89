"""Rows with the bounds of their sessions: SESSION as a table. Rows are emitted when their session is over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from rayflink.common.records.batches import ArrowBatch, Batch, Element

from ...types import DataType, DataTypes
from ..aggregates.aggregates import Aggregate, AggregateKind
from ..aggregates.window_spec import WindowAggregation, WindowSpec
from .input_rows import rows_in
from .session_windows import SessionWindows
from .table_window_operator import TableWindowOperator

BLOCK_ROWS = 1 << 16


class PackedRows:
    """Packs each row into one column, which ARRAY_AGG lists for each session, and unpacks the lists; a `RowFormat`.

    Args:
        row: type of the rows that come in.
        columns: numbers of the columns that stand before the packed row: the key, then the time.
        packed: schema of these columns and the packed row.
        key_width: how many of them are the key.
        schema: of the result: the columns of a row, and the bounds of its session.
    """

    def __init__(
        self, row: DataType, columns: Sequence[int], packed: pa.Schema, key_width: int, schema: pa.Schema
    ) -> None:
        self._row, self._columns, self._packed = row, tuple(columns), packed
        self._list, self._schema = key_width, schema

    def read(self, batch: Batch) -> pa.RecordBatch:
        rows = rows_in(batch, self._row)
        packed = pa.StructArray.from_arrays(rows.columns, fields=list(self._packed.field("row").type))
        columns = [rows.column(index) for index in self._columns]
        return pa.RecordBatch.from_arrays([*columns, packed], schema=self._packed)

    def write(self, results: ArrowBatch) -> Iterator[Element]:
        lists = results.data.column(self._list)
        sessions = pc.list_parent_indices(lists)
        bounds = [column.take(sessions) for column in results.data.columns[-3:]]
        rows = pa.RecordBatch.from_arrays(lists.flatten().flatten() + bounds, schema=self._schema)
        times = None if results.timestamps is None else results.timestamps[sessions.to_numpy()]
        for first in range(0, rows.num_rows, BLOCK_ROWS):
            block = slice(first, first + BLOCK_ROWS)
            yield ArrowBatch(rows.slice(first, BLOCK_ROWS), None if times is None else times[block])


def session_table(
    row: DataType, keys: Sequence[int], window: WindowSpec, schema: pa.Schema, state_identity: str = ""
) -> TableWindowOperator:
    """Return an operator that adds window_start, window_end and window_time of its session to each row.

    Args:
        row: type of the rows that come in.
        keys: numbers of the columns by which sessions are distinguished.
        window: the sessions.
        schema: of the result: the columns of a row, and the bounds.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """
    time = window.time_column
    columns = [*keys, *([] if time is None else [time])]
    fields = [DataTypes.FIELD(f"p{number}", row.fields[index].type) for number, index in enumerate(columns)]
    packed = DataTypes.ROW([*fields, DataTypes.FIELD("row", row.not_null())])
    rows = Aggregate(AggregateKind.ARRAY_AGG, len(columns), DataTypes.ARRAY(row.not_null(), False))
    windows = window if time is None else replace(window, time_column=len(keys))
    aggregation = WindowAggregation(packed, tuple(range(len(keys))), (rows,), windows, state_identity=state_identity)
    packed_schema = pa.schema([field.type.to_arrow_field(field.name) for field in packed.fields])
    row_format = PackedRows(row, columns, packed_schema, len(keys), schema)
    return TableWindowOperator(windows, SessionWindows(aggregation, row_format))


__all__ = ["PackedRows", "session_table"]
