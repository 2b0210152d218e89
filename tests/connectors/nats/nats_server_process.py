"""A NATS server for the tests: Debian's package, on a free loopback port, with JetStream in a temporary folder."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import nats
import nkeys

from benchmarks.servers.bound_process import start_bound

STARTS_WITHIN_S = 60
_SETTINGS = """
server_name: "rayflink-test"
listen: "127.0.0.1:{port}"
max_payload: 65536
jetstream {{ store_dir: "{folder}", max_mem: 32MB, max_file: 256MB }}
accounts {{
  A: {{
    jetstream: enabled
    users: [
      {{ user: "job", password: "job" }}
      {{ user: "limited", password: "s3cret", permissions: {{ publish: ["none"], subscribe: ["_INBOX.>"] }} }}
      {{ nkey: "{key}" }}
    ]
  }}
  B: {{ users: [ {{ user: "plain", password: "plain" }} ] }}
}}
no_auth_user: "job"
{more}
"""


class NatsProcess:
    """A server that may be killed and started again.

    Args:
        more: settings in its file.
    """

    def __init__(self, folder: Path, more: str = "") -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.place = f"127.0.0.1:{self.port}"
        self.url = f"nats://{self.place}"
        seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
        self.nkey_seed, key = seed.decode(), nkeys.from_seed(seed).public_key.decode()
        self._settings = folder / "nats.conf"
        self._settings.write_text(_SETTINGS.format(port=self.port, folder=folder, more=more, key=key))
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        command = ["nats-server", "-c", self._settings]
        self._process = start_bound(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                    if connection.recv(4096).startswith(b"INFO"):
                        return
            except OSError:
                assert self._process.poll() is None, "nats-server has ended"
            assert time.monotonic() < deadline, "nats-server does not answer"
            time.sleep(0.02)

    def end(self, by: signal.Signals = signal.SIGKILL) -> None:
        assert self._process is not None
        self._process.send_signal(by)
        self._process.wait()

    def do(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """What `work` returns for a JetStream client."""

        async def run() -> Any:
            async with await nats.connect(self.url) as client:
                return await work(client.jetstream())

        return asyncio.run(run())

    def new_stream(self, **settings: Any) -> str:
        """The name of a new stream, whose subjects begin with it."""
        name = f"S{next(self._names)}"
        self.create(name, **settings)
        return name

    def create(self, name: str, **settings: Any) -> None:
        self.do(lambda streams: streams.add_stream(name=name, subjects=[f"{name}.>"], **settings))

    def publish(self, values: Sequence[object], subject: str) -> None:
        async def publish(streams: Any) -> None:
            for value in values:
                await streams.publish_async(subject, value if isinstance(value, bytes) else str(value).encode())
            await streams.publish_async_completed()

        self.do(publish)

    def values(self, stream: str) -> list[bytes]:
        """The data of all messages of a stream."""

        async def read(streams: Any) -> list[bytes]:
            total = (await streams.stream_info(stream)).state.messages
            found: list[bytes] = []
            if total:
                pull = await streams.pull_subscribe("", stream=stream)
                while len(found) < total:
                    batch = await pull.fetch(1_000)
                    found += [message.data for message in batch]
                    for message in batch:
                        await message.ack()
            return found

        return self.do(read)

    def size(self, stream: str) -> int:
        return self.do(lambda streams: streams.stream_info(stream)).state.messages
