"""One request as values, and the errors that become answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from rayflink.common.errors import RayflinkError

__all__ = ["Answer", "Caller", "FileAnswer", "JsonRequest", "Refusal", "Role", "Route", "StreamAnswer"]


class Refusal(RayflinkError):
    """A request is answered with an error.

    Args:
        status: of HTTP.
        messages: what is wrong, and what to do.
    """

    def __init__(self, status: int, *messages: str) -> None:
        super().__init__(status, *messages)
        self.status, self.messages = status, messages
        self.headers: Mapping[str, str] = {}
        """Headers of the answer, such as when to try again."""

    def __str__(self) -> str:
        return f"HTTP {self.status}: {'; '.join(self.messages)}"


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


@dataclass(frozen=True, slots=True)
class Caller:
    """Says who has sent a request.

    Args:
        name: of the token; "": there was none.
        role: that the sender has.
        address: of the client's machine.
    """

    name: str = ""
    role: Role = Role.NONE
    address: str = ""


@dataclass(frozen=True)
class JsonRequest:
    """A request.

    Args:
        path: of its address, without the query.
        parameters: of the path, by name.
        query: parameters of the query, by name.
        body: its bytes; b"": it has none, or is a file.
        headers: by name in lower case, without those that carry secrets.
        caller: who has sent it.
        upload: the file with the body, of a route with uploads; it is deleted when the request is answered.
    """

    path: str
    parameters: Mapping[str, str]
    query: Mapping[str, str]
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    caller: Caller = Caller()
    upload: Path | None = None

    def document(self) -> dict[str, Any]:
        """Return the body, a JSON object; {} where there is none.

        Raises:
            Refusal: it is something else.
        """
        if not self.body.strip():
            return {}
        try:
            document = msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
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


@dataclass(frozen=True)
class StreamAnswer:
    """An answer that comes in pieces, such as a large log.

    Args:
        pieces: are asked for one by one, in a thread, as the client takes them.
        media_type: such as "text/plain; charset=utf-8".
        headers: that it has beside those of every answer.
        status: of HTTP.
    """

    pieces: Iterable[bytes]
    media_type: str
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200


Answer: TypeAlias = "Mapping[str, Any] | Sequence[Any] | msgspec.Struct | bytes | FileAnswer | StreamAnswer"
"""What a request is answered with: a value that is JSON, its bytes, a file, or pieces of one."""


@dataclass(frozen=True)
class Route:
    """The function of some requests.

    Args:
        method: GET, which answers HEAD as well, POST, PUT, PATCH or DELETE.
        pattern: of their paths; what stands in braces is a parameter, as in /jobs/{job}.
        answer: is called in a thread; raises `Refusal` where it cannot.
        role: that whoever sends them must have.
        takes_upload: their bodies go to a file, and may have the size of uploads.
    """

    method: str
    pattern: str
    answer: Callable[[JsonRequest], Answer]
    role: Role = Role.SUBMIT
    takes_upload: bool = False

    @property
    def changes(self) -> bool:
        """Return whether such a request changes something or runs code: it does not only read.

        >>> Route("GET", "/jobs", dict, Role.READ).changes, Route("GET", "/jobs/{job}/stop", dict, Role.OPERATE).changes
        (False, True)
        """
        return self.method not in ("GET", "HEAD") or self.role > Role.READ

    @property
    def is_operation(self) -> bool:
        """Return whether the audit has a line for each such request: it does more than ask."""
        return self.role is Role.OPERATE or self.role is Role.SUBMIT and self.method not in ("GET", "HEAD")
