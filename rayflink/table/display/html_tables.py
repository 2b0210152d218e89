"""Rows, columns and notes in HTML: read aloud in order by screen readers, with the colours of the page around."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from rayflink.common.types import Row, RowKind

from ..conversion.row_format import SHORT_KINDS, SqlFormat
from ..plan.logical import Attribute
from ..types import DataType

__all__ = ["html_columns", "html_note", "html_rows"]

MOST_CHARACTERS = 200
"""Characters of a value that are shown."""
_STYLE = (
    "<style scoped>.rayflink-table th, .rayflink-table td {text-align: left; vertical-align: top; padding: 0.2em 0.8em}"
    " .rayflink-table .rayflink-number {text-align: right; font-variant-numeric: tabular-nums}"
    " .rayflink-table .rayflink-type {font-weight: normal; opacity: 0.7}"
    " .rayflink-table .rayflink-null {font-style: italic; opacity: 0.7}</style>"
)


def html_rows(schema: Sequence[Attribute], rows: Iterable[Row], zone: str = "UTC", kinds: bool = False) -> str:
    """Return a table of rows; each column is headed by its name and type.

    Args:
        zone: in which instants are shown.
        kinds: the first column says what each row does.
    """
    formats = [SqlFormat(zone=zone).of(column.type) for column in schema]
    classes = [' class="rayflink-number"' if _is_number(column.type) else "" for column in schema]
    lines = []
    for row in rows:
        cells = [
            '<td class="rayflink-null">NULL</td>' if value is None else f"<td{style}>{_shown(text(value))}</td>"
            for value, text, style in zip(row, formats, classes, strict=True)
        ]
        if kinds:
            cells.insert(0, f"<td>{SHORT_KINDS[row.get_row_kind() or RowKind.INSERT]}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    heads = [
        f'<th scope="col"{style}>{escape(column.name)}<br>'
        f'<span class="rayflink-type">{escape(str(column.type))}</span></th>'
        for column, style in zip(schema, classes, strict=True)
    ]
    if kinds:
        heads.insert(0, '<th scope="col">op</th>')
    return (
        f'{_STYLE}<table class="rayflink-table"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def html_columns(columns: Iterable[Sequence[str]], heads: Sequence[str]) -> str:
    """Return a table of strings, one row for each column of a schema.

    Args:
        columns: the strings of each.
        heads: above them.
    """
    lines = ["<tr>" + "".join(f"<td>{_shown(part)}</td>" for part in parts) + "</tr>" for parts in columns]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    return (
        f'{_STYLE}<table class="rayflink-table"><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )


def html_note(text: str) -> str:
    """Return a line of text."""
    return f"<p>{escape(text)}</p>"


def _is_number(kind: DataType) -> bool:
    return kind.is_numeric


def _shown(text: str) -> str:
    return escape(text if len(text) <= MOST_CHARACTERS else f"{text[: MOST_CHARACTERS - 1]}…")
