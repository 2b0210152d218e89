"""An S3 server outside of the tests' process, whose threads wait while deltalake works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SERVER = """
import sys
from tests.state.storage.s3_server import s3_server
with s3_server() as options:
    print(options["s3.endpoint"], flush=True)
    sys.stdin.read()
"""


@contextmanager
def s3_in_another_process() -> Iterator[dict[str, str]]:
    """Run moto's server with an empty bucket; yield the options that lead to it."""
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            endpoint = process.stdout.readline().strip()
            keys = {"s3.access-key": "test", "s3.secret-key": "test", "s3.path.style.access": "true"}
            yield {"s3.endpoint": endpoint, **keys}
        finally:
            process.stdin.close()
            process.wait(20)
