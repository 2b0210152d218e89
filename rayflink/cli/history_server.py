"""`rayflink history-server`: the pages and requests of jobs that have ended, in this process or in the background."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import threading
from dataclasses import asdict
from pathlib import Path

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.cluster.history_server import HistoryServer
from rayflink.common.options import registry as options
from rayflink.launch.background_server import own_server

from .background import Background, write_private
from .given_options import configuration_of, of_command_line
from .script import FAILED, OK

BACKGROUND = Background("history server", "history_server")


def run(chosen: argparse.Namespace) -> int:
    """Run the history server until SIGTERM or Ctrl-C, and return the exit code."""
    configuration = configuration_of(chosen)
    apply_log_levels({**configuration.to_dict(), options.LOG_LEVEL.key: configuration.get(options.LOG_LEVEL) or "INFO"})
    server = HistoryServer(configuration)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server.start()
    if chosen.state_file:
        token = configuration.get(options.REST_TOKEN) or ""
        write_private(Path(chosen.state_file), json.dumps(asdict(own_server(server.url, token))))
    print(f"history server listens on {server.url}", flush=True)
    stopped.wait()
    server.stop()
    print("history server stopped", flush=True)
    return OK


def start(chosen: argparse.Namespace) -> int:
    """Start the history server in the background and return the exit code, once it listens."""
    HistoryServer(configuration_of(chosen))  # reports what is wrong here and not in a log
    if (running := BACKGROUND.running()) is not None:
        print(f"rayflink: history server {running.pid} listens on {running.url} already; stop it first",
              file=sys.stderr)  # fmt: skip
        return FAILED
    started = BACKGROUND.start(["history-server", "run"], of_command_line(chosen).to_dict())
    if started is None:
        return FAILED
    print(f"history server {started.pid} listens on {started.url}; its log is {BACKGROUND.log_path}")
    return OK


def stop(chosen: argparse.Namespace) -> int:
    """Stop the history server of the background and return the exit code, once it has ended."""
    running = BACKGROUND.running()
    if running is None:
        print("rayflink: no history server runs here; `rayflink history-server start` starts one", file=sys.stderr)
        return FAILED
    if not BACKGROUND.stop(running):
        return FAILED
    print(f"history server {running.pid} stopped")
    return OK


def status(chosen: argparse.Namespace) -> int:
    """Show the history server of the background, and return the exit code: 0 where it runs."""
    running = BACKGROUND.running()
    if running is None:
        print("no history server runs in the background")
        return FAILED
    print(f"history server {running.pid} listens on {running.url}")
    return OK


__all__ = ["run", "start", "status", "stop"]
