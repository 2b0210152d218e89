"""Lines of text files as records."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import RowBatch, Tagged
from rayflink.common.records.charsets import charset
from rayflink.common.typeinfo import Types

from ..files.compression import open_bytes
from ..files.file_blocks import MARK_BYTES, FileSplit, LineBlocks, line_number
from ..files.file_source import FileFormat, FileSource, StreamFormat
from .malformed_lines import MalformedLine, MalformedLines

_WIDE_ENCODINGS = ("utf-16", "utf-32")
_BOM = "\ufeff"


class TextLineFormat(StreamFormat[str]):
    """Lines without their ends (`\\n` or `\\r\\n`); a byte order mark at the beginning of a file is no text.

    Args:
        encoding: of the text.

    Raises:
        UnknownCharset: the encoding is unknown.
    """

    def __init__(self, encoding: str = "utf-8") -> None:
        self._encoding = charset(encoding)
        self._is_wide = self._encoding.startswith(_WIDE_ENCODINGS)
        self._malformed = MalformedLines()
        self.divisible = not self._is_wide

    @property
    def produced_type(self) -> TypeInformation:
        return Types.STRING()

    def with_malformed_records(self, policy: MalformedRecords) -> FileFormat[str]:
        if self._is_wide:
            return super().with_malformed_records(policy)
        form = copy(self)
        form._malformed = MalformedLines(policy)
        return form

    def counting(self, metrics: MetricGroup) -> FileFormat[str]:
        form = copy(self)
        form._malformed = self._malformed.counting(metrics)
        return form

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _WideTextCursor(split, self._encoding) if self._is_wide else _TextCursor(
            split, self._encoding, self._malformed
        )  # fmt: skip


class TextFileSource(FileSource[str]):
    """Emits the lines of files, without their line ends (`\\n` or `\\r\\n`).

    A large file is read by several readers in parallel; each reader gives the lines of its parts in order, and a single
    reader those of all files, by name. Packed files (.gz, .bz2, .xz, .zst) are unpacked and read by one reader each.

    Args:
        paths: files, folders or glob patterns.
        encoding: of the text.

    Raises:
        UnknownCharset: the encoding is unknown.
        ValueError: a path names a pipe, socket or device.
    """

    def __init__(self, *paths: str | os.PathLike[str], encoding: str = "utf-8") -> None:
        super().__init__(TextLineFormat(encoding), paths)


class _TextCursor:
    """Reads lines; the position is a block's first byte and the lines given of it, with one for its malformed ones."""

    def __init__(self, split: FileSplit, encoding: str, malformed: MalformedLines) -> None:
        self._split, self._encoding, self._policy = split, encoding, malformed
        self._malformed: Tagged | None = None
        self._blocks = LineBlocks(split)
        self._offset, self._mark = self._blocks.offset, b""
        self._lines: Sequence[str] = ()
        self._given = 0
        self._skip = split.skip

    def read(self, max_records: int) -> RowBatch | Tagged | None:
        while self._given >= len(self._lines):
            if self._malformed is not None and self._given == len(self._lines):
                malformed, self._malformed = self._malformed, None
                self._given += 1
                return malformed
            self._offset = self._blocks.offset
            block = self._blocks.next()
            self._mark = block[:MARK_BYTES]
            self._given, self._skip = self._skip, 0
            self._lines, self._malformed = (), None
            if not block:
                return None
            self._lines = self._decoded(block)
        start = self._given
        values = list(self._lines[start : start + max_records])
        self._given += len(values)
        return RowBatch(values)

    def _decoded(self, block: bytes) -> list[str]:
        try:
            text = block.decode(self._encoding)
        except UnicodeDecodeError as error:
            if not self._policy.fails:
                return self._readable(block)
            offset, path = self._offset + error.start, self._split.path
            line = line_number(path, self._offset) + block.count(b"\n", 0, error.start)
            problem = f"byte {offset} of {path!r}, in line {line}, is no {self._encoding} text ({error.reason})"
            raise ValueError(f"{problem}; pass the file's encoding= or charset_name") from error
        return self._lines_of(text)

    def _readable(self, block: bytes) -> list[str]:
        """Return the lines that are text, and note the others."""
        readable, malformed = list[str](), list[MalformedLine]()
        for index, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            try:
                readable.append(line.decode(self._encoding))
            except UnicodeDecodeError as error:
                reason = f"byte {error.start} is no {self._encoding} text ({error.reason})"
                malformed.append(MalformedLine(index, line.removesuffix(b"\r"), reason))
        self._malformed = self._policy.report(self._split.path, self._offset, malformed)
        return self._lines_of("".join(f"{line}\n" for line in readable))

    def _lines_of(self, text: str) -> list[str]:
        if not self._offset:
            text = text.removeprefix(_BOM)
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if "\r" in text:
            return [line[:-1] if line.endswith("\r") else line for line in lines]
        return lines

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given, mark=self._mark)

    def close(self) -> None:
        self._blocks.close()


class _WideTextCursor:
    """Reads encodings in which a line end is more than one byte; the position is the number of lines given."""

    def __init__(self, split: FileSplit, encoding: str) -> None:
        self._split, self._encoding = split, encoding
        self._file = codecs.getreader(encoding)(open_bytes(split.path))
        self._given = 0
        while self._given < split.skip:
            if self.read(split.skip - self._given) is None:
                raise ValueError(f"{split.path!r} has become shorter: {self._given} lines, {split.skip} had been read")

    def read(self, max_records: int) -> RowBatch | None:
        values: list[str] = []
        pending = ""
        while len(values) < max_records:
            line = self._line(len(values))  # ends at \\r, \\x85 and the like too: those are part of a line here
            pending += line
            if pending.endswith("\n") or (not line and pending):
                values.append(pending.removesuffix("\n").removesuffix("\r"))
                pending = ""
            if not line:
                break
        self._given += len(values)
        return RowBatch(values) if values else None

    def _line(self, ahead: int) -> str:
        """Return the next piece of text; `ahead` lines are read but not counted yet."""
        try:
            line = self._file.readline()
            if not line and getattr(self._file, "bytebuffer", None):
                raise ValueError("the last character is cut")
        except ValueError as error:
            problem = (
                f"{self._split.path!r}, near line {self._given + ahead + 1}, is no {self._encoding} text ({error})"
            )
            raise ValueError(f"{problem}; pass the file's encoding= or charset_name") from error
        return line

    def position(self) -> FileSplit:
        return replace(self._split, skip=self._given)

    def close(self) -> None:
        self._file.close()
