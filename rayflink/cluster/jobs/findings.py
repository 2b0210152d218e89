"""Reasons why a job is slow or has no output, in words; pure functions of its figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TypeAlias

from rayflink.common.metrics.waits import waiting_tasks
from rayflink.common.records.batches import MIN_TIMESTAMP
from rayflink.common.user_code.stalled import stalled_tasks

from .cluster_job import Document
from .hot_keys import concentration
from .job_figures import job_figures

__all__ = ["Action", "Finding", "Severity", "command", "findings", "load_findings"]

SATURATED_MS = 800
"""Milliseconds of a second: a subtask that works for as long can hardly do more."""
PRESSED_MS = 100
"""Milliseconds of a second: a subtask that waits for as long for room in its outputs is back-pressured (Flink: low)."""
SKEWED = 1.5
"""Multiple of the mean: a subtask with as many records has a hot key, or too many keys."""
SILENT_MS = 15_000
"""A running task that has not reported for so long may be away."""
LAG_MS = 60_000
"""A watermark that is behind the clock by so much is worth a word."""
HISTORICAL_MS = 30 * 86_400_000
"""Events that are older are taken for those of a file: then the lag says nothing of the job."""
FEW_CHECKPOINTS = 3
FIRST_OUTPUT_MS = 10_000
"""A job that runs for less has no output yet, which means nothing."""


class Severity:
    """Words for the importance of a finding, as the pages show them."""

    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"


class Action:
    """Words for what mends a finding, or shows more of it; pages have a button for each, commands a line."""

    RESTART = "restart"
    RESCALE = "rescale"
    EXCEPTIONS = "exceptions"
    CHECKPOINTS = "checkpoints"
    FLAME_GRAPH = "flame"
    SPLITS = "splits"
    PROCESSES = "processes"


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason why a job is slow or has no output.

    Args:
        severity: "problem": it stops output; "warning": it costs time or records; "note": worth knowing.
        title: in a few words.
        detail: what was seen, and what to do.
        vertex: id of the vertex that it is about; "": the whole job.
        action: what mends it or shows more, a word of `Action`; "": nothing that a cluster can do.
    """

    severity: str
    title: str
    detail: str
    vertex: str = ""
    action: str = ""

    def describe(self) -> dict[str, str]:
        """Return the finding as plain data."""
        return {key: str(value) for key, value in asdict(self).items()}


def command(finding: Document, job: Document) -> str:
    """Return the command that does what a finding wants; "": there is none.

    >>> job = {"jid": "d" * 32, "vertices": [{"id": "a" * 32, "parallelism": 2}]}
    >>> command({"action": "rescale", "vertex": "a" * 32}, job), command({"action": "restart"}, job)
    ('rayflink rescale dddddddd aaaaaaaa=4', 'rayflink restart dddddddd')

    Args:
        finding: as `Finding.describe` gives it.
        job: its status, or its figures.
    """
    name = str(job["jid"])[:8]
    match finding.get("action"):
        case Action.RESTART:
            return f"rayflink restart {name}"
        case Action.RESCALE:
            now = next(vertex["parallelism"] for vertex in job["vertices"] if vertex["id"] == finding["vertex"])
            return f"rayflink rescale {name} {str(finding['vertex'])[:8]}={2 * now}"
        case Action.CHECKPOINTS:
            return f"rayflink checkpoints {name}"
    return ""


Findings: TypeAlias = Iterator[Finding]


def findings(status: Document, description: Document, now_ms: int) -> list[Finding]:
    """Return what keeps a job from being fast or from output, the worst first.

    Args:
        status: of the job, as `JobView.status` gives it.
        description: as `JobView.description` gives it.
        now_ms: the time, epoch milliseconds.
    """
    figures: Document = job_figures(status, description, now_ms)
    reasons = [*_of_state(figures)]
    if figures["state"] == "RUNNING":
        reasons += [*_of_functions(status), *_of_load(figures), *_of_output(figures)]
        reasons += [*_of_watermarks(figures), *_of_losses(figures), *_of_checkpoints(figures), *_of_silence(figures)]
    order = (Severity.PROBLEM, Severity.WARNING, Severity.NOTE)
    return sorted(reasons, key=lambda finding: order.index(finding.severity))


