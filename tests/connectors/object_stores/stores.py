"""Object stores in tests: moto's server for S3, with faults that a test chooses, and what is in the bucket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

BUCKET = "data"
Fault = Callable[[str, str], "tuple[int, str] | str | None"]
"""Method, path with query -> a status and an S3 error code to answer; "reset" or "lost": the connection ends before or
after the request is worked; "cut": it ends in the middle of the answer; None: nothing."""


@dataclass
class Server:
    """A server of S3's protocol in this process.

    Args:
        options: lead to it.
        latency_s: seconds that each request waits.
        requests: method and path of each, in order.
        fault: what goes wrong.
    """

    options: dict[str, str]
    latency_s: float = 0.0
    requests: list[str] = field(default_factory=list)
    fault: Fault | None = None
    verifier: Any = None

    def client(self) -> Any:
        """Return boto3's client, the outside verifier."""
        if self.verifier is None:
            import boto3

            self.verifier = boto3.client(
                "s3", endpoint_url=self.options["s3.endpoint"], region_name="us-east-1", aws_access_key_id="test",
                aws_secret_access_key="test",
            )  # fmt: skip
        return self.verifier

    def put(self, key: str, data: bytes) -> None:
        self.client().put_object(Bucket=BUCKET, Key=key, Body=data)

    def objects(self, prefix: str = "") -> dict[str, bytes]:
        """Return the content of each object."""
        client = self.client()
        found = client.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
        return {
            entry["Key"]: client.get_object(Bucket=BUCKET, Key=entry["Key"])["Body"].read() for entry in found
        }

    def uploads(self) -> list[str]:
        """Return the keys of uploads that are neither complete nor aborted."""
        return [upload["Key"] for upload in self.client().list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])]

    def date(self, key: str, moment: datetime) -> None:
        """Set the time at which the store believes an object to have been written."""
        from moto.s3.models import s3_backends

        for account in s3_backends.values():
            for backend in account.values():
                if BUCKET in backend.buckets:
                    backend.buckets[BUCKET].keys[key].last_modified = moment

    def empty(self) -> None:
        """Delete all objects and uploads, and forget faults and requests."""
        self.fault, self.latency_s = None, 0.0
        client = self.client()
        for upload in client.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []):
            client.abort_multipart_upload(Bucket=BUCKET, Key=upload["Key"], UploadId=upload["UploadId"])
        for key in self.objects():
            client.delete_object(Bucket=BUCKET, Key=key)
        self.requests.clear()


def _refused(start: Any, status: int, code: str) -> list[bytes]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>refused</Message></Error>".encode()
    start(f"{status} {code}", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def _cut(body: bytes) -> Iterator[bytes]:
    """Give half of an answer, then end the connection."""
    yield body[: len(body) // 2]
    raise ConnectionAbortedError("the connection is cut, as the test asks")


def _options(port: int) -> dict[str, str]:
    return {
        "s3.endpoint": f"http://127.0.0.1:{port}", "s3.access-key": "test", "s3.secret-key": "test",
        "s3.path.style.access": "true", "s3.region": "us-east-1",
    }  # fmt: skip


@contextmanager
def s3_store() -> Iterator[Server]:
    """Run moto's server with an empty bucket, on a free port of the loopback."""
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    application = DomainDispatcherApplication(create_backend_app)
    lock = threading.Lock()  # moto has no lock of its own

    class Handler(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_request(self, *_: Any) -> None:
            """Log nothing."""

        def log_error(self, *_: Any) -> None:
            """Log nothing: a client that goes is a fault that a test chooses."""

        def connection_dropped(self, error: BaseException, environ: Any = None) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

    def answer(environ: dict[str, Any], start: Any) -> Any:
        query = environ.get("QUERY_STRING", "")
        path = environ["PATH_INFO"] + (f"?{query}" if query else "")
        server.requests.append(f"{environ['REQUEST_METHOD']} {path}")
        if server.latency_s:
            time.sleep(server.latency_s)
        fault = server.fault(environ["REQUEST_METHOD"], path) if server.fault is not None else None
        if isinstance(fault, tuple):
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return _refused(start, *fault)
        if fault == "reset":
            raise ConnectionAbortedError("the connection is reset, as the test asks")
        status: list[Any] = []
        with lock:
            try:
                parts = list(application(environ, lambda *given: status.extend(given)))
            except KeyError:
                status.append("500")
        if status[0].startswith("500") and "uploadId=" in query:  # moto does not look whether the upload is there
            return _refused(start, 404, "NoSuchUpload")
        start(*status)
        if fault == "lost":
            raise ConnectionAbortedError("the answer is lost, as the test asks")
        return _cut(b"".join(parts)) if fault == "cut" else parts

    http = make_server("127.0.0.1", 0, answer, threaded=True, request_handler=Handler)
    http.daemon_threads, http.block_on_close = True, False  # clients keep their connections
    server = Server(_options(http.server_port))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, name="s3-server")
    thread.start()
    try:
        server.client().create_bucket(Bucket=BUCKET)
        yield server
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
