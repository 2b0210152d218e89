"""The figures of a job for people: rates along its edges, load, lag and skew of its vertices; pure functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from rayflink.common.job_status import JobStatus
from rayflink.common.metrics import metric_names as names
from rayflink.common.metrics.job_report import records_in
from rayflink.common.metrics.status_report import folded_failures, status_report
from rayflink.common.metrics.watermark_lag import held_back
from rayflink.common.user_code.stalled import STALLED

from .cluster_job import Document
from .hot_keys import hot_keys

__all__ = ["edge_rates", "failures", "job_figures", "job_row", "operator_figures", "skew_of", "without_subtasks"]

Figures: TypeAlias = "dict[str, object]"
_FRAME = re.compile(
    r' +File "(?P<file>[^"\n]*)", line (?P<line>\d+), in (?P<function>[^\n]*)(?:\n {4}(?P<code>[^\n]*))?'
)
"""A frame of a traceback, with its line of code."""
_MODULE = re.compile(r"^[\w.]*\.(?=\w+(?::|$))")
"""The module before the name of an exception, which a traceback has and a message has not."""
MOST_TRACEBACK = 20_000
"""Characters of a traceback that are shown, of its end."""
HELD_BACK_MS = 1_000
"""A partition that is behind the others by less does not hold back the job."""
_SPLIT = re.compile(rf"{names.SPLIT}\.(?P<split>.+)\.watermark\.(?P<what>{names.CURRENT_WATERMARK}|{names.IS_IDLE})")
_HIDDEN = frozenset((names.CURRENT_INPUT_WATERMARK, names.CURRENT_OUTPUT_WATERMARK, *names.CURRENT_INPUT_N_WATERMARKS))
"""Metrics that stand elsewhere among the figures of an operator."""


def job_row(status: Document, now_ms: int) -> Figures:
    """Return the figures of a job in a list of jobs.

    Args:
        status: of the job, as `JobView.status` gives it.
        now_ms: the time, epoch milliseconds.
    """
    return _head(status, status_report(status, now_ms), now_ms)


def job_figures(status: Document, description: Document, now_ms: int) -> Figures:
    """Return all figures of a job: its row, its vertices and edges, its failures, newest first, and what it waits for.

    Args:
        status, now_ms: as in `job_row`.
        description: as `JobView.description` gives it.
    """
    report = status_report(status, now_ms)
    described = {vertex["id"]: vertex for vertex in description.get("vertices", ())}
    hot = hot_keys(status)
    vertices = [
        {**_vertex(vertex, figures, described.get(vertex["id"], {})), "hot": hot.get(vertex["id"])}
        for vertex, figures in zip(status["vertices"], report["vertices"], strict=True)
    ]
    slowest = held_back(status)
    matters = slowest is not None and (slowest.behind_ms is None or slowest.behind_ms >= HELD_BACK_MS)
    return {
        **_head(status, report, now_ms),
        "mode": description.get("mode"),
        "timestamps": dict(status["timestamps"]),
        "vertices": vertices,
        "edges": edge_rates(report["vertices"], description),
        "processes": _processes(report["vertices"]),
        "held_back": str(slowest) if matters else None,
        "recovery": status.get("recovery"),
        "autoscaler": status.get("autoscaler"),
        "failures": failures(status.get("exceptions", ())),
        "rescales": status.get("rescales", {}).get("history", []),
    }


def _head(status: Document, report: Document, now_ms: int) -> Figures:
    moments, metrics = status["timestamps"], status.get("metrics", {})
    ended = _is_terminal(status["state"])
    begin_ms = min(moments.values(), default=now_ms)  # a job that is rescaled or recovered is created again
    end_ms = moments.get(status["state"], now_ms) if ended else None
    vertices = report["vertices"]
    lags = [vertex["watermark_lag_ms"] for vertex in vertices if vertex["watermark_lag_ms"] is not None]
    states: dict[str, int] = {}
    for vertex in vertices:
        for state, count in vertex["states"].items():
            states[state] = states.get(state, 0) + count
    checkpoints = report["checkpoints"]
    completed_ms = metrics.get(names.LAST_CHECKPOINT_COMPLETED_TIMESTAMP, -1)
    return {
        "jid": status["jid"],
        "name": status["name"],
        "state": status["state"],
        "waiting": status.get("waiting") or None,
        "has_ended": ended,
        "now_ms": now_ms,
        "begin_ms": begin_ms,
        "end_ms": end_ms,
        "duration_ms": max((now_ms if end_ms is None else end_ms) - begin_ms, 0),
        "uptime_ms": metrics.get(names.UPTIME, 0),
        "restarts": report["restarts"] or 0,
        "parallelism": max((vertex["parallelism"] for vertex in vertices), default=0),
        "states": states,
        "read_per_second": _sum(vertex["records_in_per_second"] for vertex in _sources(vertices, status)),
        "records_per_second": _sum(vertex["records_in_per_second"] for vertex in vertices),
        "lag_ms": max(lags, default=None),
        "late_records": sum(vertex["late_records"] for vertex in vertices),
        "busy_ms_per_second": _most(vertex["busy_ms_per_second"] for vertex in vertices),
        "back_pressured_ms_per_second": _most(vertex["back_pressured_ms_per_second"] for vertex in vertices),
        "checkpoints": {**checkpoints, "last_ms": completed_ms if completed_ms > 0 else None},
        "last_failure": _last_failure(status.get("exceptions", ())),
    }


def _last_failure(exceptions: Sequence[Document]) -> Figures | None:
    """Return the newest failure without its traceback."""
    newest = next(iter(failures(exceptions[-1:])), None)
    return None if newest is None else {key: value for key, value in newest.items() if key != "traceback"}


def _processes(reports: Iterable[Document]) -> list[Figures]:
    """Return the processes that run the job's tasks, with the number of those and the time of the last report."""
    processes: dict[tuple[str, int], Figures] = {}
    for vertex in reports:
        for subtask in vertex["subtasks"]:
            host, pid = subtask["host"], subtask["pid"]
            if host and pid:
                known = processes.setdefault((host, pid), {"host": host, "pid": pid, "subtasks": 0, "reported_ms": 0})
                known["subtasks"] = 1 + _count(known["subtasks"])
                known["reported_ms"] = max(subtask["reported_ms"] or 0, _count(known["reported_ms"]))
    return [processes[place] for place in sorted(processes)]


