"""Windows on keyed streams: records are gathered by key and window, and evaluated when the window's time has come.

The contents of a window are an entry of keyed state whose namespace is the window. A window fires when the watermark
reaches its last timestamp (end - 1); by processing time, when that millisecond has passed. Results carry that
timestamp. After the allowed lateness nothing of the window is left; a record that comes then is late: it goes to the
late side output where there is one, else it is counted in numLateRecordsDropped.

`WindowOperator` is for aligned windows with their default trigger: its timers are one set of keys a window, touched
only by the first record of a key. `TriggeredWindowOperator` (triggered_windows.py) serves all else and gives the same
results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import gcd
from typing import Any, TypeVar, cast

from rayflink.common.functions.checkpointed_function import checkpointed_of
from rayflink.common.functions.function_classes import ProcessWindowFunction, UserFunction
from rayflink.common.functions.runtime_context import KeyedStateStore
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.state.backend import KeysAt, Timers
from rayflink.state.descriptors import AggregatingStateDescriptor, ListStateDescriptor, ReducingStateDescriptor
from rayflink.state.handles import StateStore
from rayflink.state.value_isolation import isolated

from ..base import UserCodeError, shortened
from ..capabilities import ProcessingTimers
from ..event_time.pacing import FIRING_RECORDS, paced
from ..keyed.keyed_operator import KeyedOperator
from ..output_buffer import OutputBuffer
from ..user_function import UserCode, list_of, timestamps_of
from .assigners import AlignedWindows, WindowAssigner
from .window import AnyWindow, TimeWindow
from .window_functions import WindowContents, WindowEvaluation, life_cycle

LATE_METRIC = "numLateRecordsDropped"
_ABSENT: Any = object()
P = TypeVar("P")
Placed = Iterable[tuple[Any, Any, int, P]]
"""(key, value, timestamp, place in time) of each record of a batch; the place is a pane, windows, or an end."""


class BaseWindowOperator(KeyedOperator, ProcessingTimers):
    """The base of window operators: clocks, lateness, late records, evaluation."""

    late_record: Callable[[Any], Any] | None = None
    """A function of a late record whose result goes to the late side output; None: the record itself."""

    def __init__(
        self,
        key_selector: Any,
        assigner: WindowAssigner[Any, Any],
        contents: WindowContents,
        evaluation: WindowEvaluation | None = None,
        allowed_lateness_ms: int = 0,
        late_tag_id: str | None = None,
    ) -> None:
        if allowed_lateness_ms < 0:
            raise ValueError(f"allowed lateness must be at least 0, found {allowed_lateness_ms} ms")
        open_all, close_all = life_cycle(contents.function, evaluation and evaluation.function)
        checkpointed = (*checkpointed_of(contents.function), *checkpointed_of(evaluation and evaluation.function))
        super().__init__(key_selector, UserFunction(contents.add, open_all, close_all, checkpointed))
        self._assigner = assigner
        self._contents = self._stored = contents
        self._evaluation = evaluation
        self._event_time: bool = assigner.is_event_time()
        self._lateness_ms = allowed_lateness_ms if self._event_time else 0
        self._late_tag_id = late_tag_id

    @property
    def name(self) -> str:
        """Return the name as Flink shows it: assigner, trigger, function, window function."""
        inner = self._contents.name
        outer = self._evaluation.name if self._evaluation is not None else "PassThroughWindowFunction"
        trigger = self._trigger_name()
        return f"Window({', '.join(part for part in (repr(self._assigner), trigger, inner, outer) if part)})"

    def _trigger_name(self) -> str:
        return repr(self._assigner.get_default_trigger(None))

    def declare_state(self) -> None:
        self._table = self.backend.table(self.contents_descriptor("window-contents"))
        self._event_timers = self.backend.timers("window-timers/event")
        self._processing_timers = self.backend.timers("window-timers/processing")
        self._window_timers = self._event_timers if self._event_time else self._processing_timers
        """The timers of the clock by which windows end."""
        self._window_store = StateStore(self.backend, self.context, self.ctx.label, scoped=True)
        self._key_store = StateStore(self.backend, self.context, self.ctx.label)
        self._window_context = _EvaluationContext(self)

    def contents_descriptor(self, name: str) -> Any:
        """Return the state descriptor of the contents of windows."""
        kind = self._stored.kind
        if kind == "list":
            return ListStateDescriptor(name)
        if kind == "reducing":
            return ReducingStateDescriptor(name, self._stored.add)
        return AggregatingStateDescriptor(name, self._stored.function)

    def evaluation_state(self) -> Any:
        """Return the store of a window function's state by key and window."""
        return self._window_store

    def open(self) -> None:
        metrics = self.ctx.metrics
        self._late_dropped = None if metrics is None else metrics.counter(LATE_METRIC)
        super().open()

    @property
    def waiting_timers(self) -> int:
        return len(self._processing_timers)

    def next_processing_time(self) -> int | None:
        """Return the millisecond after the earliest timer: a window ends when its last millisecond has passed."""
        timestamp = self._processing_timers.next_timestamp()
        return None if timestamp is None else timestamp + 1

    def cleanup_time(self, window: AnyWindow) -> int:
        """Return the time at which the window is cleared: its last timestamp plus the allowed lateness."""
        return min(int(window.max_timestamp()) + self._lateness_ms, MAX_TIMESTAMP)

    def is_late(self, window: AnyWindow) -> bool:
        """Return whether the window is over."""
        return self._event_time and self.cleanup_time(window) <= self.watermark

    def window_timestamps(self, batch: Batch) -> list[int]:
        """Return the records' times by the assigner's clock.

        Raises:
            UserCodeError: event-time windows met a record without a timestamp.
        """
        if not self._event_time:
            return [self.ctx.clock.now_ms()] * len(batch)
        stamps = timestamps_of(batch)
        if stamps is None or MIN_TIMESTAMP in stamps:
            value = list_of(batch)[0 if stamps is None else stamps.index(MIN_TIMESTAMP)] if len(batch) else None
            error = ValueError(
                "event-time windows need records with timestamps, and this one has none; call "
                "assign_timestamps_and_watermarks(strategy) before the window, where the strategy has "
                "with_timestamp_assigner(...), or use processing-time windows"
            )
            raise self.failure("assign_windows", shortened(value)) from error
        return stamps

    def accumulate(self, key: Any, value: Any, accumulator: Any, present: bool) -> Any:
        """Return the accumulator with one more record added."""
        try:
            return self._contents.add(accumulator, value) if present else self._contents.first(value)
        except Exception as error:
            raise self.failure(self._contents.where, shortened(value)) from error

    def evaluate(self, key: Any, window: AnyWindow, accumulator: Any, out: OutputBuffer, stays: bool) -> None:
        """Emit the results of one key and window; `stays`: its contents remain in state."""
        for _ in self.evaluation_calls(key, window, accumulator, out, stays):
            pass

    def evaluation_calls(
        self, key: Any, window: AnyWindow, accumulator: Any, out: OutputBuffer, stays: bool
    ) -> Iterable[None]:
        """Evaluate as `evaluate` does, in steps between which many results can be emitted."""
        contents = self._contents
        if stays:
            accumulator = isolated(accumulator)
        if contents.result is not None:
            try:
                accumulator = contents.result(accumulator)
            except Exception as error:
                raise self._window_failure("get_result", key, window) from error
        if self._evaluation is None:
            out.add(accumulator, window.max_timestamp())
            return ()
        records = accumulator if contents.kind == "list" else [accumulator]
        return self._calls(self._evaluation, key, window, records, out)

    def emit_results(self, calls: Iterable[None], out: OutputBuffer) -> Iterator[Element]:
        """Make the calls, and yield what they add to `out` whenever it is much."""
        for _ in calls:
            if out.count >= FIRING_RECORDS:
                yield from out.take()

    def _calls(
        self, evaluation: WindowEvaluation, key: Any, window: AnyWindow, records: list[Any], out: OutputBuffer
    ) -> Iterator[None]:
        stamp = window.max_timestamp()
        self.context.key, self.context.namespace = key, window
        try:
            results = evaluation(key, window, self._window_context, records)
            if results is not None:
                remaining = iterate_results(results)
                while not out.draw(remaining, stamp):
                    yield
        except Exception as error:
            raise self._window_failure(evaluation.where, key, window) from error

    def clear(self, keys: list[Any], window: AnyWindow) -> None:
        """Drop the contents of these keys and window, and let the user's function drop its own."""
        for _ in self.clear_calls(keys, window):
            pass

    def clear_calls(self, keys: list[Any], window: AnyWindow) -> Iterator[None]:
        """Clear as `cleared` does, in steps of one call of the user's function each."""
        if self._evaluation is not None and self._evaluation.has_context:
            for key in keys:
                self.context.key, self.context.namespace = key, window
                with UserCode(self.ctx, "clear"):
                    self._evaluation.clear(self._window_context)
                yield
        self.drop(keys, window)

    def drop(self, keys: list[Any], window: AnyWindow) -> None:
        """Delete the contents of these keys for a window that is over."""
        self._table.remove_all(keys, window)

    def emit_late(self, value: Any, stamp: int | None, out: OutputBuffer) -> None:
        """Emit a record that came after all its windows were over, or count it."""
        if self._late_tag_id is not None:
            out.add_side(self._late_tag_id, value if self.late_record is None else self.late_record(value), stamp)
        elif self._late_dropped is not None:
            self._late_dropped.inc(1)

    def _window_failure(self, where: str, key: Any, window: AnyWindow) -> UserCodeError:
        return self.failure(where, f"key {shortened(key)} in {window}")


