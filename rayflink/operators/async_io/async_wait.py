"""AsyncDataStream: a coroutine for each record, many of them under way at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from typing import Any

from rayflink.common.functions.async_retries import NO_RETRY_STRATEGY
from rayflink.common.functions.callables import as_async
from rayflink.common.records.batches import Batch, Element, RowBatch

from ..base import shortened
from ..output_buffer import OutputBuffer
from ..user_function import list_of, timestamps_of
from .async_calls import Answer, AsyncCalls
from .async_operator import AsyncOperator
from .request_queue import Request


class AsyncWaitOperator(AsyncOperator):
    """Replaces each record by the results of `await function(record)`, which bear the record's timestamp.

    Args:
        function: an AsyncFunction or an `async def`; gives an iterable of results.
        timeout_ms: for each record, its further attempts included; 0 or less: for ever.
        capacity: records under way, at least 1.
        ordered: results in the order of the records; else as they come, never across a watermark.
        strategy: an AsyncRetryStrategy.

    Source: apache/flink AsyncWaitOperator.
    """

    def __init__(
        self, function: Any, timeout_ms: int, capacity: int, ordered: bool, strategy: Any = NO_RETRY_STRATEGY
    ) -> None:
        super().__init__(capacity, ordered)
        self._user = as_async(function, "ordered_wait" if ordered else "unordered_wait")
        self._timeout_ms, self._strategy = timeout_ms, strategy

    def open(self) -> None:
        self._calls = AsyncCalls(self._user, self._timeout_ms, self._strategy, self.ctx.metrics)
        super().open()

    def life_cycle(self) -> tuple[Callable[..., Any], Callable[[], Any]]:
        return self._user.open, self._user.close

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        values, stamps = list_of(batch), timestamps_of(batch)
        single = map(_single, values) if stamps is None else map(_single, values, stamps)
        return self.take(single)

    def begin(self, waiting: deque[Element]) -> tuple[Batch, Callable[[], Coroutine[Any, Any, Answer]]]:
        single = waiting.popleft()
        assert isinstance(single, RowBatch)
        return single, partial(self._calls.answer, single.values[0])

    def check_answer(self, request: Request) -> None:
        answer: Answer = request.answer
        if answer.error is not None:
            raise self.failure(answer.where, shortened(request.payload.values[0])) from answer.error

    def elements_of(self, answered: list[Request]) -> Iterable[Element]:
        out = OutputBuffer()
        for request in answered:
            single: RowBatch = request.payload
            stamp = None if single.timestamps is None else single.timestamps[0]
            out.add_results(request.answer.results, stamp, single.values[0])
        return out.take()


def _single(value: Any, stamp: int | None = None) -> RowBatch:
    return RowBatch([value], None if stamp is None else [stamp])


__all__ = ["AsyncWaitOperator"]
