"""The functions users write: one abstract class a kind, with PyFlink's names.

Wherever one of them is wanted a plain function or lambda does as well. A function instance belongs to one subtask:
`open` is called once before the first record, `close` once after the last, also after a failure.

A result that may be many (`flat_map`, `process_element`, `on_timer`, `apply`, `process`) is any iterable, most often
that of a generator, or None. In process functions `yield output_tag, value` sends `value` to that side output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Generic

from rayflink.user_types import UserValue

from ..output_tag import OutputTag
from .callables import (
    KeyBy,
    UserFunction,
    UserFunctionPair,
    as_co_flat_map,
    as_co_map,
    as_co_process,
    as_filter,
    as_flat_map,
    as_key_selector,
    as_map,
    as_partitioner,
    as_process,
    as_reduce,
    as_sink,
    life_cycle_of,
    timed_out,
)
from .runtime_context import DistributedCache, KeyedStateStore, RuntimeContext
from .type_variables import (
    ContextKey,
    ContextWindow,
    Input,
    Input1,
    Input2,
    Key,
    KeyInput,
    Output,
    Whole,
    WindowInput,
)


class TimeDomain(Enum):
    """The clock that fires a timer."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class TimerService(ABC):
    """Reads the clocks and, on a keyed stream, sets timers of the current key; times are epoch milliseconds."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the task's wall clock, in epoch milliseconds."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return event time: the watermark received last, in epoch milliseconds."""

    @abstractmethod
    def register_processing_time_timer(self, timestamp: int) -> None:
        """Fire when processing time reaches `timestamp`, in epoch milliseconds; a timer set twice fires once."""

    @abstractmethod
    def register_event_time_timer(self, timestamp: int) -> None:
        """Fire when the watermark reaches `timestamp`, in epoch milliseconds; a timer set twice fires once."""

    @abstractmethod
    def delete_processing_time_timer(self, timestamp: int) -> None:
        """Forget the processing-time timer at `timestamp`, in epoch milliseconds, if there is one."""

    @abstractmethod
    def delete_event_time_timer(self, timestamp: int) -> None:
        """Forget the event-time timer at `timestamp`, in epoch milliseconds, if there is one."""


class Function(ABC):  # noqa: B024 - a marker: each kind adds its own abstract method
    """The life cycle that all functions have."""

    def open(self, runtime_context: RuntimeContext) -> None:  # noqa: B027
        """Prepare the function; called once a subtask, before its first record; `runtime_context` gives state."""

    def close(self) -> None:  # noqa: B027
        """Release everything; called once, after the last record or a failure."""


class RichFunction(Function):
    """A function that keeps the context it was opened with; an `open` of your own calls `super().open(...)`."""

    _runtime_context: RuntimeContext | None = None

    def open(self, runtime_context: RuntimeContext) -> None:
        self._runtime_context = runtime_context

    def get_runtime_context(self) -> RuntimeContext:
        """Return the context of the running task.

        Raises:
            RuntimeError: the function has not been opened.
        """
        if self._runtime_context is None:
            raise RuntimeError(f"{type(self).__name__} has no runtime context before open(); did open() call super()?")
        return self._runtime_context


class MapFunction(Function, Generic[Input, Output]):
    """One record in, one record out: `MapFunction[Click, str]` where a type checker shall know of which types."""

    @abstractmethod
    def map(self, value: Input) -> Output:
        """Return the record that takes the place of `value`."""


class FlatMapFunction(Function, Generic[Input, Output]):
    """One record in, any number out."""

    @abstractmethod
    def flat_map(self, value: Input) -> Iterable[Output] | None:
        """Return the records that take the place of `value`: an iterable or None."""


class FilterFunction(Function, Generic[Input]):
    """Keeps or drops each record."""

    @abstractmethod
    def filter(self, value: Input) -> bool:
        """Return True to keep `value`, False to drop it."""


class ReduceFunction(Function, Generic[Whole]):
    """Combines two records to one of the same type; must be associative.

    Of `KeyedStream.reduce`, `open` may ask the runtime context for state; `reduce` then sees that of the records' key.
    `reduce` is called from a key's second record on. Of a window it has no keyed state, as in Flink: asking for some
    raises RuntimeError.
    """

    @abstractmethod
    def reduce(self, value1: Whole, value2: Whole) -> Whole:
        """Return the combination of both."""


