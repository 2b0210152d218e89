"""Files of JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.malformed_records import MalformedRecords
from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.data_types.composite_types import RowTypeInfo
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.errors import described, shorten
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.arrow_types import to_arrow_schema
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, Tagged
from rayflink.common.records.json_columns import JsonParser, UnreadableColumn
from rayflink.common.records.json_rows import JsonRowDeserializationSchema, JsonRowSerializationSchema
from rayflink.common.records.json_strings import dumped, plain_value
from rayflink.common.records.shortest_floats import shortest_floats
from rayflink.common.serialization import Encoder
from rayflink.common.types import Row
from rayflink.user_types import TypeHint, UserRecord, UserValue

from ..files.file_blocks import MARK_BYTES, FileSplit, LineBlocks, line_number
from ..files.file_source import FileFormat, StreamFormat
from .arrow_json import arrow_table_of
from .malformed_lines import MalformedLine, MalformedLines, malformed, search
from .misfits import first_failing

if TYPE_CHECKING:
    import pyarrow


class JsonLinesFormat(StreamFormat):
    """One JSON value a line; empty lines are left out.

    Args:
        row_type: a RowTypeInfo: `Row` objects of that type; a pyarrow Schema: columns; None: what `json` makes of it,
            dicts for objects.
        ignore_parse_errors: lines that cannot be read are left out and counted instead of an error, as
            `MalformedRecords.skip()` does; not with columns.

    Raises:
        ValueError: errors are to be ignored with columns.
    """

    divisible = True

    def __init__(self, row_type: TypeHint = None, ignore_parse_errors: bool = False) -> None:
        self._rows: JsonRowDeserializationSchema | None = None
        self.schema = None
        if isinstance(row_type, RowTypeInfo):
            self._rows = JsonRowDeserializationSchema(row_type)
        elif row_type is not None:
            self.schema = to_arrow_schema(row_type)
        if ignore_parse_errors and self.schema is not None:
            raise ValueError("columns are read whole, errors cannot be ignored; give a RowTypeInfo for rows")
        self.malformed = MalformedLines(MalformedRecords.skip() if ignore_parse_errors else MalformedRecords.fail())

    @property
    def produced_type(self) -> TypeInformation | None:
        return None if self._rows is None else self._rows.get_produced_type()

    def with_malformed_records(self, policy: MalformedRecords) -> FileFormat:
        form = copy(self)
        form.malformed = MalformedLines(policy)
        return form

    def counting(self, metrics: MetricGroup) -> FileFormat:
        form = copy(self)
        form.malformed = self.malformed.counting(metrics)
        return form

    def open_split(self, split: FileSplit) -> SplitCursor:
        return _JsonCursor(split, self)

    def value_of(self, line: bytes) -> Any:
        """Return the record of a line.

        Raises:
            ValueError: there is none in it.
            RecursionError: its lists or objects lie too deep in each other.
        """
        return json.loads(line) if self._rows is None else self._rows.deserialize(line)

    def records_of(
        self, lines: Sequence[bytes], path: str, offset: int
    ) -> tuple[list[Any], list[MalformedLine]]:  # fmt: skip
        """Return the records of lines, those of the file from byte `offset` on, and the lines that have none.

        Raises:
            ValueError: one is malformed, and the policy is to fail; names file and line.
        """
        records, unread = list[Any](), list[MalformedLine]()
        for index, line in enumerate(lines):
            if not line.strip():
                continue
            try:
                records.append(self.value_of(line))
            except (ValueError, RecursionError) as error:
                if not self.malformed.fails:
                    unread.append(MalformedLine(index, line.removesuffix(b"\r"), described(error)))
                    continue
                place = f"{path!r}, line {line_number(path, offset) + index}"
                shown = "" if self._rows else f" {shorten(line.decode('utf-8', 'replace'), 120)}"
                remedy = "correct the line, or pass ignore_parse_errors=True to leave such lines out"
                raise ValueError(f"{place}:{shown} {error}; {remedy}") from error
        return records, unread


class _JsonCursor:
    """Reads lines; the position is a block's first byte and the records given of it, with one for its malformed lines.
    """

    def __init__(self, split: FileSplit, form: JsonLinesFormat) -> None:
        self._split, self._format = split, form
        self._blocks = LineBlocks(split)
        self._offset, self._mark = self._blocks.offset, b""
        self._records: Batch = RowBatch([])
        self._malformed: Tagged | None = None
        self._given, self._skip = 0, split.skip
        self._parser = None if form.schema is None else _parser_of(form.schema)

    def read(self, max_records: int) -> Batch | Tagged | None:
        while self._given >= len(self._records):
            if self._malformed is not None and self._given == len(self._records):
                aside, self._malformed = self._malformed, None
                self._given += 1
                return aside
            self._offset = self._blocks.offset
            block = self._blocks.next()
            self._mark = block[:MARK_BYTES]
            self._given, self._skip = self._skip, 0
            self._records, self._malformed = RowBatch([]), None
            if not block:
                return None
            if not self._offset:
                block = block.removeprefix(b"\xef\xbb\xbf")
            self._records = self._batch_of(block)
        start = self._given
        part = self._records.slice(start, min(start + max_records, len(self._records)))
        self._given += len(part)
        return part

    def _batch_of(self, block: bytes) -> Batch:
        path = self._split.path
        if self._format.schema is None:
            records, unread = self._format.records_of(block.split(b"\n"), path, self._offset)
            self._malformed = self._format.malformed.report(path, self._offset, unread)
            return RowBatch(records)
        import pyarrow

        if not block.strip():
            return RowBatch([])
        data = None if self._parser is None else self._parser.lines(block)
        if data is not None:
            return ArrowBatch(data)
        try:
            table = _table_of(block, self._format.schema)
        except (pyarrow.ArrowInvalid, ValueError) as problem:
            lines = block.split(b"\n")
            if not self._format.malformed.fails:
                return self._readable(lines, self._format.schema)
            self._format.records_of(lines, path, self._offset)  # names the line that is no JSON
            line_index = _first_misfit(lines, self._format.schema)
            place = f"{path!r}, line {line_number(path, self._offset) + line_index}"
            shown = shorten(lines[line_index].decode("utf-8", "replace"), 120)
            raise ValueError(f"{place}: {shown} {problem}; declare types that hold all values") from problem
        return ArrowBatch(table.combine_chunks().to_batches()[0])

    def _readable(self, lines: Sequence[bytes], schema: pyarrow.Schema) -> Batch:
        """Return the lines that become columns, and note the others."""

        def table_of(part: Sequence[int]) -> pyarrow.Table:
            return _table_of(b"".join(lines[index] + b"\n" for index in part), schema)

        there = [index for index, line in enumerate(lines) if line.strip()]
        failures = search(there, table_of)
        self._malformed = self._format.malformed.report(self._split.path, self._offset, malformed(lines, failures))
        good = [index for index in there if index not in failures]
        return ArrowBatch(table_of(good).combine_chunks().to_batches()[0]) if good else RowBatch([])

    def position(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._given, mark=self._mark)

    def close(self) -> None:
        self._blocks.close()


def _parser_of(schema: pyarrow.Schema) -> JsonParser | None:
    """Return the parser of columns; None: Arrow reads more types."""
    try:
        return JsonParser(schema)
    except UnreadableColumn:
        return None


def _first_misfit(lines: Sequence[bytes], schema: pyarrow.Schema) -> int:
    """Return the number, from 0, of the first line that does not become columns of a schema."""
    return first_failing(len(lines), lambda first, behind: _table_of(b"\n".join(lines[first:behind]), schema))


def _table_of(block: bytes, schema: pyarrow.Schema) -> pyarrow.Table:
    """Return the objects of whole lines as columns.

    Raises:
        ValueError, pyarrow.ArrowException: a line has none, or a value is not of its type.
    """
    table = arrow_table_of(block, schema)
    if table is None:
        raise ValueError("one object a line is wanted")
    return table


def json_lines_encoder(type_info: TypeInformation | None = None) -> Encoder:
    """Return one JSON object a line.

    >>> json_lines_encoder().encode(Row(id=1, name="a"))
    b'{"id":1,"name":"a"}\\n'

    Args:
        type_info: of the records; None: dicts, lists, strings, numbers and rows with names as they are.
    """
    return _PlainLines() if type_info is None else Encoder.lines_of(JsonRowSerializationSchema(type_info))


class _PlainLines(Encoder):
    """Values as they are; those of a declared type that are FLOAT with the digits of one."""

    def __init__(self, type_info: TypeInformation | None = None) -> None:
        self._type_info, self._shortest = type_info, shortest_floats(type_info)

    def __reduce__(self) -> tuple[Any, ...]:
        return _PlainLines, (self._type_info,)

    def for_type(self, type_info: TypeInformation | None) -> Encoder:
        return _PlainLines(type_info)

    def encode(self, element: UserRecord) -> bytes:
        value = element if self._shortest is None else self._shortest(element)
        value = value.as_dict(True) if isinstance(value, Row) and value._names is not None else value
        try:
            text = dumped(plain_value(value), _plain_inside)
        except (TypeError, ValueError) as error:
            remedy = "give the type of the records, or make them dicts in a map() before"
            raise TypeError(f"{shorten(element, 120)} cannot be JSON: {error}; {remedy}") from error
        return f"{text}\n".encode()


def _plain_inside(value: UserValue) -> Any:
    if isinstance(value, Row):
        return list(value)
    plain = plain_value(value)
    if plain is value:
        raise TypeError(f"{type(value).__name__} has no JSON")
    return plain
