"""Rows of tables as JSON, one object a line, as Flink's JSON format reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rayflink.common.connector_base.split_reader import SplitCursor
from rayflink.common.errors import shorten
from rayflink.common.metrics.metric_names import NUM_RECORDS_IN_ERRORS
from rayflink.connectors.files.file_blocks import FileSplit, line_number
from rayflink.connectors.files.file_source import StreamFormat
from rayflink.connectors.formats.json_columns import arrow_table_of
from rayflink.connectors.formats.line_columns import LineColumnsCursor

from ..plan.logical import Schema
from ..types import DataType, Root
from .json_values import BadValue, JsonValues

if TYPE_CHECKING:
    import pyarrow

_TEXTUAL = (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.BINARY, Root.VARBINARY)
"""The types that Arrow reads as strings, which become values afterwards."""
_NOTHING = type(None)
_PLAIN = {
    **dict.fromkeys((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT), frozenset((int, _NOTHING))),
    **dict.fromkeys((Root.CHAR, Root.VARCHAR), frozenset((str, _NOTHING))),
    Root.DOUBLE: frozenset((float, int, _NOTHING)),
    Root.BOOLEAN: frozenset((bool, _NOTHING)),
}
"""Types of which pyarrow takes Python's values as they are, unless they are too large."""
_SHORTEST = len("2020-01-02 03:04:05")


@dataclass(frozen=True)
class JsonFormat(StreamFormat):
    """Reads the columns of a table; what is no value of its type is an error with file and line.

    Blocks of lines are read by Arrow's parser. The lines of a block that it refuses are read one by one, by Flink's
    rules, which take more: numbers in quotes, strings of what is nested.

    Args:
        schema: the columns to read.
        iso: times are written as 2020-01-02T03:04:05, instead of with a blank.
        fails_on_missing: a missing field is an error, instead of NULL.
        skips: lines that are no JSON are left out, values of other types become NULL, and both are counted.
        errors: the counter.
    """

    schema: Schema
    iso: bool = False
    fails_on_missing: bool = False
    skips: bool = False
    errors: Any = None

    divisible = True

    def counting(self, metrics: Any) -> JsonFormat:
        return replace(self, errors=metrics.counter(NUM_RECORDS_IN_ERRORS)) if self.skips else self

    def open_split(self, split: FileSplit) -> SplitCursor:
        return LineColumnsCursor(split, _Reading(self, split.path).columns)


class _Reading:
    """Makes columns of the lines of one file."""

    def __init__(self, form: JsonFormat, path: str) -> None:
        import pyarrow

        self._form, self._path = form, path
        self._types = [column.type for column in form.schema]
        self._values = JsonValues(form.iso, form.fails_on_missing, form.skips)
        self._fields = [(column.name, self._values.converter(column.type)) for column in form.schema]
        self._wanted = pyarrow.schema([(column.name, column.type.to_arrow()) for column in form.schema])
        raw = [_raw_type(kind) for kind in self._types]
        types = [kind for kind in raw if kind is not None]
        self._raw = (
            pyarrow.schema(zip([column.name for column in form.schema], types, strict=True))
            if len(types) == len(raw)
            else None
        )

    def columns(self, block: bytes, offset: int) -> pyarrow.RecordBatch:
        """Whole lines, which begin at byte `offset`, as columns.

        Raises:
            ValueError: a line is no JSON, or a value not of its type; names file and line.
        """
        result = self._quickly(block)
        if result is None:
            result = self._by_column(block)
        return self._by_line(block, offset) if result is None else result

    def _quickly(self, block: bytes) -> pyarrow.RecordBatch | None:
        import pyarrow

        if self._raw is None:
            return None
        try:
            table = arrow_table_of(block, self._raw)
            if table is None or (self._form.fails_on_missing and any(column.null_count for column in table.columns)):
                return None
            columns = [
                self._typed(column.combine_chunks(), kind)
                for column, kind in zip(table.columns, self._types, strict=True)
            ]
        except (pyarrow.ArrowException, UnicodeDecodeError, BadValue):
            return None
        return pyarrow.RecordBatch.from_arrays(columns, schema=self._wanted)

    def _typed(self, column: pyarrow.Array, kind: DataType) -> pyarrow.Array:
        """Return a column as Arrow has read it as one of its type.

        Raises:
            BadValue, pyarrow.ArrowInvalid: a value is not read by columns.
        """
        import pyarrow

        if isinstance(column, pyarrow.ChunkedArray):
            column = pyarrow.concat_arrays(column.chunks)
        if kind.root in _TEXTUAL:
            return _from_strings(column, kind, self._form.iso)
        if not any(inner_kind.root in _TEXTUAL for inner_kind in _within(kind)):
            return column if column.type == kind.to_arrow() else column.cast(kind.to_arrow())
        mask = column.is_null() if column.null_count else None
        if kind.root is Root.ARRAY:
            values = self._typed(column.flatten(), kind.items[0])
            return pyarrow.ListArray.from_arrays(_offsets(column), values, kind.to_arrow(), mask=mask)
        inner = [self._typed(column.field(index), field.type) for index, field in enumerate(kind.fields)]
        return pyarrow.StructArray.from_arrays(inner, fields=list(kind.to_arrow()), mask=mask)

    def _by_column(self, block: bytes) -> pyarrow.RecordBatch | None:
        """Lines that Python reads, their values put together by column; None: one of them is to be looked at alone."""
        import pyarrow

        if self._form.fails_on_missing:
            return None
        parse = self._values.parsed_quickly(self._types)
        skipped = self._values.skipped
        try:
            rows = [
                row for line in block.decode("utf-8").split("\n") if line and not line.isspace() for row in parse(line)
            ]
            arrays = []
            for (name, convert), column_ in zip(self._fields, self._form.schema, strict=True):
                values = [row.get(name) for row in rows]
                if not _PLAIN.get(column_.type.root, frozenset()).issuperset(map(type, values)):
                    values = [None if value is None else convert(value) for value in values]
                arrays.append(pyarrow.array(values, column_.type.to_arrow()))
            if self._values.skipped != skipped:
                return None
        except (ValueError, TypeError, ArithmeticError, AttributeError, RecursionError, pyarrow.ArrowException):
            return None
        finally:
            self._values.skipped = skipped
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._wanted)

    def _by_line(self, block: bytes, offset: int) -> pyarrow.RecordBatch:
        import pyarrow

        form, rows = self._form, list[list[Any]]()
        skipped = -self._values.skipped
        for number, line in enumerate(block.split(b"\n")):
            if not line.strip():
                continue
            try:
                rows += [self._values.row(self._fields, value) for value in self._values.parsed(line.decode("utf-8"))]
            except (ValueError, RecursionError) as error:
                if form.skips:
                    skipped += 1
                    continue
                place = f"{self._path!r}, line {line_number(self._path, offset) + number}"
                shown = "" if isinstance(error, BadValue) else f"{shorten(line.decode('utf-8', 'replace'), 120)}: "
                remedy = (
                    "correct the line, or set 'json.ignore-parse-errors' = 'true' to leave such lines and values out"
                )
                raise ValueError(f"{place}: {shown}{error}; {remedy}") from error
        skipped += self._values.skipped
        if skipped and form.errors is not None:
            form.errors.inc(skipped)
        columns = list(zip(*rows, strict=True)) or [()] * len(self._wanted)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, self._wanted, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._wanted)


