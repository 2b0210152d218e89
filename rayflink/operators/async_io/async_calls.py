"""One call of an async function: its attempts, the pauses between them, and the time it may take in all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from rayflink.common.functions.callables import UserAsync
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.user_code.iterate_results import iterate_results, not_iterable


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of a call.

    Args:
        results: for the record.
        error: None, or what fails the job.
        where: the method of the user's function that raised it.
    """

    results: list[Any]
    error: BaseException | None = None
    where: str = ""


class AsyncCalls:
    """Calls a user's async function; everything of it runs in the event loop.

    Args:
        user: the function.
        timeout_ms: for all attempts of a record together, from the first; 0: for ever.
        strategy: an AsyncRetryStrategy.
        metrics: where attempts beyond the first, timeouts and failures are counted.
    """

    def __init__(self, user: UserAsync, timeout_ms: int, strategy: Any, metrics: MetricGroup) -> None:
        self._user, self._timeout_s, self._strategy = user, timeout_ms / 1000 if timeout_ms > 0 else None, strategy
        predicate = strategy.get_retry_predicate()
        self._again_for, self._again_after = predicate.result_predicate(), predicate.exception_predicate()
        self._retries, self._timeouts = metrics.counter("numRetries"), metrics.counter("numTimeouts")
        self._failures = metrics.counter("numFailures")

    async def answer(self, value: Any) -> Answer:
        """Call the function for a record; raises nothing of the user's."""
        deadline = _Deadline(self._timeout_s)
        try:
            answer = await self._attempts(value)
        except asyncio.CancelledError:  # by the deadline, by itself, or because no caller waits for the answer any more
            answer = Answer([], RuntimeError("the coroutine was cancelled from within"), "async_invoke")
        deadline.met()
        if deadline.is_over:
            self._timeouts.inc()
            return self._timed_out(value)
        return answer

    async def _attempts(self, value: Any) -> Answer:
        attempts = 0
        while True:
            attempts += 1
            answer = await self._attempt(value)
            try:
                if not self._is_worth_another(answer) or not self._strategy.can_retry(attempts):
                    return answer
                pause_ms = self._strategy.get_backoff_time_millis(attempts)
            except Exception as error:
                return Answer([], error, "the retry strategy")
            self._retries.inc()
            await asyncio.sleep(max(0, pause_ms) / 1000)

    async def _attempt(self, value: Any) -> Answer:
        try:
            return Answer(_list_of(await self._user.call(value)))
        except (Exception, SystemExit) as error:
            self._failures.inc()
            return Answer([], error, "async_invoke")

    def _is_worth_another(self, answer: Answer) -> bool:
        if answer.error is None:
            return self._again_for is not None and bool(self._again_for(answer.results))
        return self._again_after is not None and bool(self._again_after(answer.error))

    def _timed_out(self, value: Any) -> Answer:
        try:
            return Answer(_list_of(self._user.timeout(value), " from timeout()"))
        except (Exception, SystemExit) as error:
            return Answer([], error, "timeout")


class _Deadline:
    """Cancels the running task when its time is over.

    Args:
        timeout_s: None: never.
    """

    __slots__ = ("_task", "_timer", "is_over")

    def __init__(self, timeout_s: float | None) -> None:
        self.is_over = False
        self._timer: asyncio.TimerHandle | None = None
        if timeout_s is not None:
            self._task = asyncio.current_task()
            self._timer = asyncio.get_running_loop().call_later(timeout_s, self._end)

    def met(self) -> None:
        """Note that the work is done or has been ended."""
        if self._timer is not None:
            self._timer.cancel()

    def _end(self) -> None:
        self.is_over = True
        assert self._task is not None, "calls are made in tasks"
        self._task.cancel()


def _list_of(results: Any, source: str = "") -> list[Any]:
    """Return the results of a record.

    Args:
        source: where a list is to be returned from, for people.

    Raises:
        NotIterable: None, which PyFlink refuses too, or one result that is not in a list.
    """
    remedy = f"return a list of results{source}; [] drops the record"
    if results is None or isinstance(results, (str, bytes, dict)):
        raise not_iterable(results, remedy)
    return list(iterate_results(results, remedy))


__all__ = ["Answer", "AsyncCalls"]