def _sources(reports: Iterable[Document], status: Document) -> list[Document]:
    """Return the reports of the vertices that receive nothing."""
    receivers = {vertex["id"] for vertex in status["vertices"] if vertex.get(names.NUM_RECORDS_IN)}
    return [report for report in reports if report["id"] not in receivers]


def _vertex(vertex: Document, report: Document, described: Document) -> Figures:
    subtasks = [
        _subtask(subtask, figures) for subtask, figures in zip(vertex["subtasks"], report["subtasks"], strict=True)
    ]
    running = [figures for figures in report["subtasks"] if figures["state"] == "RUNNING"]
    return {
        **{key: value for key, value in report.items() if key != "subtasks"},
        "max_parallelism": described.get("max_parallelism"),
        "slot_sharing_group": described.get("slot_sharing_group"),
        "operators": described.get("operators", []),
        "inputs": described.get("inputs", []),
        "bytes_in": vertex.get(names.NUM_BYTES_IN, 0),
        "bytes_out": vertex.get(names.NUM_BYTES_OUT, 0),
        "dropped_records": sum(_dropped(vertex)),
        "mean_busy_ms_per_second": _mean(figures["busy_ms_per_second"] for figures in running),
        "skew": skew_of(subtasks),
        "stalled_subtasks": sum(figures[STALLED] is not None for figures in report["subtasks"]),
        "subtasks": subtasks,
    }


def without_subtasks(vertices: Iterable[Document], vertex_id: str) -> list[Document]:
    """Return the vertices of `job_figures`, with the subtasks of one of them alone: a job may have thousands.

    >>> without_subtasks([{"id": "a", "subtasks": [1]}, {"id": "b", "subtasks": [2]}], "b")
    [{'id': 'a'}, {'id': 'b', 'subtasks': [2]}]
    """
    return [
        vertex if vertex["id"] == vertex_id else {key: value for key, value in vertex.items() if key != "subtasks"}
        for vertex in vertices
    ]


def _subtask(subtask: Document, report: Document) -> Figures:
    metrics, moments = subtask["metrics"], subtask["timestamps"]
    marks = [operator["currentInputWatermark"] for operator in metrics.get("operators", ())]
    marks += [operator.get("currentOutputWatermark") for operator in metrics.get("operators", ())[:1]]
    ended_ms = moments.get(subtask["state"]) if subtask["state"] in ("FINISHED", "CANCELED", "FAILED") else None
    return {
        **report,
        "records_in": records_in({"subtasks": [subtask], "numRecordsIn": metrics.get(names.NUM_RECORDS_IN, 0)}),
        "records_out": metrics.get(names.NUM_RECORDS_OUT, 0),
        "bytes_in": metrics.get(names.NUM_BYTES_IN, 0),
        "bytes_out": metrics.get(names.NUM_BYTES_OUT, 0),
        "watermark_ms": min((mark for mark in marks if mark is not None), default=None),
        "begin_ms": min(moments.values(), default=None),
        "end_ms": ended_ms,
    }


