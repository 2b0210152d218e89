"""Streams as words, such as "a c b1 b2", and the matches in them as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rayflink.cep.pattern import Pattern
from tests.cep.described_patterns import Finder


def is_(letters: str) -> Callable[[str], bool]:
    """Return the condition that a word begins with one of some letters."""
    return lambda word: word[0] in letters


def begin(name: str, letters: str | None = None, **options) -> Pattern:
    return Pattern.begin(name, **options).where(is_(letters or name))


def find(pattern: Pattern | None, words: str, times: Sequence[int] = (), rest: int = 0) -> list[str]:
    """Return the matches in the order in which they are found.

    Args:
        pattern: what to find.
        words: the events, parted by blanks.
        times: their timestamps; their places where there are none.
        rest: milliseconds that pass behind the last event.
    """
    return [match for when, match in find_all(pattern, words, times, rest) if not when.startswith("over")]


def find_all(
    pattern: Pattern | None, words: str, times: Sequence[int] = (), rest: int = 0
) -> list[tuple[str, str]]:
    """Return what is found, with when: the place of the event, "at 9" or, of partial matches, "over 9"."""
    finder = Finder(pattern, lambda when, match: (when, " ".join(word for words in match.values() for word in words)))
    events = words.split()
    return finder.find(events, times or range(len(events)), rest)


__all__ = ["begin", "find", "find_all", "is_"]
