"""One request as values, and the errors that become answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, TypeAlias

import msgspec

from rayflink.common.errors import RayflinkError

__all__ = ["Answer", "FileAnswer", "JsonRequest", "Refusal", "Role", "Route"]


class Refusal(RayflinkError):
    """A request is answered with an error.

    Args:
        status: of HTTP.
        messages: what is wrong, and what to do.
    """

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__(status, *messages)
        self.status, self.messages = status, messages

    def __str__(self) -> str:
        return f"HTTP {self.status}: {'; '.join(self.messages)}"


@dataclass(frozen=True)
class JsonRequest:
    """A request.

    Args:
        path: of its address, without the query.
        parameters: of the path, by name.
        query: parameters of the query, by name.
        body: its bytes; b"": it has none.
        headers: by name in lower case.
    """

    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)

    def document(self) -> dict[str, Any]:
        """Return the body, a JSON object; {} where there is none.

        Raises:
            Refusal: it is something else.
        """
        if not self.body.strip():
            return {}
        try:
            document = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refusal(400, f"the body is no JSON: {error}; send an object") from error
        if not isinstance(document, dict):
            raise Refusal(400, f"the body is a JSON {type(document).__name__}; send an object")
        return document


@dataclass(frozen=True)
class FileAnswer:
    """An answer that is no JSON, such as a page or a log.

    Args:
        content: its bytes.
        media_type: such as "text/plain; charset=utf-8".
        headers: that it has beside those of every answer.
        status: of HTTP.
    """

    content: bytes
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


Answer: TypeAlias = "dict[str, Any] | list[Any] | msgspec.Struct | bytes | FileAnswer"
"""What a request is answered with: a value that is JSON, its bytes, or a file."""


class Role(IntEnum):
    """The right that a request needs; each includes those before it."""

    NONE = 0
    """None: what is the same for everybody, such as the files of a page, needs no token."""
    READ = 1
    """See jobs, metrics and logs."""
    OPERATE = 2
    """Change what runs: cancel, stop, savepoint, rescale."""
    SUBMIT = 3
    """Run code of one's own."""


@dataclass(frozen=True)
class Route:
    """The function of some requests.

    Args:
        method: GET, POST, PUT, PATCH or DELETE.
        pattern: of their paths; what stands in braces is a parameter, as in /jobs/{job}.
        answer: is called in a thread; raises `Refusal` where it cannot.
        role: that whoever sends them must have.
    """

    method: str
    pattern: str
    answer: Callable[[JsonRequest], Answer]
    role: Role = Role.SUBMIT
