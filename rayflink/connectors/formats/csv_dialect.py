"""The forms of CSV text: what separates, quotes and comments, and how blocks of it become columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .misfits import first_failing, may_be_large, refuse_large

if TYPE_CHECKING:
    import pyarrow

NO_VALUE_TEXTS = ("", "NA", "N/A", "NULL", "null", "NaN", "nan")


@dataclass(frozen=True)
class CsvDialect:
    """The meaning of the characters in a CSV file.

    Args:
        delimiter: one character between values.
        null_values: strings that stand for no value.
        strings_can_be_null: such a text stands for no value in columns of text, too.
        newlines_in_values: quoted values may hold line ends.
        quote: one character around values, twice within one for itself; None: none.
        escape: one character that takes the meaning off the next; None: none.
        comments: lines that begin with `#` are left out.
        lists: columns of lists -> what separates their elements.
    """

    delimiter: str = ","
    null_values: tuple[str, ...] = NO_VALUE_TEXTS
    newlines_in_values: bool = False
    quote: str | None = '"'
    escape: str | None = None
    comments: bool = False
    lists: Mapping[str, str] = field(default_factory=dict)
    strings_can_be_null: bool = True

    def fields_of(self, line: bytes) -> list[str]:
        """Return the values of one line."""
        text = line.decode("utf-8-sig").rstrip("\r\n")
        return next(self.reader([text]), [])

    def whole_records(self, block: bytes | bytearray) -> int:
        """Return the number of bytes of the whole records at the beginning of `block`; one whose quote stays open is
        none.
        """
        if self.quote is None or self.quote.encode() not in block:
            return len(block)
        if self.escape is None and self._closes_its_quotes(block):
            return len(block)
        if self.escape is not None:
            block = re.sub(rb"(?s)" + re.escape(self.escape.encode()) + rb".", b"__", block)
        whole = behind = 0
        quote, delimiter = re.escape(self.quote.encode()), re.escape(self.delimiter.encode())
        values = rb"(?<![^%b\r\n])%b(?:[^%b]*(?:%b%b[^%b]*)*%b(?!%b))?" % ((delimiter,) + (quote,) * 7)
        for value in re.finditer(values, block):
            whole = block.rfind(b"\n", behind, value.start()) + 1 or whole
            behind = value.end()
            if behind - value.start() == 1:  # a quote alone: nothing closes it
                return whole
        return len(block)

    def _closes_its_quotes(self, block: bytes | bytearray) -> bool:
        """Return whether quotes come in pairs, each first of which begins a value or doubles the one before it.

        Then no value is open at the end. False is inconclusive: a quote within a value without quotes is no error.
        """
        import numpy

        assert self.quote is not None
        if len(self.quote.encode()) != 1 or len(self.delimiter.encode()) != 1:
            return False
        text = numpy.frombuffer(block, numpy.uint8)
        quotes = numpy.flatnonzero(text == ord(self.quote))
        if len(quotes) % 2:
            return False
        opening, closing = quotes[::2], quotes[1::2]
        before = text[opening - 1]  # of one at the very beginning the last character, which is not looked at
        begins = (before == ord(self.delimiter)) | (before == ord("\n")) | (before == ord("\r")) | (opening == 0)
        begins[1:] |= opening[1:] == closing[:-1] + 1
        return bool(begins.all())

    def without_comments(self, block: bytes | bytearray) -> bytes | bytearray:
        """Return the block with its comments as empty lines, so that lines keep their numbers."""
        if not self.comments or b"#" not in block:
            return block
        return re.sub(rb"(?m)^#[^\n]*", b"", block)

    def columns_of(
        self,
        block: bytes | bytearray,
        names: Sequence[str],
        types: Mapping[str, Any],
        wanted: Sequence[str] | None = None,
    ) -> pyarrow.RecordBatch:
        """Convert whole records to columns.

        Args:
            names: of the values of a record, in order.
            types: name -> Arrow type; others are those that the values show.
            wanted: the columns to read, in this order; the values of others are passed over. None: all.

        Raises:
            pyarrow.ArrowInvalid: a record has more or fewer values, or one that is not of its type.
        """
        import pyarrow
        from pyarrow import csv as arrow_csv

        block = self.without_comments(block)
        if not block or block.isspace():
            fields = [(name, types.get(name, pyarrow.string())) for name in wanted or names]
            return pyarrow.RecordBatch.from_pylist([], schema=pyarrow.schema(fields))
        flat = {name: pyarrow.string() if name in self.lists else kind for name, kind in types.items()}
        parse = arrow_csv.ParseOptions(
            delimiter=self.delimiter,
            quote_char=self.quote or False,
            escape_char=self.escape or False,
            newlines_in_values=self.newlines_in_values,
        )
        nulls = list(self.null_values)
        table = arrow_csv.read_csv(
            pyarrow.BufferReader(block),
            arrow_csv.ReadOptions(use_threads=False, column_names=list(names), block_size=max(len(block), 1)),
            parse,
            arrow_csv.ConvertOptions(
                column_types=flat,
                null_values=nulls,
                strings_can_be_null=self.strings_can_be_null,
                include_columns=wanted,
            ),
        )
        data = table.combine_chunks().to_batches()[0]
        self._refuse_large_decimals(block, names, data)
        return self._with_lists(data, types) if self.lists else data

    def _refuse_large_decimals(self, block: bytes | bytearray, names: Sequence[str], data: pyarrow.RecordBatch) -> None:
        """Check that decimals written with exponents fit their columns, which Arrow does not.

        Raises:
            pyarrow.ArrowInvalid: one does not; names its record.
        """
        import pyarrow

        decimals = {
            schema_field.name: pyarrow.float64()
            for schema_field in data.schema
            if pyarrow.types.is_decimal(schema_field.type)
        }
        if decimals and may_be_large(block):
            sizes = replace(self, lists={}).columns_of(block, names, decimals, list(decimals))
            refuse_large(data.schema, sizes)

    def _with_lists(self, data: pyarrow.RecordBatch, types: Mapping[str, Any]) -> pyarrow.RecordBatch:
        from pyarrow import compute

        for name, separator in self.lists.items():
            index = data.schema.get_field_index(name)
            if index >= 0:
                strings = data.column(index)
                split = compute.split_pattern(strings, separator) if separator else _single_lists(strings)
                data = data.set_column(index, name, _cast(split, types[name], name) if name in types else split)
        return data

    def line_in(self, block: bytes | bytearray, record: int) -> int:
        """Return the number, from 1, of the line within `block` in which a record begins; records count from 1."""
        reader = self.reader(io.StringIO(self.without_comments(block).decode("utf-8", "replace"), newline=""))
        while True:
            line = int(reader.line_num) + 1
            values = next(reader, None)
            if values is None:
                return max(line - 1, 1)
            record -= bool(values)
            if not record:
                return line

    def reader(self, lines: Iterable[str]) -> Any:
        """Yield the values of each record of some lines, as strings."""
        if self.quote is None:
            return csv.reader(lines, delimiter=self.delimiter, quoting=csv.QUOTE_NONE, escapechar=self.escape)
        return csv.reader(lines, delimiter=self.delimiter, quotechar=self.quote, escapechar=self.escape)


def _cast(lists: pyarrow.Array, kind: pyarrow.DataType, name: str) -> pyarrow.Array:
    """Convert lists of strings to those of a type.

    Raises:
        pyarrow.ArrowInvalid: an element is not of it; names its record.
    """
    import pyarrow

    try:
        return lists.cast(kind)
    except pyarrow.ArrowInvalid as error:

        def attempt(first: int, behind: int) -> None:
            lists.take(pyarrow.array(range(first, behind))).cast(kind)  # a slice would be cast with all around it

        row_index = first_failing(len(lists), attempt)
        raise pyarrow.ArrowInvalid(f"Row #{row_index + 1}: in column {name!r}: {error}") from error


def _single_lists(strings: pyarrow.Array) -> pyarrow.Array:
    import pyarrow

    return pyarrow.array(
        [None if text is None else [text] for text in strings.to_pylist()], pyarrow.list_(strings.type)
    )
