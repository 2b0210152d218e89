"""A table of text for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_TURNS, _HALVES = (*range(0x202A, 0x202F), *range(0x2066, 0x206A)), range(0xD800, 0xE000)
_CONTROLS |= {code: f"\\u{code:04x}" for code in (*_TURNS, *_HALVES)}
"""Characters that would move the cursor, tell a terminal to do other things, turn the text round, or are none."""


def printable(text: object) -> str:
    """Return a text, such as a name that a program has chosen, in one line that does nothing to a terminal.

    >>> print(printable("counts\\x1b[2J"))
    counts\\x1b[2J
    """
    return str(text).translate(_CONTROLS)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return columns under their names; numbers stand to the right, with separators of thousands.

    >>> print(table(("word", "count"), [("to", 4000), ("be", 2)]))
    word  count
    ----  -----
    to    4,000
    be        2
    """
    cell_rows = [list(row) for row in rows]
    numeric = [
        bool(cell_rows) and all(_is_number(row[index]) for row in cell_rows if row[index] is not None)
        for index in range(len(header))
    ]
    lines = [list(header), *([_cell(value) for value in row] for row in cell_rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if _is_number(value) else printable(value)


__all__ = ["printable", "table"]
