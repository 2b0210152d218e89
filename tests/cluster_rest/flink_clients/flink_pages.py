"""Flink's own pages, from its jar, and the interface of a cluster behind them, under one origin."""

from __future__ import annotations

import mimetypes
import threading
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = "web/"
_PASSED_ON = ("content-type", "accept")


class FlinkPages(ThreadingHTTPServer):
    """Answers with a file of the jar where it has one, else with what the cluster answers.

    Args:
        jar: flink-dist.
        behind: address of the cluster.
    """

    daemon_threads = True

    def __init__(self, jar: Path, behind: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behind = behind
        self._jar = zipfile.ZipFile(jar)
        self._names = frozenset(self._jar.namelist())
        self._reading = threading.Lock()

    @property
    def url(self) -> str:
        """Return the address of the pages."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def file(self, path: str) -> bytes | None:
        """Return a file of the jar; None: it has none of this name."""
        name = f"{ROOT}{path.strip('/') or 'index.html'}"
        if name not in self._names or name.endswith("/"):
            return None
        with self._reading:
            return self._jar.read(name)


class _Handler(BaseHTTPRequestHandler):
    server: FlinkPages

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        content = self.server.file(path) if self.command == "GET" else None
        if content is not None:
            kind = mimetypes.guess_type(path)[0] or "text/html"
            self._send(200, kind, content)
            return
        body = self.rfile.read(int(self.headers.get("content-length", 0))) or None
        headers = {name: value for name, value in self.headers.items() if name.lower() in _PASSED_ON}
        request = urllib.request.Request(self.server.behind + self.path, body, headers, method=self.command)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                self._send(answer.status, answer.headers["content-type"], answer.read())
        except urllib.error.HTTPError as error:
            with error:
                self._send(error.code, error.headers["content-type"], error.read())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""


@contextmanager
def flink_pages(jar: Path, behind: str) -> Iterator[str]:
    """Serve the pages before a cluster, and yield their address."""
    server = FlinkPages(jar, behind)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
