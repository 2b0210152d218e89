"""A connection that publishes messages, and knows which of them the broker has confirmed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from rayflink.common.errors import described

from .rabbitmq_connection import RMQConnectionConfig
from .rabbitmq_errors import RMQError, RMQOutage, RMQRefusal, failure_of

if TYPE_CHECKING:
    import pika
    from pika.channel import Channel
    from pika.frame import Method
    from pika.spec import Basic, BasicProperties

CLOSE_WAIT_S = 1.0


@dataclass(frozen=True, slots=True)
class Message:
    """A message to publish.

    Args:
        exchange: "": the default one, whose routing keys are names of queues.
        properties: names and values of AMQP.
        mandatory: whether a message that no queue takes is an error.
    """

    exchange: str
    routing_key: str
    body: bytes
    properties: Mapping[str, object]
    mandatory: bool = True


class Unconfirmed:
    """The messages of one connection that the broker has not confirmed, by the number of their publishing.

    >>> messages = Unconfirmed()
    >>> messages.add(["a", "b"])
    >>> messages.add(["c", "d"])
    >>> messages.confirm(2, is_multiple=False), messages.confirm(3, is_multiple=True), messages.confirm(9, True)
    (1, 2, 1)
    """

    def __init__(self) -> None:
        self._last = self._confirmed_up_to = 0
        self._messages: dict[int, Message] = {}

    def add(self, messages: Sequence[Message]) -> None:
        """Number further messages, as the broker does."""
        self._messages.update(enumerate(messages, self._last + 1))
        self._last += len(messages)

    def confirm(self, number: int, is_multiple: bool) -> int:
        """Remove a message, or all up to it; return how many there were."""
        before = len(self._messages)
        first = self._confirmed_up_to + 1 if is_multiple else number
        for earlier in range(first, min(number, self._last) + 1):
            self._messages.pop(earlier, None)
        if is_multiple:
            self._confirmed_up_to = max(self._confirmed_up_to, number)
        return before - len(self._messages)

    def all(self) -> list[Message]:
        """Return the messages, in order."""
        return list(self._messages.values())

    def __len__(self) -> int:
        return len(self._messages)


class Publisher:
    """One connection with a thread of its own, which publishes while the task goes on.

    Args:
        config: the broker.
        role: part of the connection's name.
        confirmed: called with a number of messages that the broker has confirmed; in the thread.

    Raises:
        RMQOutage: the broker is away.
        RMQRefusal: it refuses.
    """

    def __init__(self, config: RMQConnectionConfig, role: str, confirmed: Callable[[int], None]) -> None:
        import pika

        self._config, self._confirmed = config, confirmed
        self._changed = threading.Condition()
        self._unconfirmed = Unconfirmed()
        self._failure: RMQError | None = None
        self._blocked = ""
        self._channel: Channel | None = None
        self._is_open = self._is_closing = False
        self._connection = pika.SelectConnection(
            config.parameters(role), self._connected, self._not_connected, self._connection_closed
        )
        self._connection.add_on_connection_blocked_callback(self._is_blocked)
        self._connection.add_on_connection_unblocked_callback(self._is_unblocked)
        self._thread = threading.Thread(target=self._run, name=f"publishes to {config.place}", daemon=True)
        self._thread.start()
        try:
            with self._changed:
                self._wait_until(lambda: self._is_open, "opening a connection to publish")
        except RMQError:
            self.close()
            raise

    # the task's side

    def publish(self, messages: Sequence[Message]) -> None:
        """Publish messages, soon and in order.

        Raises:
            RMQOutage: the connection is lost; none of these is among the unconfirmed.
            RMQRefusal: the broker refused an earlier message.
        """
        with self._changed:
            if self._failure is not None:
                raise self._failure
            self._unconfirmed.add(messages)
        self._connection.ioloop.add_callback_threadsafe(partial(self._publish, messages))

    def wait(self, most: int) -> None:
        """Wait until at most this number of messages is not confirmed.

        Raises:
            RMQOutage: the connection is lost, a message was not accepted, or the broker confirms none for too long.
            RMQRefusal: it refused a message.
        """
        with self._changed:
            while len(self._unconfirmed) > most:
                waiting = len(self._unconfirmed)
                self._wait_until(partial(self._is_below, waiting), f"waiting for {waiting} confirmations")
            if self._failure is not None:
                raise self._failure

    def unconfirmed(self) -> list[Message]:
        """Return the messages that the broker has not confirmed, in order."""
        with self._changed:
            return self._unconfirmed.all()

    def close(self) -> None:
        """Close the connection, soon."""
        self._is_closing = True
        if self._thread.is_alive():
            self._connection.ioloop.add_callback_threadsafe(self._close)
            if threading.current_thread() is not self._thread:
                self._thread.join(CLOSE_WAIT_S)

    def _is_below(self, number: int) -> bool:
        return len(self._unconfirmed) < number

    def _wait_until(self, condition: Callable[[], bool], doing: str) -> None:
        """Wait, with the lock, until a condition holds, for as long as the broker may be away."""
        timeout_s = max(1.0, self._config.outage_timeout_ms / 1000)
        if not self._changed.wait_for(lambda: self._failure is not None or condition(), timeout_s):
            reason = f"it accepts nothing: {self._blocked}" if self._blocked else f"no answer within {timeout_s:g} s"
            remedy = "free memory and disk of the broker, or raise set_outage_timeout()"
            raise RMQOutage(f"{doing}: RabbitMQ at {self._config.place} does not go on ({reason})", remedy)
        if self._failure is not None:
            raise self._failure

    # the thread's side

    def _run(self) -> None:
        try:
            self._connection.ioloop.start()
        except Exception as error:  # of the client library
            self._fail(failure_of(error, "publishing", self._config.place))

    def _fail(self, failure: RMQError) -> None:
        with self._changed:
            self._failure = self._failure or failure
            self._changed.notify_all()

    def _connected(self, connection: pika.SelectConnection) -> None:
        connection.channel(on_open_callback=self._channel_opened)

    def _not_connected(self, connection: pika.SelectConnection, error: BaseException) -> None:
        self._fail(failure_of(error, "opening a connection to publish", self._config.place))
        connection.ioloop.stop()

    def _channel_opened(self, channel: Channel) -> None:
        self._channel = channel
        channel.add_on_close_callback(self._channel_closed)
        channel.add_on_return_callback(self._returned)
        channel.confirm_delivery(self._answered, self._ready)

    def _ready(self, frame: Method) -> None:
        with self._changed:
            self._is_open = True
            self._changed.notify_all()

    def _publish(self, messages: Sequence[Message]) -> None:
        import pika.exceptions

        channel = self._channel
        if self._failure is not None or channel is None or not channel.is_open:
            return
        try:
            for message in messages:
                properties = pika.BasicProperties(**message.properties)
                channel.basic_publish(
                    message.exchange, message.routing_key, message.body, properties, message.mandatory
                )
        except (pika.exceptions.AMQPConnectionError, pika.exceptions.AMQPChannelError) as error:
            self._fail(failure_of(error, "publishing", self._config.place))
        except Exception as error:  # of the client library, such as a property of a wrong type
            problem = f"a message cannot be published to exchange {message.exchange!r} ({described(error)})"
            self._fail(RMQRefusal(problem, "correct the routing key and the properties of publish_options"))

    def _answered(self, frame: Method) -> None:
        from pika.spec import Basic

        answer = frame.method
        if isinstance(answer, Basic.Nack):
            problem = f"RabbitMQ at {self._config.place} does not accept a message (basic.nack)"
            remedy = "check whether a queue is full (overflow reject-publish), and the broker's log"
            self._fail(RMQOutage(problem, remedy))
            return
        with self._changed:
            number = self._unconfirmed.confirm(answer.delivery_tag, answer.multiple)
            self._changed.notify_all()
        self._confirmed(number)

    def _returned(self, channel: Channel, method: Basic.Return, properties: BasicProperties, body: bytes) -> None:
        problem = (
            f"RabbitMQ at {self._config.place} returned a message, as no queue takes those of exchange "
            f"{method.exchange!r} with routing key {method.routing_key!r} ({method.reply_code} {method.reply_text})"
        )
        self._fail(RMQRefusal(problem, "declare the queue or the binding, or correct the name"))

    def _channel_closed(self, channel: Channel, reason: BaseException) -> None:
        if not self._is_closing:
            self._fail(failure_of(reason, "publishing", self._config.place))

    def _connection_closed(self, connection: pika.SelectConnection, reason: BaseException) -> None:
        if not self._is_closing:
            self._fail(failure_of(reason, "publishing", self._config.place))
        connection.ioloop.stop()

    def _is_blocked(self, connection: object, frame: Method) -> None:
        self._blocked = str(frame.method.reason)

    def _is_unblocked(self, connection: object, frame: Method) -> None:
        self._blocked = ""

    def _close(self) -> None:
        if self._connection.is_open:
            self._connection.close()
        else:
            self._connection.ioloop.stop()


__all__ = ["Message", "Publisher", "Unconfirmed"]
