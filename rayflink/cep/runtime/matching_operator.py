"""The common part of operators that match patterns on the events of each key, in the order of their times.

In event time an event waits until the watermark has reached its timestamp, so that a key's events are matched in the
order of their times; events of one time are in order of arrival, or as a comparator says. An event that can change no
match of any key, as its conditions are met nowhere, does not wait at all, and nothing is stored of it.

Partial matches whose time has passed are found by a timer for the earliest of a key. Time advances to each of these
moments one after the other, so the result does not depend on how often watermarks come.

Source: apache/flink CepOperator.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from typing import Any, Generic, Protocol, TypeVar

from rayflink.common.functions.callables import UserFunction
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import MIN_TIMESTAMP, Batch, Element, RowBatch
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.operators.base import UserCodeError, shortened
from rayflink.operators.capabilities import ProcessingTimers
from rayflink.operators.event_time.pacing import paced
from rayflink.operators.keyed.keyed_operator import KeyedOperator
from rayflink.operators.output_buffer import OutputBuffer
from rayflink.operators.user_function import list_of, timestamps_of
from rayflink.operators.windows.window_operator import LATE_METRIC
from rayflink.state.backend import NO_KEY
from rayflink.user_types import UserCode, UserKey, UserRecord

from ..conditions import Test, label_of
from ..functions import Match, MatchContext, as_match_function, timeout_handler
from .event_order import Comparator, order_of
from .match_state import STAMP, MatchState, TimerBatch, WaitingEvent

KEYS = 256
"""Keys whose state is read and written together."""
_stamp_of = itemgetter(STAMP)


class Emptiable(Protocol):
    """Partial matches of a key."""

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has to be stored."""
        ...


class EventCounts(Protocol):
    """Counts what becomes of events."""

    skipped: int


Matches = TypeVar("Matches", bound=Emptiable)
"""The partial matches of a key, as they are stored."""
Mask = TypeVar("Mask")
"""The answers of the conditions on an event alone, as `match` wants them."""


@dataclass(frozen=True)
class MatchOptions:
    """Settings of an operator that matches events.

    Args:
        is_processing_time: whether events are matched when they arrive, by the wall clock.
        late_tag: side output of events that come behind the watermark; None: they are counted and dropped.
        comparator: (event, event) -> negative, 0 or positive: the order of events of one time; None: as they arrive.
        max_partial_matches: of a key; beyond it those that began first are dropped; None for any number.
        dropped_tag: side output of the partial matches that were dropped for that; None: they are counted alone.
        drops_on_change: whether partial matches of another pattern are dropped when a snapshot is restored.
        disables_on_error: whether a rule a condition of which raises is disabled; else the job fails.
        comparator_site: the line of the program that passed the comparator, or "".
    """

    is_processing_time: bool = False
    late_tag: str | None = None
    comparator: Comparator | None = None
    max_partial_matches: int | None = None
    dropped_tag: str | None = None
    drops_on_change: bool = False
    disables_on_error: bool = False
    comparator_site: str = ""


