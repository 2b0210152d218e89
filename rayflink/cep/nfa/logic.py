"""Conditions of edges: combinations of bits of an event's mask and of tests on the partial match.

An edge's condition is evaluated in three-valued logic from the mask alone, which decides most edges; where a test on
the partial match decides, the answer is None, and the condition is evaluated again with that test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from rayflink.common.errors import assert_never


@dataclass(frozen=True)
class Bit:
    """A condition on the event alone: a bit of its mask.

    Args:
        index: of the unit in the automaton.
    """

    index: int


@dataclass(frozen=True)
class MatchTest:
    """A condition on the event and the partial match.

    Args:
        index: of the test in the automaton.
    """

    index: int


@dataclass(frozen=True)
class Both:
    """Two conditions that must both hold."""

    first: Logic
    second: Logic


@dataclass(frozen=True)
class Either:
    """Two conditions of which one must hold."""

    first: Logic
    second: Logic


@dataclass(frozen=True)
class Inverse:
    """A condition that must not hold."""

    logic: Logic


@dataclass(frozen=True)
class Truth:
    """The condition that always holds."""


Logic: TypeAlias = Bit | MatchTest | Both | Either | Inverse | Truth
TRUTH = Truth()


def decide(logic: Logic, mask: int) -> bool | None:
    """Return whether a condition holds for an event with that mask; None where a test on the partial match decides.

    >>> decide(Both(Bit(0), MatchTest(0)), 0b0), decide(Both(Bit(0), MatchTest(0)), 0b1)
    (False, None)
    """
    match logic:
        case Bit():
            return bool(mask >> logic.index & 1)
        case MatchTest():
            return None
        case Truth():
            return True
        case Inverse():
            answer = decide(logic.logic, mask)
            return None if answer is None else not answer
        case Both():
            first, second = decide(logic.first, mask), decide(logic.second, mask)
            if first is False or second is False:
                return False
            return None if first is None or second is None else True
        case Either():
            first, second = decide(logic.first, mask), decide(logic.second, mask)
            if first is True or second is True:
                return True
            return None if first is None or second is None else False
        case _:
            assert_never(logic)


def evaluate(logic: Logic, bit: Callable[[int], bool], test: Callable[[int], bool]) -> bool:
    """Return whether a condition holds; conditions that do not matter any more are not asked, from left to right.

    Args:
        bit: evaluates the unit of an index for the event.
        test: evaluates the test of an index for the event and the partial match.
    """
    match logic:
        case Bit():
            return bit(logic.index)
        case MatchTest():
            return test(logic.index)
        case Truth():
            return True
        case Inverse():
            return not evaluate(logic.logic, bit, test)
        case Both():
            return evaluate(logic.first, bit, test) and evaluate(logic.second, bit, test)
        case Either():
            return evaluate(logic.first, bit, test) or evaluate(logic.second, bit, test)
        case _:
            assert_never(logic)


__all__ = ["TRUTH", "Bit", "Both", "Either", "Inverse", "Logic", "MatchTest", "Truth", "decide", "evaluate"]
