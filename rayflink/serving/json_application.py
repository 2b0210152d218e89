"""The requests of a server by method and path, each with its token and its bounds."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from rayflink.common.configuration import shown_value
from rayflink.common.errors import RayflinkError, described
from rayflink.state.clock import Clock, SystemClock

from .answer_headers import accepts, answer_headers
from .audit_log import AuditEntry, AuditLog
from .bounded_connections import BoundedSending
from .json_requests import Answer, Caller, FileAnswer, JsonRequest, Refusal, Route, StreamAnswer
from .page_rules import RequestHead, cors_headers, preflight_headers
from .request_bodies import RequestBodies
from .request_guard import RequestGuard
from .request_statistics import OTHER, RequestStatistics
from .server_settings import ServerSettings

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    RunAnswer = Callable[[Callable[[JsonRequest], Answer], JsonRequest], Awaitable[Answer]]

__all__ = ["JsonApplication"]

log = logging.getLogger(__name__)
JSON = "application/json"
MOST_ANSWER_BYTES = 64 << 20
SECRET_HEADERS = {"authorization", "cookie", "proxy-authorization"}
NAMES_OF_JOB = ("jobid", "jid", "job", "job_id", "jobID")
"""Names of a job's id in paths and answers, for the audit."""


class JsonApplication:
    """Answers requests by the functions of their routes.

    Args:
        settings: token and bounds.
        routes: looked at in this order.
        clock: of the server.

    Raises:
        ConfigError: the file of tokens or that of the audit cannot be used.
    """

    def __init__(self, settings: ServerSettings, routes: Sequence[Route], clock: Clock | None = None) -> None:
        self._settings, self._clock = settings, clock or SystemClock()
        self._guard, self._audit = RequestGuard(settings, self._clock), AuditLog(settings.audit)
        self._routes: dict[str, dict[str, Route]] = {}
        """Pattern of paths -> method -> its route; the first of several."""
        for route in routes:
            of_pattern = self._routes.setdefault(route.pattern, {})
            of_pattern.setdefault(route.method, route)
            if route.method == "GET":
                of_pattern.setdefault("HEAD", route)
        self.refusals: dict[int, int] = {}
        """Status of HTTP -> the number of requests that were answered with it, all from 400 on."""
        self.statistics = RequestStatistics()

    @property
    def audit_failures(self) -> int:
        """Return the number of lines that could not be written to the file of the audit."""
        return self._audit.failures

    def close(self) -> None:
        """Close the file of the audit."""
        self._audit.close()

    def starlette(self) -> Starlette:
        """Return the application that a server of ASGI runs."""
        import anyio.to_thread  # slow, with Starlette
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.middleware import Middleware
        from starlette.routing import Route as StarletteRoute

        threads = anyio.CapacityLimiter(self._settings.most_waiting)
        bodies = RequestBodies(self._settings)

        def run(answer: Callable[[JsonRequest], Answer], values: JsonRequest) -> Awaitable[Answer]:
            return anyio.to_thread.run_sync(answer, values, limiter=threads)

        async def refuse(request: Request, error: Exception) -> Response:
            assert isinstance(error, HTTPException)
            path = request.url.path
            self.statistics.record(request.method, OTHER, error.status_code, 0.0)
            message = f"Not found: {path:.500}" if error.status_code == 404 else str(error.detail)
            return self._refusal_response(Refusal(error.status_code, message), _head(request))

        async def fail(request: Request, error: Exception) -> Response:
            self.statistics.record(request.method, OTHER, 500, 0.0)
            return self._refusal_response(self._failure(request, error), _head(request))

        endpoints = [
            StarletteRoute(pattern, _with_every_method(partial(self._respond, by_method, bodies, run)))
            for pattern, by_method in self._routes.items()
        ]
        handlers: dict[int | type[Exception], Callable[[Request, Exception], Awaitable[Response]]] = {
            HTTPException: refuse, Exception: fail,
        }  # fmt: skip
        application = Starlette(
            routes=endpoints, exception_handlers=handlers, middleware=[Middleware(BoundedSending)]
        )
        application.router.redirect_slashes = False
        return application

    async def _respond(
        self, by_method: Mapping[str, Route], bodies: RequestBodies, run: RunAnswer, request: Request
    ) -> Response:
        """Answer a request of a pattern."""
        from starlette.requests import ClientDisconnect

        head = _head(request)
        route = by_method.get(head.method)
        if route is None:
            response = self._without_route(by_method, head)
            self.statistics.record(head.method, OTHER, response.status_code, 0.0)
            return response
        caller, began, at_ms = Caller(address=head.address), self._clock.monotonic(), self._clock.now_ms()
        answer: Answer = {}
        refusal: Refusal | None = None
        has_body = False
        try:
            caller = self._guard.check(head, route)
            async with bodies.body(request, route) as (body, upload):
                has_body = True
                headers = {name: value for name, value in head.headers.items() if name not in SECRET_HEADERS}
                query = dict(request.query_params)
                values = JsonRequest(request.url.path, request.path_params, query, body, headers, caller, upload)
                answer = await run(route.answer, values)
            response = self._response(answer, head)
        except Refusal as error:
            refusal, response = error, self._refusal_response(error, head)
            if not has_body:
                await bodies.discard(request)
        except ClientDisconnect:
            refusal = Refusal(499, "the client has closed the connection")
            response = self._refusal_response(refusal, head)
        except Exception as error:  # a function may raise anything, which is for its client to read
            refusal = self._failure(request, error)
            response = self._refusal_response(refusal, head)
        duration_s = self._clock.monotonic() - began
        self.statistics.record(head.method, route.pattern, response.status_code, duration_s)
        if route.is_operation or refusal is not None and refusal.status in (401, 403, 429):
            job, path = _job(request.path_params, answer), request.url.path
            reason = "" if refusal is None else "; ".join(refusal.messages)
            query = dict(request.query_params)
            self._audit.write(
                AuditEntry(
                    at_ms, caller, head.method, path, query, job, response.status_code, reason, duration_s * 1000
                )
            )
        return response

    def _without_route(self, by_method: Mapping[str, Route], head: RequestHead) -> Response:
        """Answer a request whose method no route has."""
        from starlette.responses import Response

        methods = {*by_method, "OPTIONS"}
        allow = ", ".join(sorted(methods))
        if head.method == "OPTIONS":
            preflight = preflight_headers(head, self._settings.access.origins, methods)
            return Response(None, 204, {**answer_headers(""), "allow": allow, **preflight})
        refusal = Refusal(405, f"Method not allowed: {head.method:.20}; send {allow}")
        refusal.headers = {"allow": allow}
        return self._refusal_response(refusal, head)

    def _response(self, answer: Answer, head: RequestHead) -> Response:
        """Return the response with an answer.

        Raises:
            Refusal: the client does not take such an answer, or it is too large.
        """
        from starlette.responses import Response, StreamingResponse

        if isinstance(answer, (FileAnswer, StreamAnswer)):
            media_type, status, own = answer.media_type, answer.status, answer.headers
        else:
            media_type, status, own = JSON, 200, {}
        if not accepts(head.headers.get("accept", ""), media_type):
            raise Refusal(406, f"the answer is {media_type}; send the header `Accept: {media_type}`, or none")
        cors = cors_headers(head, self._settings.access.origins)
        headers = {**answer_headers(media_type), **cors, **{name.lower(): value for name, value in own.items()}}
        if isinstance(answer, StreamAnswer):
            return StreamingResponse(answer.pieces, status, headers, media_type)
        content = answer.content if isinstance(answer, FileAnswer) else _encoded(answer)
        if len(content) > MOST_ANSWER_BYTES:
            raise Refusal(500, "Internal server error.", f"the answer has more than {MOST_ANSWER_BYTES} bytes; ask "
                          "for a part of it")  # fmt: skip
        if status >= 400:
            self._count(status)
        return Response(content, status, headers, media_type)

    def _failure(self, request: Request, error: Exception) -> Refusal:
        """Log an error that is no refusal, and return what the client reads of it: its message, and no more."""
        if isinstance(error, RayflinkError):
            log.warning("request failed", extra={"path": request.url.path}, exc_info=error)
        else:
            log.error("request failed", extra={"path": request.url.path}, exc_info=error)
        return Refusal(500, "Internal server error.", shown_value("message", described(error)))

    def _refusal_response(self, refusal: Refusal, head: RequestHead) -> Response:
        from starlette.responses import Response

        self._count(refusal.status)
        content = msgspec.json.encode({"errors": list(refusal.messages)})
        cors = cors_headers(head, self._settings.access.origins)
        return Response(content, refusal.status, {**answer_headers(JSON), **cors, **refusal.headers}, media_type=JSON)

    def _count(self, status: int) -> None:
        self.refusals[status] = self.refusals.get(status, 0) + 1


