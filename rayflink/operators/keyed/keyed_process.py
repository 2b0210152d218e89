"""Runs a KeyedProcessFunction: each record, and each timer it sets, with the state of its key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rayflink.common.functions.function_classes import KeyedProcessFunction, TimeDomain, TimerService, as_process
from rayflink.common.records.batches import Batch, Element, EndOfSuperstep
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.state.backend import NO_KEY, Timers

from ..base import shortened
from ..capabilities import EventHandler, ProcessingTimers
from ..event_time.pacing import paced
from ..output_buffer import OutputBuffer
from ..process import call_for_each
from ..user_function import list_of
from .keyed_operator import KeyedOperator


class KeyedProcessOperator(KeyedOperator, ProcessingTimers, EventHandler):
    """Calls the function for records in order of arrival, and for timers in order of time.

    Results of a record carry its timestamp, those of an event-time timer the timer's, those of a processing-time timer
    none. A timer fires when its clock is at or past its timestamp; one set in the past fires when the clock next moves.

    Args:
        key_selector: a KeySelector or a callable.
        function: a KeyedProcessFunction, or a callable of value and context.
    """

    def __init__(self, key_selector: Any, function: Any) -> None:
        self._function = as_process(function)
        super().__init__(key_selector, self._function)
        self._on_timer = getattr(function, "on_timer", _no_timer)
        self._on_superstep_end = getattr(function, "on_superstep_end", None)
        self._keys_of_superstep: dict[Any, None] = {}

    def declare_state(self) -> None:
        self.event_timers = self.backend.timers("user-timers/event")
        self.processing_timers = self.backend.timers("user-timers/processing")

    @property
    def waiting_timers(self) -> int:
        return len(self.processing_timers)

    def record_context(self) -> KeyedContext:
        """Return the context that the function gets along with a record."""
        return KeyedContext(self)

    def timer_context(self, domain: TimeDomain) -> KeyedTimerContext:
        """Return the context that the function gets along with a timer."""
        return KeyedTimerContext(self, domain)

    def process(self, batch: Batch, input_index: int) -> Iterator[Element]:
        keys = self.keys_of(batch)
        if self._on_superstep_end is not None:
            keys = list(map(self.canonical, keys, list_of(batch)))
            self._keys_of_superstep.update(dict.fromkeys(keys))
        return call_for_each(self, self._function.call, batch, self.record_context(), "process_element", (self, keys))

    def on_event_time(self, until: int) -> Iterator[Element]:
        return self._fire(self.event_timers, until, TimeDomain.EVENT_TIME)

    def process_superstep(self, end: EndOfSuperstep) -> Iterator[Element]:
        keys, self._keys_of_superstep = self._keys_of_superstep, {}
        if keys:
            out = OutputBuffer()
            yield from paced(self._superstep_calls(keys, end.superstep, out), out, self.ctx.clock)
        yield end

    def _superstep_calls(self, keys: Iterable[Any], superstep: int, out: OutputBuffer) -> Iterator[None]:
        context, call = self.record_context(), self._on_superstep_end
        assert call is not None, "keys are noted only for a function that asks for them"
        for key in keys:
            self.context.key = key
            try:
                results = call(superstep, context)
                if results is not None:
                    remaining = iterate_results(results)
                    while not out.draw(remaining, None):
                        yield
            except Exception as error:
                raise self.failure("on_superstep_end", f"key {shortened(key)}") from error
            yield
        self.context.key = NO_KEY

    def next_processing_time(self) -> int | None:
        return self.processing_timers.next_timestamp()

    def on_processing_time(self, now_ms: int) -> Iterator[Element]:
        return self._fire(self.processing_timers, now_ms, TimeDomain.PROCESSING_TIME)

    def _fire(self, timers: Timers, until: int, domain: TimeDomain) -> Iterator[Element]:
        out = OutputBuffer()
        return paced(self._timer_calls(timers.due(until), domain, out), out, self.ctx.clock)

    def _timer_calls(
        self, due: Iterator[tuple[int, Any, Any]], domain: TimeDomain, out: OutputBuffer
    ) -> Iterator[None]:
        context = self.timer_context(domain)
        for timestamp, key, _ in due:
            self.context.key, context.stamp = key, timestamp
            stamp = timestamp if domain is TimeDomain.EVENT_TIME else None
            try:
                results = self._on_timer(timestamp, context)
                if results is not None:
                    remaining = iterate_results(results)
                    while not out.draw(remaining, stamp):
                        yield
            except Exception as error:
                raise self.failure("on_timer", f"timer {timestamp} of key {shortened(key)}") from error
            yield
        self.context.key = NO_KEY


def _no_timer(timestamp: int, context: Any) -> None:
    """Ignore a timer, on behalf of a plain callable."""


class _Timers(TimerService):
    """Clocks and timers of the current key."""

    def __init__(self, operator: KeyedProcessOperator) -> None:
        self._operator = operator

    def current_processing_time(self) -> int:
        return int(self._operator.ctx.clock.now_ms())

    def current_watermark(self) -> int:
        return self._operator.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        self._operator.processing_timers.register(timestamp, self._operator.context.key)

    def register_event_time_timer(self, timestamp: int) -> None:
        self._operator.event_timers.register(timestamp, self._operator.context.key)

    def delete_processing_time_timer(self, timestamp: int) -> None:
        self._operator.processing_timers.delete(timestamp, self._operator.context.key)

    def delete_event_time_timer(self, timestamp: int) -> None:
        self._operator.event_timers.delete(timestamp, self._operator.context.key)


class KeyedContext(KeyedProcessFunction.Context):
    """The context of a record.

    Args:
        operator: who has the clocks, the timers and the current key.
    """

    def __init__(self, operator: KeyedProcessOperator) -> None:
        self._operator = operator
        self._timers = _Timers(operator)
        self.stamp: int | None = None

    def timestamp(self) -> int | None:
        return self.stamp

    def timer_service(self) -> TimerService:
        return self._timers

    def get_current_key(self) -> Any:
        return self._operator.context.key


class KeyedTimerContext(KeyedContext, KeyedProcessFunction.OnTimerContext):
    """The context of a timer.

    Args:
        operator: as of `KeyedContext`.
        domain: which clock fired.
    """

    def __init__(self, operator: KeyedProcessOperator, domain: TimeDomain) -> None:
        super().__init__(operator)
        self._domain = domain

    def time_domain(self) -> TimeDomain:
        return self._domain
