"""The requests of a server by method and path, each with its token and its bounds."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rayflink.common.errors import RayflinkError, described

from .json_requests import FileAnswer, JsonRequest, Refusal, Role, Route
from .request_statistics import OTHER, RequestStatistics
from .server_settings import ServerSettings, is_loopback

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["JsonApplication"]

log = logging.getLogger(__name__)
BODY_S = 30.0
"""Seconds within which the body of a request has to come."""
LOCAL = "127.0.0.1, [::1] or localhost"


class JsonApplication:
    """Answers requests by the functions of their routes.

    Args:
        settings: token and bounds.
        routes: looked at in this order.
    """

    def __init__(self, settings: ServerSettings, routes: Sequence[Route]) -> None:
        self._settings, self._routes = settings, routes
        self.refusals: dict[int, int] = {}
        """Status of HTTP -> the number of requests that were answered with it, all from 400 on."""
        self.statistics = RequestStatistics()

    def starlette(self) -> Starlette:
        """Return the application that a server of ASGI runs."""
        import anyio.to_thread  # slow, with Starlette
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.responses import Response
        from starlette.routing import Route as StarletteRoute

        threads = anyio.CapacityLimiter(self._settings.most_waiting)

        async def respond(route: Route, request: Request) -> Response:
            try:
                if route.role is not Role.NONE:
                    self._ensure_token(request)
                self._ensure_no_page(request)
                query = dict(request.query_params)
                body = await self._body(request)
                values = JsonRequest(request.url.path, request.path_params, query, body, dict(request.headers))
                answer = await anyio.to_thread.run_sync(route.answer, values, limiter=threads)
                if isinstance(answer, FileAnswer):
                    headers = dict(answer.headers)
                    return Response(answer.content, answer.status, headers, answer.media_type)
                content, status = _encoded(answer), 200
            except Refusal as refusal:
                content, status = self._refused(refusal.status, *refusal.messages), refusal.status
            except RayflinkError as error:
                log.warning("request failed", extra={"path": request.url.path}, exc_info=error)
                content, status = self._refused(500, "Internal server error.", described(error)), 500
            return Response(content, status, media_type="application/json")

        async def measured(route: Route, request: Request) -> Response:
            began = time.monotonic()
            response = await respond(route, request)
            self.statistics.record(route.method, route.pattern, response.status_code, time.monotonic() - began)
            return response

        async def refuse(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            self.statistics.record(request.method, OTHER, 404, 0.0)
            message = f"Not found: {request.url.path}" if error.status_code in (404, 405) else str(error.detail)
            return Response(self._refused(404, message), 404, media_type="application/json")

        async def fail(request: Request, error: Exception) -> Response:
            self.statistics.record(request.method, OTHER, 500, 0.0)
            log.error("request failed", extra={"path": request.url.path}, exc_info=error)
            content = self._refused(500, "Internal server error.", described(error))
            return Response(content, 500, media_type="application/json")

        endpoints = [
            StarletteRoute(route.pattern, partial(measured, route), methods=[route.method]) for route in self._routes
        ]
        return Starlette(routes=endpoints, exception_handlers={HTTPException: refuse, Exception: fail})

    def _ensure_token(self, request: Request) -> None:
        """Refuse a request without the token; the time that this takes does not show how much of it is right."""
        wanted = self._settings.token
        if wanted is None:
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(token.strip().encode(), wanted.encode()):
            raise Refusal(401, "the token is missing or wrong; send the header `Authorization: Bearer TOKEN`")

    def _ensure_no_page(self, request: Request) -> None:
        """Refuse requests that a page in a browser sends to a server without a token, on whose machine the browser is.

        Such requests name their page as origin, or the name of a host that the page has let stand for this machine.
        """
        if self._settings.token is not None:
            return
        host = request.headers.get("host", "").strip()
        name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
        if "origin" in request.headers or not is_loopback(name.strip("[]")):
            remedy = "set a token for the server, and send it"
            raise Refusal(403, f"without a token, only programs of this machine are answered, by {LOCAL}; {remedy}")

    async def _body(self, request: Request) -> bytes:
        """Return the body, of which no more is read than the bound."""
        import anyio  # an extra

        most = self._settings.most_bytes
        chunks, size = [], 0
        try:
            with anyio.fail_after(BODY_S):
                async for chunk in request.stream():
                    size += len(chunk)
                    if size > most:
                        remedy = "send less, or raise sql-gateway.request.max-size"
                        raise Refusal(413, f"the body has more than {most} bytes; {remedy}")
                    chunks.append(chunk)
        except TimeoutError as error:
            raise Refusal(408, f"the body has not come within {BODY_S:.0f} s; send it at once") from error
        return b"".join(chunks)

    def _refused(self, status: int, *messages: str) -> bytes:
        self.refusals[status] = self.refusals.get(status, 0) + 1
        return msgspec.json.encode({"errors": list(messages)})


def _encoded(answer: object) -> bytes:
    return answer if isinstance(answer, bytes) else msgspec.json.encode(answer, enc_hook=_plain)


def _plain(value: object) -> str:
    """Return an id, which is a string of a class of its own, as a string.

    Raises:
        NotImplementedError: it is something else.
    """
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(f"a value of type {type(value).__name__} is no JSON")
