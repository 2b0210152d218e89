"""A front of fake-gcs-server, which answers reads as Google does but takes writes by the JSON API alone.

Clients that write by the XML API, as ours does, talk to the front: it hands a write on as an upload of the JSON API,
with its condition and its metadata, and collects the parts of an upload in memory until that is completed. Everything
else goes through as it is.
"""

from __future__ import annotations

import json
import re
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, quote, unquote, urlsplit

_PASSED_ON = ("content-type", "content-encoding", "cache-control")
_LEFT_OUT = ("connection", "transfer-encoding", "content-length", "date")
_PART_NUMBER = re.compile(rb"<PartNumber>(\d+)</PartNumber>")


@dataclass
class _Upload:
    """An upload in parts that is not complete."""

    headers: dict[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


class _Front(ThreadingHTTPServer):
    daemon_threads, block_on_close = True, False
    request_queue_size = 64
    backend_port = 0

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.uploads: dict[str, _Upload] = {}

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a client that goes while it is answered was killed by a test."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Front

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""

    def handle_request_of_any_method(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        is_object = parts.path.count("/") >= 2 and not parts.path.startswith(("/storage/", "/upload/", "/batch/"))
        if is_object and self.command == "POST" and "uploads" in query:
            upload_id = secrets.token_hex(16)
            self.server.uploads[upload_id] = _Upload(self._attributes())
            self._answer_xml("InitiateMultipartUploadResult", f"<UploadId>{upload_id}</UploadId>")
        elif is_object and "uploadId" in query:
            self._continue(parts.path, query, body)
        elif is_object and self.command == "PUT":
            self._write(parts.path, body, self._attributes())
        else:
            self._pass_on(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request_of_any_method

    def _continue(self, path: str, query: Mapping[str, list[str]], body: bytes) -> None:
        """Take a part of an upload, complete it or abort it."""
        [upload_id] = query["uploadId"]
        upload = self.server.uploads.get(upload_id)
        if upload is None:
            self._answer(404, {}, b"<Error><Code>NoSuchUpload</Code></Error>")
        elif self.command == "PUT":
            upload.parts[int(query["partNumber"][0])] = body
            self._answer(200, {"ETag": f'"{secrets.token_hex(8)}"'})
        elif self.command == "DELETE":
            del self.server.uploads[upload_id]
            self._answer(204, {})
        else:
            whole = b"".join(upload.parts[int(number)] for number in _PART_NUMBER.findall(body))
            answer, content = self._uploaded(path, whole, upload.headers)
            del self.server.uploads[upload_id]
            if answer.status == 200:
                self._answer_xml("CompleteMultipartUploadResult", f"<ETag>{json.loads(content)['etag']}</ETag>")
            else:
                self._answer(answer.status, {}, content)

    def _write(self, path: str, body: bytes, headers: Mapping[str, str]) -> None:
        answer, content = self._uploaded(path, body, headers)
        if answer.status == 200:
            written = json.loads(content)
            self._answer(200, {"ETag": f'"{written["etag"]}"', "x-goog-generation": str(written["generation"])})
        else:
            self._answer(answer.status, {}, content)

    def _uploaded(self, path: str, body: bytes, headers: Mapping[str, str]) -> tuple[HTTPResponse, bytes]:
        """Write an object by the JSON API; return its answer."""
        bucket, _, key = path.lstrip("/").partition("/")
        query = f"uploadType=media&name={quote(unquote(key), safe='')}"
        condition = self.headers.get("x-goog-if-generation-match")
        if condition is not None:
            query += f"&ifGenerationMatch={condition}"
        return self._ask("POST", f"/upload/storage/v1/b/{bucket}/o?{query}", body, headers)

    def _attributes(self) -> dict[str, str]:
        """Return the headers of a request that belong to the object."""
        return {
            name: value for name, value in self.headers.items()
            if name.lower() in _PASSED_ON or name.lower().startswith("x-goog-meta-")
        }  # fmt: skip

    def _pass_on(self, body: bytes) -> None:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in ("host", *_LEFT_OUT)}
        answer, content = self._ask(self.command, self.path, body, headers)
        kept = {name: value for name, value in answer.getheaders() if name.lower() not in _LEFT_OUT}
        length = answer.getheader("content-length") if self.command == "HEAD" else None
        self._answer(answer.status, kept, content, length)

    def _ask(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[HTTPResponse, bytes]:
        connection = HTTPConnection("127.0.0.1", self.server.backend_port, timeout=30)
        try:
            host = {"Host": f"127.0.0.1:{self.server.server_port}"}
            connection.request(method, path, body, {**headers, **host})
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def _answer_xml(self, element: str, content: str) -> None:
        self._answer(200, {"Content-Type": "application/xml"}, f"<{element}>{content}</{element}>".encode())

    def _answer(self, status: int, headers: Mapping[str, str], body: bytes = b"", length: str | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def google_front() -> Iterator[_Front]:
    """Run a front in a thread; the port of the server behind it is set before the first request."""
    front = _Front()
    thread = threading.Thread(target=front.serve_forever, kwargs={"poll_interval": 0.02}, name="google-front")
    thread.start()
    try:
        yield front
    finally:
        front.shutdown()
        thread.join()
        front.server_close()
