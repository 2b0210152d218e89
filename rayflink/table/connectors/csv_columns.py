"""Columns as CSV text without a header, as Flink's CSV format writes rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.csv_by_columns import joined_fields, quoted
from rayflink.common.records.csv_marks import CsvMarks
from rayflink.common.records.float_columns import float_strings
from rayflink.common.serialization import BulkWriter, BulkWriterFactory

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class CsvColumns(BulkWriterFactory):
    """Values between delimiters, strings in quotes where Flink has them.

    Args:
        marks: what the characters mean.
        plain_decimals: decimals have all their digits, and no exponent.
    """

    marks: CsvMarks = CsvMarks()
    plain_decimals: bool = False

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _CsvWriter(file, self)

    def lines(self, data: pyarrow.RecordBatch) -> pyarrow.Array:
        """Return the line of each row, with its end.

        Raises:
            ValueError: CSV cannot represent a column.
        """
        return joined_fields(self._columns(data), self.marks)

    def block(self, data: pyarrow.RecordBatch) -> pyarrow.Buffer | bytes:
        """Return the lines of all rows but the end of the last one; there is one row at least.

        Raises:
            ValueError: CSV cannot represent a column.
        """
        import pyarrow
        from pyarrow import compute

        lines = joined_fields(self._columns(data), self.marks, with_end=False)
        whole = compute.binary_join(pyarrow.ListArray.from_arrays([0, len(lines)], lines), self.marks.line_end)
        return whole.buffers()[2] or b""

    def _columns(self, data: pyarrow.RecordBatch) -> list[pyarrow.Array]:
        from pyarrow import compute

        return [compute.fill_null(self._fields(column), self.marks.null) for column in data.columns]

    def _fields(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the values of a column as they are written; its nulls stay."""
        import pyarrow
        from pyarrow import types

        # slow: it loads pyarrow
        from .column_strings import decimal_strings, time_strings, timestamp_strings

        kind = column.type
        if types.is_nested(kind) or types.is_binary(kind):
            remedy = "write the table in another format, or CAST the column to STRING"
            raise ValueError(f"CSV cannot represent {kind}; {remedy}")
        if types.is_floating(kind):
            return float_strings(column)
        if types.is_decimal(kind):
            return decimal_strings(column, self.plain_decimals)
        if types.is_timestamp(kind):
            return quoted(timestamp_strings(column), self.marks)
        if types.is_time(kind):
            return quoted(time_strings(column), self.marks)
        if types.is_duration(kind):
            return column.cast(pyarrow.int64()).cast(pyarrow.string())
        strings = column.cast(pyarrow.string())
        return quoted(strings, self.marks) if types.is_string(kind) or types.is_date(kind) else strings


class _CsvWriter(BulkWriter):
    def __init__(self, file: IO[bytes], form: CsvColumns) -> None:
        self._file, self._form = file, form

    def add_element(self, element: Any) -> None:
        raise TypeError(f"found {element!r}; rows of a table are columns")

    def add_batch(self, batch: Batch) -> None:
        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        if batch.data.num_rows:
            self._file.write(self._form.block(batch.data))
            self._file.write(self._form.marks.line_end.encode())

    def finish(self) -> None:
        """Every batch is in the file already."""


__all__ = ["CsvColumns"]
