"""A RabbitMQ server for the tests: Debian's package, on free loopback ports, in a temporary folder.

Erlang's port mapper is started beside it, on loopback too, so none stays behind. The scripts of the package are passed
by: they change the user, and start the mapper as a daemon.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pika

from benchmarks.servers.bound_process import start_bound
from benchmarks.servers.kafka_broker import free_ports

STARTS_WITHIN_S = 60
SCRIPT = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PASSWORD = "s3cret"
logging.getLogger("pika").setLevel(logging.CRITICAL)
_SETTINGS = """
listeners.tcp.1 = 127.0.0.1:{port}
distribution.listener.interface = 127.0.0.1
vm_memory_high_watermark.absolute = 256MB
disk_free_limit.absolute = 1MB
log.file = false
log.console = false
load_definitions = {folder}/definitions.json
"""


def is_installed() -> bool:
    return SCRIPT.exists() and shutil.which("epmd") is not None


def definitions() -> dict[str, Any]:
    """The users: one may do all, one nothing, one only publish and consume; and a virtual host beside the usual one."""
    users = {"all": ".*", "none": "", "some": "only-some"}
    return {
        "users": [{"name": name, "password": PASSWORD, "tags": ""} for name in users],
        "vhosts": [{"name": "/"}, {"name": "other"}],
        "permissions": [
            {"user": name, "vhost": "/", "configure": what, "write": what, "read": what} for name, what in users.items()
        ],
    }


class RabbitProcess:
    """A server that may be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.port, self._distribution, self._mapper_port = free_ports(3)
        self._folder = folder
        self._names = count()
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "definitions.json").write_text(json.dumps(definitions()))
        (folder / "rabbit.conf").write_text(_SETTINGS.format(port=self.port, folder=folder))
        (folder / "plugins").write_text("[].")
        mapper = ["epmd", "-address", "127.0.0.1", "-port", self._mapper_port]
        self._mapper = start_bound(list(map(str, mapper)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.uri = f"amqp://all:{PASSWORD}@127.0.0.1:{self.port}/%2F?heartbeat=0"
        self.start()
        self._connection = pika.BlockingConnection(pika.URLParameters(self.uri))

    def start(self) -> None:
        folder = self._folder
        settings = {
            **os.environ, "HOME": folder,
            "RABBITMQ_NODENAME": f"rayflink{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": folder / "data", "RABBITMQ_LOG_BASE": folder / "log",
            "RABBITMQ_CONFIG_FILE": folder / "rabbit.conf", "RABBITMQ_ENABLED_PLUGINS_FILE": folder / "plugins",
            "RABBITMQ_DIST_PORT": self._distribution, "ERL_EPMD_PORT": self._mapper_port,
            "ERL_EPMD_ADDRESS": "127.0.0.1", "RABBITMQ_ALLOW_INPUT": 1,
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-start_epmd false +S 1:1 +sbwt none",
        }  # fmt: skip
        self._process = start_bound(
            [SCRIPT, "-noinput"], cwd=folder, env={name: str(value) for name, value in settings.items()},
            stdout=(folder / "output").open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        deadline = time.monotonic() + STARTS_WITHIN_S
        while True:
            try:
                pika.BlockingConnection(pika.URLParameters(self.uri)).close()
                return
            except pika.exceptions.AMQPError:
                output = (folder / "output").read_text(errors="replace")[-2_000:]
                assert self._process.poll() is None, f"the server has ended: {output}"
                assert time.monotonic() < deadline, f"the server does not answer: {output}"
                time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server; Erlang's processes are one process, which has replaced the script."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def end(self) -> None:
        self.kill()
        self._mapper.kill()
        self._mapper.wait()

    # the outside program that writes and reads

    def new_name(self) -> str:
        return f"queue-{next(self._names)}"

    @contextmanager
    def channel(self) -> Iterator[Any]:
        """A channel, on a connection that is opened again where it was lost."""
        try:
            channel = self._connection.channel()
        except pika.exceptions.AMQPError:
            self._connection = pika.BlockingConnection(pika.URLParameters(self.uri))
            channel = self._connection.channel()
        yield channel
        if channel.is_open:
            channel.close()

    def declare(self, name: str | None = None, **arguments: Any) -> str:
        name = name or self.new_name()
        with self.channel() as channel:
            channel.queue_declare(name, **{"durable": True, **arguments})
        return name

    def put(self, queue: str, numbers: Sequence[object], with_ids: bool = True) -> None:
        """Publish numbers, durably, in one transaction; the correlation id is the number."""
        with self.channel() as channel:
            channel.tx_select()
            for number in numbers:
                properties = pika.BasicProperties(correlation_id=f"id {number}" if with_ids else None, delivery_mode=2)
                channel.basic_publish("", queue, str(number).encode(), properties)
            channel.tx_commit()

    def take(self, queue: str) -> list[tuple[str, Any]]:
        """Remove and return all messages: body and properties."""
        found = []
        with self.channel() as channel:
            while True:
                method, properties, body = channel.basic_get(queue, auto_ack=True)
                if method is None:
                    return found
                found.append((body.decode(), properties))

    def size(self, queue: str) -> int:
        """The messages that are ready, or -1 where there is no queue."""
        with self.channel() as channel:
            try:
                return int(channel.queue_declare(queue, passive=True).method.message_count)
            except pika.exceptions.ChannelClosedByBroker:
                return -1


class Proxy:
    """Passes connections on to the server, until it cuts them."""

    def __init__(self, port: int) -> None:
        self._port, self._pairs = port, []
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy._pass(self.request)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        try:
            server = socket.create_connection(("127.0.0.1", self._port))
        except OSError:
            client.close()
            return
        self._pairs.append((client, server))
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()

    def cut(self) -> int:
        """Cut all connections; return how many there were."""
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for end in pair:
                with suppress(OSError):  # it is gone
                    end.shutdown(socket.SHUT_RDWR)
        return len(pairs)

    def close(self) -> None:
        self.cut()
        self._server.shutdown()
        self._server.server_close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        return
    finally:
        for end in (source, target):
            with suppress(OSError):  # it is gone
                end.shutdown(socket.SHUT_RDWR)