def load_findings(status: Document, now_ms: int) -> list[Finding]:
    """Return the vertices of a running job for which others wait, or which can hardly do more.

    Args:
        status: of the job.
        now_ms: the time, epoch milliseconds.
    """
    figures: Document = job_figures(status, {}, now_ms)
    return [*_of_load(figures)] if figures["state"] == "RUNNING" else []


def _of_state(figures: Document) -> Findings:
    failure = figures["last_failure"]
    said = "" if failure is None else _failure_text(failure)
    if figures["waiting"]:
        detail = f"{figures['waiting']}; add nodes, or end other jobs"
        yield Finding(Severity.PROBLEM, "The job waits for slots", detail)
    elif figures["state"] in ("RESTARTING", "FAILING"):
        title = "The job restarts after a failure"
        yield Finding(Severity.PROBLEM, title, said or "no failure is recorded", "", Action.EXCEPTIONS)
    elif figures["state"] == "FAILED":
        yield Finding(Severity.PROBLEM, "The job has failed", said or "no failure is recorded", "", Action.RESTART)
    elif figures["state"] == "RUNNING" and failure is not None and failure["last_ms"] > figures["now_ms"] - 600_000:
        title = f"The job restarted in the last 10 minutes ({figures['restarts']} restarts in all)"
        yield Finding(Severity.WARNING, title, said, "", Action.EXCEPTIONS)


def _failure_text(failure: Document) -> str:
    parts = [failure["operator"] or failure["task"], failure["raised_at"] or failure["line"]]
    said = f"{', '.join(part for part in parts if part)}: {failure['error']}"
    return f"{said}; {failure['outcome']}" if failure["outcome"] else said


def _of_functions(status: Document) -> Findings:
    for line in stalled_tasks(status["vertices"]):
        detail = "nothing else happens in that task meanwhile; see its threads and its flame graph"
        yield Finding(Severity.PROBLEM, "A function does not return", f"{line}; {detail}", "", Action.PROCESSES)
    for line in waiting_tasks(status["vertices"]):
        yield Finding(Severity.WARNING, "A task waits", line)


def _of_load(figures: Document) -> Findings:
    """Yield the vertices for which their producers wait: where no vertex that they feed holds them up in turn."""
    vertices = {vertex["id"]: vertex for vertex in figures["vertices"]}
    pressed = {name for name, vertex in vertices.items() if _level(vertex, "back_pressured") >= PRESSED_MS}
    for name, vertex in vertices.items():
        producers = [edge["from"] for edge in figures["edges"] if edge["to"] == name]
        waiting = [vertices[producer]["name"] for producer in producers if producer in pressed]
        busy = _level(vertex, "busy")
        if name in pressed or not (waiting or busy >= SATURATED_MS):
            continue
        skew = vertex["skew"]
        is_skewed = skew is not None and skew["ratio"] >= SKEWED
        seen = f"its busiest subtask works {busy / 10:.0f} % of the time"
        if waiting:
            seen += f", and {', '.join(waiting)} waits for it"
        if is_skewed:
            seen += f"; {concentration(skew, vertex['hot'])}"
        else:
            seen += f"; give it more than {vertex['parallelism']} subtasks, or see its flame graph"
        severity = Severity.WARNING if waiting else Severity.NOTE
        title = f"{vertex['name']} is the bottleneck" if waiting else f"{vertex['name']} is busy"
        yield Finding(severity, title, seen, name, Action.FLAME_GRAPH if is_skewed else Action.RESCALE)


def _of_output(figures: Document) -> Findings:
    """Yield the first vertex on the way that takes records and gives none."""
    if figures["uptime_ms"] < FIRST_OUTPUT_MS:
        return
    receivers = {edge["to"] for edge in figures["edges"]}
    feeding = {edge["from"] for edge in figures["edges"]}
    sources = [vertex for vertex in figures["vertices"] if vertex["id"] not in receivers]
    if sources and not any(vertex["records_in"] or vertex["records_out"] for vertex in sources):
        detail = "check the topic, the folder or the query that they read, and where they begin"
        yield Finding(Severity.PROBLEM, "The sources have read nothing", detail, sources[0]["id"], Action.SPLITS)
        return
    for vertex in figures["vertices"]:
        if vertex["id"] in feeding and vertex["records_in"] and not vertex["records_out"]:
            title = f"{vertex['name']} has given no record"
            yield Finding(Severity.PROBLEM, title, _why_silent(vertex), vertex["id"], Action.SPLITS)
            return