class MatchingOperator(KeyedOperator, ProcessingTimers, Generic[Matches, Mask]):
    """Gives the events of each key to `match` in the order of their times, and stores what that returns.

    Results of a match have the timestamp of its last event, those of a timeout the end of its time; in processing time
    they have none.

    Args:
        key_selector: a KeySelector or a callable.
        function: a PatternProcessFunction, or a callable of match and context.
        options: see `MatchOptions`.
        with_life_cycle: adds to the life cycle of the function; None: as it is.
    """

    def __init__(
        self,
        key_selector: UserCode,
        function: UserCode,
        options: MatchOptions,
        with_life_cycle: Callable[[UserFunction], UserFunction] | None = None,
    ) -> None:
        self.options = options
        self.function = as_match_function(function)
        self.on_timeout = timeout_handler(function)
        super().__init__(key_selector, self.function if with_life_cycle is None else with_life_cycle(self.function))
        self.order: Callable[[WaitingEvent], Any] = _stamp_of
        if options.comparator is not None:
            self.order = order_of(options.comparator, self.comparator_failure)

    counts: EventCounts

    # the decisions of a kind of patterns

    masks_of: Callable[[list[UserRecord]], list[Any]]
    """Returns the mask with which each event waits, or is matched at once in processing time."""
    matters: Callable[[Any], bool]
    """Returns whether an event with such a mask may change any partial match, or begin one."""
    write: Callable[[Matches], object] | None = None
    """Returns what is stored for the partial matches of a key; None: these."""
    next_deadline: Callable[[Matches], int | None]
    """Returns the timestamp at which the time of a partial match has passed; None for never."""

    def with_masks(self, batch: Batch, watermark: int | None) -> tuple[RowBatch, list[Any]]:
        """Return events as Python values, and their masks; maybe only those that are late or matter.

        Args:
            watermark: up to which events are late; None where none is.
        """
        rows = batch if isinstance(batch, RowBatch) else RowBatch(list_of(batch), timestamps_of(batch))
        return rows, self.masks_of(rows.values)

    def prepare(self, due: list[list[WaitingEvent]]) -> list[list[Any]]:
        """Return the events of several keys with the masks that `match` wants."""
        return due

    @abstractmethod
    def match(
        self,
        key: UserKey,
        matches: Matches | None,
        events: list[tuple[int, Mask, UserRecord]],
        until: int,
        out: OutputBuffer,
    ) -> Matches | None:
        """Match events of a key and let its time pass; return its partial matches, None where nothing changed."""

    def take_newer(self, until: int) -> dict[UserKey, list[WaitingEvent]]:
        """Remove and return the events up to a time that are not in state, by key, in the order of matching."""
        return {}

    def unchanged(self, matches: Matches | None, until: int) -> Matches | None:
        """Return partial matches that are stored again although no event has changed them; None: they are not."""
        return None

    # life cycle and state

    def now_ms(self) -> int:
        return int(self.ctx.clock.now_ms())

    def declare_state(self) -> None:
        self.state = MatchState(self.backend)

    def open(self) -> None:
        metrics = self.ctx.metrics
        self._late_dropped = None if metrics is None else metrics.counter(LATE_METRIC)
        super().open()

    # events

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        out = OutputBuffer()
        if self.options.is_processing_time:
            return paced(self.match_at_once(batch, out), out, self.ctx.clock)
        self.enqueue(batch, out)
        return iter(out.take())

    def enqueue(self, batch: Batch, out: OutputBuffer) -> None:
        """Let the events of a batch wait for the watermark."""
        batch, masks = self.with_masks(batch, self.watermark)
        values = batch.values
        if not values:
            return
        keys, stamps = self.keys_of(batch), self.stamps_of(batch)
        matters, watermark = self.matters, self.watermark
        accepted: list[tuple[Any, WaitingEvent]] = []
        owners: dict[Any, Any] = {}
        skipped = 0
        for key, value, stamp, mask in zip(keys, values, stamps, masks, strict=True):
            if stamp <= watermark:
                self.emit_late(value, stamp, out)
            elif matters(mask):
                owner = owners.get(key, NO_KEY)
                if owner is NO_KEY:
                    owner = owners[key] = self.canonical(key, value)
                accepted.append((owner, (stamp, mask, value)))
            else:
                skipped += 1
        self.counts.skipped += skipped
        self.let_wait(owners, accepted)

    def let_wait(self, owners: Iterable[Any], events: list[tuple[Any, WaitingEvent]]) -> None:
        if events:
            waiting = self.state.waiting
            keys = self.state.wait_for_time(events, waiting.load(owners))
            if waiting.tracks_changes:
                waiting.changed(keys)

    def on_event_time(self, until: int) -> Iterator[Element]:
        out = OutputBuffer()
        return paced(self.fire(until, out), out, self.ctx.clock)

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the earliest timer, when no further event of its time can come."""
        next_timer = self.state.timers.next_timestamp() if self.options.is_processing_time else None
        return None if next_timer is None else next_timer + 1

    def on_processing_time(self, now_ms: int) -> Iterator[Element]:
        if not self.options.is_processing_time:
            return iter(())
        out = OutputBuffer()
        return paced(self.fire(now_ms - 1, out), out, self.ctx.clock)

    @property
    def waiting_timers(self) -> int:
        return len(self.state.timers) if self.options.is_processing_time else 0

    def match_at_once(self, batch: Batch, out: OutputBuffer) -> Iterator[None]:
        """Match the events of a batch as they are, in processing time."""
        batch, masks = self.with_masks(batch, None)
        values = batch.values
        keys, now = self.keys_of(batch), self.now_ms()
        matters = self.matters
        waits = self.options.comparator is not None
        for key, value, mask in zip(keys, values, masks, strict=True):
            if not matters(mask):
                self.counts.skipped += 1
                continue
            owner = self.canonical(key, value)
            if waits:
                self.let_wait((owner,), [(owner, (now, mask, value))])
                continue
            matches = self.state.matches.get(owner)
            after = self.match(owner, matches, [(now, mask, value)], now, out)
            if after is not None and not after.is_empty:
                self.store([owner], [after], MIN_TIMESTAMP)
            elif after is not None and matches is not None:
                self.remove([owner], [after], MIN_TIMESTAMP)
            yield
        self.context.key = NO_KEY

    def fire(self, until: int, out: OutputBuffer) -> Iterator[None]:
        """Match the events up to a time of all keys that have one, or a partial match whose time has passed."""
        newer = self.take_newer(until)
        keys_at: dict[int, list[Any]] = {}
        for key, events in newer.items():
            keys_at.setdefault(events[0][STAMP], []).append(key)
        timers = ((stamp, due) for stamp, _, due in self.state.timers.due_keys(until, KEYS))
        keys: dict[Any, None] = {}
        for _, due in merge(timers, sorted(keys_at.items()), key=itemgetter(0)):
            keys.update(dict.fromkeys(due))
            if len(keys) >= KEYS:
                yield from self._match_keys(list(keys), newer, until, out)
                keys = {}
        if keys:
            yield from self._match_keys(list(keys), newer, until, out)
        self.context.key = NO_KEY

    def _match_keys(
        self, keys: list[Any], newer: MutableMapping[Any, list[WaitingEvent]], until: int, out: OutputBuffer
    ) -> Iterator[None]:
        """Match the events up to a time of a few keys, whose state is read and written together.

        Args:
            newer: events that are not in state; those of the keys are removed.
        """
        due = self.prepare(self.take_due(keys, newer, until))
        known = self.state.matches.load(keys)
        before = [known.get(key) for key in keys]
        stored: list[Matches] = []
        stored_keys: list[Any] = []
        gone: list[Matches] = []
        gone_keys: list[Any] = []
        for key, events, matches in zip(keys, due, before, strict=True):
            after = self.match(key, matches, events, until, out) if events or matches is not None else None
            if after is None:
                after = self.unchanged(matches, until)
                if after is None:
                    continue
            if not after.is_empty:
                stored.append(after)
                stored_keys.append(key)
            elif matches is not None:
                gone.append(after)
                gone_keys.append(key)
            if out.count:
                yield
        self.store(stored_keys, stored, until)
        self.remove(gone_keys, gone, until)

    def take_due(
        self, keys: list[Any], newer: MutableMapping[Any, list[WaitingEvent]], until: int
    ) -> list[list[WaitingEvent]]:
        """Remove and return the events of keys up to a time, in the order in which they are matched."""
        state, order = self.state, self.order
        entries = state.waiting.load(keys)
        due: list[list[WaitingEvent]] = []
        empty: list[Any] = []
        remaining: list[tuple[Any, list[WaitingEvent]]] = []
        for key in keys:
            waiting, fresh = entries.get(key), newer.pop(key, [])
            if waiting is None:
                due.append(fresh)
                continue
            events = sorted([*waiting, *fresh], key=order) if fresh or len(waiting) > 1 else waiting
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

    def store(self, keys: list[Any], stored: list[Matches], fired: int) -> None:
        """Store the partial matches of keys, and set the timers of the earliest that will time out.

        Args:
            fired: time up to which timers have fired.
        """
        if not keys:
            return
        table, timers = self.state.matches, TimerBatch(self.state.timers)
        entries, write = table.load(keys), self.write
        for key, matches in zip(keys, stored, strict=True):
            entries[key] = matches if write is None else write(matches)
            deadline = self.next_deadline(matches)
            if deadline is not None:
                timers.register(deadline, key)
        if table.tracks_changes:
            table.changed(keys)

    def remove(self, keys: list[Any], matches: list[Matches], fired: int) -> None:
        """Remove the entries of keys without partial matches."""
        if keys:
            self.state.matches.remove_all(keys)

    # results

    def call(
        self, function: Callable[[Match, MatchContext], Any], where: str, match: Match, stamp: int, out: OutputBuffer
    ) -> None:
        """Call a function for a match, or for a partial match whose time has passed, and emit its results."""
        shown = None if self.options.is_processing_time else stamp
        try:
            results = function(match, EventContext(self, stamp, shown, out))
            if results is not None:
                out.add_results(iterate_results(results), shown)
        except Exception as error:
            raise self.failure(where, shortened(match)) from error

    def emit_late(self, value: UserRecord, stamp: int, out: OutputBuffer) -> None:
        if self.options.late_tag is not None:
            out.add_side(self.options.late_tag, value, stamp)
        elif self._late_dropped is not None:
            self._late_dropped.inc(1)

    # errors

    def stamps_of(self, batch: Batch) -> list[int]:
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

    def condition_failure(self, test: Test, event: UserRecord, owner: str = "") -> UserCodeError:
        """Return the error to raise from the exception of a condition.

        Args:
            owner: says which rule has the condition, where there are several.
        """
        site = test.call_site or self.ctx.call_site
        return UserCodeError(self.ctx.operator_name, site, shortened(event), f"the condition {test.label!r}{owner}")

    def comparator_failure(self, first: UserRecord, second: UserRecord) -> UserCodeError:
        """Return the error to raise where the comparator gives no number for two events, or raises."""
        site, pair = self.options.comparator_site or self.ctx.call_site, f"{shortened(first)} and {shortened(second)}"
        return UserCodeError(
            self.ctx.operator_name, site, pair, f"the comparator {label_of(self.options.comparator)!r}"
        )


class WithClock(Protocol):
    """Knows the time of the wall clock."""

    def now_ms(self) -> int:
        """Return epoch milliseconds."""
        ...


class EventContext(MatchContext):
    """The context of a match."""

    __slots__ = ("_operator", "_out", "_shown", "_stamp")

    def __init__(self, operator: WithClock, stamp: int, shown: int | None, out: OutputBuffer) -> None:
        self._operator, self._stamp, self._shown, self._out = operator, stamp, shown, out

    def timestamp(self) -> int:
        return self._stamp

    def current_processing_time(self) -> int:
        return self._operator.now_ms()

    def output(self, tag: OutputTag[Any], value: UserRecord) -> None:
        self._out.add_side(tag.tag_id, value, self._shown)


__all__ = [
    "KEYS", "Emptiable", "EventContext", "EventCounts", "Mask", "MatchOptions", "Matches", "MatchingOperator",
]  # fmt: skip
