"""CSV files as typed records."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.source import ReaderContext, SourceReader
from rayflink.common.connector_base.split_reader import SplitCursor, share_of
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.arrow_rows import arrow_to_rows
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, Tagged

from ..files.compression import open_bytes
from ..files.file_blocks import BLOCK_BYTES, MARK_BYTES, FileSplit, LineBlocks, find_files, line_number, size_of
from ..files.file_source import FileFormat, FileSource, StreamFormat
from .csv_dialect import NO_VALUE_TEXTS, CsvDialect
from .malformed_lines import MalformedLines, malformed, search

if TYPE_CHECKING:
    import pyarrow


_READ_BYTES = 4 << 20
"""Fewer and larger blocks than of other lines: numbers are small once they are parsed."""
MOST_RECORD_BYTES = 64 << 20
"""A record of a file with line ends in its values is at most so long."""


@dataclass(frozen=True)
class CsvFormat(StreamFormat):
    """Records of CSV text, as columns or as `Row` objects.

    Args:
        schema: names and types of all columns, in the order of the file where that has no names; None: as each file
            shows them.
        dialect: what the characters mean.
        header: what the first line is: "same": the schema's names; "unread": names that are not looked at; "skipped":
            nothing; "none": a record.
        columns: those to emit, in this order; None: all of the schema.
        rows: emit `Row` objects instead of columns.
        malformed: the policy for lines that cannot be read.
        surplus: without names in the file, values behind those of the schema are passed over: as many in each record as
            in the first one of the file.
    """

    schema: pyarrow.Schema | None = None
    dialect: CsvDialect = CsvDialect()
    header: str = "same"
    columns: tuple[str, ...] | None = None
    rows: bool = False
    malformed: MalformedLines = MalformedLines()
    surplus: bool = False

    def with_malformed_records(self, policy: MalformedRecords) -> FileFormat:
        return replace(self, malformed=MalformedLines(policy)) if self.divisible else super().with_malformed_records(
            policy
        )  # fmt: skip

    def counting(self, metrics: MetricGroup) -> FileFormat:
        return replace(self, malformed=self.malformed.counting(metrics))

    @property
    def divisible(self) -> bool:  # type: ignore[override]  # a property here, as it depends on the dialect
        """Return whether a line end is always the end of a record."""
        return not self.dialect.newlines_in_values

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _CsvCursor(split, self)

    def schema_of(self, path: str) -> pyarrow.Schema | None:
        """Return names and types of a file's columns as its first megabyte shows them; None: it has no header line."""
        import pyarrow

        with open_bytes(path) as file:
            header = file.readline()
            sample = file.read(BLOCK_BYTES)
            sample += file.readline() if not sample.endswith(b"\n") else b""
        if self.dialect.newlines_in_values:
            sample = sample[: self.dialect.whole_records(sample)]
        if not header.strip():
            return None
        shown = self.parse(sample, self._header_fields(header, path), {}, (path, len(header))).schema
        text, unknown = pyarrow.string(), pyarrow.types.is_null
        return pyarrow.schema([field.with_type(text) if unknown(field.type) else field for field in shown])

    def names_in(self, header: bytes, path: str) -> list[str]:
        """Return the column names of a file whose first line is `header`.

        Raises:
            ValueError: they are not those of the schema.
        """
        assert self.schema is not None
        wanted = list(self.schema.names)
        if self.header != "same":
            return [*wanted, *self._surplus_names(path)] if self.surplus else wanted
        names = self._header_fields(header, path)
        if names != wanted:
            remedy = "name the columns of the schema as the file's header does"
            problem = f"{path!r} has columns {', '.join(names)}; wanted are {', '.join(wanted)}"
            raise ValueError(f"{problem}; {remedy}")
        return names

    def _surplus_names(self, path: str) -> list[str]:
        """Return names for the values behind those of the schema, which no column of a table has."""
        assert self.schema is not None
        with open_bytes(path) as file:
            first = file.readline()
            while first.isspace() or self.dialect.comments and first.startswith(b"#"):
                first = file.readline()
        return [f"\0{place}" for place in range(len(self.schema.names), len(self._header_fields(first, path)))]

    def _header_fields(self, header: bytes, path: str) -> list[str]:
        try:
            return self.dialect.fields_of(header)
        except UnicodeDecodeError as error:
            problem = f"{path!r}, line 1: byte {error.start} is no UTF-8 text ({error.reason})"
            raise ValueError(
                f"{problem}; write the file in UTF-8, or read it by TextFileSource(encoding=...)"
            ) from error

    def parse(
        self,
        block: bytes | bytearray,
        names: Sequence[str],
        types: dict[str, Any],
        place: tuple[str, int],
        all_columns: bool = True,
    ) -> pyarrow.RecordBatch:
        """Convert whole records to columns.

        Args:
            place: the file, and where the block begins in it.
            all_columns: also those that are not emitted.

        Raises:
            ValueError: one is malformed; names file and line.
        """
        import pyarrow

        path, offset = place
        if self.dialect.whole_records(block) != len(block):
            position = self.dialect.whole_records(block)
            line = line_number(path, offset) + block.count(b"\n", 0, position)
            problem, remedy = "a quoted value does not end", "close or remove the quote"
            if not self.dialect.newlines_in_values:
                problem += " where its part ends"
                advice = "pass newlines_in_values=True (in SQL: 'csv.newlines-in-values' = 'true')"
                remedy = f"if quoted values hold line ends, {advice}; else {remedy}"
            raise ValueError(f"{path!r}, line {line}: {problem}; {remedy}")
        try:
            return self.dialect.columns_of(block, names, types, None if all_columns else self.wanted)
        except pyarrow.ArrowInvalid as error:
            at_record = re.search(r"Row #(\d+)", str(error))
            line = line_number(path, offset) - 1
            line += self.dialect.line_in(block, int(at_record[1])) if at_record else 1
            remedy = "correct the line, or pass schema= (in SQL: declare columns) with types that hold all values"
            if self.header == "none" and line == 1:  # most often names, which a table of SQL cannot have
                remedy = f"remove it if it holds the names of the columns, for here it is a row; else {remedy}"
            reason = re.sub(r"(CSV parse error: )?Row #\d+: ", "", str(error))
            raise ValueError(f"{path!r}, line {line}: {reason}; {remedy}") from error

    def readable(
        self, block: bytes | bytearray, names: Sequence[str], types: dict[str, Any], place: tuple[str, int]
    ) -> tuple[pyarrow.RecordBatch, Tagged | None]:
        """Convert the lines that can be read to columns; the others are for a side output, if there is one."""
        lines = bytes(block).split(b"\n")

        def columns_of(part: Sequence[int]) -> pyarrow.RecordBatch:
            return self._plain_columns(b"".join(lines[index] + b"\n" for index in part), names, types)

        comments = self.dialect.comments
        there = [index for index, line in enumerate(lines) if line.strip() and not (comments and line[:1] == b"#")]
        failures = search(there, columns_of)
        tagged = self.malformed.report(*place, malformed(lines, failures))
        good = [index for index in there if index not in failures]
        return columns_of(good) if good else self._no_rows(names, types), tagged

    def _plain_columns(
        self, block: bytes | bytearray, names: Sequence[str], types: dict[str, Any]
    ) -> pyarrow.RecordBatch:  # fmt: skip
        if self.dialect.whole_records(block) != len(block):
            raise ValueError("a quoted value does not end")
        return self.dialect.columns_of(block, names, types, self.wanted)

    def _no_rows(self, names: Sequence[str], types: dict[str, Any]) -> pyarrow.RecordBatch:
        import pyarrow

        schema = pyarrow.schema([(name, types[name]) for name in self.wanted or names])
        return pyarrow.RecordBatch.from_arrays([pyarrow.array([], field.type) for field in schema], schema=schema)

    @property
    def wanted(self) -> Sequence[str] | None:
        """Return the columns to emit; None: all that are there."""
        return self.columns if self.columns is not None else None if self.schema is None else self.schema.names

    def emitted(self, data: pyarrow.RecordBatch) -> Batch:
        """Return the wanted columns, in the wanted form."""
        wanted = self.wanted
        if wanted is not None and list(wanted) != data.schema.names:
            data = data.select(list(wanted))
        return RowBatch(arrow_to_rows(data)) if self.rows else ArrowBatch(data)


