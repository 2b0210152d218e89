"""The common part of operators that match several automata on the events of each key.

The conditions on an event alone are evaluated when the event is matched, for the due events of many keys at a time. An
event that waits has no mask: which automata there will be when its time comes is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from rayflink.common.records.batches import Batch
from rayflink.operators.base import OperatorSnapshot, UserCodeError
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.operators.user_function import UserCode as UserCodeBlock
from rayflink.state.value_isolation import isolated
from rayflink.user_types import UserCode, UserKey, UserRecord

from ..functions import Match
from ..nfa.matcher import UNKNOWN
from ..nfa.partial_matches import NODE, KeyMatches, Node, events_of
from ..pattern_meaning import PatternMeaning, meaning_entry
from .match_state import EVENT, STAMP, WaitingEvent
from .matching_operator import MatchingOperator, MatchOptions
from .pattern_runs import Hits, MatchesByPattern, PatternRun, RunName, SharedConditions, earliest


class PatternCounts:
    """Counts what becomes of events, and of the partial matches of each pattern, by its id."""

    def __init__(self) -> None:
        self.skipped = 0
        self.matches: Counter[str] = Counter()
        self.timed_out: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()


class PatternsOperator(MatchingOperator[MatchesByPattern, Hits]):
    """Emits the results of a function for each match of several automata, and for each timeout.

    Args:
        key_selector: a KeySelector or a callable.
        function: a PatternProcessFunction, or a callable of match and context.
        options: see `MatchOptions`.
    """

    counts: PatternCounts
    are_fixed = True
    """Whether an event is of no use that matters to none of the automata when it arrives."""

    def __init__(
        self,
        key_selector: UserCode,
        function: UserCode,
        options: MatchOptions,
    ) -> None:
        super().__init__(key_selector, function, options)
        self.counts = PatternCounts()
        self.runs: dict[RunName, PatternRun] = {}
        self.keys_with: Counter[RunName] = Counter()
        """The number of keys that have partial matches of an automaton."""
        self._failed: set[RunName] = set()
        """The automata a condition of which has failed since `fire` or `match_at_once` began."""
        self.matters = bool
        self.next_deadline = self._next_deadline
        self.masks_of = self._masks_of
        self._is_open = False

    # automata

    def set_runs(self, runs: Iterable[PatternRun]) -> None:
        """Match further events with these automata, in the order of their names."""
        self.runs = {run.name: run for run in sorted(runs, key=lambda run: run.name)}
        self._conditions = SharedConditions(self.runs.values())

    def forget_ended(self) -> None:
        """Forget the automata with which no match begins and of which no key has partial matches."""
        ended = [run for run in self.runs.values() if not run.begins and not self.keys_with[run.name]]
        if ended:
            self.set_runs(run for run in self.runs.values() if run not in ended)
            for run in ended:
                self.release(run)

    def on_failure(self, run: PatternRun, error: UserCodeError, out: OutputBuffer) -> None:
        """Note that a condition has failed, and that the automaton is disabled for it."""
        raise error

    def _forget_failed(self) -> None:
        """Forget the automata a condition of which has failed, and their partial matches."""
        if not self._failed:
            return
        failed = [run for run in self.runs.values() if run.name in self._failed]
        self.drop_matches_of(self._failed)
        self.set_runs(run for run in self.runs.values() if run not in failed)
        for run in failed:
            self.release(run)
        self._failed = set()

    def release(self, run: PatternRun) -> None:
        """Close an automaton that is no longer used."""
        self.keys_with.pop(run.name, None)
        if self._is_open:
            with UserCodeBlock(self.ctx, "close of a condition"):
                run.close()

    def open(self) -> None:
        super().open()
        self._is_open = True
        for run in self.runs.values():
            with UserCodeBlock(self.ctx, "open of a condition"):
                run.open(self.runtime_context())

    def close(self) -> None:
        is_open, self._is_open = self._is_open, False
        try:
            super().close()
        finally:
            for run in self.runs.values() if is_open else ():
                with UserCodeBlock(self.ctx, "close of a condition"):
                    run.close()

    # state

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        snapshot = super().snapshot_state(checkpoint_id)
        assert snapshot is not None, "keyed state has a snapshot"
        return replace(snapshot, lists={**snapshot.lists, **meaning_entry(self.meanings())})

    def meanings(self) -> list[PatternMeaning]:
        """Return what the numbers in the partial matches of each automaton mean."""
        return [run.meaning for run in self.runs.values()]

    def read(self, stored: MatchesByPattern | KeyMatches) -> MatchesByPattern:
        """Return the partial matches of a key, from the form in which they are stored."""
        assert isinstance(stored, MatchesByPattern), "another operator has written it"
        return stored

    def count_keys(self) -> None:
        """Count the keys with partial matches of each automaton, in all that is stored."""
        self.keys_with.clear()
        for _, matches in self.stored_matches():
            self.keys_with.update(matches.keys())

    def stored_matches(self) -> Iterator[tuple[UserKey, MatchesByPattern]]:
        """Yield each key that has partial matches, with these."""
        table = self.state.matches
        for key in list(dict.fromkeys(key for key, _ in table.walk())):
            stored = table.get(key)
            if stored is not None:
                yield key, self.read(stored)

    def drop_matches_of(self, names: Iterable[RunName]) -> None:
        """Drop the partial matches of automata, and count them."""
        dropped = [name for name in names if self.keys_with[name]]
        if not dropped:
            return
        for key, matches in self.stored_matches():
            if not self._drop(matches, dropped):
                continue
            if matches.is_empty:
                self.state.matches.remove(key)
            else:
                self.state.matches.put(key, matches if self.write is None else self.write(matches))
        for name in dropped:
            del self.keys_with[name]

    def _drop(self, matches: MatchesByPattern, names: Iterable[RunName]) -> bool:
        """Drop the partial matches of a key that automata have, and count them; return whether there were any."""
        names_of_key = [name for name in names if name in matches]
        for name in names_of_key:
            lost = matches.pop(name)
            self.counts.dropped[name[0]] += len(lost.partial) + len(lost.completed)
        return bool(names_of_key)

    # events

    def _masks_of(self, values: list[UserRecord]) -> list[Any]:
        if self.options.is_processing_time and self.options.comparator is None:
            return self._conditions.hits(values)
        if self.are_fixed:
            return [UNKNOWN if hits else 0 for hits in self._conditions.hits(values)]
        return [UNKNOWN] * len(values)

    def fire(self, until: int, out: OutputBuffer) -> Iterator[None]:
        yield from super().fire(until, out)
        self._forget_failed()
        self.forget_ended()

    def match_at_once(self, batch: Batch, out: OutputBuffer) -> Iterator[None]:
        yield from super().match_at_once(batch, out)
        self._forget_failed()
        self.forget_ended()

    def prepare(self, due: list[list[WaitingEvent]]) -> list[list[Any]]:
        flat = [event for events in due for event in events]
        hits = iter(self._conditions.hits([event[EVENT] for event in flat]))
        return [[(event[STAMP], next(hits), event[EVENT]) for event in events] for events in due]

    def match(
        self,
        key: UserKey,
        matches: MatchesByPattern | None,
        events: list[tuple[int, Hits, UserRecord]],
        until: int,
        out: OutputBuffer,
    ) -> MatchesByPattern | None:
        self.context.key = key
        known = MatchesByPattern() if matches is None else self.read(matches)
        before = tuple(known)
        changed = self._drop(known, self._failed) if self._failed else False
        for stamp, hits, event in events:
            if known:
                changed |= self._advance(known, stamp, out)
            for run, mask in hits:
                changed |= self._apply(run, known, (stamp, mask, event), out)
        if known:
            changed |= self._advance(known, until, out)
        if not changed:
            return None
        if before != tuple(known):
            self.keys_with.subtract(before)
            self.keys_with.update(known.keys())
        return known

    def _apply(self, run: PatternRun, known: MatchesByPattern, event: WaitingEvent, out: OutputBuffer) -> bool:
        """Match an event with one automaton; return whether the partial matches have changed."""
        if run.name in self._failed:
            return False
        stamp, mask, value = event
        matches = known.get(run.name)
        if matches is None:
            if not run.matcher.may_start(mask):
                return False
            matches = known[run.name] = KeyMatches()
        try:
            nodes = run.matcher.process(matches, value, stamp, mask)
        except UserCodeError as error:
            self.on_failure(run, error, out)
            self._failed.add(run.name)
            return self._drop(known, (run.name,))
        if nodes:
            self._emit(run, nodes, stamp, out)
        if self.options.max_partial_matches is not None:
            self._bound(run, matches, self.options.max_partial_matches, stamp, out)
        if matches.is_empty:
            del known[run.name]
        return True

    def _advance(self, known: MatchesByPattern, until: int, out: OutputBuffer) -> bool:
        """Let time pass; return whether a partial match has timed out or become a match."""
        advanced = False
        runs = [(self.runs[name], known[name]) for name in sorted(known)]
        while (due := earliest(runs)) is not None and due[0] <= until:
            deadline, run = due
            matches = known[run.name]
            nodes, timed_out = run.matcher.advance(matches, deadline)
            self._emit(run, nodes, deadline, out)
            for match in timed_out:
                self.counts.timed_out[run.name[0]] += 1
                if self.on_timeout is not None:
                    events = self.match_of(run, match.node)
                    self.call(self.on_timeout, "process_timed_out_match", events, match.timestamp, out)
            if matches.is_empty:
                del known[run.name]
                runs = [(other, known[other.name]) for other, _ in runs if other is not run]
            advanced = True
        return advanced

    def _next_deadline(self, matches: MatchesByPattern) -> int | None:
        due = earliest([(self.runs[name], of_run) for name, of_run in self.read(matches).items()])
        return None if due is None else due[0]

    # results

    def _emit(self, run: PatternRun, nodes: list[Node], stamp: int, out: OutputBuffer) -> None:
        for node in nodes:
            self.counts.matches[run.name[0]] += 1
            self.call(self.function.call, "process_match", self.match_of(run, node), stamp, out)

    def match_of(self, run: PatternRun, node: Node) -> Match:
        """Return the events of a match, or of a partial match."""
        return events_of(node, run.automaton.steps, isolated)

    def _bound(self, run: PatternRun, matches: KeyMatches, limit: int, stamp: int, out: OutputBuffer) -> None:
        for match in run.matcher.drop_earliest(matches, limit):
            self.counts.dropped[run.name[0]] += 1
            if self.options.dropped_tag is not None:
                shown = None if self.options.is_processing_time else stamp
                out.add_side(self.options.dropped_tag, self.match_of(run, match[NODE]), shown)


__all__ = ["PatternCounts", "PatternsOperator"]
