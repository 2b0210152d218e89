"""Several automata over the events of one stream: what each has of a key, and their conditions, which they share."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from rayflink.common.errors import RayflinkError
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.operators.base import UserCodeError
from rayflink.user_types import UserRecord

from ..conditions import AllOf, AnyOf, Condition, ConditionContext, Negation, Test
from ..nfa.automaton import Automaton, Unit
from ..nfa.masks import EventConditions, as_bool, combine
from ..nfa.matcher import EndingMatcher, Matcher
from ..nfa.partial_matches import KeyMatches
from ..pattern_meaning import PatternMeaning, named_meaning

RunName: TypeAlias = tuple[str, Any]
"""(id of a pattern, its version); names sort in the order in which patterns are matched."""


class MatchesByPattern(dict[RunName, KeyMatches]):
    """The partial matches of a key by the names of their automata; an automaton without any is not in it."""

    __slots__ = ()

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has to be stored."""
        return not self


class RunHost(Protocol):
    """The operator whose events are matched."""

    def condition_failure(self, test: Test, event: UserRecord, owner: str = "") -> UserCodeError:
        """Return the error to raise from the exception of a condition, of this rule."""
        ...

    def now_ms(self) -> int:
        """Return the epoch milliseconds of the wall clock."""
        ...


class PatternRun:
    """An automaton that events are matched with, and the evaluator of its conditions.

    Args:
        name: of the pattern and its version.
        automaton: the compiled pattern.
        host: the operator.
        begins: whether matches may begin; else partial matches go on until there are none.
    """

    def __init__(self, name: RunName, automaton: Automaton, host: RunHost, begins: bool = True) -> None:
        self.name, self.automaton, self.begins = name, automaton, begins
        self._host = host
        self.matcher: Matcher = (Matcher if begins else EndingMatcher)(automaton, self)
        self._conditions = EventConditions(automaton.units)

    @cached_property
    def meaning(self) -> PatternMeaning:
        """Return what the numbers in partial matches mean."""
        return named_meaning(self.name, self.automaton)

    def ending(self) -> PatternRun:
        """Return the same automaton with which no match begins."""
        return PatternRun(self.name, self.automaton, self._host, begins=False)

    def open(self, context: RuntimeContext) -> None:
        """Open the user's conditions."""
        for test in self.automaton.all_tests():
            test.function.open(context)

    def close(self) -> None:
        """Close the user's conditions."""
        for test in self.automaton.all_tests():
            test.function.close()

    # the evaluator of the matcher

    def unit(self, index: int, event: UserRecord) -> bool:
        try:
            return self._conditions.evaluate(index, event)
        except Exception as error:
            raise self._failure(self.automaton.units[index].tests[0], event) from error

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        test = self.automaton.tests[index]
        try:
            return as_bool(test.function.call(event, context), test)
        except Exception as error:
            raise self._failure(test, event) from error

    def _failure(self, test: Test, event: UserRecord) -> UserCodeError:
        pattern_id, version = self.name
        owner = f" of the rule {pattern_id!r}, version {version}" if pattern_id else ""
        return self._host.condition_failure(test, event, owner)

    def now_ms(self) -> int:
        return self._host.now_ms()


Hits: TypeAlias = list[tuple[PatternRun, int]]
"""The automata for which an event matters, each with the event's mask."""


class SharedConditions:
    """The conditions on an event alone of several automata; equal ones are evaluated once.

    Two conditions are equal if they are one callable, or pickle to the same bytes: a function of a module, equal
    objects of one class, lambdas of one line with equal variables.

    Args:
        runs: in the order in which events are matched.
    """

    def __init__(self, runs: Iterable[PatternRun]) -> None:
        self._runs = tuple(runs)
        places: dict[Hashable, int] = {}
        units: list[Unit] = []
        self._units_of: list[tuple[int, ...]] = []
        for run in self._runs:
            indexes = []
            for unit in run.automaton.units:
                index = places.setdefault(identity(unit.condition), len(units))
                if index == len(units):
                    units.append(unit)
                indexes.append(index)
            self._units_of.append(tuple(indexes))
        self.count = len(units)
        self._conditions = EventConditions(units, defers_errors=True)

    def hits(self, events: list[UserRecord]) -> list[Hits]:
        """Return for each event the automata for which it matters."""
        count = len(events)
        answers = self._conditions.answers(events)
        hits: list[Hits] = [[] for _ in range(count)]
        for run, units in zip(self._runs, self._units_of, strict=True):
            failed = set().union(*(answers[index][1] for index in units))
            masks = combine([answers[index][0] for index in units], count, failed)
            relevant = set(filter(run.matcher.matters, set(masks)))
            if relevant:
                for place, mask in enumerate(masks):
                    if mask in relevant:
                        hits[place].append((run, mask))
        return hits


def identity(condition: Condition) -> Hashable:
    """Return a value that is equal for equal conditions."""
    if isinstance(condition, Test):
        return _identity_of_call(condition.function.call)
    if isinstance(condition, Negation):
        return "not", identity(condition.condition)
    if isinstance(condition, AllOf | AnyOf):
        return type(condition).__name__, identity(condition.first), identity(condition.second)
    return "always"


def _identity_of_call(call: Callable[..., object]) -> Hashable:
    try:
        return to_bytes(call)
    except RayflinkError:  # it cannot be pickled
        return id(call)


def earliest(runs: Sequence[tuple[PatternRun, KeyMatches]]) -> tuple[int, PatternRun] | None:
    """Return the next timestamp at which the time of a partial match has passed, and its automaton; None for never."""
    first: tuple[int, PatternRun] | None = None
    for run, matches in runs:
        deadline = run.matcher.next_deadline(matches)
        if deadline is not None and (first is None or deadline < first[0]):
            first = deadline, run
    return first


__all__ = [
    "Hits", "MatchesByPattern", "PatternRun", "RunHost", "RunName", "SharedConditions", "earliest", "identity",
]  # fmt: skip