def _why_silent(vertex: Document) -> str:
    seen = f"it has taken {vertex['records_in']:,}"
    if vertex["late_records"] >= vertex["records_in"]:
        return f"{seen}, and all came after their windows had closed: see the timestamps and the watermark strategy"
    mark = vertex["watermark_ms"]
    if mark is None or mark <= MIN_TIMESTAMP:
        return f"{seen}, and has no watermark yet, so event-time windows and timers wait: see the sources' splits"
    return f"{seen}; its watermark has not reached the end of a window, or a condition lets nothing through"


def _of_watermarks(figures: Document) -> Findings:
    if figures["held_back"]:
        remedy = "an idle split can be passed by with_idleness"
        yield Finding(Severity.WARNING, "The watermark is held back", f"{figures['held_back']}; {remedy}")
    lag = figures["lag_ms"]
    if lag is not None and LAG_MS < lag < HISTORICAL_MS:
        last = max(figures["vertices"], key=lambda vertex: vertex["watermark_lag_ms"] or 0)
        seen = f"the watermark of {last['name']} is {lag / 1000:,.0f} s behind the clock"
        yield Finding(Severity.WARNING, "Results are late", f"{seen}; windows close that much later", last["id"])


def _of_losses(figures: Document) -> Findings:
    for vertex in figures["vertices"]:
        if vertex["late_records"]:
            share = vertex["late_records"] / max(vertex["records_in"], 1)
            seen = f"{vertex['late_records']:,} records ({share:.2%}) came after their windows had closed"
            remedy = "allow more lateness, or take them by side_output_late_data"
            yield Finding(Severity.WARNING, f"{vertex['name']} drops late records", f"{seen}; {remedy}", vertex["id"])
        if vertex["dropped_records"]:
            seen = f"{vertex['dropped_records']:,}; its metrics name them"
            yield Finding(Severity.WARNING, f"{vertex['name']} drops records or timers", seen, vertex["id"])
        skew = vertex["skew"]
        if skew is not None and skew["ratio"] >= SKEWED and _level(vertex, "busy") < SATURATED_MS:
            seen = concentration(skew, vertex["hot"])
            yield Finding(Severity.NOTE, f"{vertex['name']} has uneven keys", seen, vertex["id"])


def _of_checkpoints(figures: Document) -> Findings:
    known = figures["checkpoints"]
    failed, completed = known["failed"] or 0, known["completed"] or 0
    if failed and not completed:
        seen = f"{failed} have failed and none was completed: a restart begins from the start"
        detail = f"{seen}; the checkpoints say why"
        yield Finding(Severity.PROBLEM, "No checkpoint was completed", detail, "", Action.CHECKPOINTS)
    elif failed > FEW_CHECKPOINTS and failed * 4 > completed:
        seen = f"{failed} of {failed + completed} have failed"
        detail = f"{seen}; their reasons stand on the page of checkpoints"
        yield Finding(Severity.WARNING, "Checkpoints fail", detail, "", Action.CHECKPOINTS)


def _of_silence(figures: Document) -> Findings:
    for vertex in figures["vertices"]:
        for subtask in vertex["subtasks"]:
            heard_ms = subtask["reported_ms"]
            if subtask["state"] == "RUNNING" and heard_ms and figures["now_ms"] - heard_ms > SILENT_MS:
                seen = f"its last report is {(figures['now_ms'] - heard_ms) / 1000:.0f} s old; see its process"
                title = f"{vertex['name']} ({subtask['subtask'] + 1}/{vertex['parallelism']}) is silent"
                yield Finding(Severity.WARNING, title, seen, vertex["id"], Action.PROCESSES)


def _level(vertex: Document, what: str) -> float:
    level = vertex[f"{what}_ms_per_second"]
    return 0.0 if level is None else float(level)
