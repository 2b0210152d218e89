"""Errors of queries: the problem, the place underlined in the text, and the remedy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from rayflink.common.configuration import shown_value
from rayflink.common.errors import InvalidTypesError, RayflinkError

from .plan.typed import Place

__all__ = ["ElementTypeError", "ElementValueError", "SqlError", "nearest"]

_MOST_SHOWN = 100
"""Characters of a line around what is underlined."""
_OPTION = re.compile(r"('((?:[^']|'')*)'\s*=\s*')((?:[^']|'')*)")
"""An option as statements write it: its key, and its value, which may lack its end."""


class SqlError(RayflinkError):
    """A statement cannot be run.

    Args:
        problem: what was found, and what was wanted.
        remedy: what to write instead.
        text: the statement.
        place: which part of it.
        call_site: which line of the program, where it is no text but calls.
        views: the view whose query the text is, then the view that reads that one, and so on.
    """

    def __init__(
        self, problem: str, remedy: str, text: str = "", place: Place | None = None, call_site: str = "",
        views: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        if not text and place is not None and place.query is not None:
            text, views = place.query.text, (place.query.view,) if place.query.view else ()
        super().__init__(problem, remedy, text, place, call_site, views)
        self.problem, self.remedy, self.text, self.place, self.call_site = problem, remedy, text, place, call_site
        self.views = views

    @property
    def line(self) -> int:
        """Return the line of the place, from 1; 0 without a place."""
        return 0 if self.place is None else self.text.count("\n", 0, self.place.start) + 1

    @property
    def column(self) -> int:
        """Return the column of the place, from 1; 0 without a place."""
        return 0 if self.place is None else self.place.start - self.text.rfind("\n", 0, self.place.start)

    def at(self, text: str, place: Place | None = None) -> SqlError:
        """Return the same, in a text."""
        return SqlError(self.problem, self.remedy, text, self.place or place, "", self.views)

    def in_view(self, name: str) -> SqlError:
        """Return the same, in the query of a view."""
        return SqlError(self.problem, self.remedy, self.text, self.place, self.call_site, (*self.views, name))

    def moved(self, text: str, offset: int) -> SqlError:
        """Return the same in a text of which its own is a part, from `offset` on."""
        place = None if self.place is None else Place(self.place.start + offset, self.place.stop + offset)
        return SqlError(self.problem, self.remedy, text, place, self.call_site)

    def of_program(self, call_site: str) -> SqlError:
        """Return the same, with the line of the program that is wrong."""
        return SqlError(self.problem, self.remedy, self.text, self.place, self.call_site or call_site, self.views)

    def __str__(self) -> str:
        where = ""
        if self.views:
            users = f" (used by view {' and by view '.join(map(repr, self.views[1:]))})" if self.views[1:] else ""
            where = f"view {self.views[0]!r}{users}"
        what = f"{self.problem}; {self.remedy}"
        if self.place is None or not self.text:
            shown = f"{where}: {what}" if where else what
            return f"{shown}\n  at {self.call_site}" if self.call_site else shown
        line = f"line {self.line}, column {self.column}"
        return f"{where}, {line}: {what}\n{self.underlined()}" if where else f"{line}: {what}\n{self.underlined()}"

    def underlined(self) -> str:
        """Return the line of the text with the place, and marks below it; values of secret options are masked."""
        assert self.place is not None
        text = _OPTION.sub(_masked, self.text)
        start = text.rfind("\n", 0, self.place.start) + 1
        stop = text.find("\n", start)
        line = text[start : len(text) if stop < 0 else stop]
        offset = self.place.start - start
        width = max(1, min(self.place.stop - self.place.start, len(line) - offset))
        cut = max(0, offset - _MOST_SHOWN // 2)
        shown = line[cut : max(offset + width, cut + _MOST_SHOWN)]
        return f"  {shown}\n  {' ' * (offset - cut)}{'^' * width}"


class ElementTypeError(InvalidTypesError, TypeError):
    """An element of `from_elements` has a value of another type than its field."""


class ElementValueError(InvalidTypesError, ValueError):
    """An element of `from_elements` has a value that its field cannot have: None, too large, or too long."""


def _masked(option: re.Match[str]) -> str:
    """Return an option with asterisks in the place of a secret value, so that nothing moves."""
    before, key, value = option[1], option[2], option[3]
    return option[0] if shown_value(key, value) == value else before + re.sub(r"[^\n]", "*", value)


def nearest(name: str, known: Iterable[str]) -> str:
    """ " (did you mean ...?)" with the known name most like this one; "" where none is."""
    folded = {name_.lower(): name_ for name_ in known}
    matches = difflib.get_close_matches(name.lower(), folded, n=1, cutoff=0.6)
    return f" (did you mean {folded[matches[0]]}?)" if matches else ""
