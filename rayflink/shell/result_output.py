"""Results of statements as text, CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO, TypeAlias

from rayflink.common.errors import shorten
from rayflink.common.types import Row, RowKind
from rayflink.table.conversion.row_format import SHORT_KINDS, SqlFormat
from rayflink.table.display.row_slots import RowSlots
from rayflink.table.table_result import TableResult
from rayflink.table.types import DataType

__all__ = ["ResultColumns", "RowStrings", "boxed", "changes_of", "final_rows", "write_rows"]

Values = Sequence[object]
RowStrings: TypeAlias = tuple[str, ...]
"""The values of a row, as they are shown."""


class ResultColumns:
    """The columns of a result, and how their values are shown.

    Args:
        result: of which they are.
        widest: characters of a value, from which on it is cut.
    """

    def __init__(self, result: TableResult, widest: int) -> None:
        schema = result.get_table_schema()
        self.names = schema.get_field_names()
        self.types: list[DataType] = schema.get_field_data_types()
        sql_format = SqlFormat(zone=result.zone)
        self._formats: list[Callable[[object], str]] = [sql_format.of(data_type) for data_type in self.types]
        self._widest = widest

    def strings(self, row: Row) -> RowStrings:
        """Return the values of a row as they are shown."""
        return tuple(text(value) for text, value in zip(self._formats, row, strict=True))

    def cut(self, text: str) -> str:
        """Return a value in the width of a column."""
        return text if len(text) <= self._widest else f"{text[: self._widest - 3]}..."


def boxed(columns: ResultColumns, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table with rules around it.

    Args:
        columns: of the table.
        rows: strings of the values.
    """
    shown = [[columns.cut(text) for text in row] for row in rows]
    widths = [max([len(name), *(len(row[index]) for row in shown)]) for index, name in enumerate(columns.names)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def line(strings: Sequence[str]) -> str:
        return "|" + "|".join(f" {text:>{width}} " for text, width in zip(strings, widths, strict=True)) + "|"

    return [rule, line(columns.names), rule, *map(line, shown), *([rule] if shown else [])]


def final_rows(columns: ResultColumns, rows: Iterable[Row], limit: int) -> RowSlots[Row]:
    """Return the rows that are left when all changes are applied."""
    slots = RowSlots[Row](limit)
    for row in rows:
        slots.change(row.get_row_kind(), columns.strings(row), row)
    return slots


def write_rows(columns: ResultColumns, rows: Iterable[tuple[RowKind | None, Row]], form: str, out: TextIO) -> None:
    """Write rows as they come.

    Args:
        columns: of the rows.
        rows: with what each does; None: it is not written.
        form: "csv": a header, then a line for each row; "json": an object for each row, one a line.
        out: where they are written.
    """
    write = _csv(columns, out) if form == "csv" else _json(columns, out)
    for kind, row in rows:
        write(kind, row)
        out.flush()


def _csv(columns: ResultColumns, out: TextIO) -> Callable[[RowKind | None, Row], None]:
    writer = csv.writer(out, lineterminator="\n")
    is_begun = False

    def write(kind: RowKind | None, row: Row) -> None:
        nonlocal is_begun
        operation = [] if kind is None else [SHORT_KINDS[kind]]
        if not is_begun:
            writer.writerow([*(["op"] if operation else []), *columns.names])
            is_begun = True
        strings = ("" if value is None else text for value, text in zip(row, columns.strings(row), strict=True))
        writer.writerow([*operation, *strings])

    return write


def _json(columns: ResultColumns, out: TextIO) -> Callable[[RowKind | None, Row], None]:
    def write(kind: RowKind | None, row: Row) -> None:
        operation = {} if kind is None else {"op": SHORT_KINDS[kind]}
        strings = columns.strings(row)
        values = {
            name: _json_value(value, text) for name, value, text in zip(columns.names, row, strings, strict=True)
        }
        print(json.dumps({**operation, **values}, ensure_ascii=False), file=out)

    return write


def _json_value(value: object, text: str) -> object:
    """Return a value as JSON has it: numbers, truth and NULL as they are, rows and collections by parts, else text."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Row):
        return {name: _json_value(field, str(field)) for name, field in value.as_dict().items()}
    if isinstance(value, dict):
        return {str(key): _json_value(field, str(field)) for key, field in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(element, str(element)) for element in value]
    return text if len(text) < 1 << 20 else shorten(value)


def changes_of(rows: Iterable[Row], is_shown: bool) -> Iterator[tuple[RowKind | None, Row]]:
    """Yield rows with what each does; None where that is not shown."""
    for row in rows:
        yield (row.get_row_kind() if is_shown else None), row