def skew_of(subtasks: Iterable[Document]) -> Figures | None:
    """Return how unevenly records are distributed over subtasks; None where that has no meaning.

    The rates of now count; where there are none, the records so far.

    >>> skew_of([{"subtask": 0, "records_in_per_second": 30.0}, {"subtask": 1, "records_in_per_second": 10.0}])
    {'subtask': 0, 'share': 0.75, 'ratio': 1.5}

    Args:
        subtasks: with `subtask`, `records_in_per_second` and, for those without rates, `records_in`.
    """
    of_subtask = {subtask["subtask"]: subtask.get("records_in_per_second") or 0.0 for subtask in subtasks}
    if not sum(of_subtask.values()):
        of_subtask = {subtask["subtask"]: float(subtask.get("records_in") or 0) for subtask in subtasks}
    total = sum(of_subtask.values())
    if len(of_subtask) < 2 or not total:
        return None
    most = max(of_subtask, key=of_subtask.__getitem__)
    share = of_subtask[most] / total
    return {"subtask": most, "share": round(share, 4), "ratio": round(share * len(of_subtask), 3)}


def edge_rates(reports: Iterable[Document], description: Document) -> list[Figures]:
    """Return the edges between vertices, with the records that go along each in a second.

    The rate of an edge is known where its consumer has no other input, or its producer no other output; elsewhere it
    is null.

    Args:
        reports: on the vertices, with their rates.
        description: as `JobView.description` gives it.
    """
    rates = {report["id"]: report for report in reports}
    edges = [
        (edge["id"], vertex["id"], edge)
        for vertex in description.get("vertices", ())
        for edge in vertex.get("inputs", ())
    ]
    figures: list[Figures] = []
    for producer, consumer, edge in edges:
        rate = None
        if sum(other == consumer for _, other, _ in edges) == 1:
            rate = rates.get(consumer, {}).get("records_in_per_second")
        elif sum(other == producer for other, _, _ in edges) == 1:
            rate = rates.get(producer, {}).get("records_out_per_second")
        figures.append({
            "from": producer,
            "to": consumer,
            "ship_strategy": edge.get("ship_strategy"),
            "exchange": edge.get("exchange"),
            "records_per_second": rate,
        })  # fmt: skip
    return figures


def failures(exceptions: Sequence[Document]) -> list[Figures]:
    """Return the failures of a job, those of one kind once, the newest first, each with what the newest of it says.

    Beside the figures of `folded_failures` there are "operator", "line" (of the program, which made the operator),
    "record", "raised_at" and "code" (the innermost line of the program that ran), "error", "outcome" (why the job does
    not restart, and what to do) and "traceback".

    >>> trace = 'Traceback:\\n  File "job.py", line 7, in parse\\n    return int(text)\\nValueError: no\\n'
    >>> entry = {"timestamp": 5, "task": "parse (1/1)", "exception": "parse failed", "traceback": trace}
    >>> [failure] = failures([entry])
    >>> failure["error"], failure["raised_at"], failure["code"], failure["times"]
    ('ValueError: no', 'job.py:7 in parse', 'return int(text)', 1)

    Args:
        exceptions: of a job's status, the oldest first.
    """
    newest = {(entry["timestamp"], entry["task"], entry["exception"]): entry for entry in exceptions}
    kinds: dict[tuple[object, ...], Figures] = {}
    for folded in reversed(folded_failures(exceptions)):
        failure = _failure(folded, newest[folded["last_ms"], folded["task"], folded["text"]])
        kind = tuple(failure[key] for key in ("task", "error", "raised_at", "record"))
        known = kinds.setdefault(kind, failure)
        if known is not failure:
            known["times"] = folded["times"] + _count(known["times"])
            known["first_ms"] = min(folded["first_ms"], _count(known["first_ms"]))
    return list(kinds.values())


def _count(value: object) -> int:
    assert isinstance(value, int)
    return value


