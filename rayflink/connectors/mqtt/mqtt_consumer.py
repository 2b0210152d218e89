"""The sessions of one subtask, as a broker's consumer."""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.text_output.logs import get_logger

from ..message_queues.deliveries import Deliveries, DeliveryTag
from .mqtt_broker import MqttBroker
from .mqtt_connection import MqttConnection, MqttSession
from .mqtt_errors import MqttConflict
from .mqtt_messages import MqttMessage

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

log = get_logger(__name__)

SHORT_S = 2.0
MOST_SHORT = 10
"""Connections in a row that end within `SHORT_S` seconds, at most."""
_MOST_WAITING = 100_000
"""Messages that wait here, at most; more are left to the network, and to the broker."""


class MqttDeliveries(Deliveries):
    """Deliveries whose messages know their topics."""

    def describe(self, index: int) -> str:
        """Return the topic of a message, for errors."""
        message = self.messages[index]
        assert isinstance(message, MqttMessage)
        return f"topic {message.topic!r}"


class SessionHistory:
    """Remembers the connections of one reader, to notice sessions that are lost, and a client id that another one has.

    >>> history = SessionHistory("broker.example:1883", print)
    >>> for now_s in (1.0, 60.0):
    ...     history.begin(now_s)
    ...     history.add({0: False}, now_s)
    0

    Args:
        place: of the broker.
        lost: called with the number of a session that was there before, and is not any more.
    """

    def __init__(self, place: str, lost: Callable[[int], None]) -> None:
        self._place, self._lost = place, lost
        self._known: set[int] = set()
        self._short = 0
        self._opened_s: float | None = None

    def begin(self, now_s: float) -> None:
        """Note that connections shall be opened, as those before have ended.

        Args:
            now_s: of `time.monotonic()`.

        Raises:
            MqttConflict: connections have ended soon, many times in a row.
        """
        is_short = self._opened_s is not None and now_s - self._opened_s < SHORT_S
        self._short, self._opened_s = self._short + 1 if is_short else 0, None
        if self._short >= MOST_SHORT:
            problem = f"MQTT at {self._place} has closed {self._short} connections in a row soon after they were opened"
            remedy = "look for another job or program with the same client id, or into the log of the broker"
            raise MqttConflict(problem, remedy)

    def add(self, was_present: Mapping[int, bool], now_s: float) -> None:
        """Note that connections were opened.

        Args:
            was_present: number of a session -> whether the broker had it.
            now_s: of `time.monotonic()`.
        """
        self._opened_s = now_s
        for number, is_there in was_present.items():
            if number in self._known and not is_there:
                self._lost(number)
            self._known.add(number)


class MqttConsumer:
    """Receives from several sessions, each by a connection of its own.

    A message of QoS 1 stays in its session until it is acknowledged. A session belongs to the number in its client id,
    so whichever subtask has that number after a restart or a rescale receives it.

    Args:
        broker: to connect to.
        sessions: number of the session -> session.
        filters: that each of them subscribes.
        history: of the reader.
    """

    def __init__(
        self, broker: MqttBroker, sessions: Mapping[int, MqttSession], filters: Sequence[str], history: SessionHistory
    ) -> None:
        self._waiting: deque[tuple[DeliveryTag, MqttMessage]] = deque()
        self._connections: dict[int, MqttConnection] = {}
        history.begin(time.monotonic())
        try:
            for number, session in sessions.items():
                connection = MqttConnection(broker, session, partial(self._take, number))
                self._connections[number] = connection
                connection.open()
                connection.subscribe(filters)
            was_present = {number: connection.was_present for number, connection in self._connections.items()}
            history.add(was_present, time.monotonic())
        except BaseException:
            self.close()
            raise

    def receive(self, most: int, wait_s: float) -> Deliveries | None:
        """Return the messages that have arrived; with `most` 0 they stay here, as many as the broker sends."""
        if len(self._waiting) < _MOST_WAITING:
            self._step(0)
        if most and not self._waiting:
            self._await(wait_s)
            self._step(0)
        count = min(most, len(self._waiting))
        if not count:
            return None
        taken = [self._waiting.popleft() for _ in range(count)]
        return MqttDeliveries([message for _, message in taken], [tag for tag, _ in taken])

    def acknowledge(self, tags: Sequence[DeliveryTag]) -> None:
        """Acknowledge messages, of each session in the order of their delivery."""
        packet_ids: dict[int, list[int]] = {number: [] for number in self._connections}
        for tag in tags:
            assert isinstance(tag, tuple)
            number, packet_id = tag
            if packet_id:  # one of QoS 0 has none
                packet_ids[number].append(packet_id)
        for number, ids in packet_ids.items():
            self._connections[number].acknowledge(ids)

    def close(self) -> None:
        """Disconnect; the sessions stay with the broker."""
        for connection in self._connections.values():
            connection.close()

    def _take(self, number: int, message: MQTTMessage) -> None:
        record = MqttMessage(message.topic, bytes(message.payload), message.qos, message.retain, message.dup)
        self._waiting.append(((number, message.mid), record))

    def _step(self, wait_s: float) -> None:
        for connection in self._connections.values():
            connection.step(wait_s)

    def _await(self, wait_s: float) -> None:
        """Wait until something arrives in any session."""
        sockets = [connection.socket for connection in self._connections.values()]
        poll = select.poll()
        for socket in sockets:
            if socket is None:  # the next step says why
                return
            poll.register(socket, select.POLLIN)
        poll.poll(wait_s * 1_000)


__all__ = ["MqttConsumer", "SessionHistory"]
