"""Columns as CSV text without a header, as Flink's CSV format writes rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from rayflink.common.batches import ArrowBatch, Batch
from rayflink.common.serialization import BulkWriter, BulkWriterFactory

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class CsvColumns(BulkWriterFactory):
    """Values between delimiters, in quotes where they need them; NULL is `null_literal`.

    Args:
        delimiter: one character.
        null_literal: text of NULL.
    """

    delimiter: str = ","
    null_literal: str = ""

    def create(self, file: IO[bytes]) -> BulkWriter:
        return _CsvWriter(file, self)


class _CsvWriter(BulkWriter):
    def __init__(self, file: IO[bytes], form: CsvColumns) -> None:
        self._file, self._form = file, form

    def add_element(self, element: Any) -> None:
        raise TypeError(f"found {element!r}; rows of a table are columns")

    def add_batch(self, batch: Batch) -> None:
        import pyarrow
        from pyarrow import csv

        assert isinstance(batch, ArrowBatch), f"found {batch!r}; rows of a table are columns"
        shown = pyarrow.RecordBatch.from_arrays(
            [_shown(column, self._form.null_literal) for column in batch.data.columns], batch.data.schema.names
        )
        options = csv.WriteOptions(include_header=False, delimiter=self._form.delimiter, quoting_style="needed")
        csv.write_csv(shown, self._file, options)

    def finish(self) -> None:
        """Every batch is in the file already."""


def _shown(column: pyarrow.Array, null_literal: str) -> pyarrow.Array:
    """A column that Arrow writes as Flink would."""
    import pyarrow
    from pyarrow import compute, types

    kind = column.type
    if types.is_nested(kind) or types.is_binary(kind):
        raise ValueError(f"CSV has no form of {kind}; write the table in another format, or CAST the column to STRING")
    if types.is_timestamp(kind) and kind.tz is not None:
        column = compute.binary_join_element_wise(
            column.cast(pyarrow.timestamp(kind.unit)).cast(pyarrow.string()), "Z", ""
        )
    if null_literal and column.null_count:
        column = compute.fill_null(column.cast(pyarrow.string()), null_literal)
    return column
