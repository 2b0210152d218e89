"""The settings of connections to RabbitMQ, under PyFlink's names, and the import of the client library."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rayflink.common.time import Duration, to_millis

from ..message_queues.queue_reader import OUTAGE_TIMEOUT_MS, PREFETCH
from .rabbitmq_errors import RMQError, RMQRefusal, failure_of

if TYPE_CHECKING:
    import pika

MOST_PREFETCH = 65_535
_CONNECTION_TIMEOUT_MS = 10_000


def library() -> None:
    """Import pika.

    Raises:
        RMQError: it is not installed.
    """
    try:
        import pika  # noqa: F401
    except ImportError as error:
        raise RMQError(f"pika is missing ({error})", "pip install 'rayflink[rabbitmq]' on every node") from error
    logger = logging.getLogger("pika")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.CRITICAL)  # what it logs as errors, it raises too


@dataclass(frozen=True)
class RMQConnectionConfig:
    """The settings of connections to a broker; `RMQConnectionConfig.Builder()` collects them.

    >>> RMQConnectionConfig.Builder().set_host("mq.example").set_user_name("me").set_password("secret").build()
    RMQConnectionConfig(mq.example:5672/)
    """

    host: str = ""
    port: int = 5672
    virtual_host: str = "/"
    user_name: str = ""
    password: str = field(default="", repr=False)
    uri: str = field(default="", repr=False)
    connection_timeout: int | None = None
    requested_channel_max: int | None = None
    requested_frame_max: int | None = None
    requested_heartbeat: int | None = None
    network_recovery_interval: int | None = None
    automatic_recovery: bool = True
    topology_recovery: bool = True
    prefetch_count: int = PREFETCH
    outage_timeout_ms: int = OUTAGE_TIMEOUT_MS

    class Builder:
        """Collects the settings of a connection: `set_uri`, or `set_host`, `set_user_name` and `set_password`."""

        def __init__(self) -> None:
            self._config = RMQConnectionConfig()

        def _set(self, **settings: object) -> RMQConnectionConfig.Builder:
            self._config = replace(self._config, **settings)  # type: ignore[arg-type]
            return self

        def set_port(self, port: int) -> RMQConnectionConfig.Builder:
            """Set the port; the default is 5672."""
            return self._set(port=port)

        def set_host(self, host: str) -> RMQConnectionConfig.Builder:
            """Set the name or address of the broker."""
            return self._set(host=host)

        def set_virtual_host(self, vhost: str) -> RMQConnectionConfig.Builder:
            """Set the virtual host; the default is "/"."""
            return self._set(virtual_host=vhost)

        def set_user_name(self, user_name: str) -> RMQConnectionConfig.Builder:
            """Set the user."""
            return self._set(user_name=user_name)

        def set_password(self, password: str) -> RMQConnectionConfig.Builder:
            """Set the user's password, which appears in no log, plan or error."""
            return self._set(password=password)

        def set_uri(self, uri: str) -> RMQConnectionConfig.Builder:
            """Set all at once: `amqp://user:password@host:5672/%2F`, or `amqps://` for TLS.

            Settings of pika's `URLParameters` may follow as a query, such as `?socket_timeout=5`.

            Raises:
                RMQError: it is no such URI, or the library is not installed.
            """
            replace(self._config, uri=uri).parameters("check")
            return self._set(uri=uri)

        def set_topology_recovery_enabled(self, topology_recovery_enabled: bool) -> RMQConnectionConfig.Builder:
            """Accept Flink's setting, without effect: a source and a sink always consume and publish as before."""
            return self._set(topology_recovery=topology_recovery_enabled)

        def set_requested_heartbeat(self, requested_heartbeat: int) -> RMQConnectionConfig.Builder:
            """Set the seconds after which a silent connection is lost; 0: never. The default is the broker's."""
            return self._set(requested_heartbeat=requested_heartbeat)

        def set_requested_frame_max(self, requested_frame_max: int) -> RMQConnectionConfig.Builder:
            """Set the largest frame, in bytes."""
            return self._set(requested_frame_max=requested_frame_max)

        def set_requested_channel_max(self, requested_channel_max: int) -> RMQConnectionConfig.Builder:
            """Set the highest number of channels; a connection needs one."""
            return self._set(requested_channel_max=requested_channel_max)

        def set_network_recovery_interval(self, network_recovery_interval: int) -> RMQConnectionConfig.Builder:
            """Accept Flink's setting, without effect: pauses between tries grow from 50 ms to 2 s."""
            return self._set(network_recovery_interval=network_recovery_interval)

        def set_connection_timeout(self, connection_timeout: int) -> RMQConnectionConfig.Builder:
            """Set the milliseconds within which a connection is opened; the default is 10,000."""
            return self._set(connection_timeout=connection_timeout)

        def set_automatic_recovery(self, automatic_recovery: bool) -> RMQConnectionConfig.Builder:
            """Set whether a lost connection is opened again; if not, the job fails. The default is True."""
            return self._set(automatic_recovery=automatic_recovery)

        def set_prefetch_count(self, prefetch_count: int) -> RMQConnectionConfig.Builder:
            """Set how many messages of a subtask may be unacknowledged; 0: no limit. The default is 10,000.

            The source acknowledges with checkpoints, so it reads no more than this between two of them.

            Raises:
                RMQError: it is not in [0, 65535].
            """
            if not 0 <= prefetch_count <= MOST_PREFETCH:
                problem = f"expected a prefetch in [0, {MOST_PREFETCH}], found {prefetch_count}"
                raise RMQError(problem, "raise the parallelism or shorten execution.checkpointing.interval instead")
            return self._set(prefetch_count=prefetch_count)

        def set_outage_timeout(self, timeout: Duration | int) -> RMQConnectionConfig.Builder:
            """Set how long the broker may be away until the job fails, in milliseconds; the default is a minute.

            PyFlink has no such setting.
            """
            return self._set(outage_timeout_ms=to_millis(timeout))

        def build(self) -> RMQConnectionConfig:
            """Return the settings.

            Raises:
                RMQError: a required one is missing.
            """
            config = self._config
            if not config.uri:
                needed = (("set_host", config.host), ("set_user_name", config.user_name),
                          ("set_password", config.password))  # fmt: skip
                for name, value in needed:
                    if not value:
                        problem = f"the connection to RabbitMQ has no {name.removeprefix('set_').replace('_', ' ')}"
                        raise RMQError(problem, f"call {name}(...) or set_uri(...) of its builder")
            return config

    # PyFlink's getters

    def get_host(self) -> str:
        """Return the name or address of the broker."""
        return self.host

    def get_port(self) -> int:
        """Return the port."""
        return self.port

    def get_virtual_host(self) -> str:
        """Return the virtual host."""
        return self.virtual_host

    def get_user_name(self) -> str:
        """Return the user."""
        return self.user_name

    def get_password(self) -> str:
        """Return the password."""
        return self.password

    def get_uri(self) -> str:
        """Return the URI, with its password; "": none was set."""
        return self.uri

    def get_network_recovery_interval(self) -> int | None:
        """Return the pause that was set, in milliseconds; it has no effect."""
        return self.network_recovery_interval

    def is_automatic_recovery(self) -> bool:
        """Return whether a lost connection is opened again."""
        return self.automatic_recovery

    def is_topology_recovery(self) -> bool:
        """Return what was set; it has no effect."""
        return self.topology_recovery

    def get_connection_timeout(self) -> int | None:
        """Return the time within which a connection is opened, in milliseconds; None: the default."""
        return self.connection_timeout

    def get_requested_channel_max(self) -> int | None:
        """Return the highest number of channels; None: the default."""
        return self.requested_channel_max

    def get_requested_frame_max(self) -> int | None:
        """Return the largest frame, in bytes; None: the default."""
        return self.requested_frame_max

    def get_requested_heartbeat(self) -> int | None:
        """Return the seconds of the heartbeat; None: the broker's."""
        return self.requested_heartbeat

    # for the connectors

    @property
    def retries_ms(self) -> int:
        """Return the milliseconds for which a broker that is away is tried again."""
        return self.outage_timeout_ms if self.automatic_recovery else 0

    @property
    def place(self) -> str:
        """Return host, port and virtual host, without credentials."""
        if not self.uri:
            return _place(self.host, self.port, self.virtual_host)
        parsed = self.parameters("place")
        return _place(parsed.host, parsed.port, parsed.virtual_host)

    def parameters(self, role: str) -> pika.connection.Parameters:
        """Return the settings as the client library has them.

        Args:
            role: part of the connection's name in `rabbitmqctl list_connections client_properties`.

        Raises:
            RMQError: the URI or a number is not valid, or the library is not installed.
        """
        library()
        import pika

        try:
            credentials = pika.PlainCredentials(self.user_name, self.password)
            parameters: pika.connection.Parameters = (
                pika.URLParameters(self.uri)
                if self.uri
                else pika.ConnectionParameters(self.host, self.port, self.virtual_host, credentials)
            )
            timeout_s = (self.connection_timeout or _CONNECTION_TIMEOUT_MS) / 1000
            if self.connection_timeout is not None or not self.uri:
                parameters.socket_timeout = parameters.stack_timeout = timeout_s
            for name in ("channel_max", "frame_max", "heartbeat"):
                value = getattr(self, f"requested_{name}")
                if value is not None:
                    setattr(parameters, name, value)
        except (TypeError, ValueError) as error:
            if self.uri:  # the error may show a part of it
                wanted = "write amqp://user:password@host:5672/%2F, or amqps://... for TLS"
                raise RMQError("the URI of RabbitMQ, or a number of the connection, is malformed", wanted) from None
            raise RMQError(f"a setting of the connection is malformed ({error})", "correct it") from error
        parameters.client_properties = {"connection_name": f"rayflink {role}"}
        return parameters

    @contextmanager
    def failures(self, doing: str) -> Iterator[None]:
        """Translate what the client library raises inside.

        Args:
            doing: the action, such as "consuming queue 'orders'".

        Raises:
            RMQOutage: it may pass.
            RMQRefusal: it will not.
        """
        import pika.exceptions

        try:
            yield
        except (pika.exceptions.AMQPError, pika.exceptions.ChannelError, OSError) as error:
            raise failure_of(error, doing, self.place) from error

    def __repr__(self) -> str:
        return f"RMQConnectionConfig({self.place})"


def _place(host: str, port: int, virtual_host: str) -> str:
    return f"{host}:{port}/{virtual_host.removeprefix('/')}"


def ensure_queue(config: RMQConnectionConfig, queue: str) -> None:
    """Declare a durable queue, as Flink does, unless there is one of that name, whatever its properties.

    Raises:
        RMQOutage: the broker is away.
        RMQRefusal: it refuses.
    """
    import pika

    with config.failures(f"declaring queue {queue!r}"):
        connection = pika.BlockingConnection(config.parameters("check"))
        try:
            try:
                connection.channel().queue_declare(queue, passive=True)
            except pika.exceptions.ChannelClosedByBroker as error:
                failure = failure_of(error, f"looking up queue {queue!r}", config.place)
                if error.reply_code != 404 or not isinstance(failure, RMQRefusal):
                    raise failure from error
                connection.channel().queue_declare(queue, durable=True)
        finally:
            if connection.is_open:
                connection.close()


__all__ = ["RMQConnectionConfig", "ensure_queue", "library"]
