"""Columns as CSV text without a header, as Flink's CSV format writes rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.records.csv_marks import LONGEST_PLAIN, CsvMarks
from rayflink.common.serialization import BulkWriter, BulkWriterFactory

if TYPE_CHECKING:
    import pyarrow

_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"
"""Characters that are two of 16 bits."""


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
        from pyarrow import compute

        marks = self.marks
        columns = [compute.fill_null(self._fields(column), marks.null) for column in data.columns]
        line = compute.binary_join_element_wise(*columns, marks.delimiter)
        if len(columns) == 1 and marks.empty:
            line = compute.if_else(compute.equal(line, ""), marks.empty, line)
        return compute.binary_join_element_wise(line, marks.line_end, "")

    def _fields(self, column: pyarrow.Array) -> pyarrow.Array:
        """Return the values of a column as they are written; its nulls stay."""
        import pyarrow
        from pyarrow import types

        # both load pyarrow, which is slow
        from ..functions.number_format import float_strings

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
        import pyarrow
        from pyarrow import compute

        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        lines = self._form.lines(batch.data)
        whole = compute.binary_join(pyarrow.ListArray.from_arrays([0, len(lines)], lines), "")
        self._file.write(whole.buffers()[2] or b"")

    def finish(self) -> None:
        """Every batch is in the file already."""


def quoted(strings: pyarrow.Array, marks: CsvMarks) -> pyarrow.Array:
    """Quote strings as fields, as `CsvMarks.quoted` does; nulls stay.

    >>> import pyarrow
    >>> quoted(pyarrow.array(["tea", "two words", None]), CsvMarks()).to_pylist()
    ['tea', '"two words"', None]
    """
    from pyarrow import compute

    quote, escape = marks.quote, marks.escape
    if quote is None:
        return strings
    sizes = compute.add(compute.utf8_length(strings), compute.count_substring_regex(strings, _TWO_UNITS))
    special = compute.match_substring_regex(strings, marks.special.pattern.replace("\0", r"\x00"))
    needs = compute.or_(special, compute.greater(sizes, LONGEST_PLAIN))
    if not compute.any(needs).as_py():
        return strings
    inner = strings
    if escape is not None and escape != quote:
        inner = compute.replace_substring(inner, escape, escape * 2)
    inner = compute.replace_substring(inner, quote, quote * 2)
    return compute.if_else(needs, compute.binary_join_element_wise(quote, inner, quote, ""), strings)


__all__ = ["CsvColumns", "quoted"]
