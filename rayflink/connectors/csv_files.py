"""CSV files as typed records."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..common.arrow_rows import arrow_to_rows
from ..common.batches import ArrowBatch, Batch, RowBatch
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
from .file_blocks import BLOCK_BYTES, FileSplit, LineBlocks, find_files, open_bytes, refuse_special, splits_of

if TYPE_CHECKING:
    import pyarrow


MOST_RECORD_BYTES = 64 << 20
"""A record of a file with line ends in its values is at most so long."""


class CsvFileSource(Source):
    """Emits the records of CSV files with a header line, as columns or as `Row` objects.

    Types are those of `schema`, else those that the first megabyte of the first file shows. All files must have the
    same columns. A large file is read by several readers in parallel, unless `newlines_in_values`.

    Args:
        paths: files, folders or glob patterns.
        schema: names and types of all columns, or None.
        columns: those to emit, in this order; None: all.
        rows: emit `Row` objects instead of columns.
        delimiter: one character between values.
        null_values: texts that stand for no value.
        newlines_in_values: quoted values may hold line ends; each file is then read by one reader. Without it, a file
            in which a part that is read alone ends inside a quoted value is refused while it is read.

    Raises:
        ValueError: there is no path, or one names a pipe, socket or device.
    """

    def __init__(
        self,
        *paths: str | os.PathLike[str],
        schema: pyarrow.Schema | None = None,
        columns: Sequence[str] | None = None,
        rows: bool = False,
        delimiter: str = ",",
        null_values: Sequence[str] = ("", "NA", "N/A", "NULL", "null", "NaN", "nan"),
        newlines_in_values: bool = False,
    ) -> None:
        if not paths:
            raise ValueError("at least one path is needed")
        self._paths = [os.fspath(path) for path in paths]
        for path in self._paths:
            refuse_special(path)
        self._schema, self._columns, self._rows = schema, columns, rows
        self._delimiter, self._null_values = delimiter, tuple(null_values)
        self.newlines_in_values = newlines_in_values

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return PendingSplits(ctx, self._splits(ctx.current_parallelism()))

    def _splits(self, parallelism: int) -> list[FileSplit]:
        return splits_of(find_files(self._paths), parallelism, divisible=not self.newlines_in_values)

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _CsvReader(self)

    def schema(self) -> pyarrow.Schema:
        """Names and types of all columns of the files.

        Raises:
            FileNotFoundError: a path names nothing.
            ValueError: no file has a header line.
        """
        if self._schema is None:
            files = find_files(self._paths)
            self._schema = self._inferred(files)
        return self._schema

    def _inferred(self, files: Sequence[str]) -> pyarrow.Schema:
        import pyarrow

        for path in files:
            with open_bytes(path) as file:
                header = file.readline()
                sample = file.read(BLOCK_BYTES)
                sample += file.readline() if not sample.endswith(b"\n") else b""
            if self.newlines_in_values:
                sample = sample[: self.whole_records(sample)]
            if header.strip():
                shown = self.parse(sample, self.header_names(header), {}, path, 0).schema
                text, unknown = pyarrow.string(), pyarrow.types.is_null
                return pyarrow.schema([field.with_type(text) if unknown(field.type) else field for field in shown])
        raise ValueError(f"no header line in {', '.join(self._paths)}: a CSV file begins with its column names")

    def header_names(self, header: bytes) -> list[str]:
        """Column names of a header line."""
        import csv

        text = header.decode("utf-8-sig").rstrip("\r\n")
        return next(csv.reader([text], delimiter=self._delimiter))

    def whole_records(self, block: bytes) -> int:
        """How many bytes at the beginning of `block` are whole records; a record whose quote stays open is none."""
        whole = behind = 0
        if b'"' in block:
            values = rb'(?<![^%b\r\n])"(?:[^"]*(?:""[^"]*)*"(?!"))?' % re.escape(self._delimiter.encode())
            for value in re.finditer(values, block):
                whole = block.rfind(b"\n", behind, value.start()) + 1 or whole
                behind = value.end()
                if behind - value.start() == 1:  # a quote alone: nothing closes it
                    return whole
        return len(block)

    def parse(
        self, block: bytes, names: Sequence[str], types: dict[str, Any], path: str, offset: int
    ) -> pyarrow.RecordBatch:
        """Whole lines as columns."""
        import pyarrow
        from pyarrow import csv

        if not block.strip():
            return pyarrow.RecordBatch.from_pylist(
                [], schema=pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in names])
            )
        if self.whole_records(block) != len(block):
            remedy = "if quoted values hold line ends, pass newlines_in_values=True; else close or remove the quote"
            raise ValueError(f"{path!r} near byte {offset}: a quoted value does not end where its part ends; {remedy}")
        try:
            table = csv.read_csv(
                pyarrow.BufferReader(block),
                csv.ReadOptions(use_threads=False, column_names=list(names), block_size=max(len(block), 1)),
                csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=self.newlines_in_values),
                csv.ConvertOptions(column_types=types, null_values=list(self._null_values), strings_can_be_null=True),
            )
        except pyarrow.ArrowInvalid as error:
            remedy = "pass schema= with a type that holds all values, or schema with strings"
            raise ValueError(f"{path!r} near byte {offset}: {error}; {remedy}") from error
        return table.combine_chunks().to_batches()[0]

    def emitted(self, data: pyarrow.RecordBatch) -> Batch:
        """The wanted columns, in the wanted form."""
        if self._columns is not None:
            data = data.select(list(self._columns))
        return RowBatch(arrow_to_rows(data)) if self._rows else ArrowBatch(data)


class _CsvReader(OneByOneReader):
    def __init__(self, source: CsvFileSource) -> None:
        super().__init__()
        self._source = source

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _CsvCursor(split, self._source)


class _RecordBlocks:
    """Reads a file in blocks of whole records, whose quoted values may hold line ends."""

    def __init__(self, split: FileSplit, source: CsvFileSource) -> None:
        self._lines, self._source, self._rest, self._path = LineBlocks(split), source, b"", split.path

    @property
    def offset(self) -> int:
        """Position of the next block."""
        return self._lines.offset - len(self._rest)

    def next(self) -> bytes:
        """The next whole records; empty at the end of the file.

        Raises:
            ValueError: a record is longer than `MOST_RECORD_BYTES`.
        """
        block, start, self._rest = self._rest, self.offset, b""
        while more := self._lines.next():
            block += more
            whole = self._source.whole_records(block)
            if whole:
                block, self._rest = block[:whole], block[whole:]
                break
            if len(block) > MOST_RECORD_BYTES:
                wanted = f"at most {MOST_RECORD_BYTES} bytes a record are wanted; look for a quote that is not closed"
                raise ValueError(f"{self._path!r} near byte {start}: a quoted value goes on and on; {wanted}")
        return block

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class _CsvCursor:
    def __init__(self, split: FileSplit, source: CsvFileSource) -> None:
        self._source = source
        schema = source.schema()
        self._types = dict(zip(schema.names, schema.types, strict=True))
        with open_bytes(split.path) as file:
            header = file.readline()
        self._names = source.header_names(header)
        if self._names != schema.names:
            found, wanted = ", ".join(self._names), ", ".join(schema.names)
            raise ValueError(f"{split.path!r} has columns {found}; wanted are {wanted}")
        if split.start == 0 and split.offset is None:
            split = replace(split, offset=len(header))
        self._split = split
        self._blocks = _RecordBlocks(split, source) if source.newlines_in_values else LineBlocks(split)
        self._offset = self._blocks.offset
        self._data: Any = None
        self._given, self._skip = 0, split.skip

    def read(self, max_records: int) -> Batch | None:
        while self._data is None or self._given >= self._data.num_rows:
            self._offset = self._blocks.offset
            block = self._blocks.next()
            self._given, self._skip = self._skip, 0
            if not block:
                self._data = None
                return None
            self._data = self._source.parse(block, self._names, self._types, self._split.path, self._offset)
        part = self._data.slice(self._given, max_records)
        self._given += part.num_rows
        return self._source.emitted(part)

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given)

    def close(self) -> None:
        self._blocks.close()
