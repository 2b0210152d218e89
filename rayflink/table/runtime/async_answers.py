"""The calls of asynchronous functions for the rows of a batch: how many are made at a time, and their answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from rayflink.common.functions.async_retries import (
    NO_RETRY_STRATEGY,
    FixedDelayRetryStrategy,
    has_exception_predicate,
)
from rayflink.common.functions.callables import UserAsync
from rayflink.common.functions.function_classes import AsyncRetryStrategy
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.operators.async_io.async_calls import AsyncCalls
from rayflink.user_types import UserValue

from ..user_functions.async_kernels import AsyncKernel, AsyncRowsKernel

CANCEL_S = 1.0
"""Seconds for which a failure waits for the ends of the calls that it cancels."""


@dataclass(frozen=True)
class AsyncCallSettings:
    """Settings of the calls of asynchronous functions.

    Args:
        option: prefix of the options that they come from, for messages.
        most_calls: calls under way at a time in a subtask, at least 1.
        timeout_ms: for a call with all its repetitions.
        retries: repetitions of a call that fails; 0: none.
        retry_delay_ms: pause before each of them.
    """

    option: str = "table.exec.async-scalar"
    most_calls: int = 10
    timeout_ms: int = 180_000
    retries: int = 3
    retry_delay_ms: int = 100

    def strategy(self) -> AsyncRetryStrategy[UserValue]:
        """Return the strategy by which calls are repeated."""
        if not self.retries:
            return NO_RETRY_STRATEGY
        delay_ms = max(1, self.retry_delay_ms)
        return FixedDelayRetryStrategy(self.retries, delay_ms, None, has_exception_predicate)


@dataclass(frozen=True)
class WantedCalls:
    """Calls of a function.

    Args:
        rows: the arguments of each.
    """

    kernel: AsyncKernel
    rows: Sequence[tuple[UserValue, ...]]


@dataclass(frozen=True)
class CallFailure:
    """A call that has failed after all repetitions.

    Args:
        function: name of the function.
        args: its arguments.
    """

    function: str
    args: tuple[UserValue, ...]
    error: BaseException


class AsyncAnswers:
    """Makes calls, a bounded number at a time; all of it but the constructor runs in the event loop.

    Args:
        kernels: the functions.
        scalars: settings of functions that give a value.
        tables: settings of functions that give rows.
        metrics: where repetitions, timeouts and failures are counted, those of both kinds apart.
    """

    def __init__(
        self, kernels: Sequence[AsyncKernel], scalars: AsyncCallSettings, tables: AsyncCallSettings,
        metrics: MetricGroup,
    ) -> None:  # fmt: skip
        self._bounded: dict[bool, _BoundedCalls] = {}
        for gives_rows in {isinstance(kernel, AsyncRowsKernel) for kernel in kernels}:
            settings, group = (tables, "asyncTable") if gives_rows else (scalars, "asyncScalar")
            self._bounded[gives_rows] = _BoundedCalls(settings, metrics.add_group(group))

    async def answers(self, wanted: Sequence[WantedCalls]) -> list[list[UserValue]] | CallFailure:
        """Return the results of all calls, or the first failure; the other calls are cancelled then."""
        pending: list[asyncio.Task[UserValue]] = []
        for calls in wanted:
            bounded = self._bounded[isinstance(calls.kernel, AsyncRowsKernel)]
            pending += [asyncio.create_task(bounded.answer(calls.kernel, args)) for args in calls.rows]
        try:
            results = await asyncio.gather(*pending)
        except _CallFailed as failed:
            for call in pending:
                call.cancel()
            await asyncio.wait(pending, timeout=CANCEL_S)
            return failed.failure
        divided, first = [], 0
        for calls in wanted:
            divided.append(results[first : first + len(calls.rows)])
            first += len(calls.rows)
        return divided


class _CallFailed(Exception):
    """Ends the wait for the other calls."""

    def __init__(self, failure: CallFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class _BoundedCalls:
    """Makes the calls of one kind, as many at a time as there may be; others wait for their turn, in order.

    `asyncio.Semaphore` looks at all that wait whenever a call ends.
    """

    def __init__(self, settings: AsyncCallSettings, metrics: MetricGroup) -> None:
        self._settings = settings
        self._room = settings.most_calls
        self._waiting: deque[asyncio.Future[None]] = deque()
        user = UserAsync(_called, self._timed_out, _nothing, _nothing)
        self._calls = AsyncCalls(user, settings.timeout_ms, settings.strategy(), metrics)

    async def answer(self, kernel: AsyncKernel, args: tuple[UserValue, ...]) -> UserValue:
        if self._room:
            self._room -= 1
        else:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        answer = await self._calls.answer((kernel, args))
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # one that is was cancelled
                turn.set_result(None)
                break
        else:
            self._room += 1
        if answer.error is not None:
            raise _CallFailed(CallFailure(kernel.name, args, answer.error))
        return answer.results[0]

    def _timed_out(self, call: tuple[AsyncKernel, tuple[UserValue, ...]]) -> list[UserValue]:
        settings, input_text = self._settings, list(call[1])
        problem = f"Async function call has timed out for input: {input_text}; there was no result for"
        remedy = f"raise '{settings.option}.timeout', or bound the time in the function"
        raise TimeoutError(f"{problem} {settings.timeout_ms} ms: {remedy}")


async def _called(call: tuple[AsyncKernel, tuple[UserValue, ...]]) -> list[UserValue]:
    kernel, args = call
    return [await kernel.answer(args)]


def _nothing(*_: object) -> None:
    pass


__all__ = ["AsyncAnswers", "AsyncCallSettings", "CallFailure", "WantedCalls"]
