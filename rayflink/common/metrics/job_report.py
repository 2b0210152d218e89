"""A job's status as rows for people: per vertex its counts, its rate and where its watermark stands."""

from __future__ import annotations

import html
import time
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from ..records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP

LATE_METRIC = "numLateRecordsDropped"
VERTEX_COLUMNS = ("vertex", "subtasks", "records in", "records out", "late", "records/s", "watermark")
"""The columns of `vertex_row`."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NAME_CHARACTERS = 44
_ENDED = ("FINISHED", "CANCELED", "FAILED")

Status = Mapping[str, Any]


def vertex_row(vertex: Status) -> tuple[Any, ...]:
    """Return the values of `VERTEX_COLUMNS` of a vertex; None where one is not known.

    Records in are those received, or read where the vertex is a source. Late are those a window dropped.
    """
    records = records_in(vertex)
    seconds = _seconds(vertex)
    rate = round(records / seconds) if seconds else None
    out = int(vertex["numRecordsOut"])
    late = late_records(vertex)
    return (
        short(vertex["name"], _NAME_CHARACTERS), vertex["parallelism"], records, out, late, rate,
        moment(watermark(vertex)),
    )  # fmt: skip


def moment(timestamp_ms: int | None) -> str:
    """Return epoch milliseconds as a time in UTC; "-" for none yet, "end" for the watermark that ends a stream.

    >>> moment(1_357_034_400_000), moment(None)
    ('2013-01-01 10:00:00', '-')
    """
    if timestamp_ms is None or timestamp_ms <= MIN_TIMESTAMP:
        return "-"
    if timestamp_ms >= MAX_TIMESTAMP:
        return "end"
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp_ms)).strftime("%Y-%m-%d %H:%M:%S")
    except OverflowError:  # event time that is no calendar time, such as a counter near the ends of the range
        return str(timestamp_ms)


def state_text(status: Status) -> str:
    """Return where a job stands: its state, and whether it waits for slots.

    >>> state_text({"state": "CREATED", "waiting": "waiting for 2 slots of 1 CPU"}), state_text({"state": "RUNNING"})
    ('CREATED, WAITING FOR SLOTS', 'RUNNING')
    """
    return f"{status['state']}, WAITING FOR SLOTS" if status.get("waiting") else str(status["state"])


def has_begun(status: Status) -> bool:
    """Return whether all tasks of a job run that can: in batch mode later steps wait for the results of earlier ones.

    >>> vertices = [{"states": {"RUNNING": 2}}, {"states": {"RUNNING": 1, "INITIALIZING": 1}}]
    >>> has_begun({"state": "RUNNING", "vertices": vertices}), has_begun({"state": "RUNNING", "vertices": vertices[:1]})
    (False, True)
    """
    states = {state for vertex in status["vertices"] for state in vertex["states"]}
    runs = status["state"] in ("RUNNING", "FINISHED") and not status.get("waiting")
    return runs and bool(states & {"RUNNING", "FINISHED"}) and states <= {"CREATED", "SCHEDULED", "RUNNING", "FINISHED"}


def records_in(vertex: Status) -> int:
    """Return the number of records a vertex has received, or read where it is a source."""
    received = int(vertex["numRecordsIn"])
    return received or sum(ops[0]["numRecordsOut"] for ops in _operators(vertex))


def late_records(vertex: Status) -> int:
    """Return the number of records that came after their windows were over and were dropped."""
    return sum(
        int(count)
        for operators in _operators(vertex)
        for operator in operators
        for name, count in operator["metrics"].items()
        if name.rpartition(".")[2] == LATE_METRIC
    )


def watermark(vertex: Status) -> int | None:
    """Return the lowest watermark in a vertex: of what it receives, or of what it sends where it is a source."""
    watermarks = []
    for operators in _operators(vertex):
        seen = [op["currentInputWatermark"] for op in operators if op["currentInputWatermark"] is not None]
        if not seen:
            return None
        watermarks.append(min(seen))
    return min(watermarks, default=None)


def _operators(vertex: Status) -> list[list[Status]]:
    """Return the operators' reports, one list a subtask that has reported."""
    return [subtask["metrics"]["operators"] for subtask in vertex["subtasks"] if subtask["metrics"].get("operators")]


def short(text: str, limit: int) -> str:
    """Return a string in one line, cut to a number of characters.

    >>> short("Flat Map ->\\n Map", 12)
    'Flat Map ...'
    """
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def html_table(status: Status) -> str:
    """Return the job as HTML for a notebook: name, id and state, and a row a vertex; names are escaped.

    >>> html_table({"name": "a<b", "jid": "0" * 32, "state": "RUNNING", "vertices": []}).splitlines()[0]
    '<div><b>a&lt;b</b> <code>00000000000000000000000000000000</code> RUNNING</div>'
    """
    from .watermark_lag import held_back  # which shows moments as this module does

    name, job_id, state = (html.escape(text) for text in (status["name"], status["jid"], state_text(status)))
    lines = [f"<div><b>{name}</b> <code>{job_id}</code> {state}</div>", "<table>"]
    lines.append("".join(["<tr>", *(f"<th>{column}</th>" for column in (*VERTEX_COLUMNS, "state")), "</tr>"]))
    for vertex in status["vertices"]:
        states = ", ".join(f"{count} {which}" for which, count in vertex["states"].items())
        cells = [_html_cell(value) for value in (*vertex_row(vertex), states)]
        lines.append("".join(["<tr>", *(f"<td>{cell}</td>" for cell in cells), "</tr>"]))
    for entry in status.get("exceptions", ())[:1]:
        lines.append(
            f"<tr><td colspan={len(VERTEX_COLUMNS) + 1}>{html.escape(short(entry['exception'], 300))}</td></tr>"
        )
    slowest = held_back(status)
    if slowest is not None:
        lines.append(f"<tr><td colspan={len(VERTEX_COLUMNS) + 1}>{html.escape(str(slowest))}</td></tr>")
    return "\n".join([*lines, "</table>"])


def _html_cell(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else html.escape(str(value))


def _seconds(vertex: Status) -> float:
    """Return the seconds from the first subtask's start to the last one's end, or to now where one still runs."""
    begun = [s["timestamps"]["RUNNING"] for s in vertex["subtasks"] if "RUNNING" in s["timestamps"]]
    ends = [s["timestamps"].get(s["state"]) for s in vertex["subtasks"] if s["state"] in _ENDED]
    if not begun:
        return 0.0
    still_running = len(ends) < len(vertex["subtasks"])
    end = time.time() * 1000 if still_running else max(filter(None, ends), default=0)
    return float(max(end - min(begun), 1)) / 1000


__all__ = ["VERTEX_COLUMNS", "has_begun", "html_table", "late_records", "moment", "records_in", "short",
           "state_text", "vertex_row", "watermark"]  # fmt: skip