def _failure(folded: Document, entry: Document) -> Figures:
    """Return failures of one kind with what the newest of them says; see `failures`."""
    traceback = str(entry.get("traceback") or "").rstrip("\n")
    *_, last = (None, *_FRAME.finditer(traceback))
    error = traceback.rpartition("\n")[2].strip() if "\n" in traceback else ""
    return {
        **folded,
        "error": error or folded["text"],
        "outcome": _outcome(str(folded["text"]), error),
        "operator": entry.get("operator") or None,
        "line": entry.get("line") or None,
        "record": entry.get("record") or None,
        "raised_at": f"{last['file']}:{last['line']} in {last['function']}" if last else None,
        "code": last["code"] if last else None,
        "place": entry.get("place"),
        "traceback": traceback[-MOST_TRACEBACK:],
    }


def _outcome(text: str, error: str) -> str | None:
    """Return what a failure's message adds to its error in brackets: why the job does not restart.

    >>> _outcome("parse failed: BadPrice: no (it failed so twice)", "shop.BadPrice: no")
    'it failed so twice'
    """
    _, separator, added = text.rpartition(_MODULE.sub("", error) or "\n")
    return added[2:-1] if separator and added.startswith(" (") and added.endswith(")") else None


def operator_figures(vertex: Document) -> list[Figures]:
    """Return the operators of a vertex, each with its metrics over the subtasks, its watermarks and its splits.

    Args:
        vertex: of a job's status.
    """
    operators: dict[str, Figures] = {}
    values: dict[str, dict[str, list[object]]] = {}
    for subtask in vertex["subtasks"]:
        for operator in subtask["metrics"].get("operators", ()):
            entry = operators.setdefault(
                operator["id"],
                {"id": operator["id"], "name": operator["name"], "subtasks": [], "splits": [], "metrics": []},
            )
            _append(entry, "subtasks", {
                "subtask": subtask["subtask"],
                "records_in": operator.get(names.NUM_RECORDS_IN),
                "records_out": operator.get(names.NUM_RECORDS_OUT),
                "input_watermark_ms": operator.get(names.CURRENT_INPUT_WATERMARK),
                "output_watermark_ms": operator.get(names.CURRENT_OUTPUT_WATERMARK),
            })  # fmt: skip
            for split in _splits(operator["metrics"]):
                _append(entry, "splits", {"subtask": subtask["subtask"], **split})
            for name, value in operator["metrics"].items():
                if name not in _HIDDEN and _SPLIT.fullmatch(name) is None:
                    values.setdefault(operator["id"], {}).setdefault(name, []).append(value)
    for operator_id, metrics in values.items():
        operators[operator_id]["metrics"] = [_metric(name, metrics[name]) for name in sorted(metrics)]
    return list(operators.values())


def _append(entry: Figures, key: str, value: Figures) -> None:
    values = entry[key]
    assert isinstance(values, list)
    values.append(value)


def _splits(metrics: Document) -> list[Figures]:
    splits: dict[str, Figures] = {}
    for name, value in metrics.items():
        match = _SPLIT.fullmatch(name)
        if match is not None:
            key = "watermark_ms" if match["what"] == names.CURRENT_WATERMARK else "is_idle"
            splits.setdefault(match["split"], {"split": match["split"]})[key] = value
    return list(splits.values())


def _metric(name: str, values: list[object]) -> Figures:
    """Return a metric over subtasks; one that is no number as the value of the first."""
    numbers = _numbers(values)
    if len(numbers) < len(values):
        return {"name": name, "sum": None, "min": None, "max": None, "value": _shown(values[0])}
    return {"name": name, "sum": sum(numbers), "min": min(numbers), "max": max(numbers)}


def _shown(value: object) -> object:
    """Return a value as JSON has it, what JSON has no form for as a string."""
    return value if value is None or isinstance(value, (bool, str, Mapping, list)) or _numbers([value]) else str(value)


def _numbers(values: Iterable[object]) -> list[float]:
    return [
        value
        for value in values
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    ]


def _dropped(vertex: Document) -> Iterator[int]:
    """Yield the counts of records and timers that operators dropped, but those that were late."""
    for subtask in vertex["subtasks"]:
        for operator in subtask["metrics"].get("operators", ()):
            for name, count in operator["metrics"].items():
                last = name.rpartition(".")[2]
                if last.endswith("Dropped") and last != names.NUM_LATE_RECORDS_DROPPED:
                    yield from map(int, _numbers([count]))


def _is_terminal(state: str) -> bool:
    return state not in JobStatus.__members__ or JobStatus(state).is_terminal


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _sum(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known), 1) if known else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = _known(values)
    return round(sum(known) / len(known), 1) if known else None


def _most(values: Iterable[float | None]) -> float | None:
    return max(_known(values), default=None)
