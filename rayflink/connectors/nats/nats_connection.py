"""A connection to JetStream, for one event loop: requests that end when the connection does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from rayflink.common.text_output.logs import get_logger

from .nats_errors import NatsError, failure_of
from .nats_positions import StreamFacts
from .nats_server import NatsServer, library

if TYPE_CHECKING:
    from nats.aio.client import Client

log = get_logger(__name__)

ANSWER_TIMEOUT_S = 5
_CLOSE_TIMEOUT_S = 1
"""The client library waits for ever to close a connection whose TLS handshake has failed."""
_OPTIONS: dict[str, Any] = {
    "allow_reconnect": False, "max_reconnect_attempts": 1, "reconnect_time_wait": 0.05, "connect_timeout": 5,
    "ping_interval": 5, "max_outstanding_pings": 2,
}  # fmt: skip
"""Arguments of the client library; times are in seconds."""
Answer = TypeVar("Answer")


class Message(Protocol):
    """A message as the client library delivers it."""

    @property
    def subject(self) -> str: ...

    @property
    def reply(self) -> str: ...

    @property
    def data(self) -> bytes: ...

    @property
    def headers(self) -> dict[str, str] | None: ...


class NatsConnection:
    """A connection that is never repaired: when it is lost, each wait ends in an error, and another is opened.

    Args:
        server: to connect to.
        role: part of its name on the server.
    """

    def __init__(self, server: NatsServer, role: str) -> None:
        self.server, self._role = server, role
        self.client: Client = library().aio.client.Client()
        self.api = f"$JS.{server.domain}.API" if server.domain else "$JS.API"
        self._lost: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._last_error: BaseException | None = None

    async def open(self) -> None:
        """Connect.

        Raises:
            NatsError: no server answers, or it refuses.
        """
        server, name, note, closed = self.server, f"rayflink-{self._role}", self._note, self._close_waits
        try:
            await self.client.connect(**{**_OPTIONS, **server.options()}, name=name, error_cb=note, closed_cb=closed)
        except Exception as error:  # of the client library, of its keys, or of the socket
            cause = self._last_error if type(error).__name__ == "NoServersError" and self._last_error else error
            raise failure_of(cause, "connecting", server.place) from error

    async def _note(self, error: BaseException) -> None:
        """Take an error that belongs to no request; one about rights ends the waits, as no answer will come."""
        self._last_error = error
        if "permissions violation" in str(error).lower():
            self._end_waits(error)

    async def _close_waits(self) -> None:
        self._end_waits(self._last_error or self.client.last_error or ConnectionResetError("the connection was closed"))

    def _end_waits(self, error: BaseException) -> None:
        if not self._lost.done():
            self._lost.set_result(error)

    async def wait_for(self, work: Awaitable[Answer], doing: str) -> Answer:
        """Return an answer.

        Raises:
            NatsError: there is none, or the connection is lost.
        """
        task = asyncio.ensure_future(work)
        try:
            waits: list[asyncio.Future[Any]] = [task, self._lost]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise failure_of(self._lost.result(), doing, self.server.place)
            return task.result()
        except NatsError:
            raise
        except Exception as error:  # of the client library, or of the socket
            raise failure_of(error, doing, self.server.place) from error
        finally:
            if not task.done():
                task.cancel()

    async def ask(self, request: str, arguments: Mapping[str, object], doing: str) -> dict[str, Any]:
        """Return the answer of JetStream's interface to a request, such as "STREAM.INFO.ORDERS".

        Raises:
            NatsError: it is an error, or there is none.
        """
        payload = json.dumps(arguments).encode()
        subject = f"{self.api}.{request}"
        reply = await self.wait_for(self.client.request(subject, payload, timeout=ANSWER_TIMEOUT_S), doing)
        answer: dict[str, Any] = json.loads(reply.data)
        if "error" in answer:
            raise failure_of(api_error(answer["error"]), doing, self.server.place)
        return answer

    async def facts(self, stream: str) -> StreamFacts:
        """Return what is known of a stream.

        Raises:
            NatsError: it is not there, or there is no answer.
        """
        return StreamFacts.of_answer(await self.ask(f"STREAM.INFO.{stream}", {}, f"reading stream {stream!r}"))

    async def close(self) -> None:
        """Close the connection."""
        try:
            await asyncio.wait_for(self.client.close(), _CLOSE_TIMEOUT_S)
        except Exception as error:  # of a connection that is lost anyway
            log.debug("%s", error)


def api_error(described: dict[str, Any]) -> Exception:
    """Return the exception of the client library for an error in an answer of JetStream."""
    error_class = library().js.errors.APIError
    try:
        error_class.from_error(described)
    except error_class as error:
        return cast("Exception", error)
    raise AssertionError("the client library raises what it makes of an error")


async def with_connection(server: NatsServer, role: str, work: Callable[[NatsConnection], Awaitable[Answer]]) -> Answer:
    """Return the answer of work with a connection that lasts as long as the work.

    Raises:
        NatsError: no server answers, or it refuses.
    """
    connection = NatsConnection(server, role)
    try:
        await connection.open()
        return await work(connection)
    finally:
        await connection.close()


__all__ = ["ANSWER_TIMEOUT_S", "Message", "NatsConnection", "api_error", "with_connection"]
