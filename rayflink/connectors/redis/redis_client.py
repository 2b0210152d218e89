"""The client library of Redis: its import, and connections to one server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Protocol
from urllib.parse import urlsplit

from .redis_errors import RedisError

OUTAGE_TIMEOUT_MS = 60_000
_RESERVED = ("decode_responses", "protocol", "encoding", "retry", "connection_class")


class Pipeline(Protocol):
    """Commands that are sent together."""

    def execute_command(self, *args: object) -> object:
        """Add a command."""
        ...

    def execute(self, raise_on_error: bool = True) -> Sequence[object]:
        """Send the commands and return the answers."""
        ...

    def watch(self, *names: str) -> object:
        """Have the transaction fail if one of these keys changes before it; commands are then sent at once."""
        ...

    def multi(self) -> None:
        """Begin the transaction after `watch`."""
        ...

    def reset(self) -> None:
        """Give the connection back."""
        ...


class Client(Protocol):
    """A client of one server; for one thread."""

    def execute_command(self, *args: object) -> object:
        """Send a command and return its answer, strings as bytes."""
        ...

    def pipeline(self, transaction: bool = True) -> Pipeline:
        """Return a pipeline; with `transaction`, its commands are one transaction (MULTI and EXEC)."""
        ...

    def close(self) -> None:
        """Close the connections."""
        ...


def library() -> ModuleType:
    """Return the module redis.

    Raises:
        RedisError: it is not installed.
    """
    try:
        import redis
    except ImportError as error:
        raise RedisError(f"redis is missing ({error})", "pip install 'rayflink[redis]' on every node") from error
    return redis


@dataclass(frozen=True)
class RedisServer:
    """The server to connect to.

    >>> RedisServer("redis://me:secret@db.example/2")
    RedisServer(db.example:6379/2)

    Args:
        url: `redis://user:password@host:6379/0`, `rediss://...` for TLS, or `unix:///path`; further settings of
            redis-py's connections follow as a query, such as `?ssl_ca_certs=/etc/ca.pem&socket_timeout=5`.
        outage_timeout_ms: time for which it may be away.

    Raises:
        RedisError: it is no URL of Redis, or the library is not installed.
    """

    url: str = field(repr=False)
    outage_timeout_ms: int = OUTAGE_TIMEOUT_MS

    def __post_init__(self) -> None:
        settings = self._settings()
        refused = [name for name in _RESERVED if name in settings and name != "connection_class"]
        if refused:
            raise RedisError(f"the URL of Redis at {self.place} sets {refused[0]}", "remove it: the connector sets it")

    @property
    def place(self) -> str:
        """Return host, port and database, without credentials."""
        parts = urlsplit(self.url)
        path = parts.path or "/0"
        if parts.scheme == "unix":
            return path
        return f"{parts.hostname or 'localhost'}:{parts.port or 6379}{path if path != '/' else '/0'}"

    def _settings(self) -> dict[str, object]:
        try:
            parsed = library().connection.parse_url(self.url)
        except ValueError:
            wanted = "write redis://user:password@host:6379/0, rediss://... for TLS, or unix:///path"
            raise RedisError("the URL of Redis is malformed", wanted) from None
        return dict(parsed)

    def connect(self, role: str) -> Client:
        """Return a client, which connects with its first command.

        Args:
            role: part of its name in `CLIENT LIST`.
        """
        redis = library()
        defaults = {
            "socket_timeout": 10, "socket_connect_timeout": 5, "socket_keepalive": True,
            "client_name": f"rayflink-{role}",
        }  # fmt: skip
        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        settings = {**defaults, **self._settings(), "protocol": 2, "retry": retry, "decode_responses": False}
        client = redis.Redis(connection_pool=redis.ConnectionPool(**settings))
        for command in ("XREAD", "XRANGE", "XINFO STREAM", "XADD"):
            client.response_callbacks.pop(command, None)
        connected: Client = client
        return connected

    def __repr__(self) -> str:
        return f"RedisServer({self.place})"


__all__ = ["OUTAGE_TIMEOUT_MS", "Client", "Pipeline", "RedisServer", "library"]
