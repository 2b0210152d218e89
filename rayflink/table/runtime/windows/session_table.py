"""Rows with the bounds of their sessions: they are kept until their session is over, and come then."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from rayflink.common.records.batches import ArrowBatch, Batch, Element

from ...types import DataType, DataTypes
from ..aggregates.aggregates import Aggregate, AggregateKind
from ..aggregates.window_spec import WindowAggregation, WindowSpec
from .session_window import SessionWindowAggregate
from .sliced_rows import rows_in

if TYPE_CHECKING:
    import pyarrow

BLOCK_ROWS = 1 << 16


class SessionTable(SessionWindowAggregate):
    """An aggregation that lists the rows of each session whole, and gives them again one by one.

    Args:
        row: type of the rows that come in.
        keys: numbers of the columns by which sessions are distinguished.
        window: the sessions.
        schema: of the result: the columns of a row, and the bounds.
        state_identity: which rows of the query the state belongs to; other state is refused on restore.
    """

    def __init__(
        self, row: DataType, keys: Sequence[int], window: WindowSpec, schema: pyarrow.Schema, state_identity: str = ""
    ) -> None:
        fields = [row.fields[at] for at in keys]
        time = window.time_column
        fields += [] if time is None else [row.fields[time]]
        packed = DataTypes.ROW(
            [DataTypes.FIELD(f"p{at}", field.type) for at, field in enumerate(fields)]
            + [DataTypes.FIELD("row", row.not_null())]
        )
        rows = Aggregate(AggregateKind.ARRAY_AGG, len(fields), DataTypes.ARRAY(row.not_null(), False))
        windows = window if time is None else replace(window, time_column=len(keys))
        super().__init__(
            WindowAggregation(packed, tuple(range(len(keys))), (rows,), windows, state_identity=state_identity)
        )
        self._row, self._taken, self._schema = row, [*keys, *([] if time is None else [time])], schema
        self._packed = pa.schema([field.type.to_arrow_field(field.name) for field in packed.fields])
        self._list_at = len(keys)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        rows = rows_in(batch, self._row)
        whole = pa.StructArray.from_arrays(rows.columns, fields=list(self._packed.field("row").type))
        columns = [rows.column(at) for at in self._taken]
        return super().process(ArrowBatch(pa.RecordBatch.from_arrays([*columns, whole], schema=self._packed)), 0)

    def advance(self, after: int, until: int) -> Iterator[Element]:
        for found in super().advance(after, until):
            assert isinstance(found, ArrowBatch)
            data = found.data
            lists = data.column(self._list_at)
            sessions = pc.list_parent_indices(lists)
            columns = lists.flatten().flatten() + [column.take(sessions) for column in data.columns[-3:]]
            given = pa.RecordBatch.from_arrays(columns, schema=self._schema)
            times = None if found.timestamps is None else found.timestamps[sessions.to_numpy()]
            for first in range(0, given.num_rows, BLOCK_ROWS):
                part = slice(first, first + BLOCK_ROWS)
                yield ArrowBatch(given.slice(first, BLOCK_ROWS), None if times is None else times[part])


__all__ = ["SessionTable"]
