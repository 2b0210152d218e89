"""A collector of OpenTelemetry in this process, which takes OTLP over HTTP and decodes it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector(ThreadingHTTPServer):
    """Remembers the requests it was sent: (path, request)."""

    daemon_threads = True

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any]] = []
        super().__init__(("127.0.0.1", 0), _Receive)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def roots(self) -> dict[str, str]:
        """Name -> id of the trace, of all spans without a parent."""
        return {
            span.name: span.trace_id.hex()
            for _, request in list(self.requests)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
            if not span.parent_span_id
        }


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append((self.path, ExportTraceServiceRequest.FromString(body)))  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def collecting() -> Iterator[Collector]:
    """Listen until the block ends."""
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
