"""Refuses each part of a parsed query that has no meaning here, so that none is passed over."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NoReturn

from sqlglot import Token, exp

from ..errors import SqlError
from ..plan.typed import Place
from .foreign_clauses import CLASSES, foreign_part
from .grammar import BOUND, GRAMMAR, NESTED, NOTHING, OFFSET, PLAIN, is_table
from .places import place_of, place_of_all, place_of_words
from .statements import Tree


def inner_role(role: str, tree: Tree) -> str:
    """Return the role of a node that stands in a part of another one.

    Args:
        role: of the part.
    """
    if role != NESTED:
        return role
    return "table" if is_table(tree) else "query"


class KnownParts:
    """Walks trees of one text.

    Args:
        text: of the statement.
        tokens: of the text.
    """

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self._text, self._tokens = text, tokens

    def check(self, tree: Tree, role: str) -> None:
        """Every part of the tree is one that is known in its role.

        Raises:
            SqlError: one is not; says where it stands.
        """
        left: list[tuple[Tree, str, Tree]] = [(tree, role, tree)]
        while left:
            node, role, above = left.pop()
            roles = GRAMMAR[role].get(type(node))
            if roles is None:
                self._refuse_node(node, above)
            for name, value in node.args.items():
                if value is None or (type(value) is list and not value):
                    continue
                inner = roles.get(name)
                if inner is None or (inner is NOTHING and value):
                    self._refuse_part(node, name, value)
                if inner is PLAIN and type(value) in (str, bool):
                    continue
                for item in value if type(value) is list else (value,):
                    if isinstance(item, exp.Expr):
                        if inner == PLAIN:
                            self._refuse_node(item, node)
                        left.append((item, inner_role(inner, item), node))
                    elif inner not in (PLAIN, NOTHING, BOUND, OFFSET):
                        self._refuse_part(node, name, value)

    def _refuse_part(self, node: Tree, name: str, value: Any) -> NoReturn:
        """Refuse a part of a node.

        Raises:
            SqlError: always.
        """
        ways, remedy = foreign_part(type(node), name)
        trees = [item for item in (value if type(value) is list else (value,)) if isinstance(item, exp.Expr)]
        words, place = self._written(ways, place_of_all(trees), place_of(node))
        raise SqlError(f"{words} is not supported", remedy, self._text, place)

    def _refuse_node(self, node: Tree, above: Tree) -> NoReturn:
        """Refuse what stands where it has no meaning.

        Raises:
            SqlError: always.
        """
        place = place_of(node) or place_of(above)
        clause = CLASSES.get(type(node))
        if clause is not None:
            words, place = self._written(clause.words, place, None)
            raise SqlError(f"{words} is not supported here", clause.remedy, self._text, place)
        what = type(node).__name__ if place is None else shorten(self._text[place.start : place.stop], 60)
        raise SqlError(f"{what} is not supported here", "see docs/sql.md for what is", self._text, place)

    def _written(self, ways: str, content: Place | None, whole: Place | None) -> tuple[str, Place | None]:
        """Return the words of a clause, and the stretch from them to the end of what stands in it.

        Args:
            ways: in which it may be written.
            content: what stands in it.
            whole: the node of which it is a part.
        """
        before = None if content is None else content.stop
        for after in dict.fromkeys((0 if content is not None or whole is None else whole.start, 0)):
            places = [(place, words) for words in ways.split("|")
                     if (place := place_of_words(words, self._tokens, after, before)) is not None]  # fmt: skip
            if places and content is not None:
                place, words = max(places, key=lambda candidate: candidate[0].start)
                return words, Place(min(place.start, content.start), content.stop)
            if places:
                place, words = min(places, key=lambda candidate: candidate[0].start)
                return words, place
        return ways.split("|")[0], content or whole


__all__ = ["KnownParts", "inner_role"]
