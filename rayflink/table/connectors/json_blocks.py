"""Blocks of JSON objects, one a line, as columns of a table, by Flink's rules."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rayflink.common.records.arrow_values import list_offsets
from rayflink.common.records.json_columns import JsonParser, UnreadableColumn, rows_without_columns

from ..plan.logical import Schema
from ..types import DataType, Root
from .json_values import BadValue, JsonValues

if TYPE_CHECKING:
    import pyarrow

_TEXTUAL = (Root.DATE, Root.TIME, Root.TIMESTAMP, Root.TIMESTAMP_LTZ, Root.BINARY, Root.VARBINARY)
"""The types that are read as strings, which become values afterwards."""
_NOTHING = type(None)
_PLAIN = {
    **dict.fromkeys((Root.TINYINT, Root.SMALLINT, Root.INT, Root.BIGINT), frozenset((int, _NOTHING))),
    **dict.fromkeys((Root.CHAR, Root.VARCHAR), frozenset((str, _NOTHING))),
    Root.DOUBLE: frozenset((float, int, _NOTHING)),
    Root.BOOLEAN: frozenset((bool, _NOTHING)),
}
"""Types of which pyarrow takes Python's values as they are, unless they are too large."""
_SHORTEST = len("2020-01-02 03:04:05")


class JsonBlocks:
    """Makes columns of JSON objects.

    What `JsonParser` refuses is read by Python, by Flink's rules, which take more: numbers in quotes, strings of what
    is nested.

    Args:
        schema: the columns to read.
        iso: times are written as 2020-01-02T03:04:05, instead of with a blank.
        fails_on_missing: a missing field is an error, instead of NULL.
        skips: a value that is not of its type becomes NULL; `skipped` counts them.
    """

    def __init__(self, schema: Schema, iso: bool = False, fails_on_missing: bool = False, skips: bool = False) -> None:
        import pyarrow

        self._schema, self._iso, self._fails_on_missing = schema, iso, fails_on_missing
        self._types = [column.type for column in schema]
        self._values = JsonValues(iso, fails_on_missing, skips)
        self._fields = [(column.name, self._values.converter(column.type)) for column in schema]
        self._wanted = pyarrow.schema([(column.name, column.type.to_arrow()) for column in schema])
        self._parser = _parser_of(schema, fails_on_missing)

    @property
    def skipped(self) -> int:
        """Return the number of values that became NULL as they are not of their types."""
        return self._values.skipped

    def columns(self, block: bytes) -> pyarrow.RecordBatch | None:
        """Return the objects of whole lines; None: a line is malformed, or has to be read alone, by `rows`."""
        result = None if self._parser is None else self._typed_columns(self._parser.lines(block))
        return self._by_column(block.split(b"\n")) if result is None else result

    def similar_columns(self, block: bytes) -> pyarrow.RecordBatch | None:
        """Return the objects of whole lines, most of which look alike; None: read them by `columns`, part by part."""
        return None if self._parser is None else self._typed_columns(self._parser.similar_lines(block))

    def messages(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch | None:
        """Return the object of each message; None: one is malformed, or has to be read alone, by `rows`."""
        result = None if self._parser is None else self._typed_columns(self._parser.messages(messages))
        return self._by_column(messages, is_one_each=True) if result is None else result

    def rows(self, line: bytes) -> list[list[Any]]:
        """Return the values of the objects of one line, for `batch`.

        Raises:
            ValueError: the line is no JSON, or a value is not of its type.
            RecursionError: lists or objects lie too deep in each other.
        """
        return [self._values.row(self._fields, value) for value in self._values.parsed(line.decode("utf-8"))]

    def batch(self, rows: Sequence[Sequence[Any]]) -> pyarrow.RecordBatch:
        """Return rows as columns."""
        import pyarrow

        if not self._wanted.names:
            return rows_without_columns(len(rows))
        columns = list(zip(*rows, strict=True)) or [()] * len(self._wanted)
        arrays = [pyarrow.array(column, field.type) for column, field in zip(columns, self._wanted, strict=True)]
        return pyarrow.RecordBatch.from_arrays(arrays, schema=self._wanted)

    def _typed_columns(self, data: pyarrow.RecordBatch | None) -> pyarrow.RecordBatch | None:
        """Return what the parser has read as columns of the table's types; None: a value is not read by columns."""
        import pyarrow

        if data is None or not self._types:
            return data
        try:
            columns = [self._typed(column, kind) for column, kind in zip(data.columns, self._types, strict=True)]
        except (pyarrow.ArrowException, BadValue):
            return None
        return pyarrow.RecordBatch.from_arrays(columns, schema=self._wanted)

    def _typed(self, column: pyarrow.Array, kind: DataType) -> pyarrow.Array:
        """Return a column as the parser has read it as one of its type.

        Raises:
            BadValue, pyarrow.ArrowInvalid: a value is not read by columns.
        """
        import pyarrow

        if kind.root in _TEXTUAL:
            return _from_strings(column, kind, self._iso)
        if not any(inner_kind.root in _TEXTUAL for inner_kind in _within(kind)):
            return column if column.type == kind.to_arrow() else column.cast(kind.to_arrow())
        mask = column.is_null() if column.null_count else None
        if kind.root is Root.ARRAY:
            values = self._typed(column.flatten(), kind.items[0])
            return pyarrow.ListArray.from_arrays(_offsets(column), values, kind.to_arrow(), mask=mask)
        inner = [self._typed(column.field(index), field.type) for index, field in enumerate(kind.fields)]
        return pyarrow.StructArray.from_arrays(inner, fields=list(kind.to_arrow()), mask=mask)

    def _by_column(self, lines: Sequence[bytes], is_one_each: bool = False) -> pyarrow.RecordBatch | None:
        """Lines that Python reads, their values put together by column; None: one of them is to be looked at alone."""
        import pyarrow

        if self._fails_on_missing or not self._fields:
            return None
        parse = self._values.parsed_quickly(self._types)
        skipped = self._values.skipped
        try:
            rows = [row for line in lines if line and not line.isspace() for row in parse(line.decode("utf-8"))]
            if is_one_each and (len(rows) != len(lines) or any(line.lstrip()[:1] == b"[" for line in lines)):
                return None
            arrays = []
            for (name, convert), column_ in zip(self._fields, self._schema, strict=True):
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


def _parser_of(schema: Schema, requires_all: bool) -> JsonParser | None:
    """Return the parser of columns; None: it has no such types."""
    import pyarrow

    kinds = [(column.name, _raw_type(column.type)) for column in schema]
    try:
        known = [(name, kind) for name, kind in kinds if kind is not None]
        return JsonParser(pyarrow.schema(known), requires_all) if len(known) == len(kinds) else None
    except UnreadableColumn:
        return None


def _within(kind: DataType) -> Sequence[DataType]:
    """Return the type and all within it."""
    inner = [*kind.items, *(field.type for field in kind.fields)]
    return [kind, *(nested for item in inner for nested in _within(item))]


def _raw_type(kind: DataType) -> Any:
    """Return the type as which the parser reads the values; None: it cannot."""
    import pyarrow

    root = kind.root
    if root in (Root.MAP, Root.MULTISET):
        return None if any(inner.root in _TEXTUAL for inner in _within(kind)) else kind.to_arrow()
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
    from pyarrow import compute

    return list_offsets(compute.fill_null(compute.list_value_length(lists), 0))


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
