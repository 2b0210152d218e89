"""The process function on a stream without keys: sees timestamps and clocks, and uses side outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

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

from .base import OperatorContext
from .capabilities import EventHandler
from .list_loops import record_at
from .outputs import Outputs
from .user_function import FunctionOperator, list_of, timestamps_of


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


class _Context(ProcessFunction.Context, CoProcessFunction.Context):
    def __init__(self, timers: TimerService) -> None:
        self._timers = timers
        self.current = MIN_TIMESTAMP

    def timer_service(self) -> TimerService:
        return self._timers

    def timestamp(self) -> int | None:
        return None if self.current == MIN_TIMESTAMP else self.current


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

    def processed(self, call: Callable[..., Any], batch: Batch, where: str, context: Any = None) -> Iterator[Element]:
        """Return the function's output for each record and the context, whose `current` holds the record's
        timestamp.
        """
        values, stamps, context = list_of(batch), timestamps_of(batch), context or self._context
        outputs = Outputs(stamps is not None)
        iterator = iter(values)
        stamp = MIN_TIMESTAMP
        try:
            for index, value in enumerate(iterator):
                if stamps is not None:
                    stamp = stamps[index]
                context.current = stamp
                results = call(value, context)
                if results is not None:
                    yield from outputs.collect(results, value, stamp)
        except Exception as error:
            raise self.failure(where, record_at(values, iterator)) from error
        yield from outputs.drain()


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
            outputs = Outputs(False)
            self._context.current = MIN_TIMESTAMP
            try:
                results = self._on_superstep_end(end.superstep, self._context)
                if results is not None:
                    yield from outputs.collect(results, end, MIN_TIMESTAMP)
            except Exception as error:
                raise self.failure("on_superstep_end") from error
            yield from outputs.drain()
        yield end

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return self.processed(self._function.call, batch, "process_element")


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
        return self.processed(call, batch, f"process_element{input_index + 1}")
