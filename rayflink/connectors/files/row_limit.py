"""A format whose readers end when they have emitted the rows that are asked for."""

from __future__ import annotations

from dataclasses import dataclass

from rayflink.common.connector_base.source import Polled
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import ArrowBatch, RowBatch

from .file_blocks import FileSplit
from .file_source import FileFormat


class FirstRows(FileFormat):
    """Another format, of which a reader reads no more than some rows.

    Args:
        form: the other one.
        rows: of a reader at least, where its splits have them; blocks are not cut.
    """

    def __init__(self, form: FileFormat, rows: int) -> None:
        self._form, self._rows = form, rows
        self.most_rows = rows
        self.divisible = form.divisible

    def counting(self, metrics: MetricGroup) -> FileFormat:
        return FirstRows(self._form.counting(metrics), self._rows)

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _FirstRowsCursor(self._form.open_split(split), self._rows)


@dataclass
class _FirstRowsCursor:
    cursor: SplitCursor
    left: int

    def read(self, max_records: int) -> Polled | None:
        if self.left <= 0:
            return None
        element = self.cursor.read(min(max_records, self.left))
        if isinstance(element, (ArrowBatch, RowBatch)):
            self.left -= len(element)
        return element

    def position(self) -> object:
        return self.cursor.position()

    def close(self) -> None:
        self.cursor.close()


__all__ = ["FirstRows"]
