"""A source that takes the requests of webhooks: it runs a small HTTP server beside its reader."""

from __future__ import annotations

import hmac
import socket
import ssl
import threading
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, TypeAlias

from rayflink.common.connector_base.malformed_records import MalformedMessage
from rayflink.common.connector_base.message_decoder import MessageDecoder
from rayflink.common.connector_base.source import END, PENDING, Boundedness, Polled, ReaderContext, SourceReader
from rayflink.common.data_types.type_base import TypeInformation
from rayflink.common.functions.type_variables import Output
from rayflink.common.metrics.metric_group import Counter, MetricGroup
from rayflink.common.records.batches import Batch
from rayflink.common.serialization import DeserializationSchema

from ..single_split import SingleSplitSource
from .http_client import HttpError

_Connection: TypeAlias = socket.socket | tuple[bytes, socket.socket]
IDLE_POLL_MS = 5
_BLOCK_BYTES = 64 << 10
SPARE_CONNECTIONS = 64
"""Connections beyond those whose requests may wait: the next one is closed."""


@dataclass(frozen=True)
class HttpEndpoint:
    """The address and the limits of a webhook's server.

    Args:
        port: on the node of the reader; 0: a free one, which the gauge `port` shows.
        host: the address to listen on; "0.0.0.0": all of the node's.
        path: of the requests.
        token: that requests have to bring as `Authorization: Bearer ...`; None: none.
        most_bytes: of a request.
        most_waiting: requests that are accepted and not answered yet; each takes a thread.
        certificate: paths of a certificate and its key, in PEM; None: without TLS.

    Raises:
        HttpError: a value is out of range.
    """

    port: int
    host: str = "127.0.0.1"
    path: str = "/"
    token: str | None = field(default=None, repr=False)
    most_bytes: int = 16 << 20
    most_waiting: int = 1_000
    certificate: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65535 or not self.path.startswith("/") or self.most_bytes < 1 or self.most_waiting < 1:
            raise HttpError(f"{self!r} is no endpoint", "use a port in [0, 65535], a path from / and limits above 0")


class HttpSource(SingleSplitSource[Output]):
    """Emits the bodies of the POST requests that it is sent, from one reader.

    The answer is 204 once the request is safe: with `waits_for_checkpoint`, when the checkpoint that contains it is
    complete, and each record arrives at least once, if clients repeat requests that were not answered. Without, it is
    given at once, and what was not in a checkpoint is lost with the reader (at most once).

    Other answers: 400 for a body that cannot be decoded, 401 without the token, 404 on another path, 413 for a body
    that is too large, 503 with Retry-After while too many requests wait. 400 and 503 are counted in the metrics
    `numRecordsInErrors` and `numRequestsRejected`.

    >>> from rayflink.common.serialization import SimpleStringSchema
    >>> HttpSource(HttpEndpoint(port=8080, path="/orders"), SimpleStringSchema()).endpoint.path
    '/orders'

    Args:
        endpoint: where to listen.
        schema: decodes a body.
        separator: divides a body into several messages; None: it is one.
        waits_for_checkpoint: for each answer; jobs without checkpoints then never answer, and time out.
        timeout_s: for the checkpoint, after which the answer is 503.
    """

    def __init__(
        self,
        endpoint: HttpEndpoint,
        schema: DeserializationSchema,
        separator: bytes | None = None,
        waits_for_checkpoint: bool = True,
        timeout_s: float = 300.0,
    ) -> None:
        self.endpoint, self.schema, self.separator = endpoint, schema, separator
        self.waits_for_checkpoint, self.timeout_s = waits_for_checkpoint, timeout_s

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    @property
    def produced_type(self) -> TypeInformation | None:
        return self.schema.get_produced_type()

    def first_split(self) -> HttpSplit:
        return HttpSplit()

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return HttpReader(self, ctx)


@dataclass(frozen=True)
class HttpSplit:
    """The one stream of requests; `taken` of them had been read by this reader."""

    taken: int = 0


