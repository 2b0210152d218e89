"""Calls to a pool of workers: which worker processes a batch, retries, and when calls stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger
from rayflink.common.user_code.actor_pool import ActorPool

from .circuit_breaker import CircuitBreaker, CircuitOpen
from .workers import Worker, WorkerLost, WorkerSpec

log = get_logger(__name__)

TELL_AFTER_MS = 5_000
"""Waits for a worker that exceed this time are logged."""
TELL_EVERY_MS = 30_000


class NoWorker(Exception):
    """A worker was not there in time.

    Args:
        wanted: what its process takes.
        waited_ms: how long.
        awaited: why it was not there.
    """

    def __init__(self, wanted: str, waited_ms: int, awaited: str) -> None:
        super().__init__(wanted, waited_ms, awaited)
        self.wanted, self.waited_ms, self.awaited = wanted, waited_ms, awaited

    def __str__(self) -> str:
        return (
            f"a process with {self.wanted} was not there, with its function, within {self.waited_ms} ms: "
            f"{self.awaited}; give the cluster more, ask for less or for fewer processes, or raise start_timeout_ms"
        )


class CallTimedOut(TimeoutError):
    """A call took too long."""

    def __init__(self, waited_ms: int) -> None:
        super().__init__(waited_ms)
        self.waited_ms = waited_ms

    def __str__(self) -> str:
        return f"the call took longer than {self.waited_ms} ms; raise timeout_ms, or make batches smaller"


@dataclass(frozen=True, slots=True)
class BatchAnswer:
    """The outcome of a batch.

    Args:
        result: of the function.
        error: None, or why there is no result.
        seconds: that the successful call took.
    """

    result: Any
    error: BaseException | None = None
    seconds: float = 0.0


class PoolCalls:
    """Calls the workers of a subtask; everything of it runs in the event loop.

    Args:
        pool: how.
        size: workers, at least 1.
        spec: of each of them.
        open_worker: makes one.
        metrics: where calls beyond the first, lost workers, timeouts and failures are counted.
    """

    def __init__(
        self,
        pool: ActorPool,
        size: int,
        spec: WorkerSpec,
        open_worker: Callable[[WorkerSpec], Worker],
        metrics: MetricGroup,
    ) -> None:
        self._pool, self._size, self._spec, self._open_worker = pool, size, spec, open_worker
        self._free: asyncio.Queue[Worker]
        self._workers: list[Worker] = []
        self._started: set[Worker] = set()
        self._breaker = CircuitBreaker(pool.open_after, pool.probe_after_ms)
        self._last, self._tell_at_ms = "", 0
        self._retries, self._failures = metrics.counter("numRetries"), metrics.counter("numFailures")
        self._timeouts, self._lost = metrics.counter("numTimeouts"), metrics.counter("numWorkersLost")
        metrics.gauge("circuitBreaker", lambda: self._breaker.state)
        metrics.gauge("numTimesOpened", lambda: self._breaker.times_opened)

    async def open(self, runtime_context: Any) -> None:
        """Ask for the workers; they are waited for when they are needed."""
        self._free = asyncio.Queue()
        for _ in range(self._size):
            self._add_worker()

    def close(self) -> None:
        """End the workers."""
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.close()

    async def answer(self, data: Any) -> BatchAnswer:
        """Have a worker process a batch; errors of the user's function are not raised here."""
        attempts = 0
        while True:
            worker = await self._free.get()
            refusal = await self._refusal()
            if refusal is not None:
                self._free.put_nowait(worker)
                return BatchAnswer(None, refusal)
            attempts += 1
            answer = await self._attempt(worker, data)
            if answer.error is None or isinstance(answer.error, NoWorker) or attempts > self._pool.max_retries:
                return answer
            self._retries.inc()
            await asyncio.sleep(self._pool.retry_delay(attempts) / 1000)

    async def _refusal(self) -> CircuitOpen | None:
        """Wait until a call may be made; why not, where that takes too long or records have another way."""
        breaker, pool = self._breaker, self._pool
        while True:
            now = _now_ms()
            left_ms = pool.open_deadline_ms - (0 if breaker.open_since_ms is None else now - breaker.open_since_ms)
            is_over = breaker.open_since_ms is not None and left_ms <= 0 and pool.side_output is None
            if not is_over and breaker.may_call(now):
                return None
            if is_over or pool.side_output is not None:
                return CircuitOpen(pool.open_after, pool.open_deadline_ms - left_ms, self._last)
            await asyncio.sleep(min(breaker.wait_ms(now), left_ms) / 1000)

    async def _attempt(self, worker: Worker, data: Any) -> BatchAnswer:
        pool, started = self._pool, asyncio.get_running_loop().time()
        try:
            if worker not in self._started:
                if not await self._is_ready(worker):
                    missing = NoWorker(self._spec.wanted, pool.start_timeout_ms, await worker.awaited())
                    self._replace(worker)
                    return self._failed(missing)
                self._started.add(worker)
            started = asyncio.get_running_loop().time()
            call = asyncio.ensure_future(worker.call(data))
            if not await _is_done(call, pool.timeout_ms):
                self._timeouts.inc()
                self._replace(worker)
                return self._failed(CallTimedOut(pool.timeout_ms))
            result = call.result()
        except WorkerLost as error:
            self._lost.inc()
            self._replace(worker)
            return self._failed(error)
        except (Exception, SystemExit) as error:
            self._free.put_nowait(worker)
            return self._failed(error)
        self._free.put_nowait(worker)
        self._breaker.succeeded()
        return BatchAnswer(result, None, asyncio.get_running_loop().time() - started)

    async def _is_ready(self, worker: Worker) -> bool:
        """Return whether the worker is ready in time; meanwhile the log reports the wait."""
        telling = asyncio.ensure_future(self._tell_what_is_awaited(worker))
        try:
            return await _is_done(worker.ready(), self._pool.start_timeout_ms)
        finally:
            telling.cancel()

    async def _tell_what_is_awaited(self, worker: Worker) -> None:
        await asyncio.sleep(TELL_AFTER_MS / 1000)
        while True:
            if (now := _now_ms()) >= self._tell_at_ms:  # once for all that are waited for
                self._tell_at_ms = now + TELL_EVERY_MS
                absent, awaited = self._size - len(self._started), await worker.awaited()
                line = "%r waits for %d of its %d processes, each with %s: %s"
                log.warning(line, self._spec.name, absent, self._size, self._spec.wanted, awaited)
            await asyncio.sleep(TELL_EVERY_MS / 1000)

    def _failed(self, error: BaseException) -> BatchAnswer:
        self._failures.inc()
        self._last = described(error)
        self._breaker.failed(_now_ms())
        return BatchAnswer(None, error)

    def _replace(self, worker: Worker) -> None:
        self._workers.remove(worker)
        self._started.discard(worker)
        worker.close()
        self._add_worker()

    def _add_worker(self) -> None:
        worker = self._open_worker(self._spec)
        self._workers.append(worker)
        self._free.put_nowait(worker)


async def _is_done(work: Coroutine[Any, Any, Any] | asyncio.Future[Any], timeout_ms: int) -> bool:
    """Return whether the call finishes within the time; else it is cancelled. What it raised is raised.

    Args:
        timeout_ms: 0: for ever.
    """
    future = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({future}, timeout=timeout_ms / 1000 if timeout_ms else None)
    except asyncio.CancelledError:
        future.cancel()
        raise
    if done:
        future.result()
    else:
        future.cancel()
    return bool(done)


def _now_ms() -> int:
    return round(asyncio.get_running_loop().time() * 1000)


__all__ = ["BatchAnswer", "CallTimedOut", "NoWorker", "PoolCalls"]
