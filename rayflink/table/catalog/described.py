"""Properties and a comment, which several objects of catalogs have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Described:
    """An object of a catalog with properties and a comment.

    Args:
        properties: any names and values.
        comment: None: it has none.
    """

    def __init__(self, properties: Mapping[str, str] | None = None, comment: str | None = None) -> None:
        self._properties, self._comment = dict(properties or {}), comment

    def get_properties(self) -> dict[str, str]:
        """Return the properties."""
        return dict(self._properties)

    def get_comment(self) -> str:
        """Return the comment; "": it has none."""
        return self._comment or ""

    def copy(self) -> Self:
        """Return a copy."""
        return type(self)(self._properties, self._comment)

    def get_description(self) -> str | None:
        """Return the comment; None: it has none."""
        return self._comment

    def get_detailed_description(self) -> str | None:
        """Return the comment; None: it has none."""
        return self._comment

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((frozenset(self._properties.items()), self._comment))


__all__ = ["Described"]
