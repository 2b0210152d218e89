"""Async I/O: many calls of an outside service under way at once, and their answers as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from rayflink.common.functions.async_retries import NO_RETRY_STRATEGY
from rayflink.common.functions.function_classes import AsyncRetryStrategy
from rayflink.common.time import Length, to_millis
from rayflink.graph.errors import PlanError
from rayflink.graph.transformations import call_site
from rayflink.operators.async_io.async_wait import AsyncWaitOperator
from rayflink.operators.factory import Factory
from rayflink.user_types import TypeHint, UserCode

from .streams.recording import record_operator
from .streams.step import transformation_of
from .streams.stream import DataStream, ensure_stream

if TYPE_CHECKING:
    from .streams.function_types import AsyncForm

NAME = "async wait operator"
T = TypeVar("T")
U = TypeVar("U")


class AsyncDataStream:
    """Applies an async function to each record of a stream.

    What is under way belongs to the state of the job: after a restore it is asked again. Event time waits for the
    answers to what came before it.

    >>> from rayflink.common.time import Time
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment({"execution.target": "local"})
    >>> async def prices(symbol):
    ...     return [(symbol, {"ACME": 12, "INIT": 30}[symbol])]
    >>> symbols = env.from_collection(["INIT", "ACME", "INIT"])
    >>> list(AsyncDataStream.ordered_wait(symbols, prices, Time.seconds(10)).execute_and_collect())
    [('INIT', 30), ('ACME', 12), ('INIT', 30)]
    """

    @staticmethod
    @overload
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, U],
        timeout: Length,
        capacity: int = 100,
        output_type: None = None,
    ) -> DataStream[U]: ...
    @staticmethod
    @overload
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        capacity: int,
        output_type: TypeHint,
    ) -> DataStream: ...
    @staticmethod
    @overload
    def unordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        capacity: int = 100,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: UserCode,
        timeout: Length,
        capacity: int = 100,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Give results as they come; those of records before a watermark come before it, the others behind it.

        Args:
            data_stream: the records.
            async_function: an AsyncFunction, or an `async def` of a record; it gives a list of results.
            timeout: for each record, a Time, Duration, timedelta or int of milliseconds; 0 or less: no bound.
            capacity: records that may be under way in a subtask, at least 1; more wait, and so does the input.
            output_type: what every result must be; None: anything.
        """
        how = (data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type)
        return AsyncDataStream.unordered_wait_with_retry(*how)

    @staticmethod
    @overload
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, U],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[U],
        capacity: int = 100,
        output_type: None = None,
    ) -> DataStream[U]: ...
    @staticmethod
    @overload
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int,
        output_type: TypeHint,
    ) -> DataStream: ...
    @staticmethod
    @overload
    def unordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: UserCode,
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Give results as they come, as `unordered_wait` does; named outcomes are tried again.

        The strategy names the outcomes; all attempts for a record share one timeout.
        """
        return _waiting(data_stream, async_function, (timeout, async_retry_strategy, capacity, False), output_type)

    @staticmethod
    @overload
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, U],
        timeout: Length,
        capacity: int = 100,
        output_type: None = None,
    ) -> DataStream[U]: ...
    @staticmethod
    @overload
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        capacity: int,
        output_type: TypeHint,
    ) -> DataStream: ...
    @staticmethod
    @overload
    def ordered_wait(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        capacity: int = 100,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: UserCode,
        timeout: Length,
        capacity: int = 100,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Give results in the order of the records; the arguments are those of `unordered_wait`."""
        how = (data_stream, async_function, timeout, NO_RETRY_STRATEGY, capacity, output_type)
        return AsyncDataStream.ordered_wait_with_retry(*how)

    @staticmethod
    @overload
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, U],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[U],
        capacity: int = 100,
        output_type: None = None,
    ) -> DataStream[U]: ...
    @staticmethod
    @overload
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int,
        output_type: TypeHint,
    ) -> DataStream: ...
    @staticmethod
    @overload
    def ordered_wait_with_retry(
        data_stream: DataStream[T],
        async_function: AsyncForm[T, Any],
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        *,
        output_type: TypeHint,
    ) -> DataStream: ...

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: UserCode,
        timeout: Length,
        async_retry_strategy: AsyncRetryStrategy[Any],
        capacity: int = 100,
        output_type: TypeHint = None,
    ) -> DataStream[Any]:
        """Give results in the order of the records, as `ordered_wait` does; named outcomes are tried again.

        The strategy names the outcomes; all attempts for a record share one timeout.
        """
        return _waiting(data_stream, async_function, (timeout, async_retry_strategy, capacity, True), output_type)


def _waiting(
    stream: DataStream, function: UserCode, how: tuple[Any, AsyncRetryStrategy[Any], int, bool], output_type: TypeHint
) -> DataStream:
    timeout, strategy, capacity, ordered = how
    step = "ordered_wait" if ordered else "unordered_wait"
    ensure_stream(stream, step)
    timeout_ms = to_millis(timeout)
    if not isinstance(strategy, AsyncRetryStrategy):
        remedy = "give AsyncRetryStrategy.fixed_delay(...), or a class derived from AsyncRetryStrategy"
        _refuse(f"{step} was given {type(strategy).__name__} as retry strategy", remedy)
    if timeout_ms <= 0 and strategy is not NO_RETRY_STRATEGY:
        _refuse(f"{step} has retries and a timeout of {timeout_ms} ms", "give a timeout above 0, which bounds them")
    if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
        _refuse(f"{step} has capacity {capacity!r}", "give a whole number of records, at least 1")
    factory = Factory(AsyncWaitOperator, function, timeout_ms, capacity, ordered, strategy)
    env = stream.get_execution_environment()
    return DataStream(env, record_operator(env, transformation_of(stream), NAME, factory, output_type))


def _refuse(problem: str, remedy: str) -> None:
    raise PlanError(problem, remedy, call_site())


__all__ = ["AsyncDataStream"]