class FoldFunction(Function, Generic[Input, Whole]):
    """Combines records, one by one, with a value that may be of another type; of Flink 1.x.

    Of `KeyedStream.fold`, `open` may ask the runtime context for state; of a window it has none, as in Flink.
    """

    @abstractmethod
    def fold(self, accumulator: Whole, value: Input) -> Whole:
        """Return the accumulator with `value` in it; may be the same object."""


class AggregateFunction(Function, Generic[Input, Whole, Output]):
    """Gathers records in an accumulator and makes a result of it.

    What it must remember belongs in the accumulator. It has no keyed state, as in Flink: asking the runtime context of
    `open` for some raises RuntimeError. A `ProcessWindowFunction` passed beside it has state.
    """

    @abstractmethod
    def create_accumulator(self) -> Whole:
        """Return a new, empty accumulator."""

    @abstractmethod
    def add(self, value: Input, accumulator: Whole) -> Whole:
        """Return the accumulator with `value` in it; may be the same object."""

    @abstractmethod
    def get_result(self, accumulator: Whole) -> Output:
        """Return the result of what was added."""

    @abstractmethod
    def merge(self, acc_a: Whole, acc_b: Whole) -> Whole:
        """Return one accumulator with the content of both; needed where windows merge."""


class KeySelector(Function, Generic[Input, Key]):
    """Gets a record's key; must be deterministic, for the key is computed anew wherever it is needed."""

    @abstractmethod
    def get_key(self, value: Input) -> Key:
        """Return the key of `value`."""


class NullByteKeySelector(KeySelector[Any, int]):
    """Gives all records the one key 0, so that a stream without keys can use keyed operators."""

    def get_key(self, value: UserValue) -> int:
        return 0


class Partitioner(Function, Generic[KeyInput]):
    """Chooses the channel of a record."""

    @abstractmethod
    def partition(self, key: KeyInput, num_partitions: int) -> int:
        """Return the index in [0, num_partitions)."""


class OutputSelector(ABC, Generic[Input]):
    """Names the outputs of each record of a stream that is split."""

    @abstractmethod
    def select(self, value: Input) -> Iterable[str]:
        """Return the names of the outputs of `value`; none for a record that only those see who select nothing."""


class CoMapFunction(Function, Generic[Input1, Input2, Output]):
    """A map over two connected streams that share the function's state."""

    @abstractmethod
    def map1(self, value: Input1) -> Output | None:
        """Return the record that takes the place of `value` of the first stream; None for no record."""

    @abstractmethod
    def map2(self, value: Input2) -> Output | None:
        """Return the record that takes the place of `value` of the second stream; None for no record."""


class CoFlatMapFunction(Function, Generic[Input1, Input2, Output]):
    """A flat_map over two connected streams that share the function's state."""

    @abstractmethod
    def flat_map1(self, value: Input1) -> Iterable[Output] | None:
        """Return the records for `value` of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Input2) -> Iterable[Output] | None:
        """Return the records for `value` of the second stream."""


class SourceFunction(Function, Generic[Output]):
    """A source in one loop: `run` yields records until it is done or cancelled; it runs with parallelism 1."""

    @abstractmethod
    def run(self) -> Iterable[Output]:
        """Return the records; drawn from only while there is room for them."""

    def cancel(self) -> None:
        """Stop the source; called when no more records are wanted."""


class SinkFunction(Function, Generic[Input]):
    """Takes the records at the end of a stream."""

    @abstractmethod
    def invoke(self, value: Input) -> None:
        """Take one record."""


class _TimedContext(ABC):
    @abstractmethod
    def timer_service(self) -> TimerService:
        """Return the service that reads clocks and, on keyed streams, sets timers."""

    @abstractmethod
    def timestamp(self) -> Any:
        """Return the epoch milliseconds of the current record or firing timer; None where no timestamps were set."""


class _KeyedContext(_TimedContext, Generic[ContextKey]):
    @abstractmethod
    def get_current_key(self) -> ContextKey:
        """Return the key of the current record or of the firing timer."""


class _KeyedTimerContext(_KeyedContext[ContextKey]):
    @abstractmethod
    def time_domain(self) -> TimeDomain:
        """Return which clock fired."""


class ProcessFunction(Function, Generic[Input, Output]):
    """Sees each record together with its timestamp and the clocks, and may use side outputs."""

    class Context(_TimedContext):
        """The context of a record; valid only during the call it was given to."""

    @abstractmethod
    def process_element(
        self, value: Input, ctx: ProcessFunction.Context
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value`; `yield tag, record` for a side output."""


