"""Connections on which a client must send the head of its request, and take its answer, in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["BoundedSending", "bounded_protocol"]

HEAD_S = 10.0
"""Seconds within which the head of a request has to come: from the connection, or from its first byte on."""
SEND_S = 30.0
"""Seconds within which a client must take the next piece of an answer."""


def bounded_protocol(head_s: float = HEAD_S) -> type[asyncio.Protocol]:
    """Return the class of connections of uvicorn that are closed while they bring no whole head for so long.

    Raises:
        ImportError: uvicorn is not installed.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class BoundedProtocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._deadline = self.loop.call_later(head_s, self._close_if_idle)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            is_in_head = self.conn.their_state is h11.IDLE and not self.transport.is_closing()
            if not is_in_head:
                self._clear_deadline()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(head_s, self._close_if_idle)

        def connection_lost(self, exc: Exception | None) -> None:
            self._clear_deadline()
            super().connection_lost(exc)

        def shutdown(self) -> None:
            """Close a connection at the end of the server; an idle client need not agree, as TLS would have it."""
            is_idle = self.cycle is None or self.cycle.response_complete
            if is_idle and self.scheme == "https" and self.transport.get_write_buffer_size() == 0:
                self.transport.abort()
            else:
                super().shutdown()

        def _close_if_idle(self) -> None:
            self._deadline = None
            if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
                self.transport.abort()

        def _clear_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return BoundedProtocol


class BoundedSending:
    """An application whose answers are cut off where a client does not take them, and whose paths end in no slash.

    Args:
        app: it answers the requests.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        import anyio  # an extra

        async def send_in_time(message: Message) -> None:
            with anyio.fail_after(SEND_S):
                await send(message)

        if scope["type"] == "http":
            scope["path"] = scope["path"].rstrip("/") or "/"
        await self._app(scope, receive, send_in_time)
