"""Rows of tables as JSON, one object a line, as Flink's JSON format reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.errors import described, shorten
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.common.records.batches import Tagged
from rayflink.common.records.json_columns import rows_without_columns
from rayflink.connectors.files.file_blocks import FileSplit, line_number
from rayflink.connectors.files.file_source import StreamFormat
from rayflink.connectors.formats.line_columns import LineColumnsCursor
from rayflink.connectors.formats.malformed_lines import MalformedLine, MalformedLines

from ..plan.logical import Schema
from .json_blocks import JsonBlocks
from .json_values import BadValue

if TYPE_CHECKING:
    import pyarrow

_BLOCK_BYTES = 4 << 20
"""Bytes of lines that become one batch, about: of large objects, too, it has thousands of rows, beside which the calls
of a query's steps cost little.
"""
_PART_BYTES = 1 << 20
"""Bytes of lines that are parsed at once, one by one: their objects stay in a processor's cache, and the memory is used
again.
"""


@dataclass(frozen=True)
class JsonFormat(StreamFormat):
    """Reads the columns of a table; what is no value of its type is an error with file and line.

    Args:
        schema: the columns to read.
        iso: times are written as 2020-01-02T03:04:05, instead of with a blank.
        fails_on_missing: a missing field is an error, instead of NULL.
        skips: lines that are no JSON are left out, values of other types become NULL, and both are counted.
        errors: the counter.
        malformed: the policy for lines that are not left out, and cannot be read.
    """

    schema: Schema
    iso: bool = False
    fails_on_missing: bool = False
    skips: bool = False
    errors: Any = None
    malformed: MalformedLines = MalformedLines()

    divisible = True

    def with_malformed_records(self, policy: MalformedRecords) -> JsonFormat:
        return replace(self, malformed=MalformedLines(policy))

    def counting(self, metrics: Any) -> JsonFormat:
        malformed = self.malformed.counting(metrics)
        return replace(self, errors=metrics.counter(NUM_RECORDS_IN_ERRORS) if self.skips else None, malformed=malformed)

    def open_split(self, split: FileSplit) -> SplitCursor:
        return LineColumnsCursor(split, _Reading(self, split.path).columns, _BLOCK_BYTES)


class _Reading:
    """Makes columns of the lines of one file."""

    def __init__(self, form: JsonFormat, path: str) -> None:
        self._form, self._path = form, path
        self._blocks = JsonBlocks(form.schema, form.iso, form.fails_on_missing, form.skips)

    def columns(self, block: bytes, offset: int) -> tuple[pyarrow.RecordBatch, Tagged | None]:
        """Return whole lines, which begin at byte `offset`, as columns, and the malformed ones for a side output.

        Raises:
            ValueError: a line is no JSON, or a value not of its type, and the policy is to fail; names file and line.
        """
        import pyarrow

        similar = self._blocks.similar_columns(block) if self._form.schema else None
        if similar is not None:
            return similar, None
        batches, malformed = list[pyarrow.RecordBatch](), list[MalformedLine]()
        start = 0
        while start < len(block) or not batches:
            stop = block.find(b"\n", start + _PART_BYTES) + 1 or len(block)
            part = block[start:stop]
            batch = self._blocks.columns(part)
            if batch is None:
                batch = self._by_line(part, offset, block.count(b"\n", 0, start), malformed)
            batches.append(batch)
            start = stop
        if not self._form.schema:
            data = rows_without_columns(sum(batch.num_rows for batch in batches))
        else:
            data = batches[0] if len(batches) == 1 else pyarrow.concat_batches(batches)
        return data, self._form.malformed.report(self._path, offset, malformed)

    def _by_line(
        self, block: bytes, offset: int, first_number: int, malformed: list[MalformedLine]
    ) -> pyarrow.RecordBatch:
        """Return lines as columns, and add malformed ones.

        Args:
            offset: byte at which counting of lines begins, and `first_number` the number of the first of them.
        """
        form, rows = self._form, list[list[Any]]()
        skipped = -self._blocks.skipped
        for number, line in enumerate(block.split(b"\n"), first_number):
            if not line.strip():
                continue
            try:
                rows += self._blocks.rows(line)
            except (ValueError, RecursionError) as error:
                if form.skips:
                    skipped += 1
                    continue
                if not form.malformed.fails:
                    malformed.append(MalformedLine(number, line.removesuffix(b"\r"), described(error)))
                    continue
                place = f"{self._path!r}, line {line_number(self._path, offset) + number}"
                shown = "" if isinstance(error, BadValue) else f"{shorten(line.decode('utf-8', 'replace'), 120)}: "
                remedy = (
                    "correct the line, or set 'json.ignore-parse-errors' = 'true' to leave such lines and values out"
                )
                raise ValueError(f"{place}: {shown}{error}; {remedy}") from error
        skipped += self._blocks.skipped
        if skipped and form.errors is not None:
            form.errors.inc(skipped)
        return self._blocks.batch(rows)
