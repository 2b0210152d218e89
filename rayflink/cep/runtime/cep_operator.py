"""Matches a pattern on the events of each key, in the order of their times.

`matching_operator` has what operators of several patterns share. Here events wait outside of state where one watermark
is all that they wait for (`recent_events`), and a key has one timer, at the earliest time of its partial matches or
before.

Source: apache/flink CepOperator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping
from dataclasses import replace
from functools import partial
from itertools import compress
from typing import Any

from rayflink.common.functions.callables import UserFunction
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, RowBatch
from rayflink.operators.base import OperatorSnapshot
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.state.value_isolation import isolated
from rayflink.user_types import UserCode, UserKey, UserRecord

from ..conditions import ConditionContext, Test
from ..functions import Match
from ..nfa.compiler import compile_pattern
from ..nfa.masks import EventConditions, as_bool
from ..nfa.matcher import UNKNOWN, Matcher
from ..nfa.partial_matches import NODE, START_TIME, KeyMatches, Node, events_of
from ..pattern import AnyPattern
from ..pattern_meaning import meaning_entry, meaning_of
from .column_batches import RowChoice
from .match_metrics import MatchMetrics
from .match_state import (
    OLD_ENTRY,
    SIGNATURE_ENTRY,
    STAMP,
    ChangedPattern,
    TimerBatch,
    WaitingEvent,
    refuse_other_call,
    signature,
    signatures_in,
    state_names,
)
from .matching_operator import KEYS, MatchingOperator, MatchOptions
from .recent_events import EventBatch, RecentEvents, events_by_key

_MOST_RECENT = 262_144
"""Events that wait for a watermark before they are moved to state."""
_RECENT_BYTES = 64 << 20
"""Their estimated bytes before they are moved to state."""
_PLAIN_KEYS = frozenset({int, str, bytes, bool})
"""Types of keys that are in canonical form."""


class CepOperator(MatchingOperator[KeyMatches, int]):
    """Emits the results of a function for each match of a pattern, and for each partial match that timed out.

    Results of a match have the timestamp of its last event, those of a timeout the end of its time; in processing time
    they have none.

    Args:
        key_selector: a KeySelector or a callable.
        pattern: what to look for.
        function: a PatternProcessFunction, or a callable of match and context.
        options: see `MatchOptions`.
    """

    counts: MatchMetrics

    def __init__(
        self, key_selector: UserCode, pattern: AnyPattern | None, function: UserCode, options: MatchOptions
    ) -> None:
        self._automaton = compile_pattern(pattern)
        self._conditions = EventConditions(self._automaton.units)
        self._meaning = meaning_entry([meaning_of(self._automaton)])
        self._matcher = Matcher(self._automaton, self)
        self._row_choice = RowChoice(self._conditions, self._matcher)
        self._tests = (*(test for unit in self._automaton.units for test in unit.tests), *self._automaton.tests)
        super().__init__(key_selector, function, options, partial(_with_conditions, self._tests))
        self.masks_of, self.matters = self._conditions.masks, self._matcher.matters
        self.next_deadline = self._matcher.next_deadline

    # the evaluator of the matcher

    def unit(self, index: int, event: UserRecord) -> bool:
        with_unit = self._automaton.units[index]
        try:
            return self._conditions.evaluate(index, event)
        except Exception as error:
            raise self.condition_failure(with_unit.tests[0], event) from error

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        test = self._automaton.tests[index]
        try:
            return as_bool(test.function.call(event, context), test)
        except Exception as error:
            raise self.condition_failure(test, event) from error

    # life cycle and state

    def declare_state(self) -> None:
        super().declare_state()
        self._recent = RecentEvents()
        self._waits_until = MIN_TIMESTAMP
        """At least the timestamp of the last event that waits in state; MIN_TIMESTAMP where none does."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        refuse_other_call(self.ctx.label, snapshots, has_rules=False)
        super().initialize_state(snapshots)
        self.counts = MatchMetrics(self.ctx.metrics, self._automaton, self._conditions, self._matcher)
        if not snapshots:
            return
        self._waits_until = self.state.forget_masks()
        own = signature(self._automaton)
        written = signatures_in(snapshots, SIGNATURE_ENTRY) - {own}
        others = written | signatures_in(snapshots, OLD_ENTRY)
        if others:
            if not self.options.drops_on_change:
                raise ChangedPattern(self.ctx.label, state_names(min(others)), state_names(own))
            self.counts.dropped += self.state.drop_matches(None if written else own)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        self._store_recent()
        snapshot = super().snapshot_state(checkpoint_id)
        assert snapshot is not None, "keyed state has a snapshot"
        own = {SIGNATURE_ENTRY: ("union", (signature(self._automaton),)), **self._meaning}
        return replace(snapshot, lists={**snapshot.lists, **own})

    # events

    def enqueue(self, batch: Batch, out: OutputBuffer) -> None:
        """Let the events of a batch wait for the watermark."""
        batch, masks = self.with_masks(batch, self.watermark)
        values = batch.values
        if not values:
            return
        keys, stamps = self.keys_of(batch), self.stamps_of(batch)
        watermark = self.watermark
        if min(stamps) <= watermark:
            for value, stamp in zip(values, stamps, strict=True):
                if stamp <= watermark:
                    self.emit_late(value, stamp, out)
            on_time = [stamp > watermark for stamp in stamps]
            keys, stamps, masks, values = (list(compress(column, on_time)) for column in (keys, stamps, masks, values))
        distinct = set(masks)
        relevant = set(filter(self._matcher.matters, distinct))
        if len(relevant) < len(distinct):
            matters = list(map(relevant.__contains__, masks))
            self.counts.skipped += len(masks) - sum(matters)
            keys, stamps, masks, values = (list(compress(column, matters)) for column in (keys, stamps, masks, values))
        if keys:
            self._recent.add(EventBatch.of(self._canonical_keys(keys, values), list(stamps), masks, list(values)))
            if self._recent.count > _MOST_RECENT or self._recent.estimated_bytes > _RECENT_BYTES:
                self._store_recent()

    def _canonical_keys(self, keys: list[Any], values: list[Any]) -> list[Any]:
        if _PLAIN_KEYS.issuperset(map(type, keys)):
            return keys
        owners: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            if key not in owners:
                owners[key] = self.canonical(key, value)
        return [owners[key] for key in keys]

    def _store_recent(self) -> None:
        """Let the recent events wait in state."""
        for batch in self._recent.take_all():
            self.let_wait(batch.keys, list(batch.waiting()))

    def with_masks(self, batch: Batch, watermark: int | None) -> tuple[RowBatch, list[int]]:
        if isinstance(batch, ArrowBatch):
            has_stamps = watermark is None or batch.timestamps is not None
            if has_stamps and self._row_choice.is_possible and len(batch):
                batch, masks, skipped = self._row_choice.choose(batch, watermark)
                self.counts.skipped += skipped
                return batch, masks
        return super().with_masks(batch, watermark)

    def let_wait(self, owners: Iterable[Any], events: list[tuple[Any, WaitingEvent]]) -> None:
        super().let_wait(owners, events)
        if events:
            self._waits_until = max(self._waits_until, max(event[STAMP] for _, event in events))

    def take_newer(self, until: int) -> dict[Any, list[WaitingEvent]]:
        """Remove the recent events up to a time, and return those that matter by key, in the order of matching."""
        batches = self._recent.take_due(until)
        if not batches:
            return {}
        events_of = events_by_key(batches, self._active_keys(batches))
        for events in events_of.values():
            if len(events) > 1:
                events.sort(key=self.order)
        self.counts.skipped += sum(len(batch.keys) for batch in batches) - sum(map(len, events_of.values()))
        return events_of

    def _active_keys(self, batches: list[EventBatch]) -> set[Any] | None:
        """Return the keys in which a match may begin, or go on; None for all."""
        distinct: set[int] = set().union(*(batch.masks for batch in batches))
        starts = set(filter(self._matcher.may_start, distinct))
        if starts == distinct:
            return None
        active: set[Any] = set()
        others: set[Any] = set()
        for batch in batches:
            active.update(compress(batch.keys, map(starts.__contains__, batch.masks)))
            others.update(batch.keys)
        remaining = list(others - active)
        tables = (self.state.matches, self.state.waiting)[: 1 if self._waits_until == MIN_TIMESTAMP else 2]
        for table in tables:
            for first in range(0, len(remaining), KEYS):
                keys = remaining[first : first + KEYS]
                entries = table.load(keys)
                active.update(key for key in keys if entries.get(key) is not None)
        return active

    def fire(self, until: int, out: OutputBuffer) -> Iterator[None]:
        yield from super().fire(until, out)
        if self._waits_until <= until:
            self._waits_until = MIN_TIMESTAMP

    def take_due(
        self, keys: list[Any], newer: MutableMapping[Any, list[WaitingEvent]], until: int
    ) -> list[list[WaitingEvent]]:
        if self._waits_until == MIN_TIMESTAMP:
            return [newer.pop(key, []) for key in keys]
        return super().take_due(keys, newer, until)

    def unchanged(self, matches: KeyMatches | None, until: int) -> KeyMatches | None:
        """Return the partial matches whose timer has fired before their time: they need another one."""
        has_fired = matches is not None and matches.timer is not None and matches.timer <= until
        return matches if has_fired else None

    def match(
        self, key: UserKey, matches: KeyMatches | None, events: list[WaitingEvent], until: int, out: OutputBuffer
    ) -> KeyMatches | None:
        self.context.key = key
        matcher, limit, changed = self._matcher, self.options.max_partial_matches, False
        process, may_start = matcher.process, matcher.may_start
        is_timed, window = matcher.is_timed, matcher.single_window_ms
        for stamp, mask, event in events:
            if mask == UNKNOWN:
                mask = self._conditions.masks([event])[0]
            if matches is None:
                if not may_start(mask):
                    continue
                matches = KeyMatches()
            elif matches.partial:
                if is_timed and (window is None or matches.partial[0][START_TIME] + window <= stamp):
                    self._advance(matches, stamp, out)
            elif not matches.completed and not may_start(mask):
                continue
            nodes = process(matches, event, stamp, mask)
            changed = True
            if nodes:
                self._emit(nodes, stamp, out)
            if limit is not None:
                self._bound(matches, limit, stamp, out)
        if matches is None:
            return None
        partial = matches.partial
        if is_timed and partial and (window is None or partial[0][START_TIME] + window <= until):
            changed |= self._advance(matches, until, out)
        return matches if changed else None

    def _advance(self, matches: KeyMatches, until: int, out: OutputBuffer) -> bool:
        """Let time pass; return whether a partial match has timed out or become a match."""
        advanced = False
        matcher = self._matcher
        deadline = matcher.next_deadline(matches)
        while deadline is not None and deadline <= until:
            nodes, timed_out = matcher.advance(matches, deadline)
            self._emit(nodes, deadline, out)
            for match in timed_out:
                self.counts.timed_out += 1
                self.counts.timed_out_in[match.state] += 1
                if self.on_timeout is not None:
                    events = self._events_of(match.node)
                    self.call(self.on_timeout, "process_timed_out_match", events, match.timestamp, out)
            advanced = True
            deadline = matcher.next_deadline(matches)
        return advanced

    def store(self, keys: list[Any], stored: list[KeyMatches], fired: int) -> None:
        """Store the partial matches of keys, and set the timers of the earliest that will time out.

        A timer of a match that is over stays set, and stands for those that time out later.

        Args:
            fired: time up to which timers have fired.
        """
        if not keys:
            return
        table, timers = self.state.matches, TimerBatch(self.state.timers)
        entries = table.load(keys)
        next_deadline = self._matcher.next_deadline
        for key, matches in zip(keys, stored, strict=True):
            entries[key] = matches
            timer = matches.timer
            if timer is not None and timer <= fired:
                timer = matches.timer = None
            deadline = next_deadline(matches)
            if deadline is not None and (timer is None or deadline < timer):
                timers.register(deadline, key)
                matches.timer = deadline
        if table.tracks_changes:
            table.changed(keys)

    def remove(self, keys: list[Any], matches: list[KeyMatches], fired: int) -> None:
        """Remove the entries of keys without partial matches, and their timers."""
        if not keys:
            return
        timers = self.state.timers
        for key, left in zip(keys, matches, strict=True):
            if left.timer is not None and left.timer > fired:
                timers.delete(left.timer, key)
        self.state.matches.remove_all(keys)

    # results

    def _emit(self, nodes: list[Node], stamp: int, out: OutputBuffer) -> None:
        self.counts.matches += len(nodes)
        call = self.function.call
        for node in nodes:
            self.call(call, "process_match", self._events_of(node), stamp, out)

    def _events_of(self, node: Node) -> Match:
        return events_of(node, self._automaton.steps, isolated)

    def _bound(self, matches: KeyMatches, limit: int, stamp: int, out: OutputBuffer) -> None:
        for match in self._matcher.drop_earliest(matches, limit):
            self.counts.dropped += 1
            if self.options.dropped_tag is not None:
                shown = None if self.options.is_processing_time else stamp
                out.add_side(self.options.dropped_tag, self._events_of(match[NODE]), shown)


def _with_conditions(tests: tuple[Test, ...], function: UserFunction) -> UserFunction:
    """Return the function with a life cycle that includes those of the conditions."""

    def open_all(context: RuntimeContext) -> None:
        for test in tests:
            test.function.open(context)
        function.open(context)

    def close_all() -> None:
        function.close()
        for test in tests:
            test.function.close()

    return function._replace(open=open_all, close=close_all)


__all__ = ["CepOperator", "MatchOptions"]
