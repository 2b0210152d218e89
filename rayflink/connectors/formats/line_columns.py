"""Reads lines of a file as columns, block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rayflink.common.connector_base.split_reader import share_of
from rayflink.common.records.batches import ArrowBatch, Batch, Tagged

from ..files.file_blocks import MARK_BYTES, FileSplit, LineBlocks

if TYPE_CHECKING:
    import pyarrow

_READ_BYTES = 1 << 20
"""Size of a block, about: what is made of one stays in a processor's cache, and the memory is used again."""
_ORDER_MARK = b"\xef\xbb\xbf"


class LineColumnsCursor:
    """Gives the rows of a split; the position is a block's first byte and the rows given of it, with one for its
    malformed lines.

    Args:
        columns_of: whole lines, and where they begin in the file -> their rows, and those that cannot be read for a
            side output. For the same lines the same rows.
        block_bytes: of the lines that are read at once, about.
    """

    def __init__(
        self,
        split: FileSplit,
        columns_of: Callable[[bytes, int], tuple[pyarrow.RecordBatch, Tagged | None]],
        block_bytes: int = _READ_BYTES,
    ) -> None:
        self._split, self._columns_of = split, columns_of
        self._blocks = LineBlocks(split, block_bytes)
        self._offset, self._mark = self._blocks.offset, b""
        self._data: pyarrow.RecordBatch | None = None
        self._malformed: Tagged | None = None
        self._given, self._skip = 0, split.skip

    def read(self, max_records: int) -> Batch | Tagged | None:
        while self._data is None or self._given >= self._data.num_rows:
            if self._malformed is not None and self._data is not None and self._given == self._data.num_rows:
                malformed, self._malformed = self._malformed, None
                self._given += 1
                return malformed
            self._offset = self._blocks.offset
            block = self._blocks.next()
            self._mark = block[:MARK_BYTES]
            self._given, self._skip = self._skip, 0
            if not block:
                self._data = None
                return None
            lines = block if self._offset else block.removeprefix(_ORDER_MARK)
            self._data, self._malformed = self._columns_of(lines, self._offset)
        part = self._data.slice(self._given, share_of(self._data.num_rows - self._given, max_records))
        self._given += part.num_rows
        return ArrowBatch(part)

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given, mark=self._mark)

    def close(self) -> None:
        self._blocks.close()
