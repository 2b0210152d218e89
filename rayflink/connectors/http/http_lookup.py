"""Requests that ask an HTTP service for something: a URL with the values of a key, or a body with many keys."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from rayflink.common.errors import described, shorten

from .http_client import RETRIED, HttpError, HttpOutage, HttpTarget, library

_PLACE = re.compile(r"\{(\w+)\}")
_NOTHING = (204, 404)
"""Status codes that say that there is nothing for a key."""


@dataclass(frozen=True)
class HttpQuestion:
    """The address of a service that is asked.

    >>> question = HttpQuestion("http://host/people/{id}?v=1")
    >>> question.url_of({"id": "a b", "kind": "x"})
    'http://host/people/a%20b?v=1&kind=x'

    Args:
        url: `{name}` stands for a value of the key; other values become parameters of the query.
        headers: (name, value) of each request.
        timeout_s: for the connection, and for each answer.

    Raises:
        HttpError: the URL or the timeout is out of range.
    """

    url: str = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    timeout_s: float = 30.0

    def __post_init__(self) -> None:
        HttpTarget(self.url, timeout_s=self.timeout_s)

    @property
    def place(self) -> str:
        """Return the URL without its secrets."""
        return HttpTarget(self.url).place

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names that stand for values of the key."""
        return tuple(_PLACE.findall(self.url))

    def url_of(self, key: Mapping[str, str]) -> str:
        """Return the URL for a key."""
        url = _PLACE.sub(lambda match: quote(key[match[1]], safe=""), self.url)
        rest = {name: value for name, value in key.items() if name not in self.names}
        if not rest:
            return url
        parts = urlsplit(url)
        query = "&".join(filter(None, (parts.query, urlencode(rest))))
        return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


class HttpQuestions:
    """Asks a service; several threads may ask at once.

    Args:
        question: the service.
        connections: kept open at once, at most.
    """

    def __init__(self, question: HttpQuestion, connections: int) -> None:
        urllib3 = library()
        self._question = question
        self._pool = urllib3.PoolManager(maxsize=connections, block=True, retries=False)
        parts = urlsplit(question.url)
        credentials = {}
        if parts.username is not None:
            credentials = urllib3.make_headers(basic_auth=f"{parts.username}:{parts.password or ''}")
        self._headers = {"Accept": "application/json", **credentials, **dict(question.headers)}
        self._errors = (urllib3.exceptions.HTTPError, OSError)

    def get(self, key: Mapping[str, str]) -> bytes | None:
        """Return the answer for a key; None: there is nothing.

        Raises:
            HttpOutage: the service did not answer, or is overloaded.
            HttpError: it refuses the request.
        """
        return self._ask("GET", self._question.url_of(key), None, _NOTHING)

    def post(self, body: bytes) -> bytes:
        """Return the answer to a body; raises as `get` does, also where nothing is there."""
        return self._ask("POST", self._question.url, body, ()) or b""

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _ask(self, method: str, url: str, body: bytes | None, nothing: tuple[int, ...]) -> bytes | None:
        question = self._question
        parts = urlsplit(url)
        address = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", parts.query, ""))
        headers = self._headers if body is None else {"Content-Type": "application/json", **self._headers}
        remedy = "start the service again, or raise the retries"
        try:
            answer = self._pool.request(method, address, body=body, headers=headers, timeout=question.timeout_s)
        except self._errors as error:
            raise HttpOutage(f"{question.place} did not answer ({described(error)})", remedy) from error
        if answer.status in nothing:
            return None
        if 200 <= answer.status < 300:
            return bytes(answer.data)
        beginning = shorten(answer.data.decode("utf-8", "replace"), 200)
        problem = f"{question.place} answered HTTP {answer.status}: {beginning}"
        if answer.status in RETRIED:
            raise HttpOutage(problem, remedy)
        raise HttpError(problem, "correct the URL, its key columns or the headers")


__all__ = ["HttpQuestion", "HttpQuestions"]
