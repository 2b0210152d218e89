"""Partial matches in savepoints and checkpoints, for people and programs.

An operator stores with its partial matches what their states mean: the steps of its pattern and their times. So they
are shown without the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from rayflink.common.errors import shorten
from rayflink.common.metrics.job_report import moment
from rayflink.state.errors import StateError
from rayflink.user_types import UserKey

from .nfa.automaton import Action, Automaton, StateKind
from .nfa.partial_matches import LAST_TIME, NODE, START_TIME, STATE, KeyMatches, PartialMatch, events_of

if TYPE_CHECKING:
    from rayflink.state_processor import Savepoint
    from rayflink.state_processor.savepoint import OperatorState

MATCHES = "cep/partial-matches"
"""The state of partial matches."""
MEANING = "_pattern_meaning"
"""The list entry with the `PatternMeaning`."""
_WIDTH = 100
"""Characters of an event in words."""


class PatternMeaning(TypedDict):
    """Says what the numbers in partial matches mean.

    `steps`: names of the steps; `states`: (steps that it waits for, kind, milliseconds since the last event or None) of
    each state; `window_ms`: since the first event, or None.
    """

    steps: list[str]
    states: list[tuple[tuple[str, ...], str, int | None]]
    window_ms: int | None


def meaning_of(automaton: Automaton) -> PatternMeaning:
    """Return what the numbers in partial matches of a pattern mean."""
    return {
        "steps": list(automaton.steps),
        "states": [
            (_steps_from(automaton, index), state.kind.value, state.window_ms)
            for index, state in enumerate(automaton.states)
        ],
        "window_ms": automaton.window_ms,
    }


def _steps_from(automaton: Automaton, index: int) -> tuple[str, ...]:
    """Return the steps that may take the next event in a state; of one that must not occur, that step."""
    if automaton.states[index].kind is StateKind.PENDING:
        return (automaton.steps[automaton.states[index].step],)
    steps: set[int] = set()
    unvisited, visited = [index], {index}
    while unvisited:
        state = automaton.states[unvisited.pop()]
        for edge in state.edges:
            if edge.action is Action.TAKE:
                steps.add(state.step)
            elif edge.target not in visited:
                visited.add(edge.target)
                unvisited.append(edge.target)
    return tuple(automaton.steps[step] for step in sorted(steps))


class NoPartialMatches(StateError):
    """An operator has no partial matches that can be shown.

    Args:
        operator: its uid or name.
        problem: what it lacks.
        remedy: what to do.
    """

    def __init__(self, operator: str, problem: str, remedy: str) -> None:
        super().__init__(operator, problem, remedy)
        self.operator, self.problem, self.remedy = operator, problem, remedy

    def __str__(self) -> str:
        return f"{self.operator} {self.problem}; {self.remedy}"


@dataclass(frozen=True)
class SavedMatch:
    """A partial match of a key. Times are epoch milliseconds.

    Args:
        key: of its events.
        waits_for: the steps of the pattern that may take its next event, or the one that must not come.
        events: those that it has, by the names of their steps.
        began: time of its first event.
        last: time of its last event.
        over: when it times out, or becomes a match where it only waits for an event that must not come; None: never.
        kind: "waiting"; "pending", where it becomes a match unless an event of the step comes; or "complete", where
            it is a match that an earlier partial match may drop.
    """

    key: UserKey
    waits_for: tuple[str, ...]
    events: dict[str, list[Any]]
    began: int
    last: int
    over: int | None
    kind: str

    def describe(self) -> str:
        """Return it in words, a line for each step.

        >>> match = SavedMatch("ann", ("paid",), {"order": [("order", 7)]}, 1_000, 1_000, 61_000, "waiting")
        >>> print(match.describe())
        waits for 'paid': began 1970-01-01 00:00:01, times out 1970-01-01 00:01:01
          order: ('order', 7)
        """
        began = f"began {_time(self.began)}"
        over = "never" if self.over is None else _time(self.over)
        steps = " or ".join(map(repr, self.waits_for))
        if self.kind == "complete":
            head = f"is complete, and waits for partial matches that began earlier: {began}"
        elif self.kind == "pending":
            head = f"is a match unless {steps} comes: {began}, certain {over}"
        else:
            head = f"waits for {steps}: {began}, times out {over}"
        events = [f"  {name}: {', '.join(shorten(event, _WIDTH) for event in part)}"
                 for name, part in self.events.items()]  # fmt: skip
        return "\n".join([head, *events])


def _time(timestamp_ms: int) -> str:
    milliseconds = f".{timestamp_ms % 1000:03}" if timestamp_ms % 1000 else ""
    return f"{moment(timestamp_ms)}{milliseconds}"


def saved_matches(
    savepoint: Savepoint, operator: str | None = None, key: UserKey | None = None
) -> Iterator[SavedMatch]:
    """Yield the partial matches in a savepoint or checkpoint, key by key, those of a key in the order of their begin.

    Args:
        savepoint: as `rayflink.state_processor.read_savepoint` returns it.
        operator: uid, name or id of the operator; None: the one that matches a pattern.
        key: the key of a keyed stream; None: all keys.

    Raises:
        NotInSavepointError: there is no such operator.
        NoPartialMatches: it matches no pattern, or several do and none is named.
    """
    found = pattern_operator(savepoint, operator)
    meaning = _meaning(found)
    for row in found.state(MATCHES).rows():
        if key is None or row.key == key:
            yield from _of_key(row.key, row.value, meaning)


def pattern_operator(savepoint: Savepoint, operator: str | None) -> OperatorState:
    """Return the operator that matches a pattern; see `saved_matches`."""
    if operator is not None:
        chosen = savepoint.operator(operator)
        if not _has_matches(chosen):
            remedy = f"operators with patterns are {_named(savepoint)}"
            raise NoPartialMatches(f"operator {operator!r}", "has no partial matches", remedy)
        return chosen
    candidates = [state for state in savepoint.operators if _has_matches(state)]
    if len(candidates) != 1:
        problem = (
            "has several operators that match patterns" if candidates else "has no operator that matches a pattern"
        )
        remedy = f"name one of {_named(savepoint)}" if candidates else "patterns of MATCH_RECOGNIZE are not shown"
        raise NoPartialMatches("the savepoint", problem, remedy)
    return candidates[0]


def _has_matches(operator: OperatorState) -> bool:
    return any(state.name == MATCHES for state in operator.states)


def _named(savepoint: Savepoint) -> str:
    names = [repr(state.uid or state.name) for state in savepoint.operators if _has_matches(state)]
    return ", ".join(names) or "not in it"


def _meaning(operator: OperatorState) -> PatternMeaning:
    for state in operator.states:
        if state.name == MEANING:
            for row in state.rows():
                meaning: PatternMeaning = row.value
                return meaning
    remedy = f"restore the job and take a new savepoint, or read the state {MATCHES!r} as it is"
    raise NoPartialMatches(f"operator {operator.uid or operator.name!r}", "was written by an older build", remedy)


def _of_key(key: UserKey, matches: KeyMatches, meaning: PatternMeaning) -> Iterator[SavedMatch]:
    for match in matches.partial:
        yield _saved(key, match, meaning, False)
    for match in sorted(matches.completed, key=lambda completed: completed[START_TIME]):
        yield _saved(key, match, meaning, True)


def _saved(key: UserKey, match: PartialMatch, meaning: PatternMeaning, is_complete: bool) -> SavedMatch:
    waits_for, kind, since_last = meaning["states"][match[STATE]]
    limits = [
        since + window
        for since, window in ((match[START_TIME], meaning["window_ms"]), (match[LAST_TIME], since_last))
        if window is not None
    ]
    kind = "complete" if is_complete else "pending" if kind == StateKind.PENDING.value else "waiting"
    events = events_of(match[NODE], tuple(meaning["steps"]))
    over = None if is_complete else min(limits, default=None)
    return SavedMatch(key, waits_for, events, match[START_TIME], match[LAST_TIME], over, kind)


__all__ = [
    "MATCHES", "MEANING", "NoPartialMatches", "PatternMeaning", "SavedMatch", "meaning_of", "pattern_operator",
    "saved_matches",
]  # fmt: skip
