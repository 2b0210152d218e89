"""The thread that reads a stream; an event loop in it serves all splits of a subtask on one connection."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.text_output.logs import get_logger

from ..message_logs.fetch_queue import FetchQueue, start_thread
from ..message_logs.missing_messages import MissingMessages
from ..message_logs.outages import OutageWatch
from .nats_connection import NatsConnection
from .nats_errors import MissingStreamMessages, NatsOutage
from .nats_messages import NatsMessage
from .nats_positions import NatsSplit, RemovalWatch, StreamFacts
from .nats_pull import ConsumerGone, StreamPull
from .nats_server import NatsServer

log = get_logger(__name__)

_ROOM_PAUSE_S = 0.005
_GONE_PAUSE_S = 0.1
_CHECK_S = 0.25
"""Seconds between two looks at the stream while there is a doubt whether messages are missing."""


@dataclass(frozen=True)
class NatsRun:
    """Messages of one split that were delivered together.

    Args:
        split: at the position before them.
        messages: in order.
        covered: the position behind them, which may be beyond the last one.
    """

    split: NatsSplit
    messages: Sequence[NatsMessage]
    covered: int

    @property
    def split_id(self) -> str:
        """Return the name of the split."""
        return self.split.split_id

    def timestamps(self, start: int, stop: int) -> list[int]:
        """Return the epoch milliseconds at which the stream took messages [start, stop)."""
        return [message.timestamp_ms for message in self.messages[start:stop]]

    def place_of(self, index: int) -> str:
        """Return stream and number of a message."""
        return f"stream {self.split.stream!r}, sequence {self.messages[index].sequence}"

    def split_after(self, count: int) -> NatsSplit:
        """Return the split behind the first `count` messages."""
        if count == len(self.messages):
            return replace(self.split, covered=self.covered)
        return replace(self.split, covered=self.messages[count - 1].sequence) if count else self.split


class NatsFetcher:
    """Reads the splits of one subtask.

    Args:
        server: to read from.
        queue: that the reader empties.
        missing: the policy for messages that are gone before they were read.
    """

    def __init__(
        self, server: NatsServer, queue: FetchQueue[NatsRun], missing: MissingMessages, metrics: MetricGroup
    ) -> None:
        self._server, self._queue, self._missing = server, queue, missing
        self._missed, self._reconnects = metrics.counter("numMessagesMissing"), metrics.counter("numReconnects")
        self._lock = threading.Lock()
        self._splits: dict[str, NatsSplit] = {}
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes = asyncio.Event()

    # the reader's side

    def add_split(self, split: NatsSplit) -> None:
        with self._lock:
            self._splits[split.split_id] = split
        self._wake()
        if self._thread is None:
            self._thread = start_thread(lambda: asyncio.run(self._run()), self._queue, "nats-stream")

    def remove_split(self, split_id: str) -> None:
        with self._lock:
            self._splits.pop(split_id, None)
        self._wake()

    def close(self) -> None:
        """End the thread; it closes its connection."""
        self._queue.close()
        self._wake()

    def _wake(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._wakes.set)

    # the thread's side

    async def _run(self) -> None:
        with self._lock:
            self._loop = asyncio.get_running_loop()
        outage = OutageWatch(self._server.place, self._server.outage_timeout_ms, self._reconnects.inc)
        try:
            while not self._queue.is_closed:
                connection = NatsConnection(self._server, "source")
                try:
                    await connection.open()
                    await self._read_splits(connection, outage)
                except NatsOutage as error:
                    await self._rest(outage.pause_s(error))
                finally:
                    await connection.close()
        finally:
            with self._lock:
                self._loop = None

    async def _rest(self, seconds: float) -> None:
        """Wait, at most until the reader closes."""
        until_s = time.monotonic() + seconds
        while not self._queue.is_closed and (left_s := until_s - time.monotonic()) > 0:
            self._wakes.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._wakes.wait(), min(left_s, 0.2))

    async def _read_splits(self, connection: NatsConnection, outage: OutageWatch) -> None:
        """Read all splits until the reader closes; one that fails ends the others."""
        tasks: dict[str, asyncio.Task[None]] = {}
        try:
            while not self._queue.is_closed:
                self._wakes.clear()
                with self._lock:
                    wanted = list(self._splits)
                for split_id in wanted:
                    if split_id not in tasks:
                        tasks[split_id] = asyncio.ensure_future(self._read(connection, outage, split_id))
                for split_id in set(tasks).difference(wanted):
                    tasks.pop(split_id).cancel()
                waking = asyncio.ensure_future(self._wakes.wait())
                await asyncio.wait({waking, *tasks.values()}, return_when=asyncio.FIRST_COMPLETED)
                waking.cancel()
                for task in tasks.values():
                    if task.done():
                        task.result()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _read(self, connection: NatsConnection, outage: OutageWatch, split_id: str) -> None:
        """Read one split, with one consumer after the other, until it is finished."""
        while True:
            with self._lock:
                split = self._splits.get(split_id)
            if split is None:
                return
            reading = _Reading(connection, split, self._note_missing)
            try:
                await reading.open()
                while not reading.split.is_finished:
                    await self._await_room(split_id)
                    run = await reading.next()
                    outage.end()
                    if not self._take_run(run):
                        return
                await asyncio.get_running_loop().create_future()  # the reader removes the split
            except ConsumerGone:
                await asyncio.sleep(_GONE_PAUSE_S)

    async def _await_room(self, split_id: str) -> None:
        while split_id not in self._queue.with_room():
            await asyncio.sleep(_ROOM_PAUSE_S)

    def _take_run(self, run: NatsRun) -> bool:
        """Put a run into the queue; return whether the split is still wanted."""
        with self._lock:
            before, after = self._splits.get(run.split_id), run.split_after(len(run.messages))
            if before is None:
                return False
            self._splits[run.split_id] = after
        if run.messages or after != before:
            self._queue.put(run)
        return True

    def _note_missing(self, split: NatsSplit, count: int) -> None:
        """Apply the policy for messages that are gone unread.

        Raises:
            MissingStreamMessages: it is to fail.
        """
        some = f"{count} messages" if not split.subject else f"up to {count} messages of {split.subject!r}"
        problem = f"{some} behind sequence {split.covered} of stream {split.stream!r} are gone unread"
        if self._missing is MissingMessages.FAIL:
            remedy = "let the stream keep more (max_age, max_msgs, max_bytes), or set_missing_messages("
            raise MissingStreamMessages(problem, f"{remedy}MissingMessages.SKIP)")
        log.warning("%s", problem)
        self._missed.inc(count)


class _Reading:
    """Reads a split with one consumer.

    Args:
        note_missing: called with the split and the number of messages that are gone.
    """

    def __init__(
        self, connection: NatsConnection, split: NatsSplit, note_missing: Callable[[NatsSplit, int], None]
    ) -> None:
        self._connection, self.split, self._note_missing = connection, split, note_missing
        self._pull = StreamPull(connection, split)
        self._watch = RemovalWatch(split.covered, bool(split.subject))
        self._facts = StreamFacts()
        self._checked_s = 0.0

    async def open(self) -> None:
        """Check the stream, and create the consumer."""
        await self._check()
        self._pull = StreamPull(self._connection, self.split)
        await self._pull.open()

    async def next(self) -> NatsRun:
        """Return the next messages, and how far the stream is read with them."""
        before, split = self._facts, self.split
        messages = await self._pull.take()
        covered = split.covered
        if messages:
            self._watch.deliver([message.sequence for message in messages])
            covered = messages[-1].sequence
        is_late = time.monotonic() >= self._checked_s + _CHECK_S
        if not messages or (self._watch.is_doubtful and is_late):
            await self._check()
        if self._pull.is_drained:  # nothing was left, of what was there at the last look before
            covered = max(covered, before.last)
            self._watch.cover(before.last)
        stop = split.stopping
        if stop is not None and covered >= stop:
            messages = [message for message in messages if message.sequence <= stop]
            covered = stop
        self.split = replace(split, covered=max(covered, self.split.covered))
        return NatsRun(split, messages, self.split.covered)

    async def _check(self) -> None:
        """Look at the stream: whether it is the same, and whether messages are gone."""
        facts = await self._connection.facts(self.split.stream)
        self.split.check(facts, self._connection.server.place)
        self._facts, self._checked_s = facts, time.monotonic()
        missing = self._watch.missing(facts)
        if missing:
            self._note_missing(self.split, missing)
            self.split = replace(self.split, covered=max(self.split.covered, facts.first - 1))


__all__ = ["NatsFetcher", "NatsRun"]
