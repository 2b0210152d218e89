"""The requests of Flink's gateway, versions 1 to 4."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

import rayflink
from rayflink.common.errors import RayflinkError, described
from rayflink.serving.json_requests import Answer, JsonRequest, Refusal, Route

from .gateway_session import GatewaySession
from .logical_types import type_document
from .operation import Operation, StatementResult
from .result_pages import Page
from .result_values import RowForm, RowWriter
from .session_registry import SessionRegistry

__all__ = ["RestEndpoints"]

VERSIONS = ("V1", "V2", "V3", "V4")
_HANDLE = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_MOST_DIGITS = 18
"""Digits of the token of an answer."""
_VERSION = re.compile(r"/(v[1-4])/")
Endpoint = Callable[[JsonRequest], Answer]
OpenSession = Callable[[str, dict[str, str]], GatewaySession]
Figures = Callable[[], dict[str, Any]]


class RestEndpoints:
    """Answers the requests of clients.

    Args:
        sessions: of the gateway.
        open_session: creates a session of a name and properties.
        most_bytes: of rows in an answer.
        wait_s: seconds for which a request for rows waits for the first.
        figures: counts what there is, and what was refused.

    Source: apache/flink flink-sql-gateway, whose requests and answers these are.
    """

    def __init__(
        self, sessions: SessionRegistry, open_session: OpenSession, most_bytes: int, wait_s: float, figures: Figures
    ) -> None:
        self._sessions, self._open, self._most_bytes, self._wait_s = sessions, open_session, most_bytes, wait_s
        self._figures = figures

    def routes(self) -> list[Route]:
        """Return the functions of all requests, each with and without the version in its path."""
        session, operation = "/sessions/{session}", "/sessions/{session}/operations/{operation}"
        unversioned: list[tuple[str, str, Endpoint, int, int]] = [
            ("GET", "/info", self._info, 1, 4),
            ("GET", "/api_versions", self._versions, 1, 4),
            ("POST", "/sessions", self._open_session, 1, 4),
            ("GET", session, self._show_session, 1, 4),
            ("DELETE", session, self._close_session, 1, 4),
            ("POST", f"{session}/heartbeat", self._heartbeat, 1, 4),
            ("POST", f"{session}/configure-session", self._configure, 2, 4),
            ("GET", f"{session}/complete-statement", self._complete, 2, 4),
            ("POST", f"{session}/statements", self._execute, 1, 4),
            ("GET", f"{operation}/status", self._status, 1, 4),
            ("POST", f"{operation}/cancel", self._cancel, 1, 4),
            ("DELETE", f"{operation}/close", self._close, 1, 4),
            ("GET", f"{operation}/result/{{token}}", self._fetch, 1, 4),
            ("POST", f"{session}/materialized-tables/{{table}}/refresh", self._refuse_refresh, 3, 4),
            ("POST", f"{session}/scripts", self._refuse_script, 4, 4),
        ]
        routes = [Route("GET", "/status", lambda request: self._figures())]
        for method, pattern, endpoint, first, last in unversioned:
            prefixes = ["", *(f"/v{version}" for version in range(first, last + 1))]
            routes += [Route(method, f"{prefix}{pattern}", _reported(endpoint)) for prefix in prefixes]
        return routes

    # about the gateway

    def _info(self, request: JsonRequest) -> Answer:
        return {"productName": "rayflink", "version": rayflink.__version__}

    def _versions(self, request: JsonRequest) -> Answer:
        return {"versions": list(VERSIONS)}

    # sessions

    def _open_session(self, request: JsonRequest) -> Answer:
        document = request.document()
        name = _text(document, "sessionName")
        return {"sessionHandle": self._open(name, _strings(document, "properties")).handle}

    def _show_session(self, request: JsonRequest) -> Answer:
        return {"properties": self._session(request).properties()}

    def _close_session(self, request: JsonRequest) -> Answer:
        self._sessions.close(_handle(request, "session"))
        return {"status": "CLOSED"}

    def _heartbeat(self, request: JsonRequest) -> Answer:
        self._session(request)
        return {}

    def _configure(self, request: JsonRequest) -> Answer:
        self._session(request).configure(_text(request.document(), "statement"))
        return {}

    def _complete(self, request: JsonRequest) -> Answer:
        document = request.document()
        text, position = _text(document, "statement"), document.get("position")
        if not isinstance(position, int) or isinstance(position, bool):
            raise Refusal(400, f"found position {position!r}, wanted a number of characters")
        return {"candidates": self._session(request).completions(text, position)}

    # statements

    def _execute(self, request: JsonRequest) -> Answer:
        document = request.document()
        timeout = document.get("executionTimeout")
        if isinstance(timeout, int) and timeout > 0:
            raise Refusal(500, "Internal server error.", "executionTimeout is not supported, as in Flink; cancel it")
        text, options = _text(document, "statement"), _strings(document, "executionConfig")
        return {"operationHandle": self._session(request).submit(text, options).handle}

    def _status(self, request: JsonRequest) -> Answer:
        return {"status": self._operation(request).status.value}

    def _cancel(self, request: JsonRequest) -> Answer:
        return {"status": self._operation(request).cancel().value}

    def _close(self, request: JsonRequest) -> Answer:
        self._session(request).close_operation(_handle(request, "operation"))
        return {"status": "CLOSED"}

    def _fetch(self, request: JsonRequest) -> Answer:
        text, form = request.parameters["token"], request.query.get("rowFormat", RowForm.JSON.value)
        if not text.isascii() or not text.isdigit() or len(text) > _MOST_DIGITS:
            raise Refusal(400, f"Cannot resolve path parameter (token) from value {text:.40}; send a number")
        if form not in RowForm.__members__:
            problem = f"Cannot resolve query parameter (rowFormat) from value {form!r}"
            raise Refusal(400, f"{problem}; send JSON or PLAIN_TEXT")
        operation, token, row_form = self._operation(request), int(text), RowForm[form]
        ready = operation.ready(self._wait_s)
        if ready is None:
            return {"resultType": "NOT_READY", "nextResultUri": _next_uri(request, token)}
        result, pages = ready
        writer = RowWriter(result.types, row_form, result.zone)
        page = pages.page(token, writer, self._most_bytes, self._wait_s)
        return _page_document(request, result, row_form, page)

    # what there is not

    def _refuse_refresh(self, request: JsonRequest) -> Answer:
        self._session(request)
        raise Refusal(501, "there are no materialized tables; write the rows by INSERT INTO a table")

    def _refuse_script(self, request: JsonRequest) -> Answer:
        self._session(request)
        raise Refusal(501, "scripts are not deployed from here; run them with `rayflink run script.sql`")

    def _session(self, request: JsonRequest) -> GatewaySession:
        return self._sessions.session(_handle(request, "session"))

    def _operation(self, request: JsonRequest) -> Operation:
        return self._session(request).operation(_handle(request, "operation"))


def _reported(endpoint: Endpoint) -> Endpoint:
    """Return the same, with errors as Flink's clients read them: what failed stands in the second message."""

    def respond(request: JsonRequest) -> Answer:
        try:
            return endpoint(request)
        except Refusal:
            raise
        except BaseException as error:  # a statement may have raised anything, which is for its client to read
            raise Refusal(500, "Internal server error.", _trace(error)) from error

    return respond


