"""What a job in the program's own process has besides its tasks: its rows, its restarts and its loggers."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rayflink.common.options import registry as options
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.text_output.logs import show_logs
from rayflink.connectors.collected import RowBlock
from rayflink.graph.job_graph import JobGraph


class LocalRows(list[RowBlock]):
    """Rows that have been collected in this process and not been drawn."""

    def put(self, block: RowBlock) -> None:
        """Keep rows."""
        self.append(block)

    def flush(self) -> None:
        """They are here."""

    def taken(self) -> list[RowBlock]:
        """All of them, once."""
        blocks = list(self)
        self.clear()
        return blocks


def without_restarts(graph: JobGraph) -> JobGraph:
    """The job, to end with its first failure unless its options say how it restarts: somebody looks at a local run."""
    if any(key.startswith("restart-strategy") for key in graph.configuration):
        return graph
    return replace(graph, configuration={**graph.configuration, options.RESTART_STRATEGY.key: "none"})


def show_logs_as_set(config: Mapping[str, Any]) -> None:
    """Let loggers have the levels that the options of a job say, where they say any.

    Raises:
        ConfigError: one is no level.
    """
    levels = LogLevels.of(config)
    if options.LOG_LEVEL.key in config or levels.loggers:
        levels.apply()
        show_logs()


def tell_unasked(job: str) -> None:
    """Say that nobody has let a job run to its end."""
    of_client = "get_job_execution_result().result() of the client, or execute() instead of execute_async()"
    remedy = f"call execute_sql(...).wait() of an INSERT, or {of_client}"
    why = "a local job runs while somebody waits for it"
    print(f"job {job!r} did not run to its end: {why}; {remedy}", file=sys.stderr)


def sleep(woken: threading.Event, milliseconds: float) -> None:
    """Wait so long, or until woken."""
    if milliseconds > 0:
        woken.wait(milliseconds / 1000)
    woken.clear()


__all__ = ["LocalRows", "show_logs_as_set", "sleep", "tell_unasked", "without_restarts"]
