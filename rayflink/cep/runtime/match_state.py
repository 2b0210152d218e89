"""The state of an operator that matches patterns: waiting events and partial matches, by key.

An event waits with its mask, so that its conditions are evaluated once. A restored event is evaluated again, since the
program may have other conditions by then. Partial matches refer to the states of the automaton by number, so they fit
an automaton of the same states only, whatever its conditions are.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from rayflink.state.backend import KeyedBackend
from rayflink.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from rayflink.state.errors import StateError

from ..nfa.automaton import Automaton
from ..nfa.matcher import UNKNOWN

WaitingEvent: TypeAlias = tuple[int, int, Any]
"""(timestamp, mask, event)."""
STAMP, MASK, EVENT = range(3)


class ChangedPattern(StateError):
    """Partial matches of another pattern cannot go on with this one.

    Args:
        operator: its uid or name.
        written: states of the automaton whose partial matches were stored.
        declared: states of the program's automaton.
    """

    def __init__(self, operator: str, written: str, declared: str) -> None:
        super().__init__(operator, written, declared)
        self.operator, self.written, self.declared = operator, written, declared

    def __str__(self) -> str:
        return (
            f"the pattern of operator {self.operator!r} has the states {self.declared}, and the snapshot has partial "
            f"matches in the states {self.written}; restore with the pattern as it was, or call "
            "drop_partial_matches_on_change() on the pattern stream to begin without them"
        )


class MatchState:
    """The tables of waiting events and of partial matches.

    Args:
        backend: of the operator.
    """

    def __init__(self, backend: KeyedBackend) -> None:
        self.waiting = backend.table(ListStateDescriptor("cep/waiting-events"))
        self.matches = backend.table(ValueStateDescriptor("cep/partial-matches"))
        self.timers = backend.timers("cep")

    def forget_masks(self) -> None:
        """Let the conditions of all waiting events be evaluated again."""
        keys = list(dict.fromkeys(key for key, _ in self.waiting.walk()))
        for key in keys:
            events: list[WaitingEvent] = self.waiting.get(key, default=[])
            if events:
                self.waiting.put(key, [(event[STAMP], UNKNOWN, event[EVENT]) for event in events])

    def drop_matches(self) -> int:
        """Drop all partial matches; return their number."""
        dropped = 0
        for key in list(dict.fromkeys(key for key, _ in self.matches.walk())):
            matches = self.matches.get(key)
            if matches is not None:
                dropped += len(matches.partial) + len(matches.completed)
                self.matches.remove(key)
        return dropped


def signature(automaton: Automaton) -> bytes:
    """Return what two automata have in common whose partial matches are interchangeable, as text in bytes."""
    states = (
        f"{state.name}({state.kind.value}) {' '.join(f'{edge.action.value}>{edge.target}' for edge in state.edges)}"
        for state in automaton.states
    )
    return "; ".join(states).encode()


def state_names(signature_of_states: bytes) -> str:
    """Return the names of the states in a signature, for people."""
    return ", ".join(part.partition("(")[0] for part in signature_of_states.decode().split("; ")[1:])


__all__ = ["EVENT", "MASK", "STAMP", "ChangedPattern", "MatchState", "WaitingEvent", "signature", "state_names"]
