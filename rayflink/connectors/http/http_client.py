"""Requests to an HTTP service, with retries for outages."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from types import ModuleType
from urllib.parse import urlsplit, urlunsplit

from rayflink.common.errors import ConnectorError, described, shorten

RETRIED = frozenset((408, 425, 429, 500, 502, 503, 504))
"""Status codes of a service that is overloaded, or away for a while."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0


class HttpError(ConnectorError):
    """A service cannot be used as the connector needs it."""


class HttpOutage(HttpError, ConnectionError):
    """A service did not answer, or was overloaded, in all tries."""


@dataclass(frozen=True)
class Refusal:
    """The answer of a service that does not take a request, and would not at another time.

    Args:
        status: of HTTP, such as 400.
        answer: its beginning.
    """

    status: int
    answer: str


def library() -> ModuleType:
    """Return the module urllib3.

    Raises:
        HttpError: it is not installed.
    """
    try:
        import urllib3
    except ImportError as error:
        raise HttpError(f"urllib3 is missing ({error})", "pip install 'rayflink[http]' on every node") from error
    return urllib3


def without_secrets(url: str) -> str:
    """Return a URL without user, password and query, for messages.

    >>> without_secrets("https://me:secret@host:8443/path?token=abc")
    'https://host:8443/path'
    """
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


@dataclass(frozen=True)
class HttpTarget:
    """The address of a service, and the way in which requests are sent.

    Args:
        url: http:// or https://; user and password in it become an Authorization header.
        method: POST, PUT or PATCH.
        headers: of each request.
        timeout_s: for the connection, and for each answer.
        retries: of a request that meets an outage, before the writer fails.

    Raises:
        HttpError: the URL, the method or a number is out of range.
    """

    url: str = field(repr=False)
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    retries: int = 10

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            problem = f"{without_secrets(self.url)!r} is no URL of a service"
            raise HttpError(problem, "write http://host:port/path or https://...")
        if self.method not in ("POST", "PUT", "PATCH"):
            raise HttpError(f"the method is {self.method!r}", "use POST, PUT or PATCH")
        if self.timeout_s <= 0 or self.retries < 0:
            problem = f"the timeout is {self.timeout_s} s, with {self.retries} retries"
            raise HttpError(problem, "use a timeout above 0 and at least 0 retries")

    @property
    def place(self) -> str:
        """Return the URL without its secrets."""
        return without_secrets(self.url)


class HttpClient:
    """Sends requests to one service; several threads may use it at once.

    Args:
        target: the service.
        connections: kept open at once, at most.
        retried: called before each retry.
        closing: once it is set, nothing is tried again.
    """

    def __init__(
        self,
        target: HttpTarget,
        connections: int,
        retried: Callable[[], None],
        closing: Event,
    ) -> None:
        urllib3 = library()
        self._target, self._retried, self._closing = target, retried, closing
        self._pool = urllib3.PoolManager(maxsize=connections, block=True, retries=False)
        parts = urlsplit(target.url)
        self._url = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path or "/", parts.query, ""))
        credentials = {}
        if parts.username is not None:
            credentials = urllib3.make_headers(basic_auth=f"{parts.username}:{parts.password or ''}")
        self._headers = {**credentials, **target.headers}
        self._errors = (urllib3.exceptions.HTTPError, OSError)

    def send(self, body: bytes) -> Refusal | None:
        """Send a request, and again where the service is away or overloaded; return its refusal, or None.

        Raises:
            HttpOutage: no try succeeded.
        """
        target, failure = self._target, ""
        for number in range(target.retries + 1):
            if number:
                self._retried()
            try:
                answer = self._pool.request(
                    target.method, self._url, body=body, headers=self._headers, timeout=target.timeout_s
                )
            except self._errors as error:
                failure, pause_s = described(error), 0.0
            else:
                if 200 <= answer.status < 300:
                    return None
                beginning = shorten(answer.data.decode("utf-8", "replace"), 200)
                if answer.status not in RETRIED:
                    return Refusal(answer.status, beginning)
                failure, pause_s = f"HTTP {answer.status}: {beginning}", _retry_after_s(answer.headers)
            if number < target.retries and self._closing.wait(max(pause_s, _pause_s(number))):
                break
        problem = f"{target.place} did not take a request in {target.retries + 1} tries ({failure})"
        raise HttpOutage(problem, "start the service again, or raise the retries; the job goes on from its checkpoint")

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()


def _pause_s(number: int) -> float:
    """Return the pause after try `number`: twice as long each time, with jitter."""
    pause_s: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**number)
    return pause_s * (0.5 + random.random() / 2)


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """Return the seconds that a service asks to wait, at most the longest pause; dates are ignored."""
    value = headers.get("Retry-After", "")
    return min(LONGEST_PAUSE_S, float(value)) if value.isdecimal() else 0.0


__all__ = ["HttpClient", "HttpError", "HttpOutage", "HttpTarget", "Refusal", "library", "without_secrets"]
