"""Hints: comments that begin with a plus, of which OPTIONS behind a table counts, and STATE_TTL behind SELECT.

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
OPTIONS, STATE_TTL = "OPTIONS", "STATE_TTL"
_KINDS = {
    kind: re.compile(rf"\b{kind}\s*\((.*?)\)\s*(?:,|$)", re.DOTALL | re.IGNORECASE) for kind in (OPTIONS, STATE_TTL)
}
_TEXT = r"'((?:[^']|'')*)'"
_PAIR = re.compile(rf"\s*{_TEXT}\s*=\s*{_TEXT}\s*(?:,|$)", re.DOTALL)


def options_in(text: str, start: int, stop: int, kind: str = OPTIONS) -> Iterator[tuple[int, dict[str, str]]]:
    """(where the hint begins, options) of each hint of a kind in a part of a text without other words.

    Raises:
        SqlError: it is written otherwise.
    """
    for hint in _HINT.finditer(text, start, stop):
        found = _KINDS[kind].search(hint[1].strip())
        if found is None:
            continue
        options, at = {}, 0
        while at < len(found[1]):
            pair = _PAIR.match(found[1], at)
            if pair is None:
                place = Place(hint.start(), hint.end())
                raise SqlError(f"{kind} cannot be read", f"write {kind}('key' = 'value', ...)", text, place)
            options[pair[1].replace("''", "'")] = pair[2].replace("''", "'")
            at = pair.end()
        yield hint.start(), options


__all__ = ["HINTED", "STATE_TTL", "options_in"]
