"""An S3 server in the tests' own process: moto's, on a free port of the loopback."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

BUCKET = "checkpoints"


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run a server with an empty bucket; yield the options that lead to it.

    Requests are worked one at a time: moto looks whether an object exists and then writes it, without a lock.
    """
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        def log_request(self, *_: Any) -> None:
            """Log nothing."""

    server = make_server(
        "127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False, request_handler=Quiet
    )
    thread = threading.Thread(target=server.serve_forever, name="s3-server")
    thread.start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        make_bucket = urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")
        urllib.request.urlopen(make_bucket, timeout=10).close()
        yield {
            "s3.endpoint": endpoint,
            "s3.access-key": "test",
            "s3.secret-key": "test",
            "s3.path.style.access": "true",
            "s3.region": "us-east-1",
        }
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
