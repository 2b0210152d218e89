"""Records of a stream as columns, and columns as records with their event time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rayflink.common.records.arrow_rows import arrow_to_rows, rows_to_arrow
from rayflink.common.records.arrow_values import shaped
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element, RowBatch
from rayflink.common.records.row_kinds import KINDS, kinds_of, with_kinds, without_kinds
from rayflink.common.types import Row, RowKind
from rayflink.operators.base import Operator
from rayflink.operators.user_function import UserCode

from ..conversion.pickled_values import ToObject, objects_of
from ..conversion.python_values import plain_rows
from ..plan.type_rules import contains_raw
from ..plan.typed import RowError
from ..types import DataType

if TYPE_CHECKING:
    import pyarrow
    from numpy.typing import NDArray

INSERT, BEFORE, AFTER, DELETE = (
    kind.value for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


class ColumnsOperator(Operator):
    """Records as the columns of a table; rows keep their kinds.

    Args:
        schema: of the table.
        types: of its columns.
        time: number of the column that gets the records' event time; None: none does.
        kinds: numbers of the kinds that rows may have.
        is_single: each record is the value of the one column.
    """

    def __init__(
        self,
        schema: pyarrow.Schema,
        types: Sequence[DataType],
        time: int | None,
        kinds: Sequence[int],
        is_single: bool = False,
    ) -> None:
        self._schema, self._time, self._kinds, self._is_single = schema, time, tuple(kinds), is_single
        self._types = [data_type for index, data_type in enumerate(types) if index != time]

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not len(batch):
            return
        with UserCode(self.ctx, "the table of the stream"):
            result = self._made(batch)
        yield ArrowBatch(result)

    def _made(self, batch: Batch) -> pyarrow.RecordBatch:
        import pyarrow

        stored = pyarrow.schema([field for index, field in enumerate(self._schema) if index != self._time])
        if isinstance(batch, ArrowBatch):
            kinds = kinds_of(batch.data)
            data = self._stored(without_kinds(batch.data).select(stored.names), stored)
        else:
            values = [(value,) for value in batch.values] if self._is_single else batch.values
            kinds = _kinds_of_rows(values)
            data = rows_to_arrow(plain_rows(values, stored.names, self._types), stored)
        columns = list(data.columns)
        if self._time is not None:
            columns.insert(self._time, self._times(batch))
        result = pyarrow.RecordBatch.from_arrays(columns, schema=self._schema)
        if kinds is None:
            return result
        self._check(kinds)
        return with_kinds(result, kinds)

    def _stored(self, data: pyarrow.RecordBatch, stored: pyarrow.Schema) -> pyarrow.RecordBatch:
        """Return columns of a stream in the types of the table; what is RAW there is no pickle yet."""
        if not any(map(contains_raw, self._types)):
            return data.cast(stored)
        rows = plain_rows(arrow_to_rows(data), stored.names, self._types)
        return rows_to_arrow(rows, stored)

    def _check(self, kinds: NDArray[np.int8]) -> None:
        """Raise RowError where rows do what they are not to do."""
        wrong = np.flatnonzero(~np.isin(kinds, self._kinds))
        if len(wrong):
            known = ", ".join(KINDS[kind].name for kind in self._kinds)
            problem = f"a record is {KINDS[kinds[wrong[0]]].name}, and the stream is said to have {known} alone"
            remedy = "use from_changelog_stream(), with a changelog_mode that has all kinds of its rows"
            raise RowError(problem, remedy)

    def _times(self, batch: Batch) -> pyarrow.Array:
        import pyarrow

        assert self._time is not None
        stamps = np.full(len(batch), MIN_TIMESTAMP) if batch.timestamps is None else np.asarray(batch.timestamps)
        column = pyarrow.array(stamps, pyarrow.int64(), mask=stamps == MIN_TIMESTAMP)
        return column.cast(self._schema.field(self._time).type)


def _kinds_of_rows(rows: Sequence[Any]) -> NDArray[np.int8] | None:
    """Return the kinds of records, of which those that are no Rows are insertions; None: all are."""
    if not any(issubclass(record_type, Row) for record_type in set(map(type, rows))):
        return None
    kinds = [row._row_kind if isinstance(row, Row) else RowKind.INSERT for row in rows]
    if all(kind is RowKind.INSERT for kind in kinds):
        return None
    return np.array([kind.value for kind in kinds], np.int8)


class RecordsOperator(Operator):
    """Gives the rows of a table as records of a stream: with their event time, and without changes that are not wanted.

    Args:
        time: number of the column that is their event time; None: none is.
        drops_time: the column is left out then.
        without_before: no row says what was there before.
        deletes_before: such a row becomes a deletion, for what replaces it may not come; else it is left out.
    """

    def __init__(self, time: int | None, drops_time: bool, without_before: bool, deletes_before: bool) -> None:
        self._time, self._drops_time = time, drops_time
        self._without_before, self._deletes_before = without_before, deletes_before

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        data = self._of_kinds(batch.data) if self._without_before else batch.data
        if not data.num_rows:
            return
        if self._time is None:
            yield ArrowBatch(data)
            return
        stamps = _milliseconds(data.column(self._time))
        if self._drops_time:
            data = data.select([index for index in range(data.num_columns) if index != self._time])
        yield ArrowBatch(data, stamps)

    def _of_kinds(self, data: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
        import pyarrow

        kinds = kinds_of(data)
        if kinds is None or not (kinds == BEFORE).any():
            return data
        if self._deletes_before:
            return with_kinds(without_kinds(data), np.where(kinds == BEFORE, DELETE, kinds).astype(np.int8))
        return data.filter(pyarrow.array(kinds != BEFORE))


class ObjectsOperator(Operator):
    """Gives columns with pickled objects as Rows that have the objects.

    Args:
        types: of the columns.
    """

    def __init__(self, types: Sequence[DataType]) -> None:
        self._types = tuple(types)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        rows = arrow_to_rows(batch.data)
        shapes = [(index, objects_of(kind)) for index, kind in enumerate(self._types)]
        objects: list[tuple[int, ToObject]] = [(index, shape) for index, shape in shapes if shape is not None]
        for row in rows:
            for index, shape in objects:
                row._values[index] = shaped(shape, row._values[index])
        stamps = None if batch.timestamps is None else [int(stamp) for stamp in batch.timestamps]
        yield RowBatch(rows, stamps)


def _milliseconds(column: Any) -> NDArray[np.int64]:
    """Moments since 1970: int64[n]; NULL is before all of them."""
    import pyarrow
    import pyarrow.compute as pc

    stamps = pc.floor_temporal(column, unit="millisecond") if column.type.unit in ("us", "ns") else column
    stamps = stamps.cast(pyarrow.timestamp("ms", column.type.tz), safe=False).cast(pyarrow.int64())
    milliseconds: NDArray[np.int64] = stamps.fill_null(MIN_TIMESTAMP).to_numpy(zero_copy_only=False)
    return milliseconds


__all__ = ["AFTER", "BEFORE", "DELETE", "INSERT", "ColumnsOperator", "ObjectsOperator", "RecordsOperator"]