class CsvFileSource(FileSource):
    """Emits the records of CSV files with a header line, as columns or as `Row` objects.

    Types are those of `schema`, else those that the first megabyte of the first file shows. All files must have the
    same columns. A large file is read by several readers in parallel, unless `newlines_in_values`.

    Args:
        paths: files, folders or glob patterns.
        schema: names and types of all columns, or None.
        columns: those to emit, in this order; None: all.
        rows: emit `Row` objects instead of columns.
        delimiter: one character between values.
        null_values: strings that stand for no value.
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
        null_values: Sequence[str] = NO_VALUE_TEXTS,
        newlines_in_values: bool = False,
    ) -> None:
        dialect = CsvDialect(delimiter, tuple(null_values), newlines_in_values)
        self._csv = CsvFormat(schema, dialect, columns=None if columns is None else tuple(columns), rows=rows)
        super().__init__(self._csv, paths)

    def schema(self) -> pyarrow.Schema:
        """Return names and types of all columns of the files.

        Raises:
            FileNotFoundError: a path names nothing.
            ValueError: no file has a header line.
        """
        if self._csv.schema is None:
            schema = next(filter(None, map(self._csv.schema_of, find_files(self._located_paths()))), None)
            if schema is None:
                raise ValueError(f"no header line in {', '.join(self._paths)}: a CSV file begins with its column names")
            self._csv = self._format = replace(self._csv, schema=schema)
        return self._csv.schema

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        if any(map(size_of, find_files(self._located_paths()))):
            self.schema()  # one for all files, by the first of them
        return super().create_reader(ctx)


class _RecordBlocks:
    """Reads a file in blocks of whole records, whose quoted values may hold line ends."""

    def __init__(self, split: FileSplit, dialect: CsvDialect) -> None:
        self._lines, self._dialect, self._rest, self._path = LineBlocks(split), dialect, b"", split.path

    @property
    def offset(self) -> int:
        """Return the position of the next block."""
        return self._lines.offset - len(self._rest)

    def next(self) -> bytes:
        """Return the next whole records; empty at the end of the file.

        Raises:
            ValueError: a record is longer than `MOST_RECORD_BYTES`.
        """
        block, start, self._rest = self._rest, self.offset, b""
        while more := self._lines.next():
            block += more
            whole = self._dialect.whole_records(block)
            if whole:
                block, self._rest = block[:whole], block[whole:]
                break
            if len(block) > MOST_RECORD_BYTES:
                wanted = f"at most {MOST_RECORD_BYTES} bytes a record are wanted; look for a quote that is not closed"
                place = f"{self._path!r}, line {line_number(self._path, start)}"
                raise ValueError(f"{place}: a quoted value goes on and on; {wanted}")
        return block

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


class _CsvCursor:
    def __init__(self, split: FileSplit, form: CsvFormat) -> None:
        if form.schema is None:
            form = replace(form, schema=form.schema_of(split.path))
        self._format = form
        header = b""
        if form.header != "none":
            with open_bytes(split.path) as file:
                header = file.readline()
                while form.dialect.comments and header.startswith(b"#"):
                    header = file.readline()
                body = file.tell()
            if split.offset is None and split.start < body:
                split = replace(split, offset=min(body, split.stop), mark=b"")
        self._split = split
        self._types: dict[str, Any] = {}
        self._names: list[str] = []
        if form.schema is not None:
            self._names = form.names_in(header, split.path)
            self._types = dict(zip(form.schema.names, form.schema.types, strict=True))
        self._blocks: LineBlocks | _RecordBlocks
        self._next: Callable[[], bytes | bytearray]
        if form.divisible:
            self._blocks = lines = LineBlocks(split, _READ_BYTES)
            self._next = partial(lines.next_in, bytearray())  # whose values are copied as they are parsed
        else:
            self._blocks = records = _RecordBlocks(split, form.dialect)
            self._next = records.next
        self._offset, self._mark = self._blocks.offset, b""
        self._data: Any = None
        self._malformed: Tagged | None = None
        self._given, self._skip = 0, split.skip

    def read(self, max_records: int) -> Batch | Tagged | None:
        while self._data is None or self._given >= self._data.num_rows:
            if self._malformed is not None and self._data is not None and self._given == self._data.num_rows:
                aside, self._malformed = self._malformed, None
                self._given += 1
                return aside
            self._offset = self._blocks.offset
            block = self._next()
            self._mark = bytes(block[:MARK_BYTES])
            self._given, self._skip = self._skip, 0
            if not block:
                self._data = None
                return None
            if not self._offset:
                block = block.removeprefix(b"\xef\xbb\xbf")
            self._data = self._columns_of(block)
        part = self._data.slice(self._given, share_of(self._data.num_rows - self._given, max_records))
        self._given += part.num_rows
        return self._format.emitted(part)

    def _columns_of(self, block: bytes | bytearray) -> pyarrow.RecordBatch:
        form, place, self._malformed = self._format, (self._split.path, self._offset), None
        if form.malformed.fails:
            return form.parse(block, self._names, self._types, place, all_columns=False)
        try:
            return form._plain_columns(block, self._names, self._types)
        except ValueError:
            columns, self._malformed = form.readable(block, self._names, self._types, place)
            return columns

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given, mark=self._mark)

    def close(self) -> None:
        self._blocks.close()
