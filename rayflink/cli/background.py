"""Servers in the background: one of each kind for a user of this machine, found by a file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from rayflink.common.options.option_sources import OPTIONS_VARIABLE, as_words
from rayflink.launch.background_server import BackgroundServer, own_server, read_server, state_folder

from .script import FAILED, OK

__all__ = ["Background", "write_private"]

_POLL_S = 0.05


class Server(Protocol):
    """Answers clients from its start until it is stopped."""

    @property
    def url(self) -> str:
        """Return the address on which it listens, once it has started."""

    def start(self) -> None:
        """Listen, and return."""

    def stop(self) -> None:
        """End, and return."""


@dataclass(frozen=True)
class Background:
    """The server of one kind.

    Args:
        title: as in "SQL gateway".
        name: of its files, without ending.
        ready_s: seconds that `start` waits until it listens.
        stop_s: seconds that `stop` waits for its end.
    """

    title: str
    name: str
    ready_s: float = 60.0
    stop_s: float = 30.0

    @property
    def state_path(self) -> Path:
        """Return the file that says where it is."""
        return state_folder() / f"{self.name}.json"

    @property
    def log_path(self) -> Path:
        """Return the file of its log."""
        return state_folder() / f"{self.name}.log"

    def running(self) -> BackgroundServer | None:
        """Return the server; None: there is none."""
        return read_server(self.state_path)

    def serve(self, server: Server, state_file: str | None, token: str = "") -> int:
        """Run a server in this process until SIGTERM or Ctrl-C, and return the exit code.

        Args:
            server: starts, listens and stops.
            state_file: in which others find it; None: they do not.
            token: that its clients send; "": none.
        """
        stopped = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stopped.set())
        server.start()
        if state_file:
            write_private(Path(state_file), json.dumps(asdict(own_server(server.url, token))))
        print(f"{self.title} listens on {server.url}", flush=True)
        stopped.wait()
        server.stop()
        print(f"{self.title} stopped", flush=True)
        return OK

    def start_once(self, arguments: Sequence[str], settings: Mapping[str, str]) -> int:
        """Start the server with `start`, say where it listens, and return the exit code; 1 where one runs already."""
        if (running := self.running()) is not None:
            problem = f"{self.title} {running.pid} listens on {running.url} already"
            print(f"rayflink: {problem}; stop it first", file=sys.stderr)
            return FAILED
        started = self.start(arguments, settings)
        if started is None:
            return FAILED
        print(f"{self.title} {started.pid} listens on {started.url}; its log is {self.log_path}")
        return OK

    def stop_running(self) -> int:
        """Stop the server of the background and return the exit code, once it has ended."""
        running = self.running()
        if running is None:
            command = f"rayflink {self.command} start"
            print(f"rayflink: no {self.title} runs here; `{command}` starts one", file=sys.stderr)
            return FAILED
        if not self.stop(running):
            return FAILED
        print(f"{self.title} {running.pid} stopped")
        return OK

    def show(self) -> BackgroundServer | None:
        """Print where the server of the background listens, and return it; None: there is none."""
        running = self.running()
        if running is None:
            print(f"no {self.title} runs in the background")
        else:
            print(f"{self.title} {running.pid} listens on {running.url}")
        return running

    @property
    def command(self) -> str:
        """Return the command of `rayflink` that has to do with it."""
        return self.name.replace("_", "-")

    def start(self, arguments: Sequence[str], settings: Mapping[str, str]) -> BackgroundServer | None:
        """Start `rayflink ARGUMENTS --state-file FILE`, and return it once it listens.

        Args:
            arguments: a command that writes the file.
            settings: options that it gets by the environment, as a command line can be read by others.

        Returns: None, with a message, where it has ended instead, or does not listen in time and is ended.
        """
        state_folder().mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "rayflink", *arguments, "--state-file", str(self.state_path)]
        words = " ".join([os.environ.get(OPTIONS_VARIABLE, ""), as_words(settings)])
        with self.log_path.open("wb") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, OPTIONS_VARIABLE: words.strip()},
            )
        _wait_for(lambda: self.running() is not None or process.poll() is not None, self.ready_s)
        server = self.running()
        if server is not None:
            return server
        problem = f"the {self.title} ended with code {process.poll()} instead of starting"
        if process.poll() is None:
            process.kill()
            process.wait()
            problem = f"the {self.title} did not listen within {self.ready_s:g} s, and was ended"
        lines = self.log_path.read_text(errors="replace").splitlines()[-10:]
        remark = f"its log {self.log_path} ends with:" if lines else f"its log {self.log_path} is empty"
        print("\n".join([f"rayflink: {problem}; {remark}", *lines]), file=sys.stderr)
        return None

    def stop(self, server: BackgroundServer) -> bool:
        """Stop it, and return whether it has ended; a message says so where it has not."""
        if server.pid:
            os.kill(server.pid, signal.SIGTERM)
            if not _wait_for(lambda: not server.is_alive, self.stop_s):
                problem = f"{self.title} {server.pid} has not ended within {self.stop_s:.0f} s"
                print(f"rayflink: {problem}; end it by kill", file=sys.stderr)
                return False
        self.state_path.unlink(missing_ok=True)
        return True

    def note(self, server: BackgroundServer) -> None:
        """Write the file that says where it is."""
        write_private(self.state_path, json.dumps(asdict(server)))


def write_private(path: Path, text: str) -> None:
    """Write a file that others find whole or not at all, and that only its user can read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    part.replace(path)


def _wait_for(condition: Callable[[], bool], limit_s: float) -> bool:
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(_POLL_S)
    return True
