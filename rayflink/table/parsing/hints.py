"""Hints: comments that begin with a plus.

OPTIONS behind a table, STATE_TTL, LOOKUP and MULTI_JOIN behind SELECT, count. Those that say how a join of whole tables
could be run are known and change nothing. All others are refused, as in Flink.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ..errors import SqlError, nearest
from ..plan.typed import Place

HINTED = "options"
"""Where a table in a tree has them, among its meta data."""
LOOKUPS = "lookups"
"""Where a hint in a tree has the options of each LOOKUP, among its meta data."""
MULTI_JOINS = "multi_joins"
"""Where it has the names of the tables of each MULTI_JOIN."""
OPTIONS, STATE_TTL, LOOKUP, MULTI_JOIN = "OPTIONS", "STATE_TTL", "LOOKUP", "MULTI_JOIN"
JOIN_HINTS = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP")
"""Hints behind SELECT that change no row."""
_LEAST_NAMES = 2
_COMMENT = re.compile(r"/\*\+(.*?)\*/", re.DOTALL)
_TEXT = r"'((?:[^']|'')*)'"
_ONE = re.compile(rf"\s*(\w+)\s*(?:\(((?:[^()']|{_TEXT})*)\))?\s*(?:,|$)", re.DOTALL)
_NAME = re.compile(r"(?:[\w$]+\s*\.\s*)*([\w$]+)")
_PAIR = re.compile(rf"\s*{_TEXT}\s*=\s*{_TEXT}\s*(?:,|$)", re.DOTALL)
_USAGE = (
    "write SELECT /*+ STATE_TTL('t' = '1 d') */ ..., FROM t /*+ OPTIONS('key' = 'value') */; behind SELECT stand "
    f"LOOKUP('table' = 't', ...) and MULTI_JOIN(t, u, v), too, and these, which change no row: {', '.join(JOIN_HINTS)}"
)


class Hint(NamedTuple):
    """One hint of a comment.

    Args:
        name: in capitals.
        arguments: the text within its parentheses.
        comment: where the whole comment stands.
    """

    name: str
    arguments: str
    comment: Place

    def options(self, text: str) -> dict[str, str]:
        """Return the options that it gives.

        Raises:
            SqlError: it is written otherwise.
        """
        pairs, offset = {}, 0
        while offset < len(self.arguments):
            pair = _PAIR.match(self.arguments, offset)
            if pair is None:
                raise SqlError(
                    f"{self.name} cannot be read", f"write {self.name}('key' = 'value', ...)", text, self.comment
                )
            pairs[pair[1].replace("''", "'")] = pair[2].replace("''", "'")
            offset = pair.end()
        return pairs

    def names(self, text: str) -> list[str]:
        """Return the names of tables that it gives, without their catalogs and databases.

        Raises:
            SqlError: it is written otherwise.
        """
        names = [_NAME.fullmatch(name.strip().replace("`", "")) for name in self.arguments.split(",")]
        known = [name[1] for name in names if name is not None]
        if len(known) < max(len(names), _LEAST_NAMES):
            problem = f"{self.name}({self.arguments}) cannot be read"
            remedy = f"write the names of the tables that are joined, two at least: {self.name}(t, u, v)"
            raise SqlError(problem, remedy, text, self.comment)
        return known

    def misplaced(self, text: str) -> SqlError:
        """Return the error of a hint that is not known where it stands."""
        if self.name == OPTIONS:
            return SqlError(
                "the hint OPTIONS belongs to no table that is read", "write it behind the name of a table that is read",
                text, self.comment,
            )  # fmt: skip
        names = (OPTIONS, STATE_TTL, LOOKUP, MULTI_JOIN, *JOIN_HINTS)
        if self.name in names:
            return SqlError(f"the hint {self.name} is not allowed here", _USAGE, text, self.comment)
        return SqlError(f"there is no hint {self.name}{nearest(self.name, names)}", _USAGE, text, self.comment)


def hints_in(text: str, start: int, stop: int) -> Iterator[Hint]:
    """Yield the hints of a part of a text without other words.

    Raises:
        SqlError: a comment that begins with a plus has something else.
    """
    for comment in _COMMENT.finditer(text, start, stop):
        place, body, offset = Place(comment.start(), comment.end()), comment[1].strip(), 0
        while offset < len(body):
            match = _ONE.match(body, offset)
            if match is None:
                raise SqlError("a hint cannot be read", _USAGE, text, place)
            yield Hint(match[1].upper(), match[2] or "", place)
            offset = match.end()


__all__ = [
    "HINTED", "JOIN_HINTS", "LOOKUP", "LOOKUPS", "MULTI_JOIN", "MULTI_JOINS", "OPTIONS", "STATE_TTL", "Hint",
    "hints_in",
]  # fmt: skip
