"""One call of an async function: its attempts, the pauses between them, and the time it may take in all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from ..common.callables import UserAsync
from ..common.metrics import MetricGroup
from ..common.results import drawn_from


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call.

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
        calling = asyncio.ensure_future(self._attempts(value))
        try:
            done, _ = await asyncio.wait({calling}, timeout=self._timeout_s)
        except asyncio.CancelledError:
            calling.cancel()
            raise
        if not done:
            self._timeouts.inc()
            calling.cancel()
            return self._timed_out(value)
        if calling.cancelled():
            return Answer([], RuntimeError("the coroutine was cancelled from within"), "async_invoke")
        return calling.result()

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
            return Answer(_list_of(self._user.timeout(value)))
        except (Exception, SystemExit) as error:
            return Answer([], error, "timeout")


def _list_of(results: Any) -> list[Any]:
    return [] if results is None else list(drawn_from(results))


__all__ = ["Answer", "AsyncCalls"]
