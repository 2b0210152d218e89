"""The thread that has the connection to a broker: it receives ahead of the task, acknowledges, and connects anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from rayflink.common.text_output.logs import get_logger

from ..message_logs.fetch_queue import FetchQueue, start_thread
from ..message_logs.outages import OutageWatch
from .broker_errors import BrokerOutage
from .deliveries import Deliveries, DeliveryRun, DeliveryTag, QueueSplit
from .unacknowledged import Acknowledgement

log = get_logger(__name__)

MOST_MESSAGES = 1_000
"""Messages of one run."""
RECEIVE_WAIT_S = 0.02
"""Seconds for which the thread waits for messages before it looks for acknowledgements."""
ROOM_WAIT_S = 0.01
CLOSE_WAIT_S = 2.0
"""Seconds for which `close` waits at most, until what was acknowledged last has gone out."""


class BrokerConsumer(Protocol):
    """One connection to a broker, which consumes one queue; for one thread."""

    def receive(self, most: int, wait_s: float) -> Deliveries | None:
        """Return the deliveries that have arrived, at most `most`; None: there are none within `wait_s` seconds.

        When there are fewer than `most`, nothing more has arrived. With `most` 0 it only keeps the connection alive,
        and what arrives waits in the client library.

        Raises:
            BrokerOutage: the connection is lost, or the broker cannot serve now.
            BrokerRefusal: the queue is gone, for example.
        """
        ...

    def acknowledge(self, tags: Sequence[DeliveryTag]) -> None:
        """Acknowledge deliveries of this connection; the tags are in the order of delivery, none comes twice.

        Raises:
            BrokerOutage: the connection is lost.
        """
        ...

    def close(self) -> None:
        """Close the connection, which may be lost; the broker then delivers again what was not acknowledged."""
        ...


class ConsumerThread:
    """Consumes one queue.

    Args:
        connect: opens a connection, and raises what `BrokerConsumer` may raise; called in the thread.
        queue: that the reader empties.
        place: of the queue, for errors.
        outages: of the broker.
    """

    def __init__(
        self, connect: Callable[[], BrokerConsumer], queue: FetchQueue[DeliveryRun], place: str, outages: OutageWatch
    ) -> None:
        self._connect, self._queue, self._place, self._outages = connect, queue, place, outages
        self._lock = threading.Lock()
        self._to_acknowledge: list[Acknowledgement] = []
        self._is_acknowledging = False
        self._connection = 0
        self._name = ""
        self._thread: threading.Thread | None = None
        self.connected_since_s: float | None = None
        """`time.monotonic()` at which the connection was opened; None: there is none."""
        self.received_until_s = 0.0
        """`time.monotonic()`; what the broker had sent by then is in the queue, or was taken from it."""

    # the reader's side

    def add_split(self, split: QueueSplit) -> None:
        self._name = split.queue
        self._thread = start_thread(self._run, self._queue, f"consumes {self._place}")

    def remove_split(self, split_id: str) -> None:
        """Do nothing: a queue has no end."""

    def acknowledge(self, acknowledgement: Acknowledgement) -> None:
        """Acknowledge deliveries, soon; those of a connection that is lost are delivered again."""
        with self._lock:
            self._to_acknowledge.append(acknowledgement)

    def close(self) -> None:
        """End the thread; wait a moment for acknowledgements that are under way."""
        self._queue.close()
        if self._thread is not None and self.connected_since_s is not None:
            with self._lock:
                is_waiting = self._is_acknowledging or bool(self._to_acknowledge)
            if is_waiting:
                self._thread.join(CLOSE_WAIT_S)

    def abandon(self) -> None:
        """End the thread as the end of its process would: nothing more is acknowledged."""
        with self._lock:
            self._to_acknowledge.clear()
        self._queue.close()

    # the thread's side

    def _run(self) -> None:
        consumer: BrokerConsumer | None = None
        try:
            while not self._queue.is_closed:
                try:
                    consumer = consumer or self._open()
                    self._acknowledge(consumer)
                    self._receive(consumer)
                    self._outages.end()
                except BrokerOutage as error:
                    self.connected_since_s = None
                    _close(consumer)
                    consumer = None
                    self._queue.wait(self._outages.pause_s(error))
            if consumer is not None:
                self._acknowledge(consumer)
        except BrokerOutage as error:
            if not self._queue.is_closed:
                raise
            log.info("%s, while the source was ending", error)
        finally:
            self.connected_since_s = None
            _close(consumer)

    def _open(self) -> BrokerConsumer:
        consumer = self._connect()
        self._connection += 1
        self.connected_since_s = time.monotonic()
        return consumer

    def _receive(self, consumer: BrokerConsumer) -> None:
        if not self._queue.with_room():
            self._queue.wait(ROOM_WAIT_S)
            consumer.receive(0, 0)
            return
        began_s = time.monotonic()
        deliveries = consumer.receive(MOST_MESSAGES, RECEIVE_WAIT_S)
        count = 0 if deliveries is None else len(deliveries.tags)
        until_s = began_s if count < MOST_MESSAGES else self.received_until_s
        if deliveries is not None and count:
            self._queue.put(DeliveryRun(self._name, self._place, deliveries, self._connection, until_s))
        self.received_until_s = until_s

    def _acknowledge(self, consumer: BrokerConsumer) -> None:
        with self._lock:
            waiting, self._to_acknowledge = self._to_acknowledge, []
            self._is_acknowledging = bool(waiting)
        tags = [tag for part in waiting if part.connection == self._connection for tag in part.tags]
        try:
            if tags:
                consumer.acknowledge(tags)
        finally:
            self._is_acknowledging = False


def _close(consumer: BrokerConsumer | None) -> None:
    if consumer is not None:
        try:
            consumer.close()
        except Exception as error:  # of a client library, for a connection that is lost anyway
            log.debug("%s", error)


__all__ = ["BrokerConsumer", "ConsumerThread"]