def _within(kind: DataType) -> Sequence[DataType]:
    """Return the type and all within it."""
    inner = [*kind.items, *(field.type for field in kind.fields)]
    return [kind, *(nested for item in inner for nested in _within(item))]


def _raw_type(kind: DataType) -> Any:
    """Return the type as which Arrow's parser reads the values; None: it cannot."""
    import pyarrow

    root = kind.root
    if root in (Root.MAP, Root.MULTISET):
        return None
    if root in _TEXTUAL:
        return pyarrow.string()
    if root is Root.INTERVAL_DAY_TIME:
        return pyarrow.int64()
    if root is Root.ARRAY:
        element = _raw_type(kind.items[0])
        return None if element is None else pyarrow.list_(element)
    if root is Root.ROW:
        fields = [(field.name, _raw_type(field.type)) for field in kind.fields]
        return None if any(inner is None for _, inner in fields) else pyarrow.struct(fields)
    return kind.to_arrow()


def _offsets(lists: pyarrow.ListArray) -> pyarrow.Array:
    """Return the positions at which lists begin in the elements that `flatten` gives."""
    import pyarrow
    from pyarrow import compute

    sizes = compute.fill_null(compute.list_value_length(lists), 0)
    return pyarrow.concat_arrays(
        [pyarrow.array([0], pyarrow.int32()), compute.cumulative_sum(sizes).cast(pyarrow.int32())]
    )


def _from_strings(strings: pyarrow.Array, kind: DataType, iso: bool) -> pyarrow.Array:
    """Dates, times and bytes.

    Raises:
        BadValue, pyarrow.ArrowInvalid: a text is none, or is not read by columns.
    """
    import pyarrow

    if kind.is_bytes:
        return _from_base64(strings)
    if not kind.is_timestamp:
        return strings.cast(kind.to_arrow())
    _check_form(strings, iso, kind.root is Root.TIMESTAMP_LTZ)
    if kind.precision in (3, 6, 9):
        try:
            return strings.cast(kind.to_arrow())
        except pyarrow.ArrowInvalid:  # more digits behind the second than the type has, perhaps
            pass
    nanoseconds = pyarrow.timestamp("ns", kind.to_arrow().tz)
    whole = strings.cast(nanoseconds).cast(pyarrow.int64())
    number = whole.fill_null(0).to_numpy(zero_copy_only=False)
    cut = pyarrow.array(
        number - number % 10 ** (9 - kind.precision), mask=whole.is_null().to_numpy(zero_copy_only=False)
    )
    return cut.cast(nanoseconds).cast(kind.to_arrow())


def _check_form(strings: pyarrow.Array, iso: bool, is_instant: bool) -> None:
    """Check whether all strings are of the form that the option says.

    Raises:
        BadValue: one is not.
    """

    if strings.null_count == len(strings):
        return
    marks, ends = _characters(strings, 10), _characters(strings, -1)
    is_z = ends == ord("Z")
    if not (marks == ord("T" if iso else " ")).all() or not (is_z.all() if is_instant else not is_z.any()):
        raise BadValue("another form")


def _characters(strings: pyarrow.Array, index: int) -> Any:
    """Return the byte of each text at a place; strings are to have 19 at least."""
    import numpy

    if strings.null_count:
        strings = strings.drop_null()
    _, starts, data = strings.buffers()
    bounds = numpy.frombuffer(starts, numpy.int32)[strings.offset : strings.offset + len(strings) + 1]
    if (numpy.diff(bounds) < _SHORTEST).any():
        raise BadValue("another form")
    return numpy.frombuffer(data, numpy.uint8)[bounds[:-1] + index if index >= 0 else bounds[1:] + index]


def _from_base64(strings: pyarrow.Array) -> pyarrow.Array:
    import polars
    import pyarrow

    series: Any = polars.from_arrow(strings)
    try:
        return series.str.decode("base64").to_arrow().cast(pyarrow.binary())
    except polars.exceptions.ComputeError as error:
        raise BadValue("no base64") from error