class WindowOperator(BaseWindowOperator):
    """Aligned windows with their default trigger."""

    _assigner: AlignedWindows[Any]

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values = list_of(batch)
        if not values:
            return
        keys, stamps = self.keys_of(batch), self.window_timestamps(batch)
        pane, offset = gcd(self._assigner.size_ms, self._assigner.slide_ms), self._assigner.offset_ms
        starts = [stamp - (stamp - offset) % pane for stamp in stamps]
        out = OutputBuffer()
        appends = self._appends
        opened = self._open_windows(keys, starts, not appends)
        placed = zip(keys, values, stamps, map(opened.__getitem__, starts), strict=True)
        yield from self._append(placed, out) if appends else self._accumulate(placed, out)
        if self._table.tracks_changes and not appends:
            for windows in opened.values():
                for entry in windows:
                    self._table.changed(entry.keys, entry.window)
        yield from out.take()

    def read_ahead(self, batch: Batch, input_index: int) -> None:
        if self._appends or not len(batch):
            return
        keys, stamps = self.keys_of(batch), self.window_timestamps(batch)
        by_start: dict[int, list[Any]] = {}
        for key, stamp in zip(keys, stamps, strict=True):
            by_start.setdefault(self._assigner.last_start(stamp), []).append(key)
        for start, of_start in by_start.items():
            for window in self._assigner.windows_from(start, start):
                if not self.is_late(window):
                    self.backend.prefetch(of_start, window)

    def on_event_time(self, until: int) -> Iterable[Element]:
        return self._fire(self._event_timers, until)

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        return self._fire(self._processing_timers, now_ms - 1)

    def _open_windows(self, keys: list[Any], starts: list[int], load: bool) -> dict[int, list[_OpenWindow]]:
        """Return start of a pane (the time between two borders of windows) -> its windows that are not over."""
        assigner, table = self._assigner, self._table
        opened: dict[int, list[_OpenWindow]] = {}
        windows: dict[TimeWindow, _OpenWindow] = {}
        for start in dict.fromkeys(starts):
            opened[start] = []
            for window in assigner.windows_from(assigner.last_start(start), start):
                if not self.is_late(window):
                    opened[start].append(windows.setdefault(window, _OpenWindow(window)))
        if table.tracks_changes:
            for key, start in zip(keys, starts, strict=True):
                for entry in opened[start]:
                    entry.keys.append(key)
        for window, entry in windows.items():
            if load:
                entry.state = table.load(entry.keys, window)
            entry.fired = self._event_time and window.max_timestamp() <= self.watermark
            due = self.cleanup_time(window) if entry.fired else window.max_timestamp()
            entry.timers = self._window_timers.keys_at(due, window)
        return opened

    def _accumulate(self, placed: Placed[list[_OpenWindow]], out: OutputBuffer) -> Iterator[Element]:
        """Add records to the accumulators of their windows, which are loaded."""
        absent, add = _ABSENT, self._contents.add
        key = value = None
        try:
            for key, value, stamp, entries in placed:
                for entry in entries:
                    state = entry.state
                    accumulator = state.get(key, absent)
                    if accumulator is absent:
                        key = self.canonical(key, value)
                        accumulator = state.get(key, absent)
                    if accumulator is absent:
                        entry.timers[key] = None
                        state[key] = self.accumulate(key, value, None, False)
                    else:
                        state[key] = add(accumulator, value)
                    if entry.fired:
                        calls = self.evaluation_calls(key, entry.window, state[key], out, True)
                        yield from self.emit_results(calls, out)
                if not entries:
                    self._emit_if_late(value, stamp, out)
        except UserCodeError:
            raise
        except Exception as error:
            raise self.failure(self._contents.where, shortened(value)) from error

    def _append(self, placed: Placed[list[_OpenWindow]], out: OutputBuffer) -> Iterator[Element]:
        """Add records to windows that are lists: those are read when they fire, and not before."""
        table = self._table
        for key, value, stamp, entries in placed:
            if not entries:
                self._emit_if_late(value, stamp, out)
                continue
            key = self.canonical(key, value)
            for entry in entries:
                entry.timers[key] = None
                table.append(key, value, entry.window)
                if entry.fired:
                    gathered = table.get(key, entry.window)
                    yield from self.emit_results(self.evaluation_calls(key, entry.window, gathered, out, True), out)

    def _emit_if_late(self, value: Any, stamp: int, out: OutputBuffer) -> None:
        """Emit a record that has no open window if it is late; otherwise the assigner gave it none."""
        if self._event_time and stamp + self._lateness_ms <= self.watermark:
            self.emit_late(value, stamp, out)

    def _fire(self, timers: Timers, until: int) -> Iterable[Element]:
        out = OutputBuffer()
        return paced(self._firing_calls(timers, until, out), out, self.ctx.clock)

    def _firing_calls(self, timers: Timers, until: int, out: OutputBuffer) -> Iterator[None]:
        for timestamp, window, keys in timers.due_keys(until, FIRING_RECORDS):
            over = timestamp == self.cleanup_time(window)
            if timestamp == window.max_timestamp():
                yield from self._evaluation_calls(keys, window, out, not over)
            if over:
                yield from self.clear_calls(keys, window)
            else:
                timers.keys_at(self.cleanup_time(window), window).update(dict.fromkeys(keys))
                self._table.changed((), window)  # nothing was, and the contents may leave memory
            yield

    @property
    def _appends(self) -> bool:
        """Return whether windows are lists in a table of bytes, which are appended to without a read."""
        return self._contents.kind == "list" and self._table.tracks_changes

    def _evaluation_calls(self, keys: list[Any], window: TimeWindow, out: OutputBuffer, stays: bool) -> Iterator[None]:
        if self._appends:
            for key in keys:
                yield from self.evaluation_calls(key, window, self._table.get(key, window), out, stays)
                yield
            return
        state = self._table.load(keys, window)
        if self._evaluation is None and self._contents.result is None and not stays:
            out.extend([state[key] for key in keys], window.max_timestamp())
            return
        for key in keys:
            yield from self.evaluation_calls(key, window, state[key], out, stays)
            yield


class _OpenWindow:
    """A window that records of the current batch fall into."""

    __slots__ = ("fired", "keys", "state", "timers", "window")

    state: dict[Any, Any]
    timers: KeysAt
    fired: bool

    def __init__(self, window: TimeWindow) -> None:
        self.window = window
        self.keys: list[Any] = []


class _EvaluationContext(ProcessWindowFunction.Context[Any]):
    """The context of a ProcessWindowFunction."""

    def __init__(self, operator: BaseWindowOperator) -> None:
        self._operator = operator

    def window(self) -> Any:
        return self._operator.context.namespace

    def window_state(self) -> KeyedStateStore:
        return cast(KeyedStateStore, self._operator.evaluation_state())

    def global_state(self) -> KeyedStateStore:
        return cast(KeyedStateStore, self._operator._key_store)

    def current_processing_time(self) -> int:
        return int(self._operator.ctx.clock.now_ms())

    def current_watermark(self) -> int:
        return self._operator.watermark
