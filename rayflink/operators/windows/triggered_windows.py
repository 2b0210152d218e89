"""Windows with any assigner and any trigger: every record and every timer is shown to the trigger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, Element
from rayflink.state.backend import Timers
from rayflink.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
)
from rayflink.state.handles import MergingState

from ..base import shortened
from ..event_time.pacing import FIRING_RECORDS, paced
from ..output_buffer import OutputBuffer
from ..user_function import list_of, timestamps_of
from .assigners import WindowAssignerContext
from .evictors import EvictorContext
from .triggers import OnMergeContext, TriggerResult
from .window import AnyWindow
from .window_checks import checked_result, checked_windows
from .window_operator import _ABSENT, BaseWindowOperator


class TriggeredWindowOperator(BaseWindowOperator):
    """Windows of any kind that do not merge.

    Args:
        *arguments: those of `BaseWindowOperator`, then the trigger, which is called for each record and each timer.
    """

    def __init__(self, *arguments: Any) -> None:
        *shared, self._trigger = arguments
        super().__init__(*shared)
        self._trigger_context = _Context(self)

    def _trigger_name(self) -> str:
        return repr(self._trigger)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        values = list_of(batch)
        keys = self.keys_of(batch)
        out = OutputBuffer()
        for key, value, stamp in zip(keys, values, self._stamps_of(batch), strict=True):
            try:
                hash(key)
            except TypeError:
                self.canonical(key, value)
                raise
            yield from self._add(self.canonical(key, value), value, stamp, out)
            if out.count >= FIRING_RECORDS:
                yield from out.take()
        yield from out.take()

    def _stamps_of(self, batch: Batch) -> list[int]:
        """Return the timestamps passed to the trigger: the records' own, whatever clock the windows use."""
        if self._event_time and len(batch):
            return self.window_timestamps(batch)
        return timestamps_of(batch) or [MIN_TIMESTAMP] * len(batch)

    def on_event_time(self, until: int) -> Iterator[Element]:
        return self._fire(self._event_timers, until, self._trigger.on_event_time, self._event_time)

    def on_processing_time(self, now_ms: int) -> Iterator[Element]:
        return self._fire(self._processing_timers, now_ms - 1, self._trigger.on_processing_time, not self._event_time)

    def _add(self, key: Any, value: Any, stamp: int, out: OutputBuffer) -> Iterator[Element]:
        self.context.key = key
        try:
            windows = checked_windows(self._assigner.assign_windows(value, stamp, self._trigger_context))
        except Exception as error:
            raise self.failure("assign_windows", shortened(value)) from error
        skipped = True
        for assigned in windows:
            window = self._open_window(key, assigned, value)
            if window is None:
                continue
            skipped = False
            state_window = self._state_window(key, window)
            self.context.namespace = window
            self._accumulate_record(key, state_window, value, stamp)
            try:
                result = checked_result(
                    self._trigger.on_element(value, stamp, window, self._trigger_context), "on_element"
                )
            except Exception as error:
                raise self.failure("on_element", shortened(value)) from error
            if result is not TriggerResult.CONTINUE:
                yield from self.emit_results(self._apply_result(result, key, window, state_window, out), out)
            over = self.cleanup_time(window)
            if over < MAX_TIMESTAMP:
                timers = self._window_timers
                timers.register(over, key, window)
        if skipped and self._event_time and stamp + self._lateness_ms <= self.watermark:
            self.emit_late(value, stamp, out)

    def _open_window(self, key: Any, window: AnyWindow, value: Any) -> Any:
        """Return the open window that a record's window is or becomes part of, or None where it is over."""
        return None if self.is_late(window) else window

    def _state_window(self, key: Any, window: AnyWindow) -> Any:
        """Return the window under whose name the contents are stored, or None where the window is not open."""
        return window

    def _accumulate_record(self, key: Any, state_window: Any, value: Any, stamp: int) -> None:
        if self._contents.kind == "list":
            self._table.append(key, value, state_window)
            return
        accumulator = self._table.get(key, state_window, _ABSENT)
        self._table.put(key, self.accumulate(key, value, accumulator, accumulator is not _ABSENT), state_window)

    def _apply_result(
        self, result: TriggerResult, key: Any, window: AnyWindow, state_window: Any, out: OutputBuffer
    ) -> Iterator[None]:
        """Do what the trigger says, in steps as of `evaluation_calls`."""
        if result.is_fire():
            accumulator = self._table.get(key, state_window, _ABSENT)
            if accumulator is not _ABSENT:
                yield from self.evaluation_calls(key, window, accumulator, out, not result.is_purge())
                self.context.key, self.context.namespace = key, window
        if result.is_purge():
            self._table.remove(key, state_window)

    def _fire(self, timers: Timers, until: int, on_time: Any, ends_windows: bool) -> Iterator[Element]:
        out = OutputBuffer()
        return paced(self._timer_calls(timers.due(until), on_time, ends_windows, out), out, self.ctx.clock)

    def _timer_calls(self, due: Iterator[Any], on_time: Any, ends_windows: bool, out: OutputBuffer) -> Iterator[None]:
        """Fire timers one by one; `ends_windows` says whether windows end by the clock of these timers."""
        for timestamp, key, window in due:
            state_window = self._state_window(key, window)
            if state_window is None:  # a timer that the trigger left behind when its window became part of another
                continue
            self.context.key, self.context.namespace = key, window
            try:
                result = checked_result(on_time(timestamp, window, self._trigger_context), on_time.__name__)
            except Exception as error:
                raise self._window_failure(on_time.__name__, key, window) from error
            yield from self._apply_result(result, key, window, state_window, out)
            if ends_windows and timestamp == self.cleanup_time(window):
                self._clean(key, window, state_window)
            yield

    def _clean(self, key: Any, window: AnyWindow, state_window: Any) -> None:
        self.clear([key], window)
        self._table.remove(key, state_window)
        self.context.key, self.context.namespace = key, window
        try:
            self._trigger.clear(window, self._trigger_context)
        except Exception as error:
            raise self._window_failure("clear of the trigger", key, window) from error


