"""A cluster whose control service keeps what it knows in Redis, and whose nodes can be lost and started again."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from benchmarks.servers.bound_process import start_bound
from rayflink.actors.on_ray.driver.ray_connection import answers
from tests.cluster.head import ROOT, free_ports
from tests.cluster.watching import eventually

PATIENCE_S = 120
"""Seconds that nodes and processes wait for the control service; Ray's default is 60."""


@dataclass
class ReturningCluster:
    """Nodes on loopback, `head` and `worker`, each with a mark in the environment of its processes.

    Args:
        folder: of logs and of Ray's files; a head that comes back has a new one of these, as on a new machine.
        redis: host:port.
    """

    folder: Path
    redis: str
    password: str
    _starts: int = 0
    _port: int = field(default_factory=lambda: free_ports(1)[0])
    _token: str = field(default_factory=lambda: secrets.token_hex(32))
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The control service's, which stays."""
        return f"127.0.0.1:{self._port}"

    @property
    def environment(self) -> dict[str, str]:
        """Of clients of the cluster."""
        own = {"PYTHONPATH": str(ROOT), "RAY_ADDRESS": self.address, "RAY_AUTH_MODE": "token"}
        return {**os.environ, **own, "RAY_AUTH_TOKEN": self._token}

    def start_head(self) -> None:
        """Start the head node, which has no CPU for tasks, and wait until its control service answers."""
        self._starts += 1
        options = ["--head", f"--port={self._port}", f"--temp-dir={self.folder}/{self._starts}",
                   "--include-dashboard=false", "--num-cpus=0", f"--redis-password={self.password}"]  # fmt: skip
        storage = {"RAY_REDIS_ADDRESS": self.redis, "RAY_external_storage_namespace": "returning"}
        self._start("head", options, storage)
        assert eventually(lambda: answers(self.address), 60), self.log("head")

    def start_worker(self) -> None:
        """Start the worker node, which has two slots."""
        self._start("worker", [f"--address={self.address}", "--num-cpus=2"], {})

    def lose(self, name: str) -> None:
        """Kill every process of a node by signal 9, and see that they are gone."""
        lost = self.processes(name)
        for process in lost:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._running.pop(name).wait()
        _, alive = psutil.wait_procs(lost, timeout=30)
        assert not alive

    def processes(self, name: str, title: str = "") -> list[psutil.Process]:
        """The processes of a node whose command contains `title`."""
        there = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get("TMPDIR") == str(self.folder / name) and title in " ".join(process.cmdline()):
                    there.append(process)
        return there

    def rayflink(self, *arguments: str) -> str:
        """Standard output of a command of rayflink in a terminal of its own."""
        command = [sys.executable, "-m", "rayflink", *arguments]
        ended = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=90)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def log(self, name: str) -> str:
        """What a node has printed."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def end(self) -> None:
        """End all nodes."""
        for name in list(self._running):
            self.lose(name)

    def _start(self, name: str, options: list[str], variables: dict[str, str]) -> None:
        temporary = self.folder / name
        temporary.mkdir(exist_ok=True)
        environment = {**self.environment, **variables, "TMPDIR": str(temporary)}
        environment["RAY_gcs_rpc_server_reconnect_timeout_s"] = str(PATIENCE_S)
        del environment["RAY_ADDRESS"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats",
                   "--node-ip-address=127.0.0.1", f"--memory={2 << 30}", f"--object-store-memory={100 << 20}"]
        with open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=subprocess.STDOUT)
        self._running[name] = process


@contextmanager
def returning_cluster() -> Iterator[ReturningCluster]:
    """A Redis server with a password, and a cluster that has no node yet."""
    folder = Path(tempfile.mkdtemp(prefix="back-", dir=os.environ["RAY_TMPDIR"]))
    (port,), password = free_ports(1), secrets.token_hex(16)
    settings = {"port": port, "bind": "127.0.0.1", "appendonly": "yes", "appendfsync": "always", "save": "",
                "dir": folder, "requirepass": password, "maxmemory": "64mb"}  # fmt: skip
    command = ["redis-server", *(word for name, value in settings.items() for word in (f"--{name}", str(value)))]
    redis = start_bound(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    cluster = ReturningCluster(folder, f"127.0.0.1:{port}", password)
    try:
        assert eventually(lambda: answers(cluster.redis), 20), "redis-server does not answer"
        yield cluster
    finally:
        cluster.end()
        redis.kill()
        redis.wait()
        shutil.rmtree(folder, ignore_errors=True)
