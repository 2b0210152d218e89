"""Sessions with their default trigger: a record extends a session where it can.

The sessions of a key are one entry of state. Where all records are kept they are lists beside it, named after the first
record of their session, which are only appended to until they are evaluated. A key has one timer, which is never behind
the time at which the first of its sessions is due, and mostly a little before it: a record that extends a session
touches no timer, and many keys share one time. A timer that comes too early is set anew. Results are those of
`MergingWindowOperator`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

from rayflink.common.records.batches import Batch, Element
from rayflink.state.backend import Timers
from rayflink.state.descriptors import ListStateDescriptor, ValueStateDescriptor

from ..base import UserCodeError, shortened
from ..event_time.pacing import FIRING_RECORDS, paced
from ..output_buffer import OutputBuffer
from ..user_function import list_of
from .merging_windows import NO_WINDOW_STATE
from .window import AnyWindow, TimeWindow
from .window_operator import BaseWindowOperator, Placed

Sessions = list[Any]
"""The sessions of one key, disjoint, in order of time: start, end, accumulator, whether it has fired, and so on."""
_FIELDS = 4
_MANY_KEYS = 10_000
"""Sessions with one end time, which are taken out together."""
_TIMES_A_GAP = 64
"""Number of times into which the timers of sessions that end within one gap are gathered, as long as they are far."""


class SessionWindowOperator(BaseWindowOperator):
    """Sessions of a fixed or a dynamic gap, by either clock. Arguments as for `BaseWindowOperator`."""

    _assigner: Any
    _records: Any = None
    """The table of record lists by key and name; None where contents are aggregated."""

    def contents_descriptor(self, name: str) -> Any:
        return ValueStateDescriptor(name)

    def evaluation_state(self) -> Any:
        return NO_WINDOW_STATE

    def declare_state(self) -> None:
        super().declare_state()
        if self._contents.kind == "list":
            self._records = self.backend.table(ListStateDescriptor("session-records"))

    def on_event_time(self, until: int) -> Iterable[Element]:
        return self._fire(self._event_timers, until)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._fire(self._processing_timers, now_ms - 1)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values = list_of(batch)
        if not values:
            return
        keys, stamps = self.keys_of(batch), self.window_timestamps(batch)
        table, out = self._table, OutputBuffer()
        state = table.load(keys)
        placed = zip(keys, values, stamps, self._ends(values, stamps), strict=True)
        yield from self._gather(placed, state, out)
        if table.tracks_changes:
            table.changed(keys)
        elif not state:
            table.remove_all(())
        yield from out.take()

    def _ends(self, values: list[Any], stamps: list[int]) -> list[int]:
        """Return the end of the session that each record alone would make."""
        gap_ms: int | None = self._assigner.fixed_gap_ms
        if gap_ms is not None:
            return [stamp + gap_ms for stamp in stamps]
        value = None
        gap_of, ends = self._assigner.gap_ms, []
        try:
            for value, stamp in zip(values, stamps, strict=True):
                ends.append(stamp + gap_of(value))
        except Exception as error:
            raise self.failure("assign_windows", shortened(value)) from error
        return ends

    def _gather(self, placed: Placed[int], state: dict[Any, Any], out: OutputBuffer) -> Iterator[Element]:
        """Add records, each with the end of the session that it alone would make, to the sessions of their keys."""
        get, add, records = state.get, self._contents.add, self._records
        key = value = None
        try:
            for key, value, stamp, end in placed:
                sessions = get(key)
                if sessions is None:
                    key = self.canonical(key, value)
                    sessions = get(key)
                    if sessions is None:
                        calls = self._place(key, [], (stamp, end), value, state, out)
                        yield from self.emit_results(calls, out)
                        continue
                start = sessions[-4]
                if (
                    stamp <= sessions[-3]
                    and start <= end
                    and not sessions[-1]
                    and (len(sessions) == _FIELDS or stamp > sessions[-7])
                ):  # it extends the latest session, and no other
                    if records is None:
                        sessions[-2] = add(sessions[-2], value)
                    else:
                        records.append(self.canonical(key, value), value, sessions[-2])
                    if end > sessions[-3]:
                        sessions[-3] = end
                    if stamp < start:
                        sessions[-4] = stamp
                    continue
                calls = self._place(self.canonical(key, value), sessions, (stamp, end), value, state, out)
                yield from self.emit_results(calls, out)
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self._contents.where, shortened(value)) from error

    def _place(
        self, key: Any, sessions: Sessions, span: tuple[int, int], value: Any, state: dict[Any, Any], out: OutputBuffer
    ) -> Iterable[None]:
        """Add a record, whose session alone would be `span`, to what it touches, or open a session for it.

        Gives the calls of the user's function where that session has fired already.
        """
        start, end = span
        low, high = _touching(sessions, start, end)
        set_timer = low == 0 or self._lateness_ms > 0
        if low == high:
            if self._event_time and end - 1 + self._lateness_ms <= self.watermark:
                self.emit_late(value, start, out)
                return ()
            accumulator = start if self._records is not None else self._contents.first(value)
        else:
            start, end = min(start, sessions[low]), max(end, sessions[high - 3])
            accumulator = self._merge(key, TimeWindow(start, end), sessions[low + 2 : high : _FIELDS])
            if self._records is None:
                accumulator = self._contents.add(accumulator, value)
        if self._records is not None:
            self._records.append(key, value, accumulator)
        fires = self._event_time and end - 1 <= self.watermark
        sessions[low:high] = start, end, accumulator, fires
        state[key] = sessions
        if set_timer:
            self._set_timer(key, end - 1 + (self._lateness_ms if fires else 0), self.watermark)
        if not fires:
            return ()
        return self.evaluation_calls(key, TimeWindow(start, end), self._contents_of(key, accumulator), out, True)

    def _contents_of(self, key: Any, accumulator: Any) -> Any:
        """Return the input of the evaluation: the accumulator, or the records that it names."""
        return accumulator if self._records is None else self._records.get(key, accumulator, ())

    def _merge(self, key: Any, window: TimeWindow, accumulators: list[Any]) -> Any:
        merged, *others = accumulators
        if self._records is not None:
            for other in others:
                for record in self._records.get(key, other, ()):
                    self._records.append(key, record, merged)
                self._records.remove(key, other)
            return merged
        try:
            for other in others:
                merged = self._contents.merge(merged, other)
        except Exception as error:
            raise self._window_failure("merge", key, window) from error
        return merged

    def _set_timer(self, key: Any, due: int, passed: int, one_of_many: bool = False) -> None:
        """Wake the key when it is `due` or earlier, but later than the time that has `passed`."""
        step: int = (self._assigner.fixed_gap_ms or 0) // _TIMES_A_GAP
        early = due - due % max(1, step)
        while one_of_many and early <= passed and step > 1:
            step //= _TIMES_A_GAP
            early = due - due % max(1, step)
        self._window_timers.register(early if early > passed else due, key)

    # firing

    def _fire(self, timers: Timers, until: int) -> Iterable[Element]:
        out = OutputBuffer()
        return paced(self._firing_calls(timers, until, out), out, self.ctx.clock)

    def _firing_calls(self, timers: Timers, until: int, out: OutputBuffer) -> Iterator[None]:
        keys: list[Any] = []
        for timestamp, _, some in timers.due_keys(until, sys.maxsize):
            keys += some
            following = timers.next_timestamp()
            if following != timestamp:
                horizon = until if following is None else max(timestamp, min(until, following - 1))
            elif len(keys) < _MANY_KEYS:  # those of one time may come in parts
                yield
                continue
            else:  # more than memory may hold: what is due later gets another time
                horizon = timestamp
            due: list[_Due] = []
            for first in range(0, len(keys), FIRING_RECORDS):
                due += self._take_due(keys[first : first + FIRING_RECORDS], horizon, following == timestamp)
                yield
            keys = []
            due.sort(key=itemgetter(0))
            for _, key, window, accumulator, fires, over in due:
                if fires:
                    yield from self.evaluation_calls(key, window, self._contents_of(key, accumulator), out, not over)
                if over:
                    if self._records is not None:
                        self._records.remove(key, accumulator)
                    yield from self.clear_calls([key], window)
                yield

    def drop(self, keys: list[Any], window: AnyWindow) -> None:
        """Do nothing: a session is taken out of the state before it is evaluated."""

    def _take_due(self, keys: list[Any], horizon: int, of_many: bool) -> list[_Due]:
        """Return what is due up to `horizon` for these keys, which have no timer, and set their next timers."""
        table = self._table
        state = table.load(keys)
        due: list[_Due] = []
        empty: list[Any] = []
        for key in keys:
            sessions = state.get(key)
            if sessions is not None:
                earliest = self._next_due(key, sessions, horizon, due)
                if earliest is None:
                    empty.append(key)
                else:
                    self._set_timer(key, earliest, horizon, of_many)
        if table.tracks_changes:
            table.changed(keys)
        table.remove_all(empty)
        return due

    def _next_due(self, key: Any, sessions: Sessions, horizon: int, due: list[_Due]) -> int | None:
        """Note what is due of one key, take out what is over; when the rest is due next, or None."""
        lateness_ms = self._lateness_ms
        earliest: int | None = None
        remaining: list[Any] = []
        place = 0
        while place < len(sessions):
            start, end, accumulator, fired = sessions[place : place + _FIELDS]
            last: int = end - 1
            over = last + lateness_ms
            if last > horizon:  # and so are all others
                earliest = last if earliest is None else min(earliest, last)
                break
            if not fired:
                due.append((last, key, TimeWindow(start, end), accumulator, True, not lateness_ms))
            if over > horizon:
                remaining += start, end, accumulator, True
                earliest = over if earliest is None else earliest
            elif fired or lateness_ms:
                due.append((over, key, TimeWindow(start, end), accumulator, False, True))
            place += _FIELDS
        if earliest is not None:
            sessions[:place] = remaining
        return earliest


_Due = tuple[int, Any, TimeWindow, Any, bool, bool]
"""(time, key, session, accumulator, whether it fires, whether it is over)."""


def _touching(sessions: Sessions, start: int, end: int) -> tuple[int, int]:
    """Return the slice of sessions that overlap or touch [start, end); if none does, the empty one to insert it at."""
    low, high = 0, len(sessions) // _FIELDS
    while low < high:  # the first that ends at `start` or later
        middle = (low + high) // 2
        if sessions[_FIELDS * middle + 1] < start:
            low = middle + 1
        else:
            high = middle
    stop = low
    while _FIELDS * stop < len(sessions) and sessions[_FIELDS * stop] <= end:
        stop += 1
    return _FIELDS * low, _FIELDS * stop


__all__ = ["SessionWindowOperator"]