def _with_every_method(respond: Callable[[Request], Awaitable[Response]]) -> type:
    """Return an endpoint that gets requests of all methods."""
    from starlette.endpoints import HTTPEndpoint

    class Endpoint(HTTPEndpoint):
        async def dispatch(self) -> None:
            from starlette.requests import Request

            request = Request(self.scope, self.receive)
            response = await respond(request)
            await response(self.scope, self.receive, self.send)

    return Endpoint


def _head(request: Request) -> RequestHead:
    address = "" if request.client is None else request.client.host
    return RequestHead(request.method, request.url.scheme, dict(request.headers), address)


def _job(parameters: Mapping[str, str], answer: Answer) -> str:
    """Return the job that an operation is about, or that it has begun; "" where there is none."""
    for values in (parameters, answer if isinstance(answer, dict) else {}):
        for name in NAMES_OF_JOB:
            if isinstance(job := values.get(name), str):
                return job
    return ""


def _encoded(answer: object) -> bytes:
    if isinstance(answer, bytes):
        return answer
    try:
        return msgspec.json.encode(answer, enc_hook=_plain)
    except UnicodeEncodeError:  # half of a character, in a name that a program has chosen
        return msgspec.json.encode(_with_whole_characters(msgspec.to_builtins(answer, enc_hook=_plain)))


def _with_whole_characters(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {_with_whole_characters(key): _with_whole_characters(item) for key, item in value.items()}
    return [_with_whole_characters(item) for item in value] if isinstance(value, (list, tuple)) else value


def _plain(value: object) -> str:
    """Return an id, which is a string of a class of its own, as a string.

    Raises:
        NotImplementedError: it is something else.
    """
    if isinstance(value, str):
        return str.__str__(value)
    raise NotImplementedError(f"a value of type {type(value).__name__} is no JSON")
