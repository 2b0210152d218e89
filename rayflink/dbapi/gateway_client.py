"""Statements that a SQL gateway runs, of rayflink or of Flink, over its REST API.

Source: Flink's documentation, "REST Endpoint" of the SQL gateway (version 2 of the API).
"""

from __future__ import annotations

import json
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, cast

from rayflink.common.types import RowKind

from .exceptions import DatabaseError, InterfaceError, InternalError, OperationalError, ProgrammingError
from .gateway_values import Read, reader_of, type_of
from .statements import Column, Follow

if TYPE_CHECKING:
    import urllib3

__all__ = ["Gateway", "GatewayClient", "GatewayStatement"]

_VERSION = "/v2"
_MOST_WAIT_S, _FIRST_WAIT_S = 0.5, 0.01
_HEARTBEAT_S, _LAST_CALLS_S = 60.0, 1.0
HEARTBEAT = "heartbeat of a SQL gateway's session"
_CONNECTIONS = 4
"""Connections that are held open: of fetches, and of what goes on beside them."""
_MOST_SHOWN = 4000
"""Characters of a gateway's error that are shown."""
_FAILURES_OF_JOBS = ("JobExecutionError", "JobFailed", "org.apache.flink.runtime.client.JobExecutionException",
                     "org.apache.flink.runtime.JobException")  # fmt: skip
"""Classes of errors of gateways, of rayflink and of Flink: a job was started, and failed."""
_CANCELLED = "the statement was cancelled while it was waited for"
Json = Mapping[str, object]


