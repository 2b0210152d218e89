"""The state of an operator that matches patterns: waiting events and partial matches, by key.

An event waits with its mask, so that its conditions are evaluated once. A restored event is evaluated again, since the
program may have other conditions by then. Partial matches refer to the states of the automaton by number, so they fit
an automaton of the same states only, whatever its conditions are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, Final, TypeAlias

from rayflink.common.records.batches import MIN_TIMESTAMP
from rayflink.state.backend import KeyedBackend, Timers
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.errors import StateError
from rayflink.state.snapshots import OperatorSnapshot
from rayflink.user_types import UserKey

from ..nfa.automaton import Automaton
from ..nfa.matcher import UNKNOWN
from ..nfa.partial_matches import KeyMatches

WaitingEvent: TypeAlias = tuple[int, int, Any]
"""(timestamp, mask, event)."""
STAMP: Final = 0
MASK: Final = 1
EVENT: Final = 2
SIGNATURE_ENTRY: Final = "_pattern"
"""List of a snapshot: the signature of the pattern of which its partial matches are, where they do not say so."""
OLD_ENTRY: Final = "_old_patterns"
"""List of a snapshot: signatures of other patterns of which it has partial matches."""
RULES: Final = "cep/rules"
"""Broadcast state of `CEP.patterns`; its list in a snapshot has a prefix."""


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
            f"matches in the states {self.written}; on the pattern stream call finish_partial_matches_of(old pattern) "
            "to let them go on to their ends, or drop_partial_matches_on_change() to begin without them; or restore "
            "with the pattern as it was"
        )


class OtherCall(StateError):
    """State of `CEP.pattern` is restored by `CEP.patterns`, or the other way round.

    Args:
        operator: its uid or name.
        written, declared: the calls.
    """

    def __init__(self, operator: str, written: str, declared: str) -> None:
        super().__init__(operator, written, declared)
        self.operator, self.written, self.declared = operator, written, declared

    def __str__(self) -> str:
        return (
            f"the snapshot of operator {self.operator!r} was written by {self.written}, and the program calls "
            f"{self.declared}, which has other state; call {self.written} again, or give the operator another uid and "
            "allow state that is not restored, to begin without its partial matches"
        )


def refuse_other_call(operator: str, snapshots: Collection[OperatorSnapshot], has_rules: bool) -> None:
    """Check that the operator of the same call wrote the snapshots.

    Args:
        has_rules: whether it is that of `CEP.patterns`.

    Raises:
        OtherCall: another one did.
    """
    calls = "CEP.pattern", "CEP.patterns"
    for snapshot in snapshots:
        had_rules = any(name.endswith(RULES) for name in snapshot.lists)
        if had_rules != has_rules and (had_rules or SIGNATURE_ENTRY in snapshot.lists):
            raise OtherCall(operator, calls[had_rules], calls[has_rules])


class MatchState:
    """The tables of waiting events and of partial matches.

    Args:
        backend: of the operator.
    """

    def __init__(self, backend: KeyedBackend) -> None:
        self.waiting = backend.table(ValueStateDescriptor("cep/waiting-events"))
        """The waiting events of a key as a list, of which the first is the earliest; for it there is a timer."""
        self.matches = backend.table(ValueStateDescriptor("cep/partial-matches"))
        """The `KeyMatches` of a key."""
        self.timers = backend.timers("cep")

    def wait_for_time(
        self, events: Iterable[tuple[UserKey, WaitingEvent]], entries: dict[UserKey, list[WaitingEvent]]
    ) -> list[UserKey]:
        """Add waiting events, and return their keys.

        Args:
            events: with their canonical keys.
            entries: as loaded from `waiting` for all these keys; changed in place.
        """
        keys: list[UserKey] = []
        timers = TimerBatch(self.timers)
        get = entries.get
        for key, event in events:
            keys.append(key)
            waiting = get(key)
            if waiting is None:
                entries[key] = [event]
                timers.register(event[STAMP], key)
            elif event[STAMP] < waiting[0][STAMP]:
                waiting.insert(0, event)
                timers.register(event[STAMP], key)
            else:
                waiting.append(event)
        return keys

    def forget_masks(self) -> int:
        """Let the conditions of all waiting events be evaluated again; return the latest timestamp of them.

        It is MIN_TIMESTAMP where no event waits.
        """
        latest = MIN_TIMESTAMP
        keys = list(dict.fromkeys(key for key, _ in self.waiting.walk()))
        for key in keys:
            events: list[WaitingEvent] = self.waiting.get(key, default=[])
            if events:
                self.waiting.put(key, [(event[STAMP], UNKNOWN, event[EVENT]) for event in events])
                latest = max(latest, max(event[STAMP] for event in events))
        return latest

    def drop_matches(self, own: bytes | None) -> int:
        """Drop partial matches of other patterns; return their number.

        Args:
            own: the signature of the pattern; None where all that do not say so are of another, too.
        """
        dropped = 0
        for key in list(dict.fromkeys(key for key, _ in self.matches.walk())):
            stored = self.matches.get(key)
            by_signature = {own: stored} if isinstance(stored, KeyMatches) else _by_signature(stored)
            remaining = None if own is None else by_signature.pop(own, None)
            dropped += sum(len(matches.partial) + len(matches.completed) for matches in by_signature.values())
            if remaining is None:
                self.matches.remove(key)
            elif by_signature:
                self.matches.put(key, remaining)
        return dropped


def _by_signature(stored: dict[tuple[str, bytes], KeyMatches] | None) -> dict[bytes | None, KeyMatches]:
    return {name[1]: matches for name, matches in (stored or {}).items()}


class TimerBatch:
    """Sets many timers, between which no timer fires or is deleted and no snapshot is taken.

    Args:
        timers: the queue.
    """

    __slots__ = ("_keys_at", "_timers")

    def __init__(self, timers: Timers) -> None:
        self._timers = timers
        self._keys_at: dict[int, Any] = {}

    def register(self, timestamp: int, key: UserKey) -> None:
        """Set the timer of a key."""
        keys = self._keys_at.get(timestamp)
        if keys is None:
            keys = self._keys_at[timestamp] = self._timers.keys_at(timestamp)
        keys[key] = None


def signatures_in(snapshots: Collection[OperatorSnapshot], entry: str) -> set[bytes]:
    """Return the signatures in a list of snapshots."""
    return {written for snapshot in snapshots for written in snapshot.lists.get(entry, ("union", ()))[1]}


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


__all__ = [
    "EVENT", "MASK", "OLD_ENTRY", "RULES", "SIGNATURE_ENTRY", "STAMP", "ChangedPattern", "MatchState", "OtherCall",
    "TimerBatch", "WaitingEvent", "refuse_other_call", "signature", "signatures_in", "state_names",
]  # fmt: skip