@dataclass(slots=True)
class _Request:
    """The records of a request, whose thread waits until it is safe, or abandoned."""

    records: Batch
    ended: threading.Event = field(default_factory=threading.Event)
    is_safe: bool = False
    number: int = 0

    def end(self, is_safe: bool) -> None:
        self.is_safe = is_safe
        self.ended.set()


@dataclass(frozen=True, slots=True)
class WebhookStatistics:
    """The requests whose senders wait for an answer, and those that were taken."""

    waiting: int
    """Requests that the reader has not taken yet."""
    unsafe: int
    """Requests that were taken and wait for their checkpoint."""
    taken: int
    """Requests that were taken so far."""


class WebhookQueue:
    """The requests between the threads of the server and the reader.

    Args:
        most_waiting: requests that are not safe yet.
        waits_for_checkpoint: a request is safe once it is confirmed; else, once it is taken.
    """

    def __init__(self, most_waiting: int, waits_for_checkpoint: bool) -> None:
        self._most_waiting, self._waits_for_checkpoint = most_waiting, waits_for_checkpoint
        self._waiting: deque[_Request] = deque()
        self._unsafe: deque[_Request] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        self.taken = 0
        """Requests that were taken."""

    def add(self, records: Batch) -> _Request | None:
        """Add a request; return None where there is no room."""
        request = _Request(records)
        with self._lock:
            if self._is_closed or len(self._waiting) + len(self._unsafe) >= self._most_waiting:
                return None
            self._waiting.append(request)
        return request

    def take(self) -> _Request | None:
        """Return the oldest request that was not taken, or None."""
        with self._lock:
            if not self._waiting:
                return None
            request = self._waiting.popleft()
            self.taken += 1
            request.number = self.taken
            if self._waits_for_checkpoint:
                self._unsafe.append(request)
        return request

    def confirm(self, number: int) -> None:
        """End the waits for all requests up to a number: they are safe."""
        with self._lock:
            while self._unsafe and self._unsafe[0].number <= number:
                self._unsafe.popleft().end(True)

    def statistics(self) -> WebhookStatistics:
        """Return the present sizes."""
        with self._lock:
            return WebhookStatistics(len(self._waiting), len(self._unsafe), self.taken)

    def close(self) -> None:
        """End all waits: nothing that waits is safe."""
        with self._lock:
            self._is_closed = True
            for request in (*self._unsafe, *self._waiting):
                request.end(False)

    def __len__(self) -> int:
        return len(self._waiting)


