"""A PostgreSQL server for the tests: Debian's package, on a socket in a temporary folder, with no privileges."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from benchmarks.servers.bound_process import start_bound

SETTINGS = {
    "listen_addresses": "", "fsync": "off", "full_page_writes": "off", "shared_buffers": "16MB", "autovacuum": "off",
    "max_connections": "40", "dynamic_shared_memory_type": "mmap",
}  # fmt: skip


def programs() -> Path | None:
    """The folder of initdb and postgres, the newest version; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3]))
    if found:
        return found[-1].parent
    there = shutil.which("initdb")
    return None if there is None else Path(there).parent


def _unprivileged() -> dict[str, Any]:
    """Arguments of Popen that give privileges up."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise RuntimeError("no user postgres or nobody to run the server")


class PostgresServer:
    """A server in a folder of its own.

    Args:
        settings: beside `SETTINGS`.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._programs, self._settings = programs(), {**SETTINGS, **settings}
        if self._programs is None:
            pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
        who = _unprivileged()
        self.home = Path(tempfile.mkdtemp(prefix="rfpg-", dir="/tmp"))
        if who:
            os.chown(self.home, who["user"], who["group"])
        environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(self.home)}
        self._run: dict[str, Any] = {"cwd": self.home, "env": environment, **who}
        self._server: subprocess.Popen[bytes] | None = None
        self.dsn = f"host={self.home} dbname=postgres user=postgres"
        data = ["-D", self.home / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run([self._programs / "initdb", *data], check=True, capture_output=True, timeout=60, **self._run)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [part for key, value in self._settings.items() for part in ("-c", f"{key}={value}")]
        with open(self.home / "log", "ab") as log:
            command = [self._programs / "postgres", "-D", self.home / "data", "-k", self.home, *options]
            self._server = start_bound(command, stdout=log, stderr=log, **self._run)
        _wait_for(self.dsn, self._server, self.home / "log")

    def end(self, number: int = signal.SIGINT) -> None:
        """End it by a signal: SIGINT as an administrator does, SIGQUIT at once, which loses what is not in the log."""
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(number)
            server.wait(timeout=30)

    def kill(self) -> None:
        """End all of its processes with signal 9, as a machine does that loses its power."""
        server, self._server = self._server, None
        if server is not None:
            processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            server.wait(timeout=30)
            psutil.wait_procs(processes, timeout=30)

    def remove(self) -> None:
        """End it and delete its files."""
        self.end(signal.SIGQUIT)
        shutil.rmtree(self.home)


@contextmanager
def running_server(**settings: str) -> Iterator[PostgresServer]:
    """Start a server with some settings."""
    server = PostgresServer(settings)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server; gives its connection string."""
    with running_server() as server:
        yield server.dsn


def _wait_for(dsn: str, server: subprocess.Popen[bytes], log: Path) -> None:
    import psycopg

    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(dsn, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {log.read_text()}") from None
            time.sleep(0.05)
