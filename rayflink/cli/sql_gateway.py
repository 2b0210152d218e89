"""`rayflink sql-gateway`: the server for Flink's SQL client and JDBC driver, in this process or in the background."""

from __future__ import annotations

import argparse
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.gateway.sql_gateway import SqlGateway, server_settings

from .given_options import configuration_of, of_command_line
from .script import FAILED, OK

READY_S = 60.0
"""Seconds that `start` waits until the gateway listens."""
STOP_S = 30.0
ASK_S = 5.0
_POLL_S = 0.05


@dataclass(frozen=True)
class _Running:
    """A gateway in the background, as its file says.

    Args:
        pid: of its process.
        begin: of that process, by which another process that gets its id is not taken for it.
        url: on which it listens.
    """

    pid: int
    begin: str
    url: str

    @property
    def is_alive(self) -> bool:
        """Return whether its process runs."""
        return _begin_of(self.pid) == self.begin


def run(chosen: argparse.Namespace) -> int:
    """Run the gateway until SIGTERM or Ctrl-C, and return the exit code."""
    configuration, own_options = configuration_of(chosen), of_command_line(chosen)
    if chosen.local:
        own_options.set(options.TARGET, "local")
    configuration.add_all(own_options)
    apply_log_levels({**configuration.to_dict(), options.LOG_LEVEL.key: configuration.get(options.LOG_LEVEL) or "INFO"})
    gateway = SqlGateway(configuration, own_options.to_dict())
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    gateway.start()
    if chosen.state_file:
        state = {"pid": os.getpid(), "begin": _begin_of(os.getpid()), "url": gateway.url}
        _write(Path(chosen.state_file), json.dumps(state))
    print(f"SQL gateway listens on {gateway.url}", flush=True)
    stopped.wait()
    gateway.stop()
    print("SQL gateway stopped", flush=True)
    return OK


def start(chosen: argparse.Namespace) -> int:
    """Start the gateway in the background and return the exit code, once it listens."""
    server_settings(configuration_of(chosen))  # reports what is wrong here and not in a log
    if (running := _running()) is not None:
        print(f"rayflink: SQL gateway {running.pid} listens on {running.url} already; stop it first", file=sys.stderr)
        return FAILED
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True)
    log_path, state_path = folder / "sql_gateway.log", _state_path()
    command = [sys.executable, "-m", "rayflink", "sql-gateway", "run", "--state-file", str(state_path)]
    command += [f"-D{pair}" for pair in chosen.options] + (["--local"] if chosen.local else [])
    with log_path.open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    _wait_for(lambda: _running() is not None or process.poll() is not None, READY_S)
    running = _running()
    if running is not None:
        print(f"SQL gateway {running.pid} listens on {running.url}; its log is {log_path}")
        return OK
    if process.poll() is None:
        process.kill()
    lines = log_path.read_text(errors="replace").splitlines()[-10:]
    print("\n".join(["rayflink: the SQL gateway did not start; its log ends with:", *lines]), file=sys.stderr)
    return FAILED


def stop(chosen: argparse.Namespace) -> int:
    """Stop the gateway of the background and return the exit code, once it has ended."""
    running = _running()
    if running is None:
        print("rayflink: no SQL gateway runs here; `rayflink sql-gateway start` starts one", file=sys.stderr)
        return FAILED
    os.kill(running.pid, signal.SIGTERM)
    if not _wait_for(lambda: not running.is_alive, STOP_S):
        problem = f"SQL gateway {running.pid} has not ended within {STOP_S:.0f} s"
        print(f"rayflink: {problem}; end it by kill", file=sys.stderr)
        return FAILED
    _state_path().unlink(missing_ok=True)
    print(f"SQL gateway {running.pid} stopped")
    return OK


def status(chosen: argparse.Namespace) -> int:
    """Show the gateway of the background, and return the exit code: 0 where it runs."""
    running = _running()
    if running is None:
        print("no SQL gateway runs in the background")
        return FAILED
    print(f"SQL gateway {running.pid} listens on {running.url}")
    for name, number in _figures(running.url, configuration_of(chosen)).items():
        print(f"  {name}: {json.dumps(number)}")
    return OK


def _figures(url: str, configuration: Configuration) -> dict[str, Any]:
    """Return what the gateway counts; a remark where it cannot be asked, as with another token than its own."""
    certificate, token = configuration.get(options.GATEWAY_CERTIFICATE), configuration.get(options.GATEWAY_TOKEN)
    trusted = ssl.create_default_context(cafile=certificate) if url.startswith("https:") else None
    request = urllib.request.Request(f"{url}/status", headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=ASK_S, context=trusted) as answer:
            figures: dict[str, Any] = json.load(answer)
            return figures
    except (OSError, ValueError) as error:
        return {"no figures": str(error)}


def _running() -> _Running | None:
    """Return the gateway of the background; None: there is none."""
    try:
        document = json.loads(_state_path().read_text())
        running = _Running(document["pid"], document["begin"], document["url"])
    except (OSError, ValueError, KeyError):
        return None
    return running if running.is_alive else None


def _folder() -> Path:
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "rayflink"


def _state_path() -> Path:
    return _folder() / "sql_gateway.json"


def _write(path: Path, text: str) -> None:
    """Write a file that others find whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(text)
    part.replace(path)


def _begin_of(pid: int) -> str:
    """Return when a process began; "" where there is none, or it has ended and is only still listed."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if fields[0] == "Z" else fields[19]
    except (OSError, IndexError):
        return ""


def _wait_for(condition: Callable[[], bool], limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True


__all__ = ["run", "start", "status", "stop"]