class KeyedProcessFunction(Function, Generic[KeyInput, Input, Output]):
    """A process function on a keyed stream, with keyed state and timers."""

    class Context(_KeyedContext[ContextKey]):
        """The context of a record; valid only during the call it was given to."""

    class OnTimerContext(_KeyedTimerContext[ContextKey]):
        """The context of a timer; valid only during the call it was given to."""

    @abstractmethod
    def process_element(
        self, value: Input, ctx: KeyedProcessFunction.Context[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value`; `yield tag, record` for a side output."""

    def on_timer(
        self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for the timer that fires at `timestamp`, in epoch milliseconds."""


class CoProcessFunction(Function, Generic[Input1, Input2, Output]):
    """A process function over two connected streams."""

    class Context(_TimedContext):
        """The context of a record; valid only during the call it was given to."""

    @abstractmethod
    def process_element1(
        self, value: Input1, ctx: CoProcessFunction.Context
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: Input2, ctx: CoProcessFunction.Context
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the second stream."""


class KeyedCoProcessFunction(Function, Generic[KeyInput, Input1, Input2, Output]):
    """A process function over two connected keyed streams, with state and timers of the common key."""

    class Context(_KeyedContext[ContextKey]):
        """The context of a record; valid only during the call it was given to."""

    class OnTimerContext(_KeyedTimerContext[ContextKey]):
        """The context of a timer; valid only during the call it was given to."""

    @abstractmethod
    def process_element1(
        self, value: Input1, ctx: KeyedCoProcessFunction.Context[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the first stream."""

    @abstractmethod
    def process_element2(
        self, value: Input2, ctx: KeyedCoProcessFunction.Context[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for `value` of the second stream."""

    def on_timer(
        self, timestamp: int, ctx: KeyedCoProcessFunction.OnTimerContext[KeyInput]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the records for the timer that fires at `timestamp`, in epoch milliseconds."""


class WindowFunction(Function, Generic[Input, Output, KeyInput, WindowInput]):
    """Evaluates the records of one key and window."""

    @abstractmethod
    def apply(self, key: KeyInput, window: WindowInput, inputs: Iterable[Input]) -> Iterable[Output] | None:
        """Return the results of the window."""


class AllWindowFunction(Function, Generic[Input, Output, WindowInput]):
    """Evaluates the records of one window of a stream without keys."""

    @abstractmethod
    def apply(self, window: WindowInput, inputs: Iterable[Input]) -> Iterable[Output] | None:
        """Return the results of the window."""


class _WindowContext(ABC, Generic[ContextWindow]):
    @abstractmethod
    def window(self) -> ContextWindow:
        """Return the window that is evaluated."""

    @abstractmethod
    def window_state(self) -> KeyedStateStore:
        """Return the state of this key and window; release it in `clear`."""

    @abstractmethod
    def global_state(self) -> KeyedStateStore:
        """Return the state of this key over all windows."""

    @abstractmethod
    def current_processing_time(self) -> int:
        """Return the epoch milliseconds of the task's wall clock."""

    @abstractmethod
    def current_watermark(self) -> int:
        """Return the epoch milliseconds of event time."""


class ProcessWindowFunction(Function, Generic[Input, Output, KeyInput, WindowInput]):
    """Evaluates the records of one key and window, with access to times and state."""

    class Context(_WindowContext[ContextWindow]):
        """The context of a window; valid only during the call it was given to."""

    @abstractmethod
    def process(
        self, key: KeyInput, context: ProcessWindowFunction.Context[WindowInput], elements: Iterable[Input]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the results of the window; `yield tag, record` for a side output."""

    def clear(self, context: ProcessWindowFunction.Context[WindowInput]) -> None:
        """Release the `window_state`, as the window is over."""


class ProcessAllWindowFunction(Function, Generic[Input, Output, WindowInput]):
    """Evaluates the records of one window of a stream without keys, with access to times and state."""

    class Context(_WindowContext[ContextWindow]):
        """The context of a window; valid only during the call it was given to."""

    @abstractmethod
    def process(
        self, context: ProcessAllWindowFunction.Context[WindowInput], elements: Iterable[Input]
    ) -> Iterable[Output | tuple[OutputTag, Any]] | None:
        """Return the results of the window; `yield tag, record` for a side output."""

    def clear(self, context: ProcessAllWindowFunction.Context[WindowInput]) -> None:
        """Release the `window_state`, as the window is over."""


class AsyncRetryPredicate(ABC, Generic[Whole]):
    """Says which outcomes of an async call are tried again."""

    @abstractmethod
    def result_predicate(self) -> Callable[[list[Whole]], bool] | None:
        """Return the predicate of results that are tried again; None: none are."""

    @abstractmethod
    def exception_predicate(self) -> Callable[[Exception], bool] | None:
        """Return the predicate of exceptions that are tried again; None: none are."""


class AsyncRetryStrategy(ABC, Generic[Whole]):
    """Says how often and after which pause an async call is tried again."""

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Return whether another attempt follows after `current_attempts`."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """Return the milliseconds to wait before the next attempt."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate[Whole]:
        """Return the predicates of the outcomes that are tried again."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy[Any]:
        """Return the strategy that tries nothing again."""
        from .async_retries import NO_RETRY_STRATEGY  # which imports this module

        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: Callable[[list[Whole]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Whole]:
        """Return a strategy with up to `max_attempts` further attempts and the same pause before each."""
        from .async_retries import FixedDelayRetryStrategy  # which imports this module

        return FixedDelayRetryStrategy(max_attempts, backoff_time_millis, result_predicate, exception_predicate)

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: Callable[[list[Whole]], bool] | None,
        exception_predicate: Callable[[Exception], bool] | None,
    ) -> AsyncRetryStrategy[Whole]:
        """Return a strategy with up to `max_attempts` further attempts, each pause `multiplier` times the last."""
        from .async_retries import ExponentialBackoffDelayRetryStrategy  # which imports this module

        how = (max_attempts, initial_delay, max_retry_delay, multiplier)
        return ExponentialBackoffDelayRetryStrategy(*how, result_predicate, exception_predicate)


class AsyncFunction(Function, Generic[Input, Output]):
    """Calls an outside service for each record without waiting for one answer before the next call.

    `open`, `close`, `async_invoke` and `timeout` run in one event loop; `open` and `close` may be async as well.
    """

    @abstractmethod
    async def async_invoke(self, value: Input) -> list[Output]:
        """Return the records for `value`; an exception fails the task."""

    def timeout(self, value: Input) -> list[Output]:
        """Return the records for a `value` whose call took too long; raises TimeoutError unless overridden."""
        return timed_out(value)


__all__ = [
    "AggregateFunction", "AllWindowFunction", "AsyncFunction", "AsyncRetryPredicate", "AsyncRetryStrategy",
    "CoFlatMapFunction", "CoMapFunction", "CoProcessFunction", "DistributedCache", "FilterFunction", "FlatMapFunction",
    "FoldFunction", "Function", "KeyBy", "KeySelector", "KeyedCoProcessFunction", "KeyedProcessFunction",
    "KeyedStateStore", "MapFunction", "NullByteKeySelector", "OutputSelector", "OutputTag", "Partitioner",
    "ProcessAllWindowFunction", "ProcessFunction", "ProcessWindowFunction", "ReduceFunction", "RichFunction",
    "RuntimeContext", "SinkFunction", "SourceFunction", "TimeDomain", "TimerService", "UserFunction",
    "UserFunctionPair", "WindowFunction", "as_co_flat_map", "as_co_map", "as_co_process", "as_filter", "as_flat_map",
    "as_key_selector", "as_map", "as_partitioner", "as_process", "as_reduce", "as_sink", "life_cycle_of",
]  # fmt: skip
