"""Requests as typed values: ids of paths, parameters of queries, bodies. Wrong ones are refused in Flink's words."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from rayflink.serving.json_requests import Answer, FileAnswer, JsonRequest, Refusal, Role, Route

__all__ = ["EMPTY", "Empty", "TypedEndpoint", "bad_parameter", "ensure_no_page", "hex_id", "versioned"]

T = TypeVar("T")
VERSION = "v1"
_ID = re.compile(r"[0-9a-fA-F]{32}")
_FIELD = re.compile(r"`\$\.([^`.\[]+)")
_LONGEST_SHOWN = 80


class Empty(msgspec.Struct):
    """An answer without anything in it."""


EMPTY = Empty()


@dataclass(frozen=True)
class TypedEndpoint:
    """Answers requests whose query and body are read into values of declared types.

    Args:
        function: takes the request, the query where one is declared, and the body where one is.
        query: a struct of its parameters; None: they are not looked at.
        body: the type of its JSON; None: there is none.
        body_name: of that type, for people.
        status: of HTTP, of an answer that is no refusal.
    """

    function: Callable[..., Answer]
    query: type[msgspec.Struct] | None = None
    body: object = None
    body_name: str = ""
    status: int = 200

    def __call__(self, request: JsonRequest) -> Answer:
        """Answer a request.

        Raises:
            Refusal: its query or its body is of another form.
        """
        values: list[object] = [request]
        if self.query is not None:
            values.append(_query(request, self.query))
        if self.body is not None:
            values.append(self._body(request))
        answer = self.function(*values)
        if self.status == 200 or isinstance(answer, FileAnswer):
            return answer
        content = answer if isinstance(answer, bytes) else msgspec.json.encode(answer)
        return FileAnswer(content, "application/json", status=self.status)

    def _body(self, request: JsonRequest) -> object:
        expected: type[object] = self.body  # type: ignore[assignment]  # a generic alias too
        try:
            return msgspec.json.decode(request.body.strip() or b"{}", type=expected)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problem = f"Request did not match expected format {self.body_name}."
            raise Refusal(400, problem, f"{error}; GET /openapi.json describes it") from error


def _query(request: JsonRequest, expected: type[T]) -> T:
    try:
        return msgspec.convert(dict(request.query), expected, strict=False)
    except msgspec.ValidationError as error:
        field = _FIELD.search(str(error))
        name = field[1] if field else ""
        raise bad_parameter("query", name, request.query.get(name, ""), str(error)) from error


def bad_parameter(place: str, name: str, value: str, remedy: str) -> Refusal:
    """Return the refusal of a request whose path or query has a wrong value.

    >>> bad_parameter("path", "jobid", "7", "send 32 hex digits").messages[0]
    'Bad request, could not parse parameters: Cannot resolve path parameter (jobid) from value "7".'
    """
    shown = value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}..."
    problem = f'Cannot resolve {place} parameter ({name}) from value "{shown}".'
    return Refusal(400, f"Bad request, could not parse parameters: {problem}", remedy)


def hex_id(request: JsonRequest, name: str) -> str:
    """Return an id of the path, in lower case.

    Raises:
        Refusal: it is none.
    """
    value = request.parameters[name]
    if _ID.fullmatch(value) is None:
        raise bad_parameter("path", name, value, "send 32 hex digits")
    return value.lower()


def ensure_no_page(request: JsonRequest) -> None:
    """Refuse a GET request that changes something where a page of another origin sends it, as an image would.

    Raises:
        Refusal: it does.
    """
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refusal(403, "pages of other origins change nothing here; send PATCH /jobs/:jobid?mode=cancel")


def versioned(method: str, pattern: str, endpoint: Callable[[JsonRequest], Answer], role: Role) -> list[Route]:
    """Return the routes of a path, without and with the version of Flink's interface."""
    return [Route(method, f"{prefix}{pattern}", endpoint, role) for prefix in ("", f"/{VERSION}")]
