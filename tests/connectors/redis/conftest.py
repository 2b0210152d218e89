"""A Redis server for the tests: Debian's package, on a free loopback port, in a temporary folder."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from benchmarks.servers.bound_process import start_bound

redis = pytest.importorskip("redis")


STARTS_WITHIN_S = 60


class RedisProcess:
    """A server that writes each change to its disk before it answers, and may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._folder = folder
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self.start()
        self.client: Any = redis.Redis.from_url(self.url)

    def start(self) -> None:
        settings = {"port": self.port, "bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": "",
                    "dir": self._folder, "maxmemory": "64mb", "maxmemory-policy": "noeviction"}  # fmt: skip
        command = ["redis-server", *(word for name, value in settings.items() for word in (f"--{name}", str(value)))]
        self._process = start_bound(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + STARTS_WITHIN_S
        with redis.Redis.from_url(self.url) as client:
            while True:
                try:
                    client.ping()
                    return
                except redis.exceptions.ConnectionError:
                    assert time.monotonic() < deadline, "redis-server does not answer"
                    time.sleep(0.02)

    def kill(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def new_stream(self) -> str:
        return f"stream-{next(self._names)}"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisProcess]:
    if shutil.which("redis-server") is None:
        pytest.skip("Redis is not installed: apt-get install redis-server")
    with tempfile.TemporaryDirectory(prefix="rfredis-") as folder:
        server = RedisProcess(Path(folder))
        yield server
        server.client.close()
        server.kill()
