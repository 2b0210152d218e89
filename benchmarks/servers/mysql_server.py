"""A MariaDB server for the tests: Debian's package, on loopback in a temporary folder, with no privileges."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pymysql
import pytest

from benchmarks.servers.bound_process import start_bound

SETTINGS = {
    "bind-address": "127.0.0.1", "innodb-buffer-pool-size": "32M", "innodb-log-file-size": "8M",
    "key-buffer-size": "1M",
    "innodb-flush-log-at-trx-commit": "2", "performance-schema": "OFF", "max-connections": "60",
    "log-bin": "binlog", "binlog-format": "ROW", "binlog-row-metadata": "FULL", "server-id": "1", "sync-binlog": "0",
    "skip-name-resolve": "ON", "innodb-doublewrite": "OFF", "aria-pagecache-buffer-size": "1M",
}  # fmt: skip
_FOLDERS = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/bin", "/usr/local/sbin"])


def _program(name: str) -> str | None:
    return shutil.which(name, path=_FOLDERS)


class MySqlServer:
    """A server in a folder of its own, with a user `rayflink` who may do everything."""

    user, password = "rayflink", "secret"

    def __init__(self) -> None:
        install = _program("mariadb-install-db")
        if _program("mariadbd") is None or install is None:
            pytest.skip("MariaDB is not installed: apt-get install mariadb-server")
        self.home = Path(tempfile.mkdtemp(prefix="rfmy-", dir="/tmp"))
        (self.home / "data").mkdir()
        self._as: list[str] = []
        if os.geteuid() == 0:
            who = next(name for name in ("mysql", "nobody") if _has_user(name))
            found = pwd.getpwnam(who)
            for folder in (self.home, self.home / "data"):
                os.chown(folder, found.pw_uid, found.pw_gid)
            self._as = [f"--user={who}"]
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._server: subprocess.Popen[bytes] | None = None
        self._run: dict[str, Any] = {"cwd": self.home, "env": {**os.environ, "TMPDIR": str(self.home)}}
        data = [f"--datadir={self.home}/data", "--auth-root-authentication-method=normal", "--skip-test-db"]
        command = [install, "--no-defaults", *data, *self._as]
        subprocess.run(command, check=True, capture_output=True, timeout=120, **self._run)

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [f"--{key}={value}" for key, value in SETTINGS.items()]
        place = [f"--datadir={self.home}/data", f"--socket={self.home}/sock", f"--port={self.port}"]
        program = _program("mariadbd")
        assert program is not None
        with open(self.home / "log", "ab") as log:
            command = [program, "--no-defaults", *self._as, *place, f"--pid-file={self.home}/pid", *options]
            self._server = start_bound(command, stdout=log, stderr=log, **self._run)
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                root = pymysql.connect(unix_socket=f"{self.home}/sock", user="root", autocommit=True)
                break
            except pymysql.err.OperationalError:
                assert self._server is not None
                if self._server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the server did not start: {(self.home / 'log').read_text()}") from None
                time.sleep(0.05)
        with root, root.cursor() as cursor:
            cursor.execute(f"CREATE USER IF NOT EXISTS {self.user}@'%' IDENTIFIED BY '{self.password}'")
            cursor.execute(f"GRANT ALL ON *.* TO {self.user}@'%' WITH GRANT OPTION")

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal: SIGTERM as an administrator does, SIGKILL as a machine that loses its power."""
        server, self._server = self._server, None
        if server is not None:
            server.send_signal(number)
            server.wait(timeout=60)

    def remove(self) -> None:
        """End it and delete its files."""
        self.end(signal.SIGKILL)
        shutil.rmtree(self.home)

    def connect(self, **options: Any) -> pymysql.Connection[Any]:
        """Return a connection to the database `shop`."""
        settings = {"database": "shop", "autocommit": True, "charset": "utf8mb4", **options}
        return pymysql.connect(host="127.0.0.1", port=self.port, user=self.user, password=self.password, **settings)

    def execute(self, *statements: str, **options: Any) -> None:
        with self.connect(**options) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextmanager
def running_server() -> Iterator[MySqlServer]:
    """Start a server."""
    server = MySqlServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()
