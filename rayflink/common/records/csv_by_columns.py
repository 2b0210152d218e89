"""Lines of CSV as columns of a row type, and back, with the results of `csv_rows` and no Python call a record.

Only what has one meaning is read and written by columns; for all else the functions return None, and the caller works
record by record. So no value depends on the way that is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import TYPE_CHECKING

from ..data_types.basic_types import BasicType, BasicTypeInfo, DateTypeInfo, TimestampTypeInfo
from ..data_types.composite_types import RowTypeInfo
from ..data_types.type_base import TypeInformation
from .arrow_types import to_arrow_schema
from .csv_marks import LONGEST_PLAIN, CsvMarks
from .float_columns import float_strings

if TYPE_CHECKING:
    import pyarrow

WHOLE = (BasicType.BYTE, BasicType.SHORT, BasicType.INT, BasicType.LONG)
REAL = (BasicType.FLOAT, BasicType.DOUBLE)
_FORMS = {
    "whole": r"^-?[0-9]{1,18}$",
    "real": r"^-?[0-9]{1,300}(\.[0-9]{1,300})?([eE][+-]?[0-9]{1,3})?$",
    "boolean": r"^(?i:true|false|1|0)$",
    "date": r"^(?:[0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}$",
}
_TIME = r"[ T][0-9]{2}:[0-9]{2}:[0-5][0-9](?:\.[0-9]{1,6})?$"
_FORMS["timestamp"] = _FORMS["date"][:-1] + _TIME
_TWO_UNITS = r"[\x{10000}-\x{10FFFF}]"
"""Characters that are two of 16 bits."""


def kind_of(kind: TypeInformation) -> str:
    """Return the way in which values of a type are read and written by columns; "": they are not."""
    if isinstance(kind, DateTypeInfo):
        return "date"
    if isinstance(kind, TimestampTypeInfo):
        return "timestamp"
    if not isinstance(kind, BasicTypeInfo):
        return ""
    if kind.basic_type in WHOLE:
        return "whole"
    if kind.basic_type in REAL:
        return "real"
    return {BasicType.BOOLEAN: "boolean", BasicType.STRING: "string"}.get(kind.basic_type, "")


class CsvParser:
    """Parses lines to columns.

    Args:
        type_info: of the rows.
        marks: what the characters mean.
    """

    def __init__(self, type_info: RowTypeInfo, marks: CsvMarks) -> None:
        kinds = type_info.get_field_types()
        self._ways = list(map(kind_of, kinds))
        is_single = any(isinstance(kind, BasicTypeInfo) and kind.basic_type is BasicType.FLOAT for kind in kinds)
        delimiter, quote = marks.delimiter, marks.quote
        are_plain = delimiter.isascii() and delimiter not in "\r\n\0" and (quote is None or quote.isascii())
        self.is_possible = are_plain and marks.escape is None and all(self._ways) and not is_single
        self._marks, self._type_info = marks, type_info

    def columns(self, messages: Sequence[bytes]) -> pyarrow.RecordBatch | None:
        """Return the row of each message; None: they have to be read one by one."""
        import pyarrow

        if not self.is_possible or not messages or None in messages:
            return None
        lines = list(map(bytes.rstrip, messages, repeat(b"\r\n")))
        block = b"\n".join(lines)
        if b"\r" in block or b"\0" in block or b"" in lines or block.count(b"\n") != len(lines) - 1:
            return None
        if block.startswith(b"\xef\xbb\xbf") or (self._marks.comments and b"#" in block):
            return None
        try:
            if not self._has_plain_quotes(block, lines):
                return None
            strings = self._strings(block)
            if strings.num_rows != len(lines):
                return None
            schema = to_arrow_schema(self._type_info)
            pairs = zip(strings.columns, self._ways, schema.types, strict=True)
            return pyarrow.RecordBatch.from_arrays([_values(*pair) for pair in pairs], schema=schema)
        except (pyarrow.ArrowException, _Unclear):
            return None

    def _has_plain_quotes(self, block: bytes, lines: Sequence[bytes]) -> bool:
        """Return whether quotes are around whole fields alone, and doubled within."""
        import re

        import pyarrow
        from pyarrow import compute

        quote = self._marks.quote
        if quote is None or quote.encode() not in block:
            return True
        mark, end = re.escape(quote), re.escape(self._marks.delimiter)
        field = rf"(?:{mark}(?:[^{mark}]|{mark}{mark})*{mark}|[^{mark}{end}]*)"
        matched = compute.match_substring_regex(pyarrow.array(lines, pyarrow.string()), rf"^{field}(?:{end}{field})*$")
        return bool(compute.all(matched).as_py())

    def _strings(self, block: bytes) -> pyarrow.RecordBatch:
        """Return the fields as strings."""
        import pyarrow
        from pyarrow import csv

        names = [f"f{index}" for index in range(len(self._ways))]
        marks = self._marks
        table = csv.read_csv(
            pyarrow.BufferReader(block),
            csv.ReadOptions(column_names=names, use_threads=False, block_size=len(block) + 1),
            csv.ParseOptions(
                delimiter=marks.delimiter, quote_char=False if marks.quote is None else marks.quote,
                double_quote=marks.quote is not None, ignore_empty_lines=False,
            ),
            csv.ConvertOptions(
                column_types=dict.fromkeys(names, pyarrow.string()), null_values=[marks.null],
                strings_can_be_null=True, quoted_strings_can_be_null=True,
            ),
        )  # fmt: skip
        return table.combine_chunks().to_batches()[0]


class _Unclear(Exception):
    """A value has to be looked at by the rules for single records."""


def _values(strings: pyarrow.Array, way: str, kind: pyarrow.DataType) -> pyarrow.Array:
    """Return the values that strings of the common form stand for.

    Raises:
        _Unclear: one has another form.
        pyarrow.ArrowInvalid: one is not within the range of the type.
    """
    import pyarrow
    from pyarrow import compute

    if way == "string":
        return strings
    matched = compute.match_substring_regex(strings, _FORMS[way])
    if compute.all(matched).as_py() is False:
        raise _Unclear
    if way == "boolean":
        truths = compute.is_in(compute.utf8_lower(strings), pyarrow.array(["true", "1"]))
        return compute.if_else(strings.is_null(), pyarrow.scalar(None, pyarrow.bool_()), truths)
    values = compute.cast(strings, kind)
    if way == "real" and compute.any(compute.is_inf(values)).as_py():
        raise _Unclear
    return values


class CsvWriter:
    """Writes columns as lines.

    Args:
        type_info: of the rows.
        marks: what the characters mean.
    """

    def __init__(self, type_info: RowTypeInfo, marks: CsvMarks) -> None:
        self._ways = list(map(kind_of, type_info.get_field_types()))
        self._type_info, self._marks, self._is_possible = type_info, marks, all(self._ways)

    def lines(self, data: pyarrow.RecordBatch) -> pyarrow.Array | None:
        """Return the line of each row, with its end; None: they have to be written one by one."""
        from pyarrow import compute

        if not self._is_possible or not has_types(data, self._type_info):
            return None
        marks = self._marks
        pairs = zip(data.columns, self._ways, strict=True)
        fields = [compute.fill_null(self._fields(column, way), marks.null) for column, way in pairs]
        return joined_fields(fields, marks)

    def _fields(self, column: pyarrow.Array, way: str) -> pyarrow.Array:
        import pyarrow

        if way == "real":
            return float_strings(column)
        strings = column.cast(pyarrow.string())
        if way == "timestamp":
            strings = java_timestamps(strings)
        return quoted(strings, self._marks) if way in ("string", "date", "timestamp") else strings


def has_types(data: pyarrow.RecordBatch, type_info: RowTypeInfo) -> bool:
    """Return whether columns have the very names and types of a row type."""
    wanted = to_arrow_schema(type_info)
    return bool(data.schema.names == wanted.names and data.schema.types == wanted.types)


def bytes_of(strings: pyarrow.Array) -> list[bytes | None]:
    """Return strings as UTF-8."""
    import pyarrow

    byte_strings: list[bytes | None] = strings.cast(pyarrow.binary()).to_pylist()
    return byte_strings


def java_timestamps(strings: pyarrow.Array) -> pyarrow.Array:
    """Return timestamps of Arrow as `java.sql.Timestamp` writes them: one digit of fraction at least.

    >>> import pyarrow
    >>> java_timestamps(pyarrow.array(["2024-02-29 07:05:03.000000", "2024-02-29 07:05:03.120000"])).to_pylist()
    ['2024-02-29 07:05:03.0', '2024-02-29 07:05:03.12']
    """
    from pyarrow import compute

    return compute.replace_substring_regex(strings, r"(\.[0-9]+?)0+$", r"\1")


def joined_fields(fields: Sequence[pyarrow.Array], marks: CsvMarks, with_end: bool = True) -> pyarrow.Array:
    """Return lines of fields as they are written, with their ends or without."""
    from pyarrow import compute

    line = compute.binary_join_element_wise(*fields, marks.delimiter)
    if len(fields) == 1 and marks.empty:
        line = compute.if_else(compute.equal(line, ""), marks.empty, line)
    return compute.binary_join_element_wise(line, marks.line_end, "") if with_end else line


def quoted(strings: pyarrow.Array, marks: CsvMarks) -> pyarrow.Array:
    """Quote strings as fields, as `CsvMarks.quoted` does; nulls stay.

    >>> import pyarrow
    >>> quoted(pyarrow.array(["tea", "two words", None]), CsvMarks()).to_pylist()
    ['tea', '"two words"', None]
    """
    from pyarrow import compute

    quote, escape = marks.quote, marks.escape
    if quote is None:
        return strings
    needs = compute.greater(_units(strings), LONGEST_PLAIN)
    if not _are_all(needs):  # else there is nothing to look for
        special = compute.match_substring_regex(strings, marks.special.pattern.replace("\0", r"\x00"))
        needs = compute.or_(special, needs)
    if not compute.any(needs).as_py():
        return strings
    inner = strings
    if escape is not None and escape != quote:
        inner = _doubled(inner, escape)
    in_quotes = compute.binary_join_element_wise(quote, _doubled(inner, quote), quote, "")
    return in_quotes if _are_all(needs) else compute.if_else(needs, in_quotes, strings)


def _units(strings: pyarrow.Array) -> pyarrow.Array:
    """Return the lengths of strings in characters of 16 bits."""
    from pyarrow import compute

    if _are_all(compute.string_is_ascii(strings)):
        return compute.binary_length(strings)
    return compute.add(compute.utf8_length(strings), compute.count_substring_regex(strings, _TWO_UNITS))


def _are_all(truths: pyarrow.Array) -> bool:
    """Return whether all values that are there are true."""
    from pyarrow import compute

    return compute.all(truths).as_py() is not False


def _doubled(strings: pyarrow.Array, mark: str) -> pyarrow.Array:
    from pyarrow import compute

    if not compute.any(compute.match_substring(strings, mark)).as_py():
        return strings
    return compute.replace_substring(strings, mark, mark * 2)


__all__ = ["CsvParser", "CsvWriter", "bytes_of", "has_types", "joined_fields", "kind_of", "quoted"]
