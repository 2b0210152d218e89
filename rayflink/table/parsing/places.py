"""The places of the parts of a statement in its text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import Token

from ..plan.typed import Place
from .statements import Tree


def place_of(tree: Tree) -> Place | None:
    """Return the place of a tree in the text; None where nothing in it has one."""
    return place_of_all([tree])


def place_of_all(trees: Iterable[Tree]) -> Place | None:
    """Return the stretch of text from the first of several trees to the last; None where nothing in them says so."""
    starts, stops = [], []
    left = list(trees)
    while left:
        node = left.pop()
        left.extend(node.iter_expressions())
        meta = node._meta
        if meta and "start" in meta:
            starts.append(meta["start"])
            stops.append(meta["end"] + 1)
    return Place(min(starts), max(stops)) if starts else None


def place_of_words(words: str, tokens: Sequence[Token], after: int, before: int | None = None) -> Place | None:
    """Return the place of the words of a clause, outside of quotes.

    Args:
        after: the first character from which on they are looked for.
        before: the words that end last before this character are wanted; None: the first ones.
    """
    expected, place_found = words.split(), None
    single = list(_single_words(tokens))
    for index, (_, start, _) in enumerate(single):
        if start < after or [word for word, _, _ in single[index : index + len(expected)]] != expected:
            continue
        place = Place(start, single[index + len(expected) - 1][2])
        if before is None:
            return place
        if place.stop <= before:
            place_found = place
    return place_found


def _single_words(tokens: Sequence[Token]) -> Iterator[tuple[str, int, int]]:
    """(word in capitals, start, stop) of all tokens, of which one may be two words, as GROUP BY is."""
    for token in tokens:
        words = token.text.upper().split()
        quoted = token.end + 1 - token.start != len(token.text)
        if quoted:
            continue
        start = token.start
        for word in words:
            start = token.start + token.text.upper().index(word, start - token.start)
            yield word, start, start + len(word)
            start += len(word)


__all__ = ["place_of", "place_of_all", "place_of_words"]
