"""After-match skip strategies: which other matches are dropped once one has been found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rayflink.common.errors import RayflinkError


class SkipTo(Enum):
    """The place where matching goes on after a match, in the words of SQL's AFTER MATCH clause."""

    NO_SKIP = "NO SKIP"
    NEXT = "SKIP TO NEXT ROW"
    PAST_LAST = "SKIP PAST LAST ROW"
    FIRST = "SKIP TO FIRST"
    LAST = "SKIP TO LAST"


@dataclass(frozen=True)
class AfterMatchSkipStrategy:
    """Decides about matches that overlap one that has been found.

    Args:
        skip_to: where matching goes on.
        pattern_name: of `FIRST` and `LAST`: the pattern whose event is meant; else "".
        fails_on_miss: whether a match without an event of that pattern fails the job.

    >>> AfterMatchSkipStrategy.skip_to_first("b").throw_exception_on_miss()
    AfterMatchSkipStrategy(skip_to=<SkipTo.FIRST: 'SKIP TO FIRST'>, pattern_name='b', fails_on_miss=True)
    """

    skip_to: SkipTo = SkipTo.NO_SKIP
    pattern_name: str = ""
    fails_on_miss: bool = False

    @staticmethod
    def no_skip() -> AfterMatchSkipStrategy:
        """Return the strategy that emits every match; the default."""
        return AfterMatchSkipStrategy()

    @staticmethod
    def skip_to_next() -> AfterMatchSkipStrategy:
        """Return the strategy that drops the partial matches which began with the same event as the match."""
        return AfterMatchSkipStrategy(SkipTo.NEXT)

    @staticmethod
    def skip_past_last_event() -> AfterMatchSkipStrategy:
        """Return the strategy that drops the partial matches which began within the match."""
        return AfterMatchSkipStrategy(SkipTo.PAST_LAST)

    @staticmethod
    def skip_to_first(pattern_name: str) -> AfterMatchSkipStrategy:
        """Return the strategy that drops the partial matches which began before the first event of `pattern_name`."""
        return AfterMatchSkipStrategy(SkipTo.FIRST, pattern_name)

    @staticmethod
    def skip_to_last(pattern_name: str) -> AfterMatchSkipStrategy:
        """Return the strategy that drops the partial matches which began before the last event of `pattern_name`."""
        return AfterMatchSkipStrategy(SkipTo.LAST, pattern_name)

    def throw_exception_on_miss(self) -> AfterMatchSkipStrategy:
        """Return the same strategy, which fails the job at a match that has no event to skip to.

        Without it such a match skips nothing. It also fails at a match whose first event is the one to skip to.
        """
        return replace(self, fails_on_miss=True)

    @property
    def is_skip_strategy(self) -> bool:
        """Return whether any match is ever dropped."""
        return self.skip_to is not SkipTo.NO_SKIP


class SkipFailed(RayflinkError):
    """A match has no event that its skip strategy could skip to.

    Args:
        problem: which event is missing.
        match: the match, shortened.
    """

    def __init__(self, problem: str, match: str) -> None:
        super().__init__(problem, match)
        self.problem, self.match = problem, match

    def __str__(self) -> str:
        return f"{self.problem} in the match {self.match}; leave out throw_exception_on_miss() to skip nothing there"


__all__ = ["AfterMatchSkipStrategy", "SkipFailed", "SkipTo"]
