"""A cluster as users have it, by `ray start` on loopback, with its dashboard and with token authentication."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.cluster.dashboard_packages import python_with_dashboard
from tests.cluster.watching import eventually

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass
class Head:
    """A running head node."""

    python: str
    environment: Mapping[str, str]
    address: str
    dashboard: str
    folder: Path
    """Of Ray and of all its processes, whose TMPDIR it is."""

    @property
    def discovery(self) -> Path:
        """Where Prometheus finds the metrics."""
        return self.folder / "prom_metrics_service_discovery.json"

    def ray(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A command of Ray in a terminal of its own."""
        return self._run("ray.scripts.scripts", *arguments, **more)

    def rayflink(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """A command of rayflink in a terminal of its own."""
        return self._run("rayflink.cli.main", *arguments, **{"RAY_ADDRESS": self.address, **more})

    def processes(self, *parts: str) -> list[psutil.Process]:
        """The processes of the cluster whose command contains all of that."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                if process.environ().get("TMPDIR") != str(self.folder) or process.status() == psutil.STATUS_ZOMBIE:
                    continue
                command = " ".join(process.cmdline())
                if all(part in command for part in parts):
                    found.append(process)
        return found

    def _run(self, module: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [self.python, "-m", module, *arguments]
        environment = {**self.environment, **more}
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=90)


@contextmanager
def head_node(logs: Path, cpus: int = 2, workers: int = 0, memory: int = 2 << 30, **more: str) -> Iterator[Head]:
    """A head node, and as many worker nodes.

    Args:
        logs: folder for what they print.
        cpus: of each node.
        workers: nodes that join it.
        memory: bytes for actors on each node.
        more: variables of their environment.
    """
    python, token = python_with_dashboard(), secrets.token_hex(32)
    port, dashboard, agent = free_ports(3)
    folder = tempfile.mkdtemp(prefix="head-", dir=os.environ["RAY_TMPDIR"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more, "TMPDIR": folder}
    environment.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=token)
    environment.pop("RAY_ADDRESS", None)
    node = [
        python, "-m", "ray.scripts.scripts", "start", "--block", "--disable-usage-stats", "--node-ip-address=127.0.0.1",
        f"--num-cpus={cpus}", f"--memory={memory}", f"--object-store-memory={100 << 20}",
    ]  # fmt: skip
    head = [
        "--head", f"--temp-dir={folder}", f"--port={port}", "--dashboard-host=127.0.0.1",
        f"--dashboard-port={dashboard}", f"--dashboard-agent-listen-port={agent}",
    ]  # fmt: skip
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *options: str) -> None:
        with open(logs / name, "wb") as log:
            command = [*node, *options]
            running.append(subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT))

    try:
        start("head.log", *head)
        url = f"http://127.0.0.1:{dashboard}"
        assert eventually(lambda: answers(url, token), within_s=60), (logs / "head.log").read_text()
        for number in range(workers):
            (own,) = free_ports(1)
            start(f"worker-{number}.log", f"--address=127.0.0.1:{port}", f"--dashboard-agent-listen-port={own}")
        yield Head(python, environment, f"127.0.0.1:{port}", url, Path(folder))
    finally:
        for process in reversed(running):
            process.send_signal(signal.SIGTERM)  # with --block it ends the node's processes
        try:
            for process in running:
                process.wait(timeout=60)
        finally:
            for process in running:
                process.kill()
        shutil.rmtree(folder, ignore_errors=True)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def answers(dashboard: str, token: str) -> bool:
    """Whether a dashboard is there."""
    asked = urllib.request.Request(f"{dashboard}/api/version", headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(asked, timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
