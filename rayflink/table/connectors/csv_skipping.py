"""CSV whose broken lines are left out, and whose broken values are NULL, as Flink's `csv.ignore-parse-errors` says."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.connectors.formats.csv_files import CsvFormat

from ..plan.logical import Schema
from .json_values import JsonValues

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class SkippingCsvFormat(CsvFormat):
    """Reads blocks by Arrow, and those in which it finds an error value by value.

    Args:
        types: the columns of `schema`.
        errors: counts lines that are left out and values that became NULL.
    """

    types: Schema = ()
    errors: Any = None

    def with_malformed_records(self, policy: MalformedRecords) -> SkippingCsvFormat:
        return self  # nothing that it leaves out is malformed

    def counting(self, metrics: Any) -> SkippingCsvFormat:
        return replace(self, errors=metrics.counter(NUM_RECORDS_IN_ERRORS))

    def parse(
        self,
        block: bytes | bytearray,
        names: Sequence[str],
        types: dict[str, Any],
        place: tuple[str, int],
        all_columns: bool = True,
    ) -> pyarrow.RecordBatch:
        try:
            return super().parse(block, names, types, place, all_columns)
        except ValueError:
            return self.by_line(block)

    def by_line(self, block: bytes | bytearray) -> pyarrow.RecordBatch:
        """Return the rows of the lines that are whole, and count what is left out."""
        import pyarrow

        assert self.schema is not None
        values = JsonValues(skips=True)
        names_to_read = self.wanted or ()
        fields = [(column.name, values.converter(column.type)) for column in self.types if column.name in names_to_read]
        names, rows, broken = self.schema.names, list[list[Any]](), 0
        for record in self._records(self.dialect.without_comments(block)):
            if record is None or len(record) > len(names):
                broken += 1
            elif record:
                values_by_name: dict[str, Any] = dict(zip(names, record, strict=False))
                broken += len(record) < len(names)
                rows.append(values.row(fields, values_by_name))
        if self.errors is not None:
            self.errors.inc(broken + values.skipped)
        columns = dict(
            zip([name for name, _ in fields], list(zip(*rows, strict=True)) or [()] * len(fields), strict=True)
        )
        schema = pyarrow.schema([self.schema.field(name) for name in names_to_read])
        return pyarrow.RecordBatch.from_arrays(
            [pyarrow.array(columns[field.name], field.type) for field in schema], schema=schema
        )

    def _records(self, block: bytes | bytearray) -> Any:
        """Return the values of each line, None for NULL; None for a line that is not UTF-8, or has too long a value."""
        nulls = self.dialect.null_values
        strings = set[int]()
        if not self.dialect.strings_can_be_null:
            strings = {index for index, field in enumerate(self.types) if field.type.is_text}
        for line in block.split(b"\n"):
            try:
                text = line.decode("utf-8").rstrip("\r")
                record: list[str] = next(self.dialect.reader([text]), [])
            except (UnicodeDecodeError, csv.Error):
                yield None
                continue
            yield [None if value in nulls and index not in strings else value for index, value in enumerate(record)]
