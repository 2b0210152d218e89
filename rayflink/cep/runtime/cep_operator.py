"""Matches a pattern on the events of each key, in the order of their times.

In event time an event waits until the watermark has reached its timestamp, so that a key's events are matched in the
order of their times; events of one time are in order of arrival, or as a comparator says. An event that can change no
match of any key, as its conditions are met nowhere, does not wait at all, and nothing is stored of it. The others wait
outside of state where one watermark is all that they wait for; see `recent_events`.

Partial matches whose time has passed are found by a timer of their key, at the earliest of these times or before. Time
advances to each of these moments one after the other, so the result does not depend on how often watermarks come.

Source: apache/flink CepOperator.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from heapq import merge
from itertools import compress
from operator import itemgetter
from typing import Any

from rayflink.common.functions.callables import UserFunction
from rayflink.common.functions.function_classes import RuntimeContext
from rayflink.common.records.batches import MIN_TIMESTAMP, ArrowBatch, Batch, Element, RowBatch
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.operators.base import OperatorSnapshot, UserCodeError, shortened
from rayflink.operators.capabilities import ProcessingTimers
from rayflink.operators.event_time.pacing import paced
from rayflink.operators.keyed.keyed_operator import KeyedOperator
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.operators.user_function import list_of, timestamps_of
from rayflink.operators.windows.window_operator import LATE_METRIC
from rayflink.state.backend import NO_KEY
from rayflink.state.value_isolation import isolated
from rayflink.user_types import UserCode, UserKey, UserRecord

from ..conditions import ConditionContext, Test
from ..functions import Match, MatchContext, as_match_function, timeout_handler
from ..nfa.compiler import compile_pattern
from ..nfa.masks import EventConditions, as_bool
from ..nfa.matcher import UNKNOWN, Matcher
from ..nfa.partial_matches import NODE, START_TIME, KeyMatches, Node, events_of
from ..pattern import AnyPattern
from ..saved_matches import MEANING, meaning_of
from .column_batches import RowChoice
from .match_metrics import MatchMetrics
from .match_state import (
    OLD_ENTRY,
    SIGNATURE_ENTRY,
    STAMP,
    ChangedPattern,
    MatchState,
    TimerBatch,
    WaitingEvent,
    refuse_other_call,
    signature,
    signatures_in,
    state_names,
)
from .matching_operator import EventContext, MatchOptions, order_of
from .recent_events import EventBatch, RecentEvents, events_by_key

_KEYS = 256
"""Keys whose state is read and written together."""
_MOST_RECENT = 262_144
"""Events that wait for a watermark before they are moved to state."""
_RECENT_BYTES = 64 << 20
"""Their estimated bytes before they are moved to state."""
_PLAIN_KEYS = frozenset({int, str, bytes, bool})
"""Types of keys that are in canonical form."""
_stamp_of = itemgetter(STAMP)


class CepOperator(KeyedOperator, ProcessingTimers):
    """Emits the results of a function for each match of a pattern, and for each partial match that timed out.

    Results of a match have the timestamp of its last event, those of a timeout the end of its time; in processing time
    they have none.

    Args:
        key_selector: a KeySelector or a callable.
        pattern: what to look for.
        function: a PatternProcessFunction, or a callable of match and context.
        options: see `MatchOptions`.
    """

    def __init__(
        self, key_selector: UserCode, pattern: AnyPattern | None, function: UserCode, options: MatchOptions
    ) -> None:
        self._function = as_match_function(function)
        self._on_timeout = timeout_handler(function)
        self._automaton = compile_pattern(pattern)
        self._conditions = EventConditions(self._automaton.units)
        self._options = options
        self._meaning = pickle.dumps(meaning_of(self._automaton))
        self._matcher = Matcher(self._automaton, self)
        self._row_choice = RowChoice(self._conditions, self._matcher)
        self._tests = (*(test for unit in self._automaton.units for test in unit.tests), *self._automaton.tests)
        super().__init__(key_selector, _with_conditions(self._function, self._tests))
        order = options.comparator
        self._order = _stamp_of if order is None else order_of(order)

    # the evaluator of the matcher

    def unit(self, index: int, event: UserRecord) -> bool:
        with_unit = self._automaton.units[index]
        try:
            return self._conditions.evaluate(index, event)
        except Exception as error:
            raise self._condition_failure(with_unit.tests[0], event) from error

    def test(self, index: int, event: UserRecord, context: ConditionContext) -> bool:
        test = self._automaton.tests[index]
        try:
            return as_bool(test.function.call(event, context), test)
        except Exception as error:
            raise self._condition_failure(test, event) from error

    def now_ms(self) -> int:
        return int(self.ctx.clock.now_ms())

    # life cycle and state

    def declare_state(self) -> None:
        self._state = MatchState(self.backend)
        self._recent = RecentEvents()
        self._waits_until = MIN_TIMESTAMP
        """At least the timestamp of the last event that waits in state; MIN_TIMESTAMP where none does."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        refuse_other_call(self.ctx.label, snapshots, has_rules=False)
        super().initialize_state(snapshots)
        self._metrics = MatchMetrics(self.ctx.metrics, self._automaton, self._conditions, self._matcher)
        if not snapshots:
            return
        self._waits_until = self._state.forget_masks()
        own = signature(self._automaton)
        written = signatures_in(snapshots, SIGNATURE_ENTRY) - {own}
        others = written | signatures_in(snapshots, OLD_ENTRY)
        if others:
            if not self._options.drops_on_change:
                raise ChangedPattern(self.ctx.label, state_names(min(others)), state_names(own))
            self._metrics.dropped += self._state.drop_matches(None if written else own)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        self._store_recent()
        snapshot = super().snapshot_state(checkpoint_id)
        assert snapshot is not None, "keyed state has a snapshot"
        own = {SIGNATURE_ENTRY: signature(self._automaton), MEANING: self._meaning}
        return replace(snapshot, lists={**snapshot.lists, **{name: ("union", (data,)) for name, data in own.items()}})

    def open(self) -> None:
        metrics = self.ctx.metrics
        self._late_dropped = None if metrics is None else metrics.counter(LATE_METRIC)
        super().open()

    # events

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        out = OutputBuffer()
        if self._options.is_processing_time:
            return paced(self._match_at_once(batch, out), out, self.ctx.clock)
        self._enqueue(batch, out)
        return iter(out.take())

    def _enqueue(self, batch: Batch, out: OutputBuffer) -> None:
        """Let the events of a batch wait for the watermark."""
        batch, masks = self._with_masks(batch, self.watermark)
        values = batch.values
        if not values:
            return
        keys, stamps = self.keys_of(batch), self._stamps(batch)
        watermark = self.watermark
        if min(stamps) <= watermark:
            for value, stamp in zip(values, stamps, strict=True):
                if stamp <= watermark:
                    self._emit_late(value, stamp, out)
            on_time = [stamp > watermark for stamp in stamps]
            keys, stamps, masks, values = (list(compress(column, on_time)) for column in (keys, stamps, masks, values))
        distinct = set(masks)
        relevant = set(filter(self._matcher.matters, distinct))
        if len(relevant) < len(distinct):
            matters = list(map(relevant.__contains__, masks))
            self._metrics.skipped += len(masks) - sum(matters)
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
            self._let_wait(batch.keys, list(batch.waiting()))

    def _with_masks(self, batch: Batch, watermark: int | None) -> tuple[RowBatch, list[int]]:
        """Return events as Python values, and their masks; of columns only the rows that are needed.

        Args:
            watermark: up to which events are late; None where none is.
        """
        if isinstance(batch, ArrowBatch):
            has_stamps = watermark is None or batch.timestamps is not None
            if has_stamps and self._row_choice.is_possible and len(batch):
                batch, masks, skipped = self._row_choice.choose(batch, watermark)
                self._metrics.skipped += skipped
                return batch, masks
            batch = RowBatch(list_of(batch), timestamps_of(batch))
        return batch, self._conditions.masks(batch.values)

    def _let_wait(self, owners: Iterable[Any], events: list[tuple[Any, WaitingEvent]]) -> None:
        if events:
            waiting = self._state.waiting
            keys = self._state.wait_for_time(events, waiting.load(owners))
            if waiting.tracks_changes:
                waiting.changed(keys)
            self._waits_until = max(self._waits_until, max(event[STAMP] for _, event in events))

    def on_event_time(self, until: int) -> Iterator[Element]:
        out = OutputBuffer()
        return paced(self._fire(until, out), out, self.ctx.clock)

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the earliest timer, when no further event of its time can come."""
        next_timer = self._state.timers.next_timestamp() if self._options.is_processing_time else None
        return None if next_timer is None else next_timer + 1

    def on_processing_time(self, now_ms: int) -> Iterator[Element]:
        if not self._options.is_processing_time:
            return iter(())
        out = OutputBuffer()
        return paced(self._fire(now_ms - 1, out), out, self.ctx.clock)

    @property
    def waiting_timers(self) -> int:
        return len(self._state.timers) if self._options.is_processing_time else 0

    def _match_at_once(self, batch: Batch, out: OutputBuffer) -> Iterator[None]:
        """Match the events of a batch as they are, in processing time."""
        batch, masks = self._with_masks(batch, None)
        values = batch.values
        keys, now = self.keys_of(batch), self.now_ms()
        waits = self._options.comparator is not None
        for key, value, mask in zip(keys, values, masks, strict=True):
            if not self._matcher.matters(mask):
                self._metrics.skipped += 1
                continue
            owner = self.canonical(key, value)
            if waits:
                self._let_wait((owner,), [(owner, (now, mask, value))])
                continue
            matches = self._state.matches.get(owner)
            after = self._match(owner, matches, [(now, mask, value)], now, out)
            if after is not None and not after.is_empty:
                self._store([owner], [after], MIN_TIMESTAMP)
            elif after is not None and matches is not None:
                self._remove([owner], [after], MIN_TIMESTAMP)
            yield
        self.context.key = NO_KEY

    def _fire(self, until: int, out: OutputBuffer) -> Iterator[None]:
        """Match the events up to a time of all keys that have one, or a partial match whose time has passed."""
        recent = self._take_recent(until)
        keys_at: dict[int, list[Any]] = {}
        for key, events in recent.items():
            keys_at.setdefault(events[0][STAMP], []).append(key)
        timers = ((stamp, due) for stamp, _, due in self._state.timers.due_keys(until, _KEYS))
        keys: dict[Any, None] = {}
        for _, due in merge(timers, sorted(keys_at.items()), key=itemgetter(0)):
            keys.update(dict.fromkeys(due))
            if len(keys) >= _KEYS:
                yield from self._match_keys(list(keys), recent, until, out)
                keys = {}
        if keys:
            yield from self._match_keys(list(keys), recent, until, out)
        if self._waits_until <= until:
            self._waits_until = MIN_TIMESTAMP
        self.context.key = NO_KEY

    def _take_recent(self, until: int) -> dict[Any, list[WaitingEvent]]:
        """Remove the recent events up to a time, and return those that matter by key, in the order of matching."""
        batches = self._recent.take_due(until)
        if not batches:
            return {}
        events_of = events_by_key(batches, self._active_keys(batches))
        for events in events_of.values():
            if len(events) > 1:
                events.sort(key=self._order)
        self._metrics.skipped += sum(len(batch.keys) for batch in batches) - sum(map(len, events_of.values()))
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
        tables = (self._state.matches, self._state.waiting)[: 1 if self._waits_until == MIN_TIMESTAMP else 2]
        for table in tables:
            for first in range(0, len(remaining), _KEYS):
                keys = remaining[first : first + _KEYS]
                entries = table.load(keys)
                active.update(key for key in keys if entries.get(key) is not None)
        return active

    def _match_keys(
        self, keys: list[Any], recent: dict[Any, list[WaitingEvent]], until: int, out: OutputBuffer
    ) -> Iterator[None]:
        """Match the events up to a time of a few keys, whose state is read and written together.

        Args:
            recent: events that are not in state; those of the keys are removed.
        """
        due = self._take_due(keys, recent, until)
        known = self._state.matches.load(keys)
        before = [known.get(key) for key in keys]
        stored: list[KeyMatches] = []
        stored_keys: list[Any] = []
        gone: list[KeyMatches] = []
        gone_keys: list[Any] = []
        for key, events, matches in zip(keys, due, before, strict=True):
            after = self._match(key, matches, events, until, out) if events or matches is not None else None
            if after is None:
                if matches is None or matches.timer is None or matches.timer > until:
                    continue
                after = matches  # its timer has fired before its time
            if not after.is_empty:
                stored.append(after)
                stored_keys.append(key)
            elif matches is not None:
                gone.append(after)
                gone_keys.append(key)
            if out.count:
                yield
        self._store(stored_keys, stored, until)
        self._remove(gone_keys, gone, until)

    def _take_due(self, keys: list[Any], recent: dict[Any, list[WaitingEvent]], until: int) -> list[list[WaitingEvent]]:
        """Remove and return the events of keys up to a time, in the order in which they are matched."""
        if self._waits_until == MIN_TIMESTAMP:
            return [recent.pop(key, []) for key in keys]
        state, order = self._state, self._order
        entries = state.waiting.load(keys)
        due: list[list[WaitingEvent]] = []
        empty: list[Any] = []
        remaining: list[tuple[Any, list[WaitingEvent]]] = []
        for key in keys:
            waiting, newer = entries.get(key), recent.pop(key, [])
            if waiting is None:
                due.append(newer)
                continue
            events = sorted([*waiting, *newer], key=order) if newer or len(waiting) > 1 else waiting
            if events[-1][STAMP] <= until:
                empty.append(key)
            else:
                number = bisect_right(events, until, key=_stamp_of)
                if number < len(events):
                    remaining.append((key, events[number:]))
                events = events[:number]
            due.append(events)
        for key, events in remaining:
            state.waiting.put(key, events)
            state.timers.register(events[0][STAMP], key)
        state.waiting.remove_all(empty)
        return due

    def _match(
        self, key: UserKey, matches: KeyMatches | None, events: list[WaitingEvent], until: int, out: OutputBuffer
    ) -> KeyMatches | None:
        """Match events of a key and let its time pass; return its partial matches, None where nothing changed."""
        self.context.key = key
        matcher, limit, changed = self._matcher, self._options.max_partial_matches, False
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
                self._metrics.timed_out += 1
                self._metrics.timed_out_in[match.state] += 1
                if self._on_timeout is not None:
                    self._call(self._on_timeout, "process_timed_out_match", match.node, match.timestamp, out)
            advanced = True
            deadline = matcher.next_deadline(matches)
        return advanced

    def _store(self, keys: list[Any], stored: list[KeyMatches], fired: int) -> None:
        """Store the partial matches of keys, and set the timers of the earliest that will time out.

        A timer of a match that is over stays set, and stands for those that time out later.

        Args:
            fired: time up to which timers have fired.
        """
        if not keys:
            return
        table, timers = self._state.matches, TimerBatch(self._state.timers)
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

    def _remove(self, keys: list[Any], matches: list[KeyMatches], fired: int) -> None:
        """Remove the entries of keys without partial matches, and their timers."""
        if not keys:
            return
        timers = self._state.timers
        for key, left in zip(keys, matches, strict=True):
            if left.timer is not None and left.timer > fired:
                timers.delete(left.timer, key)
        self._state.matches.remove_all(keys)

    # results

    def _emit(self, nodes: list[Node], stamp: int, out: OutputBuffer) -> None:
        self._metrics.matches += len(nodes)
        call = self._function.call
        for node in nodes:
            self._call(call, "process_match", node, stamp, out)

    def _call(
        self, function: Callable[[Match, MatchContext], Any], where: str, node: Node, stamp: int, out: OutputBuffer
    ) -> None:
        shown = None if self._options.is_processing_time else stamp
        match = events_of(node, self._automaton.steps, isolated)
        try:
            results = function(match, EventContext(self, stamp, shown, out))
            if results is not None:
                out.add_results(iterate_results(results), shown)
        except Exception as error:
            raise self.failure(where, shortened(match)) from error

    def _bound(self, matches: KeyMatches, limit: int, stamp: int, out: OutputBuffer) -> None:
        for match in self._matcher.drop_earliest(matches, limit):
            self._metrics.dropped += 1
            if self._options.dropped_tag is not None:
                shown = None if self._options.is_processing_time else stamp
                out.add_side(self._options.dropped_tag, events_of(match[NODE], self._automaton.steps, isolated), shown)

    def _emit_late(self, value: UserRecord, stamp: int, out: OutputBuffer) -> None:
        if self._options.late_tag is not None:
            out.add_side(self._options.late_tag, value, stamp)
        elif self._late_dropped is not None:
            self._late_dropped.inc(1)

    # errors

    def _stamps(self, batch: Batch) -> list[int]:
        stamps = timestamps_of(batch)
        if stamps is None or MIN_TIMESTAMP in stamps:
            value = list_of(batch)[0 if stamps is None else stamps.index(MIN_TIMESTAMP)]
            error = ValueError(
                "a pattern in event time needs events with timestamps, and this one has none; call "
                "assign_timestamps_and_watermarks(strategy) before CEP.pattern, where the strategy has "
                "with_timestamp_assigner(...), or call in_processing_time() on the pattern stream"
            )
            raise self.failure("pattern", shortened(value)) from error
        return stamps

    def _condition_failure(self, test: Test, event: UserRecord) -> UserCodeError:
        site = test.call_site or self.ctx.call_site
        return UserCodeError(self.ctx.operator_name, site, shortened(event), f"the condition {test.label!r}")


def _with_conditions(function: UserFunction, tests: tuple[Test, ...]) -> UserFunction:
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
