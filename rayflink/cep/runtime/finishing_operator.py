"""Matches one pattern, and lets the partial matches of the patterns that it has replaced go on to their ends.

The state of a key is that of `CepOperator` once it has partial matches of the current pattern alone, so a program
without the old patterns restores what this operator has written as soon as these have ended.
"""

from __future__ import annotations

from dataclasses import replace

from rayflink.operators.base import OperatorSnapshot
from rayflink.user_types import UserCode

from ..nfa.compiler import compile_pattern
from ..nfa.partial_matches import KeyMatches
from ..pattern import AnyPattern
from ..pattern_meaning import PatternMeaning, meaning_of
from .match_state import (
    OLD_ENTRY,
    SIGNATURE_ENTRY,
    ChangedPattern,
    refuse_other_call,
    signature,
    signatures_in,
    state_names,
)
from .matching_operator import MatchOptions
from .pattern_runs import MatchesByPattern, PatternRun, RunName
from .patterns_operator import PatternsOperator

ID = ""
"""Stands for the id of the pattern of a stream that has only one."""


class FinishingOperator(PatternsOperator):
    """A `CepOperator` that has partial matches of earlier patterns.

    Args:
        key_selector, function, options: as of `CepOperator`.
        pattern: what to look for.
        old_patterns: with which no match begins.
    """

    def __init__(
        self,
        key_selector: UserCode,
        pattern: AnyPattern,
        old_patterns: tuple[AnyPattern, ...],
        function: UserCode,
        options: MatchOptions,
    ) -> None:
        automata = [compile_pattern(each) for each in (pattern, *old_patterns)]
        super().__init__(key_selector, function, options)
        self.write = self._write
        self._signature = signature(automata[0])
        self._current: RunName = (ID, self._signature)
        runs: dict[RunName, PatternRun] = {}
        for automaton in automata:
            name = ID, signature(automaton)
            runs.setdefault(name, PatternRun(name, automaton, self, begins=name == self._current))
        self.set_runs(runs.values())

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        refuse_other_call(self.ctx.label, snapshots, has_rules=False)
        super().initialize_state(snapshots)
        self._show_counts()
        written = signatures_in(snapshots, SIGNATURE_ENTRY) - {self._signature}
        names = {(ID, each): None for each in written | signatures_in(snapshots, OLD_ENTRY)}
        unknown = [name for name in names if name not in self.runs]
        if unknown and not self.options.drops_on_change:
            raise ChangedPattern(self.ctx.label, state_names(min(unknown)[1]), state_names(self._signature))
        self._rename(min(written, default=self._signature))
        self.count_keys()
        self.drop_matches_of(unknown)
        self.forget_ended()

    def _rename(self, written: bytes) -> None:
        """Note of all partial matches of which pattern they are."""
        if written == self._signature:
            return
        table = self.state.matches
        for key in list(dict.fromkeys(key for key, _ in table.walk())):
            stored = table.get(key)
            if isinstance(stored, KeyMatches):
                table.put(key, MatchesByPattern({(ID, written): stored}))

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        snapshot = super().snapshot_state(checkpoint_id)
        assert snapshot is not None, "keyed state has a snapshot"
        old = tuple(name[1] for name, keys in self.keys_with.items() if keys and name != self._current)
        entries = {SIGNATURE_ENTRY: ("union", (self._signature,)), OLD_ENTRY: ("union", old)}
        return replace(snapshot, lists={**snapshot.lists, **entries})

    def meanings(self) -> list[PatternMeaning]:
        return [meaning_of(self.runs[self._current].automaton), *super().meanings()]

    def read(self, stored: MatchesByPattern | KeyMatches) -> MatchesByPattern:
        return MatchesByPattern({self._current: stored}) if isinstance(stored, KeyMatches) else stored

    def _write(self, matches: MatchesByPattern) -> MatchesByPattern | KeyMatches:
        return matches[self._current] if list(matches) == [self._current] else matches

    def _show_counts(self) -> None:
        group = self.ctx.metrics
        if group is None:
            return
        counts = self.counts
        group.gauge("numMatches", lambda: counts.matches[ID])
        group.gauge("numEventsSkipped", lambda: counts.skipped)
        group.gauge("numPartialMatchesTimedOut", lambda: counts.timed_out[ID])
        group.gauge("numPartialMatchesDropped", lambda: counts.dropped[ID])
        group.gauge("numKeysWithOldMatches", self._keys_with_old_matches)

    def _keys_with_old_matches(self) -> int:
        return sum(keys for name, keys in self.keys_with.items() if name != self._current)


__all__ = ["ID", "FinishingOperator"]
