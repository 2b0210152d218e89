"""Quantifiers of a pattern: how often it occurs, and which events may lie between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from rayflink.common.user_code.call_sites import call_site

from .errors import MalformedPatternException


class ConsumingStrategy(Enum):
    """The rule for events between an event and the one before it, with Flink's names.

    STRICT: none. SKIP_TILL_NEXT: those that do not match. SKIP_TILL_ANY: any, also those that match. NOT_NEXT and
    NOT_FOLLOW: the pattern must not occur at all, directly behind the one before or before the one behind.
    """

    STRICT = "strict"
    SKIP_TILL_NEXT = "skip till next"
    SKIP_TILL_ANY = "skip till any"
    NOT_NEXT = "not next"
    NOT_FOLLOW = "not follow"

    @property
    def is_negative(self) -> bool:
        """Return whether the pattern must not occur."""
        return self in (ConsumingStrategy.NOT_NEXT, ConsumingStrategy.NOT_FOLLOW)


class Repetition(Enum):
    """The repetition of a pattern: none, between two numbers of times, or without an upper bound."""

    SINGLE = "one"
    TIMES = "times"
    LOOPING = "one or more"


class WithinType(Enum):
    """Between which events the time of `within` is measured, with Flink's names."""

    FIRST_AND_LAST = "from the first event of the match to its last"
    PREVIOUS_AND_CURRENT = "from one event of the match to the next"


@dataclass(frozen=True)
class Times:
    """A number of occurrences, and the time that may pass between two of them.

    Args:
        least: occurrences at least, from 1.
        most: occurrences at most; a looping pattern has the same number here as in `least`.
        window_ms: milliseconds between two occurrences; None for any.
    """

    least: int
    most: int
    window_ms: int | None = None


@dataclass(frozen=True)
class Quantifier:
    """The quantifier of a pattern: by default one, STRICT.

    Args:
        strategy: which events may lie before the first occurrence.
        repetition: how the pattern repeats.
        inner_strategy: which events may lie between two occurrences.
        is_optional: whether it may be absent.
        is_greedy: whether it takes as many occurrences as possible.

    >>> Quantifier().strategy, Quantifier().repetition
    (<ConsumingStrategy.STRICT: 'strict'>, <Repetition.SINGLE: 'one'>)
    """

    strategy: ConsumingStrategy = ConsumingStrategy.STRICT
    repetition: Repetition = Repetition.SINGLE
    inner_strategy: ConsumingStrategy = ConsumingStrategy.SKIP_TILL_NEXT
    is_optional: bool = False
    is_greedy: bool = False

    def repeat(self, repetition: Repetition) -> Quantifier:
        """Return the quantifier with a repetition.

        Raises:
            MalformedPatternException: it has one, or the pattern must not occur.
        """
        if self.strategy.is_negative:
            _refuse("a pattern that must not occur cannot repeat", "leave out the quantifier")
        if self.repetition is not Repetition.SINGLE:
            _refuse(
                f"this pattern has the quantifier {self.repetition.value!r} already",
                "give each pattern one of one_or_more, times and times_or_more",
            )
        return replace(self, repetition=repetition)

    def optional(self) -> Quantifier:
        """Return the quantifier of a pattern that may be absent.

        Raises:
            MalformedPatternException: it is optional, or the pattern must not occur.
        """
        if self.strategy.is_negative:
            _refuse("a pattern that must not occur cannot be optional", "leave out optional()")
        if self.is_optional:
            _refuse("optional() was applied twice", "leave out one of them")
        return replace(self, is_optional=True)

    def greedy(self) -> Quantifier:
        """Return the quantifier of a pattern that takes as many occurrences as possible.

        Raises:
            MalformedPatternException: it does not repeat, or allows combinations.
        """
        if self.strategy.is_negative:
            _refuse("a pattern that must not occur cannot be greedy", "leave out greedy()")
        if self.inner_strategy is ConsumingStrategy.SKIP_TILL_ANY:
            _refuse("greedy() cannot be applied behind allow_combinations()", "leave out one of them")
        if self.repetition is Repetition.SINGLE:
            _refuse("greedy() needs a pattern that repeats", "call one_or_more(), times() or times_or_more() first")
        return replace(self, is_greedy=True)

    def combinations(self) -> Quantifier:
        """Return the quantifier under which any events may lie between two occurrences.

        Raises:
            MalformedPatternException: the pattern does not repeat, or its occurrences are consecutive.
        """
        return self._with_inner(ConsumingStrategy.SKIP_TILL_ANY, "allow_combinations()")

    def consecutive(self) -> Quantifier:
        """Return the quantifier under which no event may lie between two occurrences.

        Raises:
            MalformedPatternException: the pattern does not repeat, or allows combinations.
        """
        return self._with_inner(ConsumingStrategy.STRICT, "consecutive()")

    def _with_inner(self, strategy: ConsumingStrategy, call: str) -> Quantifier:
        if self.repetition is Repetition.SINGLE:
            _refuse(f"{call} needs a pattern that repeats", "call one_or_more(), times() or times_or_more() first")
        if self.inner_strategy is strategy:
            _refuse(f"{call} was applied twice", "leave out one of them")
        if self.inner_strategy is not ConsumingStrategy.SKIP_TILL_NEXT:
            _refuse("a pattern cannot be both consecutive and allow combinations", "leave out one of the two calls")
        if strategy is ConsumingStrategy.SKIP_TILL_ANY and self.is_greedy:
            _refuse("allow_combinations() cannot be applied to a greedy pattern", "leave out one of the two calls")
        return replace(self, inner_strategy=strategy)


def _refuse(problem: str, remedy: str) -> None:
    raise MalformedPatternException(problem, remedy, call_site())


__all__ = ["ConsumingStrategy", "Quantifier", "Repetition", "Times", "WithinType"]
