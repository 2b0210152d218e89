"""Aligned windows that overlap, of aggregated contents: a record is added to one pane, a window that fires joins panes.

Results, their order, lateness and timers are those of windows that keep contents of their own. A key has a timer at
the earliest window, not fired yet, of each of its panes; a window that fires sets the key's timer of the next one while
that has records of the key. For each key the joined panes of the last firing are kept beside the state, so that a
firing takes about three merges a key, however many panes a window has.

Source: van Herk and Gil/Werman, running maxima by blocks; panes as in Li et al., No Pane, No Gain (2005).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import itemgetter
from typing import Any

from rayflink.common.configuration import reading
from rayflink.common.options.registry import SHARE_PANES
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element
from rayflink.state.backend import Timers
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.errors import SnapshotMismatch
from rayflink.state.value_isolation import isolated

from ..base import OperatorContext, OperatorSnapshot, UserCodeError, shortened
from ..event_time.pacing import FIRING_RECORDS
from ..output_buffer import OutputBuffer
from ..user_function import list_of
from .pane_contents import Arrivals, Entry, pane_contents
from .panes import Panes
from .window import AnyWindow, TimeWindow
from .window_operator import Placed, WindowOperator

_ENTRY = "_panes"
_MOST_RUNNING = 65_536
"""Keys whose panes are kept joined beside a state that need not be in memory."""


class PaneWindowOperator(WindowOperator):
    """Sliding windows with their default trigger, of contents that `can_share`. Arguments as for `WindowOperator`."""

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._shares: bool = reading(ctx.config).get(SHARE_PANES)
        self._panes = Panes(self._assigner)
        self._arrivals = Arrivals()
        self._gathering = pane_contents(self._contents, self._arrivals)
        self._running: dict[Any, _Running] = {}
        self._joined_until = MIN_TIMESTAMP
        """End of the latest window that has fired in this attempt: what joins panes behind it is not in `_running`."""

    def contents_descriptor(self, name: str) -> Any:
        return ValueStateDescriptor(name) if self._shares else super().contents_descriptor(name)

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        super().initialize_state(snapshots)
        if not self._shares:
            return
        panes = self._panes
        panes_now = f"{panes.size_ms} {panes.slide_ms} {panes.offset_ms}"
        for snapshot in snapshots:
            for entry in snapshot.lists.get(_ENTRY, ("union", ()))[1]:
                written, _, arrived = entry.decode().rpartition(" ")
                if written != panes_now:
                    raise SnapshotMismatch(
                        "window-contents", self.ctx.label, f"panes of size, slide and offset {written} ms",
                        f"{panes_now} ms", "panes of other windows; keep the windows, or give the operator another uid",
                    )  # fmt: skip
                self._arrivals.next = max(self._arrivals.next, int(arrived))

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot | None:
        snapshot = super().snapshot_state(checkpoint_id)
        if snapshot is None or not self._shares or not self._arrivals.next:
            return snapshot
        panes = self._panes
        entry = f"{panes.size_ms} {panes.slide_ms} {panes.offset_ms} {self._arrivals.next}".encode()
        return replace(snapshot, lists={**snapshot.lists, _ENTRY: ("union", (entry,))})

    def end_of_keys(self) -> Iterable[Element]:
        yield from super().end_of_keys()
        self._running.clear()
        self._joined_until = MIN_TIMESTAMP

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not self._shares:
            yield from super().process(batch, input_index)
            return
        values = list_of(batch)
        if not values:
            return
        keys, stamps = self.keys_of(batch), self.window_timestamps(batch)
        only = self._panes.start(min(stamps))
        starts = [only] if only == self._panes.start(max(stamps)) else self._panes.starts(stamps)
        opened = {start: _OpenPane(self, start) for start in dict.fromkeys(starts)}
        if len(starts) < len(values):
            starts = starts * len(values)
        fires_again: list[Any] = []  # keys for which windows join panes that may hold no record of theirs in the batch
        if self._table.tracks_changes:
            for key, start in zip(keys, starts, strict=True):
                opened[start].keys.append(key)
                if opened[start].fired:
                    fires_again.append(key)
        for pane in opened.values():
            pane.state = self._table.load(pane.keys + fires_again, pane.name)
        out = OutputBuffer()
        if any(pane.is_behind for pane in opened.values()):
            placed = zip(keys, values, stamps, map(opened.__getitem__, starts), strict=True)
            yield from self._gather_behind(placed, opened, out)
        else:
            self._gather_ahead(keys, values, starts, opened)
        if self._table.tracks_changes:
            for pane in opened.values():
                self._table.changed(pane.keys, pane.name)
        else:
            self._forget(pane.name for pane in opened.values() if not pane.state)
        yield from out.take()

    def read_ahead(self, batch: Batch, input_index: int) -> None:
        if not self._shares:
            super().read_ahead(batch, input_index)
        elif len(batch):
            by_start: dict[int, list[Any]] = {}
            starts = self._panes.starts(self.window_timestamps(batch))
            for key, start in zip(self.keys_of(batch), starts, strict=True):
                by_start.setdefault(start, []).append(key)
            for start, keys in by_start.items():
                self.backend.prefetch(keys, self._panes.pane(start))

    def _forget(self, empty: Iterable[TimeWindow]) -> None:
        """Let go of panes that were only looked at."""
        if not self._table.tracks_changes:
            for name in empty:
                self._table.remove_all((), name)

    def _gather_ahead(
        self, keys: list[Any], values: list[Any], starts: list[int], opened: dict[int, _OpenPane]
    ) -> None:
        """Add records to panes of which no window has fired."""
        add = self._gathering.add
        key = value = None
        try:
            if len(opened) == 1:
                (pane,) = opened.values()
                get = pane.state.get
                for key, value in zip(keys, values, strict=True):
                    entry = get(key)
                    if entry is None:
                        self._entry_of(key, value, pane)
                    else:
                        entry[1] = add(entry[1], value)
                return
            gets = {start: pane.state.get for start, pane in opened.items()}
            for key, value, start in zip(keys, values, starts, strict=True):
                entry = gets[start](key)
                if entry is None:
                    self._entry_of(key, value, opened[start])
                else:
                    entry[1] = add(entry[1], value)
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self._contents.where, shortened(value)) from error

    def _gather_behind(
        self, placed: Placed[_OpenPane], opened: dict[int, _OpenPane], out: OutputBuffer
    ) -> Iterator[Element]:
        """Add records to panes of which some windows may have fired, or be over."""
        add = self._gathering.add
        key = value = None
        try:
            for key, value, stamp, pane in placed:
                if pane.is_over:
                    if stamp + self._lateness_ms <= self.watermark:
                        self.emit_late(value, stamp, out)
                    continue
                entry = pane.state.get(key)
                if entry is None:
                    key = self.canonical(key, value)
                    self._entry_of(key, value, pane)
                else:
                    entry[1] = add(entry[1], value)
                if pane.is_behind:
                    self._running.pop(key, None)
                    if pane.fired:
                        yield from self.emit_results(self._fire_again(key, pane, opened, out), out)
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self._contents.where, shortened(value)) from error

    def _entry_of(self, key: Any, value: Any, pane: _OpenPane) -> None:
        """Add what may be the first record of its key in a pane, and set the timers that this asks for."""
        state = pane.state
        key = self.canonical(key, value)
        entry = state.get(key)
        if entry is not None:
            entry[1] = self._gathering.add(entry[1], value)
            return
        timers = self._window_timers
        if pane.earliest is not None:
            timers.keys_at(pane.earliest.max_timestamp(), pane.earliest)[key] = None
        for window in pane.fired:
            timers.keys_at(self.cleanup_time(window), window)[key] = None
        state[key] = [self._arrivals.take(), self._gathering.first(value)]

    # firing

    def _fire_again(self, key: Any, pane: _OpenPane, opened: dict[int, _OpenPane], out: OutputBuffer) -> Iterator[None]:
        """Fire again, for the key of a record, its windows that have fired already, the latest first."""

        def entry_at(start: int) -> Entry:
            known = opened.get(start)
            state = self._table.load((key,), self._panes.pane(start)) if known is None else known.state
            if known is None and not state:
                self._forget((self._panes.pane(start),))
            return state.get(key)

        first, last = pane.fired[-1].start, pane.fired[0].end
        before = self._running_merges(
            key, pane.name, reversed(self._panes.inside(first, pane.name.start)), entry_at, False
        )
        behind = self._running_merges(key, pane.name, self._panes.inside(pane.name.start, last), entry_at, True)
        for window in pane.fired:
            left = [entry for start, entry in before if start >= window.start]
            right = [entry for start, entry in behind if start < window.end]
            entry, fresh = right[-1], False
            if left:
                entry, fresh = self._merge(key, window, left[-1], entry), self._gathering.copies
            yield from self.evaluation_calls(key, window, self._accumulator_of(entry), out, not fresh)

    def _running_merges(
        self, key: Any, window: AnyWindow, starts: Iterable[int], entry_at: Any, forwards: bool
    ) -> list[tuple[int, Entry]]:
        """Yield (start of a pane, all panes so far joined) of the panes that have contents."""
        merges: list[tuple[int, Entry]] = []
        for start in starts:
            entry = entry_at(start)
            if entry is not None:
                if merges:
                    joined = merges[-1][1]
                    entry = self._merge(key, window, *((joined, entry) if forwards else (entry, joined)))
                merges.append((start, entry))
        return merges

    def _merge(self, key: Any, window: AnyWindow, earlier: Entry, later: Entry) -> Entry:
        try:
            return self._gathering.merge_entries(earlier, later)
        except Exception as error:
            where = "merge, by which windows share panes (rayflink.window.share-panes: false does without)"
            raise self._window_failure(where, key, window) from error

    def _accumulator_of(self, entry: Entry) -> Any:
        unwrap = self._gathering.unwrap
        return entry[1] if unwrap is None else unwrap(entry[1])

    def _firing_calls(self, timers: Timers, until: int, out: OutputBuffer) -> Iterator[None]:
        if not self._shares:
            yield from super()._firing_calls(timers, until, out)
            return
        for timestamp, window, keys in timers.due_keys(until, sys.maxsize):
            over = timestamp == self.cleanup_time(window)
            if timestamp == window.max_timestamp():
                yield from self._results(keys, window, timers, out)
            if over:
                yield from self.clear_calls(keys, window)
            else:
                timers.keys_at(self.cleanup_time(window), window).update(dict.fromkeys(keys))
            yield

    def drop(self, keys: list[Any], window: Any) -> None:
        if not self._shares:
            super().drop(keys, window)
            return
        for start in self._panes.inside(window.start, window.start + self._panes.slide_ms):
            self._table.remove_all(keys, self._panes.pane(start))

    def _results(self, keys: list[Any], window: TimeWindow, timers: Timers, out: OutputBuffer) -> Iterator[None]:
        fresh = self._gathering.copies
        totals = self._totals(keys, window, timers)
        totals.sort(key=itemgetter(0))
        if self._evaluation is None and self._contents.result is None:
            out.extend([isolated(self._accumulator_of(entry)) for _, _, entry, _ in totals], window.max_timestamp())
            return
        for _, key, entry, is_joined in totals:
            yield from self.evaluation_calls(key, window, self._accumulator_of(entry), out, not (fresh and is_joined))
            yield

    def _totals(self, keys: list[Any], window: TimeWindow, timers: Timers) -> list[tuple[int, Any, Entry, bool]]:
        """Return (number of arrival, key, its panes joined, whether several were) for each key; sets the next
        timers.
        """
        following = self._panes.window(window.start + self._panes.slide_ms)
        goes_on: list[Any] = []
        totals: list[tuple[int, Any, Entry, bool]] = []
        for first in range(0, len(keys), FIRING_RECORDS):
            chosen = keys[first : first + FIRING_RECORDS]
            firing = _Firing(self, chosen, window)
            for key in chosen:
                entry, joined, newest = firing.total(key)
                if entry is None:
                    continue
                totals.append((entry[0], key, entry, joined))
                if newest >= following.start:
                    goes_on.append(key)
                else:
                    self._running.pop(key, None)
            self._forget(firing.empty_panes())
            if self._table.tracks_changes:
                self._table.changed((), window)  # nothing was, and the panes may leave memory
                if len(self._running) > _MOST_RUNNING:  # what is beside the state has a bound of its own
                    self._running.clear()
        if goes_on:
            timers.keys_at(following.max_timestamp(), following).update(dict.fromkeys(goes_on))
        self._joined_until = max(self._joined_until, window.end)
        return totals


class _OpenPane:
    """A pane that records of the current batch fall into, and its windows that are not over."""

    __slots__ = ("earliest", "fired", "is_behind", "is_over", "keys", "name", "state")

    state: dict[Any, Entry]

    def __init__(self, operator: PaneWindowOperator, start: int) -> None:
        panes, watermark = operator._panes, operator.watermark
        self.name = panes.pane(start)
        self.keys: list[Any] = []
        earliest, latest = panes.earliest(start), panes.latest(start)
        fires_from, lives_from = earliest, earliest
        if operator._event_time and watermark > MIN_TIMESTAMP:
            fires_from = max(earliest, _aligned_above(watermark + 1 - panes.size_ms, panes))
            lives_from = max(earliest, _aligned_above(watermark + 1 - panes.size_ms - operator._lateness_ms, panes))
            if watermark == MAX_TIMESTAMP:
                lives_from = latest + 1
        self.is_over = lives_from > latest
        self.earliest = panes.window(fires_from) if fires_from <= latest else None
        fired = () if self.is_over else panes.window_starts(lives_from, min(fires_from - panes.slide_ms, latest))
        self.fired = [panes.window(window_start) for window_start in fired]
        """Those that have fired, the latest first."""
        self.is_behind = self.is_over or bool(self.fired) or start < operator._joined_until


def _aligned_above(start: int, panes: Panes) -> int:
    """Return the first start of a window above a time."""
    return start + panes.slide_ms - (start - panes.offset_ms) % panes.slide_ms


class _Running:
    """The merged panes of one key at its last firing.

    Args:
        pivot: where the window is divided.
    """

    __slots__ = ("front", "newest", "pivot", "rest", "until")

    def __init__(self, pivot: int) -> None:
        self.pivot = self.until = pivot
        self.front: list[tuple[int, Entry]] = []
        """(start of a pane, all from there to the pivot joined), the earliest last."""
        self.rest: Entry = None
        """Return all panes from the pivot to `until`, merged."""
        self.newest = MIN_TIMESTAMP
        """Return the start of the latest pane that is not empty."""


class _Firing:
    """One window while it fires for some keys."""

    def __init__(self, operator: PaneWindowOperator, keys: list[Any], window: TimeWindow) -> None:
        self._operator, self._keys, self._window = operator, keys, window
        panes = operator._panes
        self._pivot = panes.pivot(window.start)
        self._before = window.end - panes.slide_ms
        self._states: dict[int, dict[Any, Entry]] = {}
        self._front = panes.inside(window.start, self._pivot)[::-1]
        self._rest = panes.inside(self._pivot, window.end)
        self._added = panes.inside(max(self._before, self._pivot), window.end)

    def total(self, key: Any) -> tuple[Entry, bool, int]:
        """Return all panes of the key in the window merged, or None; whether that is unshared; start of the newest."""
        operator, window = self._operator, self._window
        running = operator._running.get(key)
        if running is not None and running.pivot == self._pivot and running.until == self._before:
            added = self._added
        else:
            running = operator._running[key] = _Running(self._pivot)
            running.front = operator._running_merges(
                key, window, self._front, lambda start: self._state(start).get(key), False
            )
            if running.front:
                running.newest = running.front[0][0]
            added = self._rest
        for start in added:
            entry = self._state(start).get(key)
            if entry is not None:
                running.rest = entry if running.rest is None else operator._merge(key, window, running.rest, entry)
                running.newest = start
        running.until = window.end
        front = running.front
        while front and front[-1][0] < window.start:
            front.pop()
        if not front:
            return running.rest, False, running.newest
        if running.rest is None:
            return front[-1][1], False, running.newest
        return operator._merge(key, window, front[-1][1], running.rest), True, running.newest

    def empty_panes(self) -> list[TimeWindow]:
        """Return the panes that were looked up and are empty."""
        return [self._operator._panes.pane(start) for start, state in self._states.items() if not state]

    def _state(self, start: int) -> dict[Any, Entry]:
        state = self._states.get(start)
        if state is None:
            table, name = self._operator._table, self._operator._panes.pane(start)
            state = self._states[start] = table.load(self._keys, name)
        return state


__all__ = ["PaneWindowOperator"]
