"""`rayflink sql-gateway`: the server for Flink's SQL client and JDBC driver, in this process or in the background."""

from __future__ import annotations

import argparse
import json
import signal
import ssl
import sys
import threading
import urllib.request
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.gateway.sql_gateway import SqlGateway, server_settings
from rayflink.launch.background_server import own_server

from .background import Background, write_private
from .given_options import configuration_of, of_command_line
from .script import FAILED, OK

BACKGROUND = Background("SQL gateway", "sql_gateway")
ASK_S = 5.0


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
        write_private(Path(chosen.state_file), json.dumps(asdict(own_server(gateway.url))))
    print(f"SQL gateway listens on {gateway.url}", flush=True)
    stopped.wait()
    gateway.stop()
    print("SQL gateway stopped", flush=True)
    return OK


def start(chosen: argparse.Namespace) -> int:
    """Start the gateway in the background and return the exit code, once it listens."""
    server_settings(configuration_of(chosen))  # reports what is wrong here and not in a log
    if (running := BACKGROUND.running()) is not None:
        print(f"rayflink: SQL gateway {running.pid} listens on {running.url} already; stop it first", file=sys.stderr)
        return FAILED
    local = ["--local"] if chosen.local else []
    started = BACKGROUND.start(["sql-gateway", "run", *local], of_command_line(chosen).to_dict())
    if started is None:
        return FAILED
    print(f"SQL gateway {started.pid} listens on {started.url}; its log is {BACKGROUND.log_path}")
    return OK


def stop(chosen: argparse.Namespace) -> int:
    """Stop the gateway of the background and return the exit code, once it has ended."""
    running = BACKGROUND.running()
    if running is None:
        print("rayflink: no SQL gateway runs here; `rayflink sql-gateway start` starts one", file=sys.stderr)
        return FAILED
    if not BACKGROUND.stop(running):
        return FAILED
    print(f"SQL gateway {running.pid} stopped")
    return OK


def status(chosen: argparse.Namespace) -> int:
    """Show the gateway of the background, and return the exit code: 0 where it runs."""
    running = BACKGROUND.running()
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


__all__ = ["run", "start", "status", "stop"]
