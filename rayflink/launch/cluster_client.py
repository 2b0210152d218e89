"""Requests to the dispatcher of a cluster, over connections that stay open."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode, urlsplit

from rayflink.common.configuration import Configuration
from rayflink.common.errors import ConfigError, RayflinkError, described
from rayflink.common.options import registry as options
from rayflink.common.text_output.logs import get_logger
from rayflink.serving.server_settings import is_loopback

from .cluster_address import ClusterAddress

__all__ = ["ClusterClient", "ClusterRequest", "ClusterUnreachable", "RequestRefused"]

log = get_logger(__name__)
ANSWER_S = 30.0
IDLE_S = 2.0
"""A connection that has not been used for so long is not used again: the dispatcher may be about to close it."""
FIRST_DELAY_S = 0.1
"""Time before the second attempt at a request; it doubles with each further one."""
SLICE_S = 0.2
"""Time between two looks, during a delay, at whether the request is still wanted."""
SHOWN = 500
"""Characters that are shown of an answer that is not the dispatcher's."""
Document: TypeAlias = "dict[str, Any]"
"""A JSON object."""


class ClusterUnreachable(RayflinkError):
    """The dispatcher of a cluster does not answer.

    Args:
        url: of the dispatcher.
        cause: what was seen.
        remedy: what to do.
    """

    def __init__(self, url: str, cause: str, remedy: str) -> None:
        super().__init__(url, cause, remedy)
        self.url, self.cause, self.remedy = url, cause, remedy

    def __str__(self) -> str:
        return f"the cluster at {self.url} does not answer: {self.cause}; {self.remedy}"


class RequestRefused(RayflinkError):
    """The dispatcher of a cluster refuses a request.

    Args:
        url: of the dispatcher.
        status: of HTTP.
        messages: that the dispatcher gives.
    """

    def __init__(self, url: str, status: int, *messages: str) -> None:
        super().__init__(url, status, *messages)
        self.url, self.status, self.messages = url, status, messages

    @property
    def remedy(self) -> str:
        """Return what to do."""
        return _REMEDIES.get(self.status, "the log of the dispatcher has more")

    def __str__(self) -> str:
        said = "; ".join(self.messages) or "without a reason"
        return f"the cluster at {self.url} refuses a request (HTTP {self.status}): {said}; {self.remedy}"


_REMEDIES = {
    400: "use the version of rayflink that the cluster has",
    401: "set rest.token to a token of that cluster",
    403: "set rest.token to a token of that cluster with the right for it",
    404: "see whether rest.address and rest.port are those of a cluster of rayflink, in the same version",
    409: "`rayflink list` shows the jobs of the cluster",
    413: "send less, or raise rest.server.max-content-length of the cluster",
    503: "ask again in a moment",
}


