"""Text for people: tables of a job's vertices, metrics and failures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import wrap
from typing import Any

from rayflink.common.job_report import VERTEX_COLUMNS, late_records, moment, records_in, vertex_row, watermark
from rayflink.common.live_table import Progress
from rayflink.common.metric_report import USER_METRIC_COLUMNS, identified, user_metrics
from rayflink.common.text_table import table

Status = Mapping[str, Any]
FAILURE_WIDTH = 100
"""Characters of a line of a failure."""


def vertex_table(vertices: Iterable[Status]) -> str:
    """Per vertex of a job: subtasks, records in, out and late, records a second, and where the watermark stands.

    Records in are those received, or read where the vertex is a source. Late are those a window dropped.
    """
    return table(VERTEX_COLUMNS, [vertex_row(vertex) for vertex in vertices])


def exceptions_table(exceptions: Iterable[Status]) -> str:
    """The failures of a job, oldest first and told whole, in lines of about `FAILURE_WIDTH` characters."""
    rows = []
    for entry in exceptions:
        lines = wrap(entry["exception"], FAILURE_WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
        rows.append((moment(entry["timestamp"]), entry["task"], lines[0]))
        rows += [("", "", line) for line in lines[1:]]
    return table(("time", "task", "failure"), rows)


def user_metrics_table(vertices: Iterable[Status]) -> str:
    """The metrics of user functions and connectors, over the subtasks of each operator; "" where there are none."""
    rows = user_metrics(vertices)
    return table(USER_METRIC_COLUMNS, rows) if rows else ""


def metric_lines(status: Status) -> str:
    """Every metric of a job by its identifier, one a line."""
    job = {f"{status['scope']}.{name}": value for name, value in status.get("metrics", {}).items()}
    return "\n".join(f"{name} {value}" for name, value in {**job, **identified(status["vertices"])}.items())


__all__ = [
    "Progress", "exceptions_table", "late_records", "metric_lines", "moment", "records_in", "table",
    "user_metrics_table", "vertex_table", "watermark",
]  # fmt: skip
