"""`rayflink sql-gateway`: the server for Flink's SQL client and JDBC driver, in this process or in the background."""

from __future__ import annotations

import argparse
import json
import ssl
import urllib.request
from typing import Any

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.gateway.sql_gateway import SqlGateway, server_settings

from .background import Background
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
    return BACKGROUND.serve(gateway, chosen.state_file)


def start(chosen: argparse.Namespace) -> int:
    """Start the gateway in the background and return the exit code, once it listens."""
    server_settings(configuration_of(chosen))  # reports what is wrong here and not in a log
    local = ["--local"] if chosen.local else []
    return BACKGROUND.start_once(["sql-gateway", "run", *local], of_command_line(chosen).to_dict())


def stop(chosen: argparse.Namespace) -> int:
    """Stop the gateway of the background and return the exit code, once it has ended."""
    return BACKGROUND.stop_running()


def status(chosen: argparse.Namespace) -> int:
    """Show the gateway of the background, and return the exit code: 0 where it runs."""
    running = BACKGROUND.show()
    if running is None:
        return FAILED
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
