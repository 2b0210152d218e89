"""Compiles row patterns, the regular expressions of SQL's MATCH_RECOGNIZE, to an automaton.

Rows of a match follow one another without a gap, so no state has an IGNORE edge. For patterns that Flink takes, a
sequence of variables with quantifiers, the automaton finds the matches of Flink's in the same order:

- a variable is a state with a TAKE edge; an optional one also has a PROCEED edge;
- a repetition without an upper bound is a state that takes rows again and again, behind as many single states as there
  are rows at least; one of a group leads back to the group's first state;
- a greedy repetition is left by rows alone that do not continue it: a state in between has that as the condition of its
  PROCEED edge;
- a choice is a PROCEED edge to each of its ways; of matches of the same rows that of the first way comes first.

Source: apache/flink CommonExecMatch, which translates such a pattern to one of CEP, and NFACompiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from rayflink.common.errors import assert_never

from ..conditions import Test
from ..skip_strategies import AfterMatchSkipStrategy
from .automaton import Action, Automaton, Edge, State, StateKind, Unit
from .logic import TRUTH, Either, Inverse, Logic

END = "$endState$"


@dataclass(frozen=True)
class RowVariable:
    """A row that meets the condition of a variable.

    Args:
        index: of the variable.
        name: of the variable.
    """

    index: int
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class RowSequence:
    """Several patterns, one directly behind the other."""

    parts: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " ".join(f"({part})" if isinstance(part, RowChoice) else str(part) for part in self.parts)


@dataclass(frozen=True)
class RowChoice:
    """One of several patterns."""

    ways: tuple[RowPattern, ...]

    def __str__(self) -> str:
        return " | ".join(map(str, self.ways))


@dataclass(frozen=True)
class RowRepetition:
    """A pattern several times.

    Args:
        part: what is repeated.
        least: times at least.
        most: times at most; None: any number of times.
        is_greedy: whether it goes on as long as rows continue it.
    """

    part: RowPattern
    least: int
    most: int | None
    is_greedy: bool

    def __str__(self) -> str:
        part = str(self.part) if isinstance(self.part, RowVariable) else f"({self.part})"
        known = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.least, self.most))
        most = "" if self.most is None else str(self.most)
        exact = f"{{{self.least}}}" if self.least == self.most else f"{{{self.least},{most}}}"
        return f"{part}{known or exact}{'' if self.is_greedy else '?'}"

    @property
    def restricts(self) -> bool:
        """Return whether what follows waits until no row continues it."""
        return self.is_greedy and self.least != self.most and (self.least, self.most) != (0, 1)


RowPattern: TypeAlias = RowVariable | RowSequence | RowChoice | RowRepetition


def variables_of(pattern: RowPattern) -> Iterator[RowVariable]:
    """Yield the variables of a pattern, from left to right.

    >>> [str(one) for one in variables_of(RowSequence((RowVariable(0, "A"), RowVariable(1, "B"))))]
    ['A', 'B']
    """
    match pattern:
        case RowVariable():
            yield pattern
        case RowSequence():
            for part in pattern.parts:
                yield from variables_of(part)
        case RowChoice():
            for part in pattern.ways:
                yield from variables_of(part)
        case RowRepetition():
            yield from variables_of(pattern.part)
        case _:
            assert_never(pattern)


def matches_nothing(pattern: RowPattern) -> bool:
    """Return whether the pattern has a match without rows."""
    match pattern:
        case RowVariable():
            return False
        case RowSequence():
            return all(map(matches_nothing, pattern.parts))
        case RowChoice():
            return any(map(matches_nothing, pattern.ways))
        case RowRepetition():
            return pattern.least == 0 or matches_nothing(pattern.part)
        case _:
            assert_never(pattern)


def greedy_end(pattern: RowPattern) -> RowPattern | None:
    """Return a greedy repetition with which a match may end; None: there is none."""
    match pattern:
        case RowVariable():
            return None
        case RowSequence():
            for part in reversed(pattern.parts):
                greedy = greedy_end(part)
                if greedy is not None or not matches_nothing(part):
                    return greedy
            return None
        case RowChoice():
            return next((greedy for part in pattern.ways if (greedy := greedy_end(part)) is not None), None)
        case RowRepetition():
            return pattern if pattern.restricts else greedy_end(pattern.part)
        case _:
            assert_never(pattern)


def first_variables(pattern: RowPattern) -> list[RowVariable]:
    """Return the variables of the first row of a match."""
    match pattern:
        case RowVariable():
            return [pattern]
        case RowSequence():
            first: list[RowVariable] = []
            for part in pattern.parts:
                first += first_variables(part)
                if not matches_nothing(part):
                    break
            return first
        case RowChoice():
            return [variable for part in pattern.ways for variable in first_variables(part)]
        case RowRepetition():
            return first_variables(pattern.part)
        case _:
            assert_never(pattern)


@dataclass(frozen=True)
class RowConditions:
    """The conditions of a pattern's variables.

    Args:
        logics: of each variable.
        units: what depends on the row alone; see `Automaton`.
        tests: what depends on the match so far.
    """

    logics: tuple[Logic, ...]
    units: tuple[Unit, ...] = ()
    tests: tuple[Test, ...] = ()


def compile_row_pattern(
    pattern: RowPattern,
    variables: Sequence[str],
    conditions: RowConditions,
    skip_strategy: AfterMatchSkipStrategy,
    window_ms: int | None = None,
) -> Automaton:
    """Return the automaton of a row pattern.

    Args:
        variables: the names of the pattern's variables, by their indexes; the steps of the automaton.
        conditions: of these variables.
        skip_strategy: where matching goes on after a match.
        window_ms: milliseconds since the first row after which a match has timed out; None for never.

    >>> a, b = RowVariable(0, "A"), RowVariable(1, "B")
    >>> pattern = RowSequence((RowRepetition(a, 1, None, True), b))
    >>> automaton = compile_row_pattern(pattern, "AB", RowConditions((TRUTH, TRUTH)), AfterMatchSkipStrategy())
    >>> [state.name for state in automaton.states]
    ['$endState$', 'B', 'behind A', 'A', 'A:0']
    """
    return _Compiler(conditions).compile(pattern, variables, skip_strategy, window_ms)


@dataclass(eq=False)
class _State:
    name: str
    step: int
    edges: list[tuple[Action, _State, Logic]] = field(default_factory=list)

    def add(self, action: Action, target: _State, logic: Logic = TRUTH) -> None:
        self.edges.append((action, target, logic))


class _Compiler:
    """Builds the states of a pattern, from the last to the first."""

    def __init__(self, conditions: RowConditions) -> None:
        self._conditions = conditions
        self._states: list[_State] = []
        self._names: set[str] = set()

    def compile(
        self, pattern: RowPattern, variables: Sequence[str], skip: AfterMatchSkipStrategy, window_ms: int | None
    ) -> Automaton:
        end = self._state(END, -1)
        start = self._before(pattern, end)
        places = {id(state): place for place, state in enumerate(self._states)}
        kinds = {id(end): StateKind.FINAL, id(start): StateKind.START}
        states = tuple(
            State(
                state.name,
                state.step,
                kinds.get(id(state), StateKind.NORMAL),
                tuple(Edge(action, places[id(target)], logic) for action, target, logic in state.edges),
            )
            for state in self._states
        )
        units, tests = self._conditions.units, self._conditions.tests
        return Automaton(states, places[id(start)], tuple(variables), units, tests, window_ms, skip)

    def _before(self, pattern: RowPattern, sink: _State) -> _State:
        """Return the first of the states of a pattern that leads to `sink`."""
        match pattern:
            case RowVariable():
                state = self._state(pattern.name, pattern.index)
                state.add(Action.TAKE, sink, self._conditions.logics[pattern.index])
                return state
            case RowSequence():
                for part in reversed(pattern.parts):
                    sink = self._before(part, sink)
                return sink
            case RowChoice():
                ways = [self._before(part, sink) for part in pattern.ways]
                choice = self._state(f"one of {pattern}", -1)
                for way in reversed(ways):  # the one that is added last is looked at first
                    choice.add(Action.PROCEED, way)
                return choice
            case RowRepetition():
                return self._before_repetition(pattern, sink)
            case _:
                assert_never(pattern)

    def _before_repetition(self, pattern: RowRepetition, sink: _State) -> _State:
        part = pattern.part
        if pattern.restricts:
            first = [self._conditions.logics[variable.index] for variable in first_variables(part)]
            continued = first[0]
            for logic in first[1:]:
                continued = Either(continued, logic)
            leaving = self._state(f"behind {part}", -1)
            leaving.add(Action.PROCEED, sink, Inverse(continued))
            sink = leaving
        after, least = sink, pattern.least
        if pattern.most is None:
            after = self._loop(part, sink)
            least = max(least, 1)
        else:
            for _ in range(pattern.most - max(least, 1)):
                after = self._optional(part, after, sink)
        for _ in range(least - 1):
            after = self._before(part, after)
        return self._optional(part, after, sink) if pattern.least == 0 else self._before(part, after)

    def _optional(self, part: RowPattern, after: _State, sink: _State) -> _State:
        """Return a state that takes the rows of a part and goes on, or proceeds to `sink` without them."""
        if isinstance(part, RowVariable):
            state = self._before(part, after)
            state.add(Action.PROCEED, sink)
            return state
        first = self._before(part, after)
        state = self._state(f"maybe {part}", -1)
        state.add(Action.PROCEED, sink)
        state.add(Action.PROCEED, first)
        return state

    def _loop(self, part: RowPattern, sink: _State) -> _State:
        """Return a state behind the rows of a part, that takes further ones or proceeds to `sink`."""
        if isinstance(part, RowVariable):
            state = self._state(part.name, part.index)
            state.add(Action.PROCEED, sink)
            state.add(Action.TAKE, state, self._conditions.logics[part.index])
            return state
        state = self._state(f"again {part}", -1)
        again = self._before(part, state)
        state.add(Action.PROCEED, sink)
        state.add(Action.PROCEED, again)
        return state

    def _state(self, base: str, step: int) -> _State:
        name, number = base, 0
        while name in self._names:
            name, number = f"{base}:{number}", number + 1
        self._names.add(name)
        state = _State(name, step)
        self._states.append(state)
        return state


__all__ = [
    "RowChoice", "RowConditions", "RowPattern", "RowRepetition", "RowSequence", "RowVariable", "compile_row_pattern",
    "first_variables", "greedy_end", "matches_nothing", "variables_of",
]  # fmt: skip
