"""The meaning of the characters of a line of CSV: how fields are separated, and when one is written in quotes.

Quotes are as those of Jackson's CSV writer, which Flink uses: not only around what needs them. Source: its CsvEncoder.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

LONGEST_PLAIN = 24
"""Jackson puts longer strings in quotes without looking at them."""


@dataclass(frozen=True)
class CsvMarks:
    """The characters of a line of CSV that have a meaning.

    Args:
        delimiter: one character between fields.
        quote: one character around fields, twice within one for itself; None: none.
        escape: one character that takes the meaning off the next; None: none.
        elements: text between the elements of a list.
        null: text of None.
        line_end: text after a line that is written.
        comments: lines that begin with `#` are no records.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    elements: str = ";"
    null: str = ""
    line_end: str = "\n"
    comments: bool = False

    def fields_of(self, line: str) -> list[str]:
        """Return the strings of one line."""
        if self.quote is None:
            reader = csv.reader([line], delimiter=self.delimiter, quoting=csv.QUOTE_NONE, escapechar=self.escape)
        else:
            reader = csv.reader(
                [line], delimiter=self.delimiter, quotechar=self.quote, escapechar=self.escape, strict=True
            )
        return next(reader, [])

    def line_of(self, fields: Iterable[str]) -> str:
        """Return one line of fields as they are written, with its end."""
        line = self.delimiter.join(fields)
        return (line or self.empty) + self.line_end

    @property
    def empty(self) -> str:
        """Return the written form of one empty field: in quotes, as readers leave out lines without a character."""
        return "" if self.quote is None else self.quote * 2

    @cached_property
    def special(self) -> re.Pattern[str]:
        """Return the pattern of characters that need quotes: up to delimiter, quote and line end, possible escapes."""
        last = max(f"{self.delimiter}{self.quote or ''}{self.line_end}")
        escape = "\\" if self.escape is None else self.escape
        return re.compile(f"[\0-{re.escape(last)}{re.escape(escape)}]")

    def quoted(self, text: str) -> str:
        """Return a string as a field: in quotes when it is long, or has a character that could mean something.

        >>> print(*map(CsvMarks().quoted, ["tea", "a,b", "6\\" wide", "two words"]))
        tea "a,b" "6"" wide" "two words"
        >>> print(CsvMarks(escape="|").quoted("a|b"))
        "a||b"
        """
        quote, escape = self.quote, self.escape
        if quote is None or not (_is_long(text) or self.special.search(text)):
            return text
        if escape is not None and escape != quote:
            text = text.replace(escape, escape * 2)
        return quote + text.replace(quote, quote * 2) + quote


def _is_long(text: str) -> bool:
    """Return whether it has more characters of 16 bits than Jackson looks at."""
    return len(text) > LONGEST_PLAIN // 2 and len(text.encode("utf-16-le", "surrogatepass")) > 2 * LONGEST_PLAIN


__all__ = ["LONGEST_PLAIN", "CsvMarks"]
