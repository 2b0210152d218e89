"""A connection to a broker of MQTT, for one thread, which also reads and writes the socket."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.common.text_output.logs import get_logger

from .mqtt_broker import VERSIONS, MqttBroker, library
from .mqtt_errors import MqttOutage, MqttRefusal, failure_of, failure_of_reason

if TYPE_CHECKING:
    from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags, MQTTMessage, SocketLike
    from paho.mqtt.properties import Properties
    from paho.mqtt.reasoncodes import ReasonCode

log = get_logger(__name__)

ANSWER_TIMEOUT_S = 10.0
KEEP_ALIVE_S = 30
_GREATEST_EXPIRY_S = 0xFFFF_FFFF
_MOST_PACKETS = 1_000
"""Packets that are read in one go."""
_IN_FLIGHT = 1_000
"""Messages of a sink that the broker has not acknowledged, at most, where it sets no lower limit."""


@dataclass(frozen=True)
class MqttSession:
    """The session that a connection begins or continues.

    Args:
        client_id: "": the broker gives one.
        is_kept: whether the broker keeps it while there is no connection.
        expiry_s: seconds for which it is kept, with MQTT 5.
        most_unacknowledged: messages that the broker sends before the first is acknowledged, with MQTT 5; 0: its limit.
    """

    client_id: str = ""
    is_kept: bool = False
    expiry_s: int = 0
    most_unacknowledged: int = 0


class MqttConnection:
    """A connection that is never repaired: when it is lost, each call raises, and another is opened.

    Args:
        broker: to connect to.
        session: that it begins or continues.
        receive: called with each message.
    """

    def __init__(self, broker: MqttBroker, session: MqttSession, receive: Callable[[MQTTMessage], None]) -> None:
        self._broker, self._session, self._receive = broker, session, receive
        self._failure: MqttOutage | MqttRefusal | None = None
        self._is_connected = self._is_closing = False
        self._published, self._most_in_flight = 0, 1
        self._granted: Sequence[ReasonCode] | None = None
        self.was_present = False
        """Whether the broker had the session."""
        self.acknowledged = 0
        """Messages that were published and are acknowledged; of QoS 0, that were sent."""
        self._client = self._create()

    def _create(self) -> Client:
        mqtt, broker, session = library(), self._broker, self._session
        is_websocket = broker.parts.scheme in ("ws", "wss")
        client: Client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2, session.client_id, protocol=VERSIONS[broker.version], manual_ack=True,
            clean_session=None if broker.version == "5" else not session.is_kept, reconnect_on_failure=False,
            transport="websockets" if is_websocket else "tcp",
        )  # fmt: skip
        if is_websocket:
            client.ws_set_options(broker.parts.path or "/mqtt")
        user, password = broker.credentials
        if user:
            client.username_pw_set(user, password)
        if broker.is_encrypted:
            if broker.tls is None:
                client.tls_set()
            else:
                client.tls_set_context(broker.tls.context())
        client.on_connect, client.on_disconnect, client.on_subscribe = self._connected, self._lost, self._subscribed
        client.on_message, client.on_publish = self._take, self._note_published
        client.max_inflight_messages_set(0)  # the library cannot take the broker's limit
        return client

    # what a source and a sink do

    def open(self) -> None:
        """Connect.

        Raises:
            MqttOutage: the broker does not answer.
            MqttRefusal: it refuses.
        """
        broker, session = self._broker, self._session
        arguments: dict[str, Any] = {}
        if broker.version == "5":
            from paho.mqtt.packettypes import PacketTypes
            from paho.mqtt.properties import Properties

            properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
            if session.is_kept:
                properties.SessionExpiryInterval = min(session.expiry_s, _GREATEST_EXPIRY_S)
            if session.most_unacknowledged:
                properties.ReceiveMaximum = min(session.most_unacknowledged, 0xFFFF)
            arguments = {"clean_start": not session.is_kept, "properties": properties}
        try:
            self._client.connect(broker.host, broker.port, KEEP_ALIVE_S, **arguments)
        except Exception as error:  # of a socket, of TLS, or of the client library
            raise failure_of(error, "connecting", broker.place) from error
        self._await(lambda: self._is_connected, "connecting")

    def subscribe(self, filters: Sequence[str]) -> None:
        """Subscribe with QoS 1; of a filter that was subscribed before, no retained messages come again (MQTT 5).

        Raises:
            MqttOutage: the broker does not answer.
            MqttRefusal: it refuses a filter.
        """
        from paho.mqtt.subscribeoptions import SubscribeOptions

        if self._broker.version == "5":
            new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            self._client.subscribe([(name, SubscribeOptions(qos=1, retainHandling=new)) for name in filters])
        else:
            self._client.subscribe([(name, 1) for name in filters])
        self._await(lambda: self._granted is not None, "subscribing")
        for name, reason in zip(filters, self._granted or (), strict=True):
            if reason.is_failure:
                doing = f"subscribing to {name!r}"
                value = reason.value if self._broker.version == "5" else 135  # the older one has no reasons
                raise failure_of_reason(value, reason.getName(), doing, self._broker.place)

    def publish(self, topic: str, payload: bytes, qos: int, is_retained: bool) -> None:
        """Send a message, as soon as the broker takes more.

        Raises:
            MqttOutage: the broker is away.
            MqttRefusal: it refuses a message.
        """
        self.await_acknowledged(self._published - self._most_in_flight + 1)
        self._published += 1
        self._client.publish(topic, payload, qos, is_retained)

    def await_acknowledged(self, count: int | None = None) -> None:
        """Wait until the broker has acknowledged this number of messages, by default all that were published.

        Raises:
            MqttOutage: the broker is away.
            MqttRefusal: it refuses a message.
        """
        count = self._published if count is None else count
        while self.acknowledged < count:
            self._await(partial(self._has_acknowledged, self.acknowledged + 1), "publishing")

    def _has_acknowledged(self, count: int) -> bool:
        return self.acknowledged >= count

    def acknowledge(self, packet_ids: Sequence[int]) -> None:
        """Acknowledge messages of QoS 1.

        Raises:
            MqttOutage: the connection is lost.
        """
        for packet_id in packet_ids:
            self._client.ack(packet_id, 1)
        self.step(0)

    @property
    def socket(self) -> SocketLike | None:
        """Return what `select` waits for; None: the connection is lost."""
        return self._client.socket()

    def step(self, wait_s: float) -> None:
        """Read and write what can be, after waiting for something to read.

        Raises:
            MqttOutage: the connection is lost.
            MqttRefusal: the broker has closed it for a reason that stays.
        """
        client = self._client
        for _ in range(_MOST_PACKETS):
            socket = client.socket()
            if socket is None or self._failure is not None:
                break
            has_pending = bool(getattr(socket, "pending", int)())  # of TLS: read from the socket, and not by us
            is_readable, is_writable = _ready(socket, client.want_write(), 0 if has_pending else wait_s)
            wait_s = 0
            if is_writable:
                client.loop_write()
            if not is_readable and not has_pending:
                break
            client.loop_read()
        client.loop_misc()
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Disconnect; a session that is kept stays with the broker."""
        self._is_closing = True
        try:
            self._client.disconnect()
            if self._client.want_write():
                self._client.loop_write()
        except OSError as error:  # of a connection that is lost anyway
            log.debug("%s", error)
        finally:
            socket = self._client.socket()
            if socket is not None:
                socket.close()

    def _await(self, is_there: Callable[[], bool], doing: str) -> None:
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while not is_there():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                raise failure_of(TimeoutError(f"no answer within {ANSWER_TIMEOUT_S:g} s"), doing, self._broker.place)
            self.step(min(left_s, 1.0))

    # what the client library calls

    def _connected(
        self, client: Client, data: object, flags: ConnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure:
            self._failure = failure_of_reason(reason.value, reason.getName(), "connecting", self._broker.place)
            return
        self._most_in_flight = min(_IN_FLIGHT, getattr(properties, "ReceiveMaximum", _IN_FLIGHT))
        self.was_present, self._is_connected = flags.session_present, True

    def _lost(
        self, client: Client, data: object, flags: DisconnectFlags, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if self._failure is None and not self._is_closing:
            place = self._broker.place
            if flags.is_disconnect_packet_from_server:
                self._failure = failure_of_reason(reason.value, reason.getName(), "the connection", place)
            else:
                self._failure = failure_of(ConnectionResetError("it was closed"), "the connection", place)

    def _subscribed(
        self, client: Client, data: object, packet_id: int, reasons: Sequence[ReasonCode], properties: Properties | None
    ) -> None:
        self._granted = reasons

    def _take(self, client: Client, data: object, message: MQTTMessage) -> None:
        self._receive(message)

    def _note_published(
        self, client: Client, data: object, packet_id: int, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if reason.is_failure and self._failure is None:
            self._failure = failure_of_reason(reason.value, reason.getName(), "publishing", self._broker.place)
        self.acknowledged += 1


def _ready(socket: SocketLike, wants_write: bool, wait_s: float) -> tuple[bool, bool]:
    """Return whether a socket can be read, and written; after waiting for one of them."""
    wanted = select.POLLIN | (select.POLLOUT if wants_write else 0)
    poll = select.poll()  # unlike select.select(), it takes any file descriptor
    poll.register(socket, wanted)
    ready = next((events for _, events in poll.poll(wait_s * 1_000)), 0)
    return bool(ready & ~select.POLLOUT), bool(ready & select.POLLOUT)


__all__ = ["MqttConnection", "MqttSession"]
