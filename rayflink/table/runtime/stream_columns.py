"""Records of a stream as columns, and columns as records with their event time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rayflink.common.arrow_rows import rows_to_arrow
from rayflink.common.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element
from rayflink.operators.base import Operator

if TYPE_CHECKING:
    import pyarrow


class ColumnsOperator(Operator):
    """Records as the columns of a table.

    Args:
        schema: of the table.
        time: number of the column that gets the records' event time; None: none does.
    """

    def __init__(self, schema: pyarrow.Schema, time: int | None) -> None:
        self._schema, self._time = schema, time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        import pyarrow

        if not len(batch):
            return
        fields = [field for at, field in enumerate(self._schema) if at != self._time]
        stored = pyarrow.schema(fields)
        if isinstance(batch, ArrowBatch):
            data = batch.data.select(stored.names).cast(stored)
        else:
            data = rows_to_arrow(batch.values, stored)
        columns = list(data.columns)
        if self._time is not None:
            columns.insert(self._time, self._times(batch))
        yield ArrowBatch(pyarrow.RecordBatch.from_arrays(columns, schema=self._schema))

    def _times(self, batch: Batch) -> pyarrow.Array:
        import numpy
        import pyarrow

        assert self._time is not None
        stamps = numpy.full(len(batch), MIN_TIMESTAMP) if batch.timestamps is None else numpy.asarray(batch.timestamps)
        column = pyarrow.array(stamps, pyarrow.int64(), mask=stamps == MIN_TIMESTAMP)
        return column.cast(self._schema.field(self._time).type)


class TimesOperator(Operator):
    """Gives rows their event time from a column.

    Args:
        time: its number.
    """

    def __init__(self, time: int) -> None:
        self._time = time

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        import pyarrow

        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        column: Any = batch.data.column(self._time)
        stamps = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False).cast(pyarrow.int64())
        yield ArrowBatch(batch.data, stamps.to_numpy(zero_copy_only=False))


__all__ = ["ColumnsOperator", "TimesOperator"]
