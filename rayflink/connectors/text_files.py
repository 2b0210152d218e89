"""Lines of text files as records."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..common.batches import RowBatch
from ..common.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from ..common.split_reader import OneByOneReader, SplitCursor
from .file_blocks import FileSplit, LineBlocks, find_files, open_bytes, refuse_special, splits_of

_WIDE_ENCODINGS = ("utf-16", "utf-32")


class TextFileSource(Source):
    """Emits the lines of files, without their line ends (`\\n` or `\\r\\n`).

    A large file is read by several readers in parallel; each reader gives the lines of its parts in order, and a single
    reader those of all files, by name. Files that end in .gz, .bz2 or .xz are unpacked and read by one reader each.

    Args:
        paths: files, folders or glob patterns.
        encoding: of the text.

    Raises:
        LookupError: the encoding is unknown.
        ValueError: a path names a pipe, socket or device.
    """

    def __init__(self, *paths: str | os.PathLike[str], encoding: str = "utf-8") -> None:
        if not paths:
            raise ValueError("at least one path is needed")
        self._paths = [os.fspath(path) for path in paths]
        for path in self._paths:
            refuse_special(path)
        self._encoding = codecs.lookup(encoding).name

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        divisible = not self._encoding.startswith(_WIDE_ENCODINGS)
        return PendingSplits(ctx, splits_of(find_files(self._paths), ctx.current_parallelism(), divisible))

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _TextReader(self._encoding)


class _TextReader(OneByOneReader):
    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    def open_split(self, split: FileSplit) -> SplitCursor:
        if self._encoding.startswith(_WIDE_ENCODINGS):
            return _WideTextCursor(split, self._encoding)
        return _TextCursor(split, self._encoding)


class _TextCursor:
    def __init__(self, split: FileSplit, encoding: str) -> None:
        self._split, self._encoding = split, encoding
        self._blocks = LineBlocks(split)
        self._offset = self._blocks.offset
        self._lines: Sequence[str] = ()
        self._given = 0
        self._skip = split.skip

    def read(self, max_records: int) -> RowBatch | None:
        while self._given >= len(self._lines):
            self._offset = self._blocks.offset
            block = self._blocks.next()
            self._given, self._skip = self._skip, 0
            if not block:
                self._lines = ()
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
            at = self._offset + error.start
            found = f"byte {at} of {self._split.path!r} is no {self._encoding} text ({error.reason})"
            raise ValueError(f"{found}; pass the file's encoding=") from error
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if "\r" in text:
            return [line[:-1] if line.endswith("\r") else line for line in lines]
        return lines

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given)

    def close(self) -> None:
        self._blocks.close()


class _WideTextCursor:
    """Reads encodings in which a line end is more than one byte; the position is the number of lines given."""

    def __init__(self, split: FileSplit, encoding: str) -> None:
        self._split = split
        self._file = codecs.getreader(encoding)(open_bytes(split.path))
        self._given = 0
        while self._given < split.skip:
            if self.read(split.skip - self._given) is None:
                raise ValueError(f"{split.path!r} has become shorter: {self._given} lines, {split.skip} had been read")

    def read(self, max_records: int) -> RowBatch | None:
        values: list[str] = []
        pending = ""
        while len(values) < max_records:
            line = self._file.readline()  # ends at \\r, \\x85 and the like too: those are part of a line here
            pending += line
            if pending.endswith("\n") or (not line and pending):
                values.append(pending.removesuffix("\n").removesuffix("\r"))
                pending = ""
            if not line:
                break
        self._given += len(values)
        return RowBatch(values) if values else None

    def position(self) -> FileSplit:
        return replace(self._split, skip=self._given)

    def close(self) -> None:
        self._file.close()
