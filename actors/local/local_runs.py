"""The parts of a local run other than its tasks: its rows, its restarts and its loggers."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from rayflink.common.options import registry as options
from rayflink.common.options.log_levels import LogLevels
from rayflink.common.options.option_values import LogFormat
from rayflink.common.text_output.logs import show_logs, write_json
from rayflink.connectors.collected import RowBlock
from rayflink.graph.job_graph import JobGraph

_YOUNG_OBJECTS = 50_000
"""The number of objects created since the last collection that starts a collection among these."""


class LocalRows(list[RowBlock]):
    """Rows that were collected in this process and not fetched yet."""

    def put(self, block: RowBlock) -> None:
        """Add rows."""
        self.append(block)

    def flush(self) -> None:
        """Do nothing: the rows are here already."""

    def taken(self) -> list[RowBlock]:
        """Return all rows, once."""
        blocks = list(self)
        self.clear()
        return blocks


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Look for cyclic garbage among many new objects at once, within the block; a threshold that is off stays off.

    A task makes millions of records, and frees most of them by their reference counts.
    """
    before = gc.get_threshold()
    if 0 < before[0] < _YOUNG_OBJECTS:
        gc.set_threshold(_YOUNG_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def without_restarts(graph: JobGraph) -> JobGraph:
    """Return the job without restarts unless its options configure them: a local run is watched by its user."""
    if any(key.startswith("restart-strategy") for key in graph.configuration):
        return graph
    return replace(graph, configuration={**graph.configuration, options.RESTART_STRATEGY.key: "none"})


def apply_log_levels(config: Mapping[str, Any]) -> None:
    """Set the levels of loggers and the form of their lines that the options of a job name.

    Raises:
        ConfigError: one is no level.
    """
    levels = LogLevels.of(config)
    if options.LOG_LEVEL.key in config or levels.loggers:
        levels.apply()
        show_logs()
    elif options.LOG_FORMAT.key in config:  # the levels stay those of `logging`
        write_json(levels.format is LogFormat.JSON)
        show_logs()


def warn_not_executed(job: str) -> None:
    """Print a warning that a local job did not run to its end because no caller waited for it."""
    of_client = "get_job_execution_result().result() of the client, or execute() instead of execute_async()"
    remedy = f"call execute_sql(...).wait() of an INSERT, or {of_client}"
    why = "a local job runs only while the program waits for it"
    print(f"job {job!r} did not run to its end: {why}; {remedy}", file=sys.stderr)


def sleep(woken: threading.Event, milliseconds: float) -> None:
    """Wait for some milliseconds, or until another thread sets the event."""
    if milliseconds > 0:
        woken.wait(milliseconds / 1000)
    woken.clear()


__all__ = ["LocalRows", "apply_log_levels", "fewer_collections", "sleep", "warn_not_executed", "without_restarts"]
