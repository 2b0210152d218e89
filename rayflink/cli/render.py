"""Text for people: tables of a job's vertices, and its metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rayflink.common.metrics.job_report import (
    VERTEX_COLUMNS,
    late_records,
    moment,
    records_in,
    state_text,
    vertex_row,
    watermark,
)
from rayflink.common.metrics.live_table import Progress
from rayflink.common.metrics.metric_report import identified
from rayflink.common.text_output.plain_table import printable, table

Status = Mapping[str, Any]


def job_table(jobs: Iterable[Status]) -> str:
    """Return the jobs of a cluster: id, name, state, since when they are in it, and when they began, in UTC.

    Below the table stands what those wait for that have no slots.
    """
    rows, waiting = [], []
    for job in jobs:
        stamps = job["timestamps"].values()
        times = moment(max(stamps, default=None)), moment(min(stamps, default=None))
        rows.append((job["jid"], job["name"], state_text(job), *times))
        if job.get("waiting"):
            waiting.append(f"\n{printable(job['name'])} ({job['jid'][:8]}): {job['waiting']}")
    return table(("id", "name", "state", "since (UTC)", "began (UTC)"), rows) + "".join(waiting)


def status_head(status: Status) -> str:
    """Return name, id, state of a job, and since when it is in it; below, what it waits for where it has no slots."""
    since = moment(max(status["timestamps"].values(), default=None))
    head = f"{printable(status['name'])}  {status['jid']}  {state_text(status)}  since {since} UTC"
    notes = [status["waiting"]] if status.get("waiting") else []
    if autoscaler := status.get("autoscaler"):
        notes.append(f"autoscaler: {autoscaler['reason']}")
    return "\n".join([head, *notes])


def vertex_table(vertices: Iterable[Status]) -> str:
    """Return a table of a job's vertices: subtasks, records in, out and late, records a second, watermark.

    Records in are those received, or read where the vertex is a source. Late are those a window dropped.
    """
    return table(VERTEX_COLUMNS, [vertex_row(vertex) for vertex in vertices])


def metric_lines(status: Status) -> str:
    """Return every metric of a job by its identifier, one a line."""
    job = {f"{status['scope']}.{name}": value for name, value in status.get("metrics", {}).items()}
    return "\n".join(f"{name} {value}" for name, value in {**job, **identified(status["vertices"])}.items())


__all__ = [
    "Progress", "job_table", "late_records", "metric_lines", "moment", "printable", "records_in",
    "status_head", "table", "vertex_table", "watermark",
]  # fmt: skip
