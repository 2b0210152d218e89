"""Hints: comments that begin with a plus, of which OPTIONS behind a table counts.

Others say how a query could be run, and change no row; they are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import SqlError
from ..typed import Place

HINTED = "options"
"""Where a table in a tree has them, among its meta data."""
_HINT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
_OPTIONS = re.compile(r"\bOPTIONS\s*\((.*?)\)\s*(?:,|$)", re.DOTALL | re.IGNORECASE)
_TEXT = r"'((?:[^']|'')*)'"
_PAIR = re.compile(rf"\s*{_TEXT}\s*=\s*{_TEXT}\s*(?:,|$)", re.DOTALL)


def options_in(text: str, start: int, stop: int) -> Iterator[tuple[int, dict[str, str]]]:
    """(where the hint begins, options) of each hint with OPTIONS in a part of a text without other words.

    Raises:
        SqlError: it is written otherwise.
    """
    for hint in _HINT.finditer(text, start, stop):
        found = _OPTIONS.search(hint[1].strip())
        if found is None:
            continue
        options, at = {}, 0
        while at < len(found[1]):
            pair = _PAIR.match(found[1], at)
            if pair is None:
                place = Place(hint.start(), hint.end())
                raise SqlError("OPTIONS cannot be read", "write OPTIONS('key' = 'value', ...)", text, place)
            options[pair[1].replace("''", "'")] = pair[2].replace("''", "'")
            at = pair.end()
        yield hint.start(), options


__all__ = ["HINTED", "options_in"]
