"""Async generators as sources: their loop runs in a thread, and hands records over through a bounded queue."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterable, Callable
from contextlib import suppress
from typing import Any

from rayflink.common.connector_base.source import PENDING, Polled
from rayflink.common.records.aliasing import detached
from rayflink.common.records.batches import RowBatch
from rayflink.common.records.immutability import IMMUTABLE_TYPES

QUEUE_RECORDS = 1024
_END_SECONDS = 10


class AsyncDrain:
    """Draws records from an async iterable in a thread of its own; `read` never blocks.

    The iterable waits while `QUEUE_RECORDS` are not read yet; other tasks of its loop go on.

    Args:
        records: what to draw from.
        skipped: the number of first ones to leave out; they were emitted before a restore.
    """

    def __init__(self, records: AsyncIterable[Any], skipped: int) -> None:
        self._records, self._skipped = records, skipped
        self._queue: deque[Any] = deque()
        self._ended = False
        self._error: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="async source", daemon=True)
        self._thread.start()

    def read(self, max_records: int) -> Polled | None:
        """Return the next elements, PENDING when none are available yet, None at the end.

        Raises:
            Exception: what the iterable raised, once the records before it are read.
        """
        ended = self._ended  # looked at first: what was queued before the end is in the queue
        values = [self._queue.popleft() for _ in range(min(max_records, len(self._queue)))]
        if values:
            self._tell(self._room.set)
            return RowBatch(values)
        if not ended:
            return PENDING
        if self._error is not None:
            raise self._error
        return None

    def close(self) -> None:
        """End the iteration.

        Raises:
            TimeoutError: it does not end, because it blocks its loop.
        """
        self._closing = True
        self._tell(self._cancel)
        self._thread.join(_END_SECONDS)
        if self._thread.is_alive():
            problem = f"the async generator has not ended {_END_SECONDS} s after it was cancelled"
            raise TimeoutError(f"{problem}; await in it, for example asyncio.sleep() instead of time.sleep()")

    def _tell(self, call: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has ended by itself, and nothing waits in it
            self._loop.call_soon_threadsafe(call)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._task = self._loop.create_task(self._drain())
            if self._closing:
                self._task.cancel()
            self._loop.run_until_complete(self._task)
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        except asyncio.CancelledError as error:
            if not self._closing:
                self._error = RuntimeError(f"the async generator was cancelled from within: {error}")
        except BaseException as error:  # kept for the reader's thread, which raises it
            self._error = error
        finally:
            self._loop.close()
            self._ended = True

    async def _drain(self) -> None:
        count = 0
        try:
            async for value in self._records:
                count += 1
                if count <= self._skipped:
                    continue
                self._queue.append(value if type(value) in IMMUTABLE_TYPES else detached(value))
                while len(self._queue) >= QUEUE_RECORDS:
                    self._room.clear()
                    if len(self._queue) >= QUEUE_RECORDS:
                        await self._room.wait()
        finally:
            close = getattr(self._records, "aclose", None)
            if close is not None:
                await close()
        if count < self._skipped:
            raise ValueError(f"the iteration returned {count} records after the restore, and {self._skipped} before it")
