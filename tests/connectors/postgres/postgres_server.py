"""A PostgreSQL server for the tests: Debian's package, on a socket in a temporary folder, with no privileges."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

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


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server; gives its connection string."""
    folder = programs()
    if folder is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    who = _unprivileged()
    home = Path(tempfile.mkdtemp(prefix="rfpg-", dir="/tmp"))
    if who:
        os.chown(home, who["user"], who["group"])
    environment = {**os.environ, "LC_ALL": "C", "TMPDIR": str(home)}
    run: dict[str, Any] = {"cwd": home, "env": environment, **who}
    try:
        initdb = [folder / "initdb", "-D", home / "data", "-U", "postgres", "-A", "trust", "--no-sync", "-E", "UTF8"]
        subprocess.run(initdb, check=True, capture_output=True, timeout=60, **run)
        options = [part for key, value in SETTINGS.items() for part in ("-c", f"{key}={value}")]
        with open(home / "log", "wb") as log:
            command = [folder / "postgres", "-D", home / "data", "-k", home, *options]
            server = subprocess.Popen(command, stdout=log, stderr=log, **run)
        try:
            dsn = f"host={home} dbname=postgres user=postgres"
            _wait_for(dsn, server, home / "log")
            yield dsn
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=30)
    finally:
        shutil.rmtree(home)


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