def _trace(error: BaseException) -> str:
    """Return an error as Flink's stack traces show one: its SQL client prints what stands behind "Caused by"."""
    cause = f"{type(error).__name__}: {error}" if isinstance(error, RayflinkError) else described(error)
    frame = "\tat rayflink.gateway"
    lines = ["SqlGatewayException: the request failed", frame, f"Caused by: {cause}", frame, ""]
    return "\n".join(["<Exception on server side:", *lines, "End of exception on server side>"])


def _page_document(request: JsonRequest, result: StatementResult, form: RowForm, page: Page) -> Answer:
    columns = [
        {"name": name, "logicalType": type_document(data_type), "comment": None}
        for name, data_type in zip(result.names, result.types, strict=True)
    ]
    rows = msgspec.Raw(b"[" + b",".join(page.rows) + b"]")
    job = {} if result.job is None else {"jobID": str(result.job.get_job_id())}
    following = {} if page.next_token is None else {"nextResultUri": _next_uri(request, page.next_token)}
    return {
        "resultType": "EOS" if page.next_token is None else "PAYLOAD",
        "isQueryResult": result.is_query,
        **job,
        "resultKind": "SUCCESS" if result.is_done else "SUCCESS_WITH_CONTENT",
        "results": {"columns": columns, "rowFormat": form.value, "data": rows},
        **following,
    }


def _next_uri(request: JsonRequest, token: int) -> str:
    match = _VERSION.match(request.path)
    prefix = match[1] if match else VERSIONS[-1].lower()
    session, operation = request.parameters["session"], request.parameters["operation"]
    form = "" if prefix == "v1" else f"?rowFormat={request.query.get('rowFormat', RowForm.JSON.value)}"
    return f"/{prefix}/sessions/{session}/operations/{operation}/result/{token}{form}"


def _handle(request: JsonRequest, name: str) -> str:
    handle = request.parameters[name]
    if _HANDLE.fullmatch(handle) is None:
        raise Refusal(400, f"Cannot resolve path parameter ({name}_handle) from value {handle!r}; send a UUID")
    return handle.lower()


def _text(document: dict[str, Any], key: str) -> str:
    value = document.get(key)
    if value is not None and not isinstance(value, str):
        raise Refusal(400, f"found {key} of type {type(value).__name__}, wanted a string")
    return value or ""


def _strings(document: dict[str, Any], key: str) -> dict[str, str]:
    value = document.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        raise Refusal(400, f"found another value of {key}, wanted an object of strings")
    return value
