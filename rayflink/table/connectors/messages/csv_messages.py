"""`csv`: one line of values a message, as Flink's CSV format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, Batch
from rayflink.common.serialization import DeserializationSchema, SerializationSchema
from rayflink.connectors.formats.csv_files import CsvFormat

from ...plan.logical import Schema
from ..csv_columns import CsvColumns
from ..csv_skipping import SkippingCsvFormat
from ..formats import Csv
from .column_schemas import ColumnDecoder, ColumnEncoder
from .contract import MessageFormat

if TYPE_CHECKING:
    import pyarrow


class CsvMessages(MessageFormat):
    """One line of values a message, without a line end; a quoted value may hold line ends."""

    name = "csv"
    options = Csv.options

    def decoder(self, schema: Schema, names: Sequence[str], options: Mapping[str, object]) -> DeserializationSchema:
        form = Csv().reads(schema, list(names) or [schema[0].name], {**options, "newlines-in-values": True})
        assert isinstance(form, CsvFormat)
        return CsvDecoder(form, tuple(names))

    def encoder(self, schema: Schema, options: Mapping[str, object]) -> SerializationSchema:
        form = Csv().columns(schema, options)
        return CsvEncoder(schema, replace(form, marks=replace(form.marks, line_end="")))


class CsvDecoder(ColumnDecoder):
    """Decodes lines of CSV to columns; messages without bytes, and comments, have no row.

    Args:
        form: reads at least one column.
        names: of the columns to decode.
    """

    def __init__(self, form: CsvFormat, names: tuple[str, ...]) -> None:
        self._form, self._names = form, names
        assert form.schema is not None
        self._types = dict(zip(form.schema.names, form.schema.types, strict=True))

    def counting(self, metrics: MetricGroup) -> DeserializationSchema:
        form = self._form
        return CsvDecoder(form.counting(metrics), self._names) if isinstance(form, SkippingCsvFormat) else self

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        data = self._together(messages)
        if data is not None:
            return ArrowBatch(data.select(self._names)), None
        return self._one_by_one(messages)

    def _together(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch | None:
        """Return one row a message; None: some must be looked at alone."""
        import pyarrow

        if not all(messages):
            return None
        block = b"\n".join(messages)
        if b"\r" in block or block.count(b"\n") != len(messages) - 1:
            return None
        if self._form.dialect.whole_records(block) != len(block):  # the last message ends inside a quoted value
            return None
        try:
            data = self._columns(block)
        except pyarrow.ArrowInvalid:
            return None
        return data if data.num_rows == len(messages) else None  # no message has two: they contain no line ends

    def _columns(self, block: bytes) -> pyarrow.RecordBatch:
        return self._form.dialect.columns_of(block, list(self._types), self._types, self._form.wanted)

    def _one_by_one(self, messages: Sequence[bytes]) -> tuple[Batch, Sequence[int] | None]:
        import pyarrow

        rows = [(index, self._row(message)) for index, message in enumerate(messages) if message]
        parts = [(index, data) for index, data in rows if data.num_rows]
        if not parts:
            return ArrowBatch(self._columns(b"").select(self._names)), []
        whole = pyarrow.Table.from_batches([data for _, data in parts]).combine_chunks().to_batches()[0]
        return ArrowBatch(whole.select(self._names)), [index for index, _ in parts]

    def _row(self, message: bytes) -> pyarrow.RecordBatch:
        """Return the row of a message, or none.

        Raises:
            ValueError: the message is malformed.
        """
        import pyarrow

        form = self._form
        try:
            if form.dialect.whole_records(message) != len(message):
                raise pyarrow.ArrowInvalid("a quoted value does not end")
            data = self._columns(message)
            if data.num_rows > 1:
                raise pyarrow.ArrowInvalid(f"{data.num_rows} lines are found, one is wanted")
        except pyarrow.ArrowInvalid as error:
            if isinstance(form, SkippingCsvFormat):
                return form.by_line(message.partition(b"\n")[0])
            remedy = "set the format's option 'ignore-parse-errors' = 'true' to leave such messages and values out"
            raise ValueError(f"{shorten(message.decode('utf-8', 'replace'), 120)}: {error}; {remedy}") from error
        return data


class CsvEncoder(ColumnEncoder):
    """Encodes rows as lines of CSV."""

    def __init__(self, schema: Schema, form: CsvColumns) -> None:
        super().__init__(schema)
        self._form = form

    def messages_of(self, data: pyarrow.RecordBatch) -> Sequence[bytes | None]:
        import pyarrow

        messages: list[bytes | None] = self._form.lines(data).cast(pyarrow.binary()).to_pylist()
        return messages


__all__ = ["CsvDecoder", "CsvEncoder", "CsvMessages"]
