"""Patterns and streams as JSON, so that other matchers can be asked for the same ones, and matches as lines of text.

A pair of a pattern and a stream is an object of

- `steps`: each with `how` it is appended (`begin`, `next`, `followed_by`, ...), its `name` or the steps of its `group`,
  and `calls` on it: [method, arguments...]. `times_range` is `times` with two numbers, `within_previous` is `within`
  with PREVIOUS_AND_CURRENT;
- `skip`: the after-match skip strategy, with the name of a step, and true where it fails on a miss;
- `events`: `a3@7` is an event with the letter a and the number 3 at the timestamp 7;
- `rest`: milliseconds that pass behind the last event.

A condition is ["letter", letters], ["least", number], ["rising", step]: the number is above those of the events that
the step has, or ["fewer", step, count]: the step has fewer events.

What is found is a list of lines: `4 A=0,1 B=4` is a match that the event 4 completes, the events 0 and 1 being those of
the step A; `at 9 A=0,1` is a match that is certain at the timestamp 9; `over 9 A=0` is a partial match whose time had
passed at the timestamp 9.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rayflink.cep.conditions import ConditionContext
from rayflink.cep.nfa.automaton import Automaton
from rayflink.cep.nfa.compiler import compile_pattern
from rayflink.cep.nfa.masks import EventConditions, as_bool
from rayflink.cep.nfa.matcher import Matcher
from rayflink.cep.nfa.partial_matches import KeyMatches, Node, events_of
from rayflink.cep.pattern import Pattern
from rayflink.cep.quantifier import WithinType
from rayflink.cep.skip_strategies import AfterMatchSkipStrategy

Described = dict[str, Any]
MOST_PARTIAL_MATCHES = 400


class Event(NamedTuple):
    """An event of a stream, which is called by its place in it."""

    place: int
    letter: str
    number: int
    time: int


class TooMany(Exception):
    """A stream makes more partial matches of a pattern than the comparison has time for."""


def read_events(text: str) -> list[Event]:
    events = []
    for place, event in enumerate(text.split()):
        value, time = event.split("@")
        events.append(Event(place, value[0], int(value[1:]), int(time)))
    return events


def condition_of(described: Sequence[Any]) -> Callable[..., bool]:
    kind, operand, *bound = described
    if kind == "letter":
        return lambda event: event.letter in operand
    if kind == "least":
        return lambda event: event.number >= operand
    if kind == "rising":
        return lambda event, context: all(
            other.number < event.number for other in context.get_events_for_pattern(operand)
        )
    return lambda event, context: len(context.get_events_for_pattern(operand)) < bound[0]


def pattern_of(pair: Described) -> Pattern:
    kind, *rest = pair["skip"]
    skip = getattr(AfterMatchSkipStrategy, kind)(*rest[:1])
    if len(rest) > 1:
        skip = skip.throw_exception_on_miss()
    return _sequence(pair["steps"], skip)


def _sequence(steps: list[Described], skip: AfterMatchSkipStrategy) -> Pattern:
    pattern: Any = None
    for step in steps:
        named = step["name"] if "name" in step else _sequence(step["group"], skip)
        pattern = Pattern.begin(named, skip) if step["how"] == "begin" else getattr(pattern, step["how"])(named)
        for call, *arguments in step["calls"]:
            pattern = _apply(pattern, call, arguments)
    return pattern


def _apply(pattern: Pattern, call: str, arguments: list[Any]) -> Pattern:
    if call in ("where", "or_", "until"):
        return getattr(pattern, call)(condition_of(arguments[0]))
    if call == "times":
        return pattern.times(arguments[0], window=arguments[1])
    if call == "times_range":
        return pattern.times(*arguments)
    if call == "within_previous":
        return pattern.within(arguments[0], WithinType.PREVIOUS_AND_CURRENT)
    return getattr(pattern, call)(*arguments)


class Conditions:
    """Evaluates what the masks do not decide."""

    def __init__(self, automaton: Automaton) -> None:
        self._tests = automaton.tests
        self.units = EventConditions(automaton.units)

    def unit(self, index: int, event: Any) -> bool:
        return self.units.evaluate(index, event)

    def test(self, index: int, event: Any, context: ConditionContext) -> bool:
        return as_bool(self._tests[index].function.call(event, context), self._tests[index])

    def now_ms(self) -> int:
        return 0


class Finder:
    """The matcher of a pattern for one key, written and read back after each event.

    Args:
        pattern: what to find.
        line: the line of what was found, of when ("4", "at 9" or "over 9") and its events by step.
        windows: milliseconds between two events by state, in place of those that the pattern has.
    """

    def __init__(
        self,
        pattern: Pattern | None,
        line: Callable[[str, dict[str, list[Any]]], Any],
        windows: Mapping[str, int] | None = None,
    ) -> None:
        self.automaton = compile_pattern(pattern)
        if windows is not None:
            states = tuple(replace(state, window_ms=windows.get(state.name)) for state in self.automaton.states)
            self.automaton = replace(self.automaton, states=states)
        self.conditions = Conditions(self.automaton)
        self.matcher = Matcher(self.automaton, self.conditions)
        self.matches = KeyMatches()
        self._line = line

    def find(self, events: Sequence[Any], times: Sequence[int], rest: int = 0) -> list[Any]:
        """Return what is found; the stream goes on for `rest` milliseconds behind the last event."""
        found: list[Any] = []
        masks = self.conditions.units.masks(list(events))
        for place, (event, time, mask) in enumerate(zip(events, times, masks, strict=True)):
            if place and time > times[place - 1]:
                found += self.pass_time(time)
            found += [self._text(str(place), node) for node in self.matcher.process(self.matches, event, time, mask)]
            if len(self.matches.partial) > MOST_PARTIAL_MATCHES:
                raise TooMany
            self.matches = pickle.loads(pickle.dumps(self.matches))
        return found + (self.pass_time(times[-1] + rest) if times else [])

    def pass_time(self, until: int) -> list[Any]:
        found: list[Any] = []
        while (deadline := self.matcher.next_deadline(self.matches)) is not None and deadline <= until:
            sure, over = self.matcher.advance(self.matches, deadline)
            found += [self._text(f"at {deadline}", node) for node in sure]
            found += [self._text(f"over {partial.timestamp}", partial.node) for partial in over]
        return found

    def _text(self, when: str, node: Node) -> Any:
        return self._line(when, events_of(node, self.automaton.steps))


def as_line(when: str, match: dict[str, list[Event]]) -> str:
    steps = [f"{name}={','.join(str(event.place) for event in events)}" for name, events in match.items()]
    return " ".join([when, *steps])


def find(pair: Described, windows: Mapping[str, int] | None = None) -> list[str]:
    """Return the lines of what rayflink finds.

    Args:
        pair: a pattern and a stream.
        windows: as of `Finder`.
    """
    events = read_events(pair["events"])
    finder = Finder(pattern_of(pair), as_line, windows)
    found: list[str] = finder.find(events, [event.time for event in events], pair["rest"])
    return found


__all__ = [
    "Conditions", "Described", "Event", "Finder", "TooMany", "as_line", "condition_of", "find", "pattern_of",
    "read_events",
]  # fmt: skip