@dataclass(frozen=True)
class Gateway:
    """The address of a SQL gateway, and how it is reached.

    >>> Gateway("https://flink.example.org:8083", token="secret")
    Gateway(url='https://flink.example.org:8083', timeout_s=60.0, ca_file=None)

    Args:
        url: http://HOST:PORT or https://HOST:PORT.
        token: that a gateway of rayflink asks for beyond its own machine; None: it asks for none.
        timeout_s: seconds in which an answer has to come.
        ca_file: certificates (PEM) that sign that of the gateway; None: those of the system.

    Raises:
        InterfaceError: the URL is none, or no request can bring the token.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise InterfaceError(f"found the URL {self.url!r}, expected http://HOST:PORT or https://HOST:PORT")
        if self.token is not None and not self.token.isprintable():
            problem = "found a token with line ends or other characters that no header has"
            raise InterfaceError(f"{problem}; of a file, pass Path(...).read_text().strip()")


class GatewayClient:
    """A session at a gateway.

    Args:
        gateway: where it is opened.
        options: of the session.

    Raises:
        InterfaceError: urllib3 is not installed.
        OperationalError: the gateway cannot be reached, or refuses.
    """

    def __init__(self, gateway: Gateway, options: Mapping[str, str]) -> None:
        self._url, self._headers = gateway.url.rstrip("/"), {"Content-Type": "application/json"}
        if gateway.token is not None:
            self._headers["Authorization"] = f"Bearer {gateway.token}"
        self._pool = _pool(gateway)
        self._session = ""
        opened = self.request("POST", "/sessions", {"properties": dict(options)})
        if "sessionHandle" not in opened:
            raise self._no_gateway(f"opened no session: {str(opened):.80}")
        self._session = f"/sessions/{opened['sessionHandle']}"
        self._is_closed = threading.Event()
        self._later: _Later = queue.SimpleQueue()
        weakref.finalize(self, self._later.put, None)  # a dropped client does not keep its session alive
        threading.Thread(target=_beat, args=(weakref.ref(self), self._later), name=HEARTBEAT, daemon=True).start()

    def run(self, statement: str, follow: Follow | None = None) -> GatewayStatement:
        """Begin a statement, and wait until it has rows or has ended."""
        answer = self.request("POST", f"{self._session}/statements", {"statement": statement})
        operation = f"{self._session}/operations/{answer['operationHandle']}"
        running = GatewayStatement(self, operation)
        if follow is not None:
            follow(running)
        running.wait()
        return running

    def close(self) -> None:
        """Close the session; the gateway ends its queries."""
        if self._session:
            self._is_closed.set()
            self._later.put(None)
            session, self._session = self._session, ""
            try:
                self.request("DELETE", session)
            except DatabaseError:  # the gateway is gone, or has closed the session already
                pass
            self._pool.clear()

    def request(self, method: str, path: str, body: Json | None = None) -> Json:
        """Send a request, and return the answer.

        Raises:
            OperationalError: the gateway cannot be reached, or refuses the caller.
            ProgrammingError: it does not take the request.
            DatabaseError: the statement failed.
            InternalError: the answer is no JSON.
        """
        import urllib3

        data = None if body is None else json.dumps(body)
        url = path if path.startswith("http") else f"{self._url}{_VERSION}{path}"
        try:
            answer = self._pool.request(method, url, body=data, headers=self._headers, retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise OperationalError(f"the SQL gateway at {self._url} cannot be reached: {error}") from error
        try:
            parsed = json.loads(answer.data or b"{}", parse_float=Decimal)
        except ValueError as error:
            raise self._no_gateway(f"answered with status {answer.status} and no JSON") from error
        if not isinstance(parsed, dict):
            raise self._no_gateway(f"answered with status {answer.status} and no object of JSON")
        if answer.status >= 400:
            raise _error_of(answer.status, parsed, self._url)
        return cast("Json", parsed)

    def _no_gateway(self, problem: str) -> InternalError:
        return InternalError(f"{self._url} {problem}; is it a SQL gateway?")

    def next_results(self, path: str) -> tuple[Json, str | None]:
        """Return an answer with results and the path of the next one; None: it is the last."""
        answer = self.request("GET", path)
        following = answer.get("nextResultUri")
        if not following:
            return answer, None
        return answer, self._url + str(following) if str(following).startswith("/") else str(following)

    def wait(self, seconds: float) -> None:
        """Wait, or until the session is closed."""
        self._is_closed.wait(seconds)

    def call_later(self, call: Callable[[], None]) -> None:
        """Let the thread of the heartbeats make a call: the garbage collector asks, which must not wait for anything.

        It may run in any thread, such as one that serves the gateway.
        """
        self._later.put(call)

    def send_heartbeat(self) -> None:
        """Tell the gateway that the session is still wanted."""
        with suppress(DatabaseError):  # the next statement will say so
            self.request("POST", f"{self._session}/heartbeat")


_Later = queue.SimpleQueue[Callable[[], None] | None]
"""Calls that wait for the thread of the heartbeats; None: it ends. Its `put` is safe in a finalizer, unlike a lock."""


def _beat(client: weakref.ref[GatewayClient], later: _Later) -> None:
    """Send heartbeats, and make the calls that wait, until a session is closed or its client is gone.

    Calls that come a moment after that are made too: the garbage collector drops a client before its statements.
    """
    timeout_s, is_ending = _HEARTBEAT_S, False
    while True:
        try:
            call = later.get(timeout=timeout_s)
        except queue.Empty:
            session = client()
            if session is None or is_ending:
                return
            session.send_heartbeat()
            del session
            continue
        if call is None:
            timeout_s, is_ending = _LAST_CALLS_S, True
        else:
            call()
        del call


class GatewayStatement:
    """A statement that runs at a gateway.

    Args:
        client: with the session.
        operation: path of the statement.

    Attributes:
        columns: of its rows; (): it gives none.
        job_id: of the job that it started; None: it started none.
        is_query: whether its rows come from a job.
    """

    def __init__(self, client: GatewayClient, operation: str) -> None:
        self._client, self._operation = client, operation
        self._is_cancelled, self._is_ended = threading.Event(), False
        self.job_id: str | None = None
        self.columns: Sequence[Column] = ()
        self.is_query = False
        self._first: Json = {}
        self._next: str | None = None

    def wait(self) -> None:
        """Wait until it has rows or has ended.

        Raises:
            DatabaseError: it failed, or was cancelled.
        """
        try:
            answer, self._next = self._ready(f"{self._operation}/result/0?rowFormat=JSON")
        except DatabaseError as error:
            if self._is_cancelled.is_set():
                raise OperationalError(_CANCELLED) from error
            raise
        if self._is_cancelled.is_set():
            raise OperationalError(_CANCELLED)
        self.job_id = None if answer.get("jobID") is None else str(answer["jobID"])
        self._first = cast("Json", answer.get("results", {}))
        described = cast("list[Json]", self._first.get("columns", []))
        self.is_query = bool(answer.get("isQueryResult"))
        is_insert = self.job_id is not None and not self.is_query
        if answer.get("resultKind") != "SUCCESS" and not is_insert:
            self.columns = [Column(str(part["name"]), type_of(cast("Json", part["logicalType"]))) for part in described]

    def rows(self) -> Iterator[tuple[RowKind, tuple[object, ...]]]:
        readers = [reader_of(column.type) for column in self.columns]
        results = self._first
        end: Callable[[], None] = self._end
        try:
            while True:
                if self.columns:
                    yield from _rows(cast("list[Json]", results.get("data", [])), readers)
                if self._next is None or self._is_cancelled.is_set():
                    break
                answer, self._next = self._ready(self._next)
                results = cast("Json", answer.get("results", {}))
        except GeneratorExit:  # the rows are wanted no more, often as the garbage collector says
            end = partial(self._client.call_later, self._end)
            raise
        except DatabaseError:
            if not self._is_cancelled.is_set():
                raise
        finally:
            end()

    def cancel(self) -> None:
        if not self._is_cancelled.is_set():
            self._is_cancelled.set()
            self._end()

    def _end(self) -> None:
        """Let the gateway forget the statement, which ends its query."""
        if not self._is_ended:
            self._is_ended = True
            try:
                self._client.request("DELETE", f"{self._operation}/close")
            except DatabaseError:  # the session is closed, or the gateway is gone
                return

    def _ready(self, path: str) -> tuple[Json, str | None]:
        """Return the next answer with results, waiting longer each time that there are none yet."""
        seconds = _FIRST_WAIT_S
        while True:
            answer, following = self._client.next_results(path)
            is_empty = not cast("Json", answer.get("results") or {}).get("data")
            if answer.get("resultType") == "EOS" or following is None:
                return answer, None
            if answer.get("resultType") == "PAYLOAD" and not (is_empty and self.job_id is not None):
                return answer, following
            if self._is_cancelled.is_set():
                return answer, None
            path = following
            self._client.wait(seconds)
            seconds = min(2 * seconds, _MOST_WAIT_S)


def _rows(data: list[Json], readers: Sequence[Read]) -> Iterator[tuple[RowKind, tuple[object, ...]]]:
    for row in data:
        fields = cast("list[object]", row["fields"])
        values = tuple(read(value) for read, value in zip(readers, fields, strict=True))
        yield RowKind[str(row.get("kind", "INSERT"))], values


def _error_of(status: int, answer: Json, url: str) -> DatabaseError:
    lines = [str(line) for line in cast("list[object]", answer.get("errors", []))]
    message = _last_cause("\n".join(lines)) or f"status {status}"
    if status in (401, 403):
        remedy = "pass Gateway(url, token=...)"
        return OperationalError(f"the SQL gateway at {url} refuses the request: {message}; {remedy}")
    if status == 404:
        return OperationalError(f"the SQL gateway at {url} does not know the session or statement: {message}")
    is_failure_of_job = any(f"Caused by: {name}" in line for line in lines for name in _FAILURES_OF_JOBS)
    return OperationalError(message) if is_failure_of_job else ProgrammingError(message)


def _last_cause(trace: str) -> str:
    """Return what a Java stack trace says in the end, without its frames."""
    causes = [line.strip() for line in trace.splitlines() if "Caused by: " in line]
    if causes:
        text = causes[-1].split("Caused by: ", 1)[1]
        name, _, message = text.partition(": ")
        return (message or name)[:_MOST_SHOWN]
    lines = [line for line in trace.splitlines() if not line.lstrip().startswith(("at ", "... "))]
    return "\n".join(lines).strip()[:_MOST_SHOWN]


def _pool(gateway: Gateway) -> urllib3.PoolManager:
    try:
        import urllib3
    except ImportError as error:
        problem = "a connection to a SQL gateway requires urllib3, which is not installed"
        raise InterfaceError(f"{problem}; pip install 'rayflink[dbapi]'") from error
    if gateway.ca_file is None:
        return urllib3.PoolManager(maxsize=_CONNECTIONS, timeout=gateway.timeout_s)
    return urllib3.PoolManager(maxsize=_CONNECTIONS, timeout=gateway.timeout_s, ca_certs=gateway.ca_file)
