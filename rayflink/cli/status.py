"""`rayflink status`: one job as tables or as JSON, once or repeatedly."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from textwrap import wrap
from typing import Any

from rayflink.actors.job.recovery_times import describe_recovery
from rayflink.cluster.jobs.findings import Finding, command, load_findings
from rayflink.common.job_status import JobStatus
from rayflink.common.metrics.job_report import VERTEX_COLUMNS, moment, short, vertex_row
from rayflink.common.metrics.live_table import is_terminal, lag_text
from rayflink.common.metrics.metric_report import USER_METRIC_COLUMNS, user_metrics
from rayflink.common.metrics.status_report import status_report
from rayflink.common.metrics.waits import waiting_tasks
from rayflink.common.options import registry as options
from rayflink.common.text_output.plain_table import table
from rayflink.common.user_code.stalled import stalled_tasks

from .given_options import configuration_of
from .jobs import LOST, one_job
from .render import metric_lines, status_head
from .script import FAILED, OK

Status = Mapping[str, Any]
NAME_CHARACTERS = 44
FAILURE_WIDTH = 100
"""Characters of a line of a failure."""
FAILURE_LINES = 20
"""Lines that are shown of a failure; `--json` has all."""
_COLUMNS = ("vertex", "subtasks", "records in", "in/s", "records out", "out/s", "late",
            "busy", "idle", "back-pressured", "watermark", "lag")  # fmt: skip
_ALWAYS = ("vertex", "subtasks", "records in")
_NOTHING = (0, None, "-")
_CLEAR = "\x1b[H\x1b[2J"


def status(chosen: argparse.Namespace) -> int:
    """Show a job, with `--watch` until it has ended or Ctrl-C, and return the exit code."""
    job_status = one_job(chosen, ended=True)
    if job_status is None:
        return FAILED
    if chosen.watch is None:
        print(_shown(chosen, job_status))
        if job_status["state"] == "FAILED" and configuration_of(chosen).get(options.TARGET) is options.Target.REMOTE:
            remedy = f"rayflink restart {job_status['jid'][:8]}"
            print(f"\n{remedy} starts it again from its newest checkpoint", file=sys.stderr)
        return OK
    chosen.job = job_status["jid"]
    try:
        while job_status is not None:
            clear = _CLEAR if is_terminal(sys.stdout) and not chosen.json else ""
            print(f"{clear}{_shown(chosen, job_status)}", end="\n" if chosen.json else "\n\n", flush=True)
            if job_status["state"] == LOST or JobStatus(job_status["state"]).is_terminal:
                return OK
            time.sleep(chosen.watch)
            job_status = one_job(chosen, ended=True)
    except KeyboardInterrupt:  # the way to end it
        return OK
    return FAILED


def _shown(chosen: argparse.Namespace, job_status: Status) -> str:
    if chosen.metrics:
        return metric_lines(job_status)
    now_ms = int(time.time() * 1000)
    if chosen.json:
        return json.dumps(status_report(job_status, now_ms), indent=None if chosen.watch else 2)
    return status_text(job_status, now_ms)


def status_text(job_status: Status, now_ms: int) -> str:
    """Return the lines on a job: its state, a table of its vertices, what holds it up, its metrics and its failures.

    Args:
        now_ms: the time, epoch milliseconds.
    """
    report = status_report(job_status, now_ms)
    parts = [status_head(job_status), vertex_table(job_status["vertices"], report["vertices"], now_ms)]
    held_up = [*stalled_tasks(job_status["vertices"]), *waiting_tasks(job_status["vertices"])]
    slow = [_said(finding, job_status) for finding in load_findings(job_status, now_ms)]
    parts += ["\n".join([*held_up, *slow]), report["held_back"] or ""]
    counted = [row for row in user_metrics(job_status["vertices"]) if row[2] != 0 or row[3] or row[4]]
    parts.append(table(USER_METRIC_COLUMNS, counted) if counted else "")
    if report["recovery"]:
        parts.append(f"last recovery: {describe_recovery(report['recovery'])}")
    parts.append(failures_table(report["failures"]) if report["failures"] else "")
    return "\n\n".join(part for part in parts if part)


def _said(finding: Finding, job_status: Status) -> str:
    remedy = command(finding.describe(), job_status)
    return f"{finding.title}: {finding.detail}" + (f": {remedy}" if remedy else "")


def vertex_table(vertices: Iterable[Status], reports: Iterable[Status], now_ms: int) -> str:
    """Return a table of vertices: subtasks, records, rates, milliseconds of a second at work, idle and waiting.

    Waiting is for room in the output. Times are those of the subtask with the most. The rates of a vertex that does not
    run are over its whole life. Columns in which nothing stands are left out.

    Args:
        vertices: of a job's status.
        reports: on the same vertices, as `status_report` gives them.
        now_ms: the time, epoch milliseconds.
    """
    rows = [_row(vertex, report, now_ms) for vertex, report in zip(vertices, reports, strict=True)]
    used = [name in _ALWAYS or any(row[index] not in _NOTHING for row in rows) for index, name in enumerate(_COLUMNS)]
    shown = [index for index, is_used in enumerate(used) if is_used]
    return table([_COLUMNS[index] for index in shown], [[row[index] for index in shown] for row in rows])


def _row(vertex: Status, report: Status, now_ms: int) -> Sequence[Any]:
    rates = report["records_in_per_second"], report["records_out_per_second"]
    if rates == (None, None):
        rates = vertex_row(vertex)[VERTEX_COLUMNS.index("records/s")], None
    times = [report[f"{what}_ms_per_second"] for what in ("busy", "idle", "back_pressured")]
    return (
        short(vertex["name"], NAME_CHARACTERS), vertex["parallelism"], report["records_in"], _whole(rates[0]),
        report["records_out"], _whole(rates[1]), report["late_records"], *times,
        moment(report["watermark_ms"]), lag_text(report["watermark_ms"], now_ms),
    )  # fmt: skip


def _whole(rate: float | None) -> int | None:
    return None if rate is None else round(rate)


def failures_table(failures: Iterable[Status]) -> str:
    """Return a job's failures, those of one kind once, with how often and when last, in lines of `FAILURE_WIDTH`."""
    rows: list[tuple[Any, ...]] = []
    for entry in failures:
        lines = wrap(entry["text"], FAILURE_WIDTH, break_long_words=False, break_on_hyphens=False) or [""]
        if len(lines) > FAILURE_LINES:
            lines = [*lines[: FAILURE_LINES - 1], f"... {len(lines) - FAILURE_LINES + 1} more lines; --json shows all"]
        rows.append((moment(entry["last_ms"]), str(entry["times"]), entry["task"], lines[0]))
        rows += [("", "", "", line) for line in lines[1:]]
    return table(("last time (UTC)", "times", "task", "failure"), rows)


__all__ = ["failures_table", "status", "status_text", "vertex_table"]
