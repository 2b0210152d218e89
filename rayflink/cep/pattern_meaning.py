"""The meaning of the numbers in partial matches, which an operator stores with them.

So partial matches in savepoints and checkpoints are shown without the program: the steps of a pattern, its times, and
of rows the names and types of the columns that are stored.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

from .nfa.automaton import Action, Automaton, StateKind

if TYPE_CHECKING:
    import pyarrow

MATCHES = "cep/partial-matches"
"""The state of partial matches."""
ROW_MATCHES = "$matches"
"""The column of partial matches, where an operator of rows stores them beside the columns of its keys."""
MEANING = "_pattern_meaning"
"""The list entries with a `PatternMeaning` for each pattern."""
PatternName: TypeAlias = tuple[str, Any]
"""(id of a pattern, its version)."""


class _Steps(TypedDict):
    steps: list[str]
    states: list[tuple[tuple[str, ...], str, int | None]]
    window_ms: int | None


class PatternMeaning(_Steps, total=False):
    """Says what the numbers in partial matches mean.

    `steps`: names of the steps; `states`: (steps that it waits for, kind, milliseconds since the last event or None) of
    each state; `window_ms`: since the first event, or None; `pattern`: its name, where there are several; `columns`:
    the schema of the values of a row as bytes, where events are rows of a table; those of its key have no name.
    """

    pattern: PatternName
    columns: bytes


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


def meaning_of_rows(automaton: Automaton, columns: pyarrow.Schema) -> PatternMeaning:
    """Return the same of a pattern of rows.

    Args:
        columns: of the values that partial matches have of a row.
    """
    return {**meaning_of(automaton), "columns": columns.serialize().to_pybytes()}


def named_meaning(name: PatternName, automaton: Automaton) -> PatternMeaning:
    """Return the same of one of several patterns."""
    return {**meaning_of(automaton), "pattern": name}


def meaning_entry(meanings: Sequence[PatternMeaning]) -> dict[str, tuple[str, tuple[bytes, ...]]]:
    """Return the list of a snapshot that holds meanings."""
    return {MEANING: ("union", tuple(map(pickle.dumps, meanings)))}


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


__all__ = [
    "MATCHES", "MEANING", "ROW_MATCHES", "PatternMeaning", "PatternName", "meaning_entry", "meaning_of",
    "meaning_of_rows", "named_meaning",
]  # fmt: skip