@dataclass(frozen=True)
class ClusterRequest:
    """A request, which means the same when it is repeated.

    Args:
        method: of HTTP.
        path: of the address.
        query: parameters; None: there are none.
        body: its bytes.
        wait_s: for which the dispatcher may let it wait.
    """

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: bytes = field(default=b"", repr=False)
    wait_s: float = 0.0

    @property
    def target(self) -> str:
        """Return the path with the parameters."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path


class ClusterClient:
    """Sends requests to one dispatcher; threads may share it.

    While the dispatcher begins anew, a request is repeated: those that are sent here mean the same when they are
    repeated. A dispatcher that has never answered is asked once, but for requests that are `patient`.

    Args:
        address: of the dispatcher.
        connect_s: longest time in which it connects.
        attempts: at each request, while the dispatcher does not answer.
        delay_s: the longest time between two attempts.
        answer_s: time for an answer, beyond the time that a request may wait at the dispatcher.

    Raises:
        ConfigError: the certificate cannot be read.
    """

    def __init__(
        self,
        address: ClusterAddress,
        connect_s: float = 15.0,
        attempts: int = 20,
        delay_s: float = 3.0,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._address, self._attempts, self._delay_s = address, attempts, delay_s
        self._connect_s, self._answer_s = min(connect_s, answer_s), answer_s
        parts = urlsplit(address.url)
        self._host, self._port = parts.hostname or "", parts.port
        self._trust = _trust(address) if parts.scheme == "https" else None
        if address.token and self._trust is None and not is_loopback(self._host):
            log.warning("the token is sent to %s without encryption; use a URL of https in rest.address", address.url)
        self._lock = threading.Lock()
        self._idle: list[tuple[http.client.HTTPConnection, float]] = []
        self._has_answered = False

    @classmethod
    def of(cls, configuration: Configuration) -> ClusterClient:
        """Return the client of the cluster that the options name, or that was started on this machine.

        Raises:
            ConfigError: there is none, or an option is wrong.
        """
        get = configuration.get
        times = (get(options.REST_CONNECT_TIMEOUT).to_millis() / 1000, get(options.REST_ATTEMPTS),
                 get(options.REST_RETRY_DELAY).to_millis() / 1000)  # fmt: skip
        return cls(ClusterAddress.of(configuration), *times)

    @property
    def url(self) -> str:
        """Return the address of the dispatcher."""
        return self._address.url

    def document(self, request: ClusterRequest) -> Document:
        """Return the answer to a request as a JSON object. Raises: as `ask`."""
        answer = self.ask(request)
        try:
            document: Document = json.loads(answer)
            return document
        except ValueError as error:
            raise RequestRefused(self.url, 404, f"{request.path} was answered with {_shown(answer)}") from error

    def ask(
        self, request: ClusterRequest, patient: bool = False, is_wanted: Callable[[], bool] = lambda: True
    ) -> bytes:
        """Return the answer to a request, which is repeated while the dispatcher begins anew.

        Args:
            patient: repeat it also where the dispatcher has never answered.
            is_wanted: asked between attempts, whether there is to be another one.

        Raises:
            ClusterUnreachable: the dispatcher does not answer.
            RequestRefused: it answers with an error.
        """
        failures = 0
        while True:
            try:
                status, content, place = self._exchange(request)
            except ssl.SSLCertVerificationError as error:
                remedy = "set rest.tls.certificate to the certificate of that cluster, or of who has signed it"
                raise ClusterUnreachable(self.url, f"its certificate is not trusted: {error}", remedy) from error
            except (OSError, http.client.HTTPException) as error:
                failure: RayflinkError = ClusterUnreachable(self.url, _cause(error, len(request.body)), _UNREACHABLE)
            else:
                if status < 300:
                    self._has_answered = True
                    return content
                failure = _refusal(self.url, status, content, place)
                if status != 503:
                    raise failure
            failures += 1
            if failures >= self._attempts or not (patient or self._has_answered) or not is_wanted():
                raise failure
            if failures == 3:
                log.warning("%s; asking again, up to %d times", failure, self._attempts)
            self._delay(min(FIRST_DELAY_S * 2 ** (failures - 1), self._delay_s), is_wanted)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection, _ in idle:
            connection.close()

    def _exchange(self, request: ClusterRequest) -> tuple[int, bytes, str]:
        """Return status, body and location of an answer; a connection that was closed meanwhile is replaced once."""
        connection = self._connection()
        is_new = connection.sock is None
        try:
            return self._exchange_over(connection, request)
        except (ConnectionError, http.client.BadStatusLine):
            if is_new:
                raise
        return self._exchange_over(self._new_connection(), request)

    def _exchange_over(
        self, connection: http.client.HTTPConnection, request: ClusterRequest
    ) -> tuple[int, bytes, str]:
        headers = {"Content-Type": "application/octet-stream"} if request.body else {}
        if self._address.token:
            headers["Authorization"] = f"Bearer {self._address.token}"
        try:
            if connection.sock is None:
                connection.connect()  # without Nagle's delay
            connection.sock.settimeout(request.wait_s + self._answer_s)
            try:
                connection.request(request.method, request.target, request.body, headers)
            except ConnectionError:
                if not request.body:
                    raise
                connection.sock.settimeout(1.0)  # a body that is refused is not read to its end: why, may be said
            response = connection.getresponse()
            content = response.read()
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            with self._lock:
                self._idle.append((connection, time.monotonic()))
        return response.status, content, response.headers.get("Location", "")

    def _connection(self) -> http.client.HTTPConnection:
        """Return a connection that is open and was used a moment ago, or a new one."""
        while True:
            with self._lock:
                if not self._idle:
                    return self._new_connection()
                connection, used_at = self._idle.pop()
            if time.monotonic() - used_at < IDLE_S:
                return connection
            connection.close()

    def _new_connection(self) -> http.client.HTTPConnection:
        if self._trust is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._connect_s, context=self._trust)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._connect_s)

    @staticmethod
    def _delay(seconds: float, is_wanted: Callable[[], bool]) -> None:
        until = time.monotonic() + seconds
        while is_wanted() and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, SLICE_S))


_UNREACHABLE = "see whether it runs (`rayflink cluster status`), and correct rest.address and rest.port"


def _trust(address: ClusterAddress) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.certificate)
        if address.identity is not None:
            certificate, key, password = address.identity
            context.load_cert_chain(certificate, key, password or "")
        return context
    except (OSError, ssl.SSLError) as error:
        remedy = "give the certificate of the cluster, or of who has signed it"
        raise ConfigError(options.REST_CERTIFICATE.key, str(address.certificate), "a file of certificates in PEM",
                          f"{remedy}: {error}") from error  # fmt: skip


def _cause(error: Exception, size: int) -> str:
    if isinstance(error, http.client.BadStatusLine) or isinstance(error, ConnectionError) and size > 1 << 20:
        about = f" during a request of {size >> 20} MiB" if size > 1 << 20 else ", as a server of another protocol does"
        return f"{described(error)}{about}"
    return described(error)


def _refusal(url: str, status: int, content: bytes, place: str) -> RequestRefused:
    if place:
        return RequestRefused(url, status, f"it refers to {place}, and no token is sent elsewhere")
    try:
        messages = json.loads(content)["errors"]
        return RequestRefused(url, status, *(str(message) for message in messages))
    except (ValueError, KeyError, TypeError):
        return RequestRefused(url, status, _shown(content))


def _shown(content: bytes) -> str:
    return repr(" ".join(content.decode("utf-8", "replace").split())[:SHOWN])
