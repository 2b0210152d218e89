"""`rayflink history-server`: the pages and requests of jobs that have ended, in this process or in the background."""

from __future__ import annotations

import argparse

from rayflink.actors.local.local_runs import apply_log_levels
from rayflink.cluster.history_server import HistoryServer
from rayflink.common.options import registry as options

from .background import Background
from .given_options import configuration_of, of_command_line
from .script import FAILED, OK

BACKGROUND = Background("history server", "history_server")


def run(chosen: argparse.Namespace) -> int:
    """Run the history server until SIGTERM or Ctrl-C, and return the exit code."""
    configuration = configuration_of(chosen)
    apply_log_levels({**configuration.to_dict(), options.LOG_LEVEL.key: configuration.get(options.LOG_LEVEL) or "INFO"})
    server = HistoryServer(configuration)
    return BACKGROUND.serve(server, chosen.state_file, configuration.get(options.REST_TOKEN) or "")


def start(chosen: argparse.Namespace) -> int:
    """Start the history server in the background and return the exit code, once it listens."""
    HistoryServer(configuration_of(chosen))  # reports what is wrong here and not in a log
    return BACKGROUND.start_once(["history-server", "run"], of_command_line(chosen).to_dict())


def stop(chosen: argparse.Namespace) -> int:
    """Stop the history server of the background and return the exit code, once it has ended."""
    return BACKGROUND.stop_running()


def status(chosen: argparse.Namespace) -> int:
    """Show the history server of the background, and return the exit code: 0 where it runs."""
    return FAILED if BACKGROUND.show() is None else OK


__all__ = ["run", "start", "status", "stop"]
