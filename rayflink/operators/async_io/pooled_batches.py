"""map_batches in a pool: batches of columns or rows worked by processes that hold a model, many at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from inspect import isclass
from typing import Any

from rayflink.common.errors import InvalidFunction
from rayflink.common.functions.function_classes import Function, as_map
from rayflink.common.records.arrow_rows import rows_to_arrow
from rayflink.common.records.batches import ArrowBatch, Batch, Element, EndOfData, RowBatch, Tagged
from rayflink.common.user_code.actor_pool import ActorPool
from rayflink.common.user_code.call_sites import call_site

from ..base import shortened
from ..columnar import FORMS, annotated_form, check_installed, timed_result, with_column
from ..user_function import list_of, timestamps_of
from .async_operator import AsyncOperator
from .pool_calls import BatchAnswer, PoolCalls
from .request_queue import Request
from .workers import BatchFunction, WorkerSpec, worker_opener

ROWS = "rows"


class AdaptiveBatchSize:
    """Doubles while that makes a record cheaper and a batch takes less than its time; halves when it takes more.

    >>> size = AdaptiveBatchSize(target_ms=100, largest=64)
    >>> for took_ms in (10, 11, 12):  # a batch costs 10 ms, whatever is in it
    ...     size.observe(size.records, took_ms / 1000)
    >>> size.records
    8
    >>> size.observe(8, 0.2); size.records
    4

    Args:
        target_ms: what a batch may take.
        largest: records, at least 1.
    """

    GAIN = 0.9
    """A larger batch must bring the cost of a record down to this part of it to be worth a larger one still."""

    def __init__(self, target_ms: float, largest: int) -> None:
        self._target_s, self._largest = target_ms / 1000, largest
        self._cheapest_s: float | None = None
        self.records = 1
        """The size of the next batch."""

    def observe(self, records: int, seconds: float) -> None:
        """Learn from a batch that has come back; one of another size than the current one is ignored."""
        if records != self.records:
            return
        if seconds > self._target_s:
            self._largest = max(1, min(self._largest, records - 1))
            self.records = max(1, records // 2)
            return
        cost_s = seconds / records
        if self._cheapest_s is None or cost_s <= self._cheapest_s * self.GAIN:
            self._cheapest_s = cost_s
            self.records = min(self._largest, records * 2)


class FixedBatchSize:
    """A size that never changes.

    Args:
        records: at least 1.
    """

    def __init__(self, records: int) -> None:
        self.records = records

    def observe(self, records: int, seconds: float) -> None:
        """Learn nothing: the size is fixed."""


class PooledBatchesOperator(AsyncOperator):
    """Replaces each batch by what a worker's function gives for it.

    A record waits for a batch to be full, at most `max_wait_ms`; no batch holds records from both sides of a watermark.

    Args:
        function: as of `MapBatchesOperator`, or a class whose instances are; each worker has an instance of its own.
        pool: how many workers, and how they are called.
        form: as of `MapBatchesOperator`, and "rows" for a list of records that gives a list of results.
        timestamp_column: as of `MapBatchesOperator`.

    Raises:
        ValueError: `form` is unknown, or "rows" has a timestamp column.
        PlanError: the package of the form is not installed.
    """

    def __init__(
        self, function: Any, pool: ActorPool, form: str | None = None, timestamp_column: str | None = None
    ) -> None:
        super().__init__(1, pool.ordered)
        if form is not None and form not in (*FORMS, ROWS):
            raise ValueError(f"form must be one of {', '.join((*FORMS, ROWS))}, found {form!r}")
        if form == ROWS and timestamp_column is not None:
            raise ValueError("form='rows' has no columns; leave timestamp_column out, rows keep their timestamps")
        call = _call_of(function)
        self._pool, self._column = pool, timestamp_column
        self._form = form or annotated_form(call)
        check_installed(self._form)
        self._function = BatchFunction(function if isclass(function) else call, self._form)
        adaptive = pool.batch_size == "adaptive"
        self._size: AdaptiveBatchSize | FixedBatchSize = FixedBatchSize(int(pool.batch_size) if not adaptive else 1)
        if adaptive:
            self._size = AdaptiveBatchSize(pool.target_latency_ms, pool.largest_batch)
        self._since_ms = 0
        self._is_ending = False

    def open(self) -> None:
        ctx, pool = self.ctx, self._pool
        share = pool.share(ctx.subtask, ctx.parallelism)
        if not share:
            problem = f"{pool.size} processes are too few for {ctx.parallelism} subtasks"
            raise ValueError(f"{problem}; set the step's parallelism to {pool.size}, or give the pool a larger size")
        self._capacity = share * pool.in_flight
        spec = WorkerSpec(self._function, ctx.operator_name, pool.num_cpus, pool.num_gpus, pool.resources)
        self._calls = PoolCalls(pool, share, spec, worker_opener(ctx), ctx.metrics)
        ctx.metrics.gauge("batchSize", lambda: self._size.records)
        self._rejected = ctx.metrics.counter("numRecordsRejected")
        self._since_ms = ctx.clock.now_ms()
        super().open()

    def life_cycle(self) -> tuple[Callable[..., Any], Callable[[], Any]]:
        return self._calls.open, self._calls.close

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        if not self._waiting:
            self._since_ms = self.ctx.clock.now_ms()
        if self._form != ROWS and isinstance(batch, ArrowBatch):
            return self.take([batch])
        values, stamps = list_of(batch), timestamps_of(batch)
        last = self._waiting[-1] if self._waiting else None
        if isinstance(last, RowBatch) and (last.timestamps is None) == (stamps is None):
            last.values += values
            if last.timestamps is not None:
                last.timestamps += stamps or []
            return self.take(())
        return self.take([RowBatch(list(values), None if stamps is None else list(stamps))])

    def accepts(self, element: Element) -> bool:
        if isinstance(element, EndOfData) and element.drain and not self._is_ending:
            self._is_ending = True
            self._begin()
        return super().accepts(element)

    def next_completion_ms(self) -> int | None:
        due = super().next_completion_ms()
        if not self._waiting or self._queue.requests >= self._capacity:
            return due
        full = self._since_ms + self._pool.max_wait_ms
        return full if due is None else min(due, full)

    def begin(self, waiting: deque[Element]) -> tuple[Batch, Callable[[], Coroutine[Any, Any, BatchAnswer]]] | None:
        wanted, batch = self._size.records, waiting[0]
        assert isinstance(batch, RowBatch | ArrowBatch)
        now = self.ctx.clock.now_ms()
        is_whole = self._is_ending or len(waiting) > 1 or now >= self._since_ms + self._pool.max_wait_ms
        if len(batch) < wanted and not is_whole:
            return None
        if len(batch) > wanted:
            batch, waiting[0] = batch.slice(0, wanted), batch.slice(wanted, len(batch))
        else:
            waiting.popleft()
        self._since_ms = now
        return batch, partial(self._ask, batch)

    async def _ask(self, batch: Batch) -> BatchAnswer:
        try:
            data = self._data(batch)
        except Exception as error:  # rows that do not fit into columns
            return BatchAnswer(None, error)
        return await self._calls.answer(data)

    def _data(self, batch: Batch) -> Any:
        if self._form == ROWS:
            return list(list_of(batch))  # what is kept to ask again is not the function's
        data = batch.data if isinstance(batch, ArrowBatch) else rows_to_arrow(batch.values)
        if self._column is not None and batch.timestamps is not None:
            data = with_column(data, self._column, batch.timestamps)
        return data

    def check_answer(self, request: Request) -> None:
        answer: BatchAnswer = request.answer
        batch: Batch = request.payload
        if answer.error is not None:
            if self._pool.side_output is None:
                raise self._failure_at(batch) from answer.error
            self._rejected.inc(len(batch))
            request.answer = Tagged(self._pool.side_output.tag_id, batch)
            return
        self._size.observe(len(batch), answer.seconds)
        try:
            request.answer = self._with_timestamps(answer.result, batch)
        except Exception as error:
            raise self._failure_at(batch) from error

    def elements_of(self, answered: list[Request]) -> Iterable[Element]:
        return [request.answer for request in answered]

    def _with_timestamps(self, result: Any, batch: Batch) -> Batch:
        if self._form != ROWS:
            stamps, columns = timed_result(result, batch.timestamps, len(batch), self._column)
            return ArrowBatch(columns, stamps)
        if batch.timestamps is not None and len(result) != len(batch):
            problem = f"{len(batch)} rows with timestamps became {len(result)} rows"
            raise ValueError(f"{problem}, and which row has which timestamp is unknown; give a result for each row")
        return RowBatch(result, timestamps_of(batch))

    def _failure_at(self, batch: Batch) -> Exception:
        first = shortened(list_of(batch.slice(0, 1))[0])
        return self.failure("map_batches", first if len(batch) == 1 else f"{first}, the first of {len(batch)}")


def _call_of(function: Any) -> Callable[..., Any]:
    """Return the callable that a worker applies to a batch.

    Raises:
        InvalidFunction: it cannot be called with one.
    """
    if isclass(function):
        if any("__call__" in base.__dict__ for base in function.__mro__):
            call: Callable[..., Any] = function.__call__
            return call
        problem = f"map_batches: instances of {function.__name__} cannot be called with a batch"
        raise InvalidFunction(problem, "give the class a method __call__(self, batch)", call_site())
    if isinstance(function, Function):
        problem = f"map_batches: open() of the {type(function).__name__} would not be called in the processes of a pool"
        raise InvalidFunction(problem, "give a class that loads in __init__ and has __call__(self, batch)", call_site())
    return as_map(function, "map_batches").call


__all__ = ["AdaptiveBatchSize", "FixedBatchSize", "PooledBatchesOperator"]
