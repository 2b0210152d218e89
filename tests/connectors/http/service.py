"""An HTTP service on loopback that does what its script says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Service:
    """Keeps the bodies of requests; `answers` are the next status codes, and 200 after them.

    A status of 0 ends the connection without an answer; -200 keeps the body and then does so.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.answers: list[int] = []
        self.refuses = lambda body: False
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.lock = threading.Lock()
        self.is_away = False


@contextmanager
def http_service() -> Iterator[Service]:
    """Start a service."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 10

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            with service.lock:
                status = 0 if service.is_away else service.answers.pop(0) if service.answers else 200
                if status in (200, -200) and service.refuses(body):
                    status = 422
                if status in (200, -200):
                    service.bodies.append(body)
                service.headers.append(dict(self.headers))
            if status <= 0:
                self.close_connection = True
                return
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"no" if status >= 400 else b"ok")

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    service.url = f"http://127.0.0.1:{server.server_port}/in"
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
