"""A pattern as a non-deterministic finite automaton: states and edges, as values.

Source: Agrawal, Diao, Gyllstrom, Immerman, "Efficient Pattern Matching over Event Streams" (SIGMOD 2008).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..conditions import Condition, Test
from ..skip_strategies import AfterMatchSkipStrategy
from .logic import Logic


class StateKind(Enum):
    """START: before the first event. FINAL: a match. STOP: a step that must not occur did. PENDING: a match, if the
    time passes without such an event. NORMAL: all others.
    """

    START = "start"
    NORMAL = "normal"
    PENDING = "pending"
    FINAL = "final"
    STOP = "stop"


class Action(Enum):
    """TAKE: the event belongs to the match. IGNORE: it does not, and the match goes on. PROCEED: look at the edges of
    the target with the same event.
    """

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


@dataclass(frozen=True, eq=False)
class Edge:
    """An edge of the automaton.

    Args:
        action: what happens to the event.
        target: index of the state that it leads to.
        logic: the condition under which it may be taken.
    """

    action: Action
    target: int
    logic: Logic


@dataclass(frozen=True, eq=False)
class State:
    """A state of the automaton.

    Args:
        name: unique, such as "b" or "b:1".
        step: index of the pattern's step, in `Automaton.steps`.
        kind: see `StateKind`.
        edges: in the order in which they are looked at.
        window_ms: milliseconds since the last event of the match after which a match in this state has timed out; None
            for never.
    """

    name: str
    step: int
    kind: StateKind
    edges: tuple[Edge, ...]
    window_ms: int | None = None


@dataclass(frozen=True, eq=False)
class Automaton:
    """A compiled pattern.

    Args:
        states: the start state is `states[start]`.
        start: index of the start state; -1 for the automaton of no pattern, which matches nothing.
        steps: names of the pattern's steps, in the order of the pattern.
        units: conditions that depend on the event alone, each evaluated once an event; the bits of an event's mask.
        tests: conditions that depend on the partial match.
        window_ms: milliseconds since the first event of the match after which it has timed out; None for never.
        skip_strategy: what happens to overlapping matches.
    """

    states: tuple[State, ...]
    start: int
    steps: tuple[str, ...]
    units: tuple[Unit, ...]
    tests: tuple[Test, ...]
    window_ms: int | None
    skip_strategy: AfterMatchSkipStrategy

    def all_tests(self) -> tuple[Test, ...]:
        """Return the user's conditions, of the event alone and of the partial match."""
        return (*(test for unit in self.units for test in unit.tests), *self.tests)


@dataclass(frozen=True, eq=False)
class Unit:
    """A condition that depends on the event alone.

    Args:
        tests: its parts, in the order in which they are evaluated.
        condition: how they are combined.
        step: name of the step that has it.
    """

    tests: tuple[Test, ...]
    condition: Condition
    step: str

    @property
    def is_on_columns(self) -> bool:
        """Return whether all of it are conditions on columns."""
        return all(test.columns is not None for test in self.tests)


__all__ = ["Action", "Automaton", "Edge", "State", "StateKind", "Unit"]
