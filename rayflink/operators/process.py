"""The process function on a stream without keys: sees timestamps and clocks, and uses side outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from rayflink.common.functions.function_classes import (
    CoProcessFunction,
    ProcessFunction,
    TimerService,
    UserFunction,
    UserFunctionPair,
    as_co_process,
    as_process,
)
from rayflink.common.records.batches import MIN_TIMESTAMP, Batch, Element, EndOfSuperstep, Watermark
from rayflink.common.user_code.iterate_results import iterate_results
from rayflink.state.backend import NO_KEY, KeyContext

from .base import OperatorContext, shortened
from .capabilities import EventHandler
from .output_buffer import OutputBuffer
from .user_function import FunctionOperator, list_of, timestamps_of

CHUNK_RECORDS = 4096
"""Results after which a process function's are emitted as a batch."""


class ClocksOnly(TimerService):
    """The timer service of a stream without keys: reads clocks and refuses timers.

    Args:
        ctx: of the operator.
    """

    def __init__(self, ctx: OperatorContext) -> None:
        self._ctx = ctx
        self.watermark = MIN_TIMESTAMP

    def current_processing_time(self) -> int:
        return int(self._ctx.clock.now_ms())

    def current_watermark(self) -> int:
        return self.watermark

    def register_processing_time_timer(self, timestamp: int) -> None:
        raise self._refusal("set")

    def register_event_time_timer(self, timestamp: int) -> None:
        raise self._refusal("set")

    def delete_processing_time_timer(self, timestamp: int) -> None:
        raise self._refusal("deleted")

    def delete_event_time_timer(self, timestamp: int) -> None:
        raise self._refusal("deleted")

    def _refusal(self, verb: str) -> RuntimeError:
        return RuntimeError(f"timers can only be {verb} on a keyed stream; call key_by(...) before process(...)")


class TimedContext(Protocol):
    """A context of a process function that knows the timestamp of the current record."""

    stamp: int | None


class KeyScope(Protocol):
    """A keyed operator: functions see the state of the key that is current in its context."""

    context: KeyContext

    def canonical(self, key: Any, value: Any) -> Any:
        """Return the key of a record in the form it has in state."""
        ...


def call_for_each(
    operator: FunctionOperator,
    call: Callable[[Any, Any], Any],
    batch: Batch,
    context: TimedContext,
    where: str,
    keyed: tuple[KeyScope, list[Any]] | None = None,
) -> Iterator[Element]:
    """Call a process function with each record and the context, and yield its results in batches.

    This is the loop of all process functions. A result has the timestamp of its record.

    Args:
        operator: of the function; it names the failures.
        call: the function.
        batch: the records.
        context: `stamp` is set to the timestamp of each record.
        where: which method of the user's function `call` is.
        keyed: the operator and the records' keys, each of which becomes the current one; None without keys.

    Raises:
        UserCodeError: the function raised.
    """
    out, stamp = OutputBuffer(), None
    values, stamps = list_of(batch), timestamps_of(batch)
    context.stamp = None
    scope, keys = keyed or (None, ())
    for index, value in enumerate(values):
        if scope is not None:
            scope.context.key = scope.canonical(keys[index], value)
        if stamps is not None:
            context.stamp = stamp = None if stamps[index] == MIN_TIMESTAMP else stamps[index]
        try:
            results = call(value, context)
            if results is not None:
                remaining = iterate_results(results)
                while not out.fill(remaining, stamp, value, CHUNK_RECORDS):
                    yield from out.take()
        except Exception as error:
            raise operator.failure(where, shortened(value)) from error
    if scope is not None:
        scope.context.key = NO_KEY
    yield from out.take()


class _Context(ProcessFunction.Context, CoProcessFunction.Context):
    def __init__(self, timers: TimerService) -> None:
        self._timers = timers
        self.stamp: int | None = None

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int | None:
        return self.stamp


class ProcessingOperator(FunctionOperator):
    """The common part of process functions on streams without keys: clocks, side outputs, timestamps of results.

    Args:
        function: the user's function with its life cycle.
    """

    def __init__(self, function: UserFunction | UserFunctionPair) -> None:
        super().__init__(function)

    def setup(self, ctx: OperatorContext) -> None:
        super().setup(ctx)
        self._timers = ClocksOnly(ctx)
        self._context = _Context(self._timers)

    def process_watermark(self, watermark: Watermark) -> Iterable[Element]:
        self._timers.watermark = max(self._timers.watermark, watermark.timestamp)
        return (watermark,)

    def call_with_records(
        self, call: Callable[[Any, Any], Any], batch: Batch, where: str, context: TimedContext | None = None
    ) -> Iterator[Element]:
        """Call the function with each record of a batch; see `call_for_each`."""
        return call_for_each(self, call, batch, context or self._context, where)


class ProcessOperator(ProcessingOperator, EventHandler):
    """Runs a process function on a stream without keys.

    A result takes the timestamp of the record it was made for. `yield tag, value` goes to the side output of that tag.

    Args:
        function: a ProcessFunction or a callable of record and context.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_process(function)
        super().__init__(self._function)
        self._on_superstep_end = getattr(function, "on_superstep_end", None)

    def process_superstep(self, end: EndOfSuperstep) -> Iterator[Element]:
        if self._on_superstep_end is not None:
            out = OutputBuffer()
            self._context.stamp = None
            try:
                out.add_results(self._on_superstep_end(end.superstep, self._context), None, end)
            except Exception as error:
                raise self.failure("on_superstep_end") from error
            yield from out.take()
        yield end

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return self.call_with_records(self._function.call, batch, "process_element")


class CoProcessOperator(ProcessingOperator):
    """Runs a process function on two connected streams without keys.

    Args:
        function: a CoProcessFunction or a pair of callables of record and context.
    """

    def __init__(self, function: Any) -> None:
        self._function = as_co_process(function)
        super().__init__(self._function)

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        call = self._function.call2 if input_index else self._function.call1
        return self.call_with_records(call, batch, f"process_element{input_index + 1}")