class HttpReader(SourceReader):
    """Runs the server, and gives the records of its requests."""

    def __init__(self, source: HttpSource[Output], ctx: ReaderContext) -> None:
        self._source, self._ctx = source, ctx
        self._queue = WebhookQueue(source.endpoint.most_waiting, source.waits_for_checkpoint)
        self._metrics = ctx.metrics or MetricGroup()
        self._rest: tuple[Batch, int] | None = None
        self._split: HttpSplit | None = None
        self._server: ThreadingHTTPServer | None = None
        self._no_more = False

    def add_splits(self, splits: list[HttpSplit]) -> None:
        self._split = splits[-1]
        if self._server is None:
            self._server = self._listen()
            port = self._server.server_port
            self._metrics.gauge("port", lambda: port)
            self._metrics.gauge("pendingRequests", lambda: len(self._queue))
            threading.Thread(target=self._server.serve_forever, args=(0.05,), name="http-source", daemon=True).start()

    def _listen(self) -> ThreadingHTTPServer:
        source = self._source
        decoder = MessageDecoder(source.schema, None, self._ctx.metrics)
        rejected = self._metrics.counter("numRequestsRejected")
        kind = type("Handler", (_Handler,), {
            "source": source, "queue": self._queue, "decoder": decoder, "rejected": rejected, "lock": threading.Lock(),
        })  # fmt: skip
        endpoint = source.endpoint
        try:
            server = _Server((endpoint.host, endpoint.port), kind)
            server.free = threading.Semaphore(endpoint.most_waiting + SPARE_CONNECTIONS)
        except OSError as error:
            problem = f"the webhook's server cannot listen on {endpoint.host}:{endpoint.port} ({error})"
            raise HttpError(problem, "choose a free port and an address of this node") from error
        if endpoint.certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*endpoint.certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        return server

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def needs_split(self) -> bool:
        return self._split is None and not self._no_more

    def poll(self, max_records: int) -> Polled:
        if self._rest is None:
            request = self._queue.take()
            if request is None:
                return END if self._split is None and self._no_more else PENDING
            self._rest = (request.records, 0)
        records, start = self._rest
        behind = min(start + max_records, len(records))
        self._rest = None if behind == len(records) else (records, behind)
        return records.slice(start, behind)

    def next_poll_ms(self) -> int | None:
        return None if self._server is None else self._ctx.now_ms() + IDLE_POLL_MS

    def snapshot_state(self) -> list[HttpSplit]:
        whole = self._queue.taken - (self._rest is not None)
        return [] if self._split is None else [HttpSplit(whole)]

    def notify_checkpoint_complete(self, checkpoint_id: int, splits: Sequence[HttpSplit]) -> None:
        for split in splits:
            self._queue.confirm(split.taken)

    def close(self) -> None:
        self._queue.close()
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    free = threading.Semaphore(SPARE_CONNECTIONS)
    """Connections for which there is a thread."""

    def process_request(self, request: _Connection, client_address: object) -> None:
        """Answer a connection in a thread, if there is one."""
        if self.free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: _Connection, client_address: object) -> None:
        """Answer a connection."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.free.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """Leave a client alone that went away."""


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    source: ClassVar[HttpSource[object]]
    queue: ClassVar[WebhookQueue]
    decoder: ClassVar[MessageDecoder]
    lock: ClassVar[threading.Lock]
    rejected: ClassVar[Counter]
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self) -> None:
        """Take a request."""
        endpoint = self.source.endpoint
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > endpoint.most_bytes:
            self._answer(411 if not length.isdecimal() else 413)
            return
        if self.path.partition("?")[0] != endpoint.path:
            self._refuse(404, int(length))
        elif endpoint.token is not None and not self._has_token(endpoint.token):
            self._refuse(401, int(length))
        else:
            self._take(self.rfile.read(int(length)))

    def _refuse(self, status: int, length: int) -> None:
        """Answer a request whose body is not wanted, and pass over the body without holding it in memory."""
        self._answer(status)
        while length > 0:
            passed = len(self.rfile.read(min(length, _BLOCK_BYTES)))
            length -= passed or length

    def _has_token(self, token: str) -> bool:
        authorization = self.headers.get("Authorization", "").encode("utf-8", "replace")
        return hmac.compare_digest(authorization, f"Bearer {token}".encode())

    def _take(self, body: bytes) -> None:
        separator = self.source.separator
        messages = [body] if separator is None else [part for part in body.split(separator) if part]
        try:
            with self.lock:
                records = self.decoder.decode(messages, lambda index: f"request to {self.path}, message {index + 1}")
        except MalformedMessage as error:
            self._answer(400, f"message cannot be decoded: {error.reason}")
            return
        request = self.queue.add(records.batch)
        if request is None:
            self.rejected.inc()
            self._answer(503)
            return
        if self.source.waits_for_checkpoint:
            request.ended.wait(self.source.timeout_s)
            self._answer(204 if request.is_safe else 503)
        else:
            self._answer(204)

    def _answer(self, status: int, problem: str = "") -> None:
        data = problem.encode("utf-8", "replace")
        self.send_response(status)
        if status == 503:
            self.send_header("Retry-After", "1")
        self.send_header("Content-Length", str(len(data)))
        if status in (411, 413):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log no line a request."""


__all__ = ["HttpEndpoint", "HttpSource"]