class _Context(OnMergeContext, WindowAssignerContext, EvictorContext):
    """The context of the trigger, the evictor and the assigner, for the current key and window."""

    def __init__(self, operator: TriggeredWindowOperator) -> None:
        self._operator = operator
        self._runtime: Any = None
        self.merged: list[Any] = []

    def get_runtime_context(self) -> Any:
        if self._runtime is None:
            self._runtime = self._operator.runtime_context()
        return self._runtime

    def get_current_processing_time(self) -> int:
        return int(self._operator.ctx.clock.now_ms())

    def get_current_watermark(self) -> int:
        return self._operator.watermark

    def get_metric_group(self) -> Any:
        return self._operator.ctx.metrics

    def register_processing_time_timer(self, time: int) -> None:
        context = self._operator.context
        self._operator._processing_timers.register(time, context.key, context.namespace)

    def register_event_time_timer(self, time: int) -> None:
        context = self._operator.context
        self._operator._event_timers.register(time, context.key, context.namespace)

    def delete_processing_time_timer(self, time: int) -> None:
        context = self._operator.context
        self._operator._processing_timers.delete(time, context.key, context.namespace)

    def delete_event_time_timer(self, time: int) -> None:
        context = self._operator.context
        self._operator._event_timers.delete(time, context.key, context.namespace)

    def merge_partitioned_state(self, state_descriptor: Any) -> None:
        handle = self.get_partitioned_state(state_descriptor)
        if not isinstance(handle, MergingState):
            raise TypeError(
                f"only list, reducing and aggregating state can be merged, found {state_descriptor!r}; keep what the "
                "trigger knows of a window in one of them"
            )
        handle.merge_namespaces(self._operator.context.namespace, self.merged)

    def get_partitioned_state(self, state_descriptor: Any) -> Any:
        store = self._operator._window_store
        if isinstance(state_descriptor, ListStateDescriptor):
            return store.get_list_state(state_descriptor)
        if isinstance(state_descriptor, MapStateDescriptor):
            return store.get_map_state(state_descriptor)
        if isinstance(state_descriptor, ReducingStateDescriptor):
            return store.get_reducing_state(state_descriptor)
        if isinstance(state_descriptor, AggregatingStateDescriptor):
            return store.get_aggregating_state(state_descriptor)
        return store.get_state(state_descriptor)


__all__ = ["TriggeredWindowOperator"]
