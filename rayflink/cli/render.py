"""Text for people: tables, the progress of a running job, and the counts of one that has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any, TextIO

from rayflink.common.batches import MAX_TIMESTAMP, MIN_TIMESTAMP

LATE_METRIC = "numLateRecordsDropped"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NAME_CHARACTERS = 44
_ENDED = ("FINISHED", "CANCELED", "FAILED")

Status = Mapping[str, Any]


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Columns under their names; numbers stand to the right, with separators of thousands.

    >>> print(table(("word", "count"), [("to", 4000), ("be", 2)]))
    word  count
    ----  -----
    to    4,000
    be        2
    """
    given = [list(row) for row in rows]
    numeric = [
        bool(given) and all(_is_number(row[index]) for row in given if row[index] is not None)
        for index in range(len(header))
    ]
    lines = [list(header), *([_cell(value) for value in row] for row in given)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(
            text.rjust(width) if right else text.ljust(width)
            for text, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def vertex_table(vertices: Iterable[Status]) -> str:
    """Per vertex of a job: subtasks, records in, out and late, records a second, and where the watermark stands.

    Records in are those received, or read where the vertex is a source. Late are those a window dropped.
    """
    header = ("vertex", "subtasks", "records in", "records out", "late", "records/s", "watermark")
    return table(header, [_vertex_row(vertex) for vertex in vertices])


def exceptions_table(exceptions: Iterable[Status]) -> str:
    """The failures of a job, oldest first."""
    rows = [(moment(entry["timestamp"]), entry["task"], _short(entry["exception"], 120)) for entry in exceptions]
    return table(("time", "task", "failure"), rows)


def moment(timestamp_ms: int | None) -> str:
    """Epoch milliseconds as a time in UTC; "-" for none yet, "end" for the watermark that ends a stream.

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


class Progress:
    """Shows how a running job gets on: give it to `get_job_execution_result(on_progress=...)`.

    On a terminal one line is written over again; elsewhere a line follows the other.

    Args:
        stream: where to write; None for standard error.
        clock: seconds, for rates.
    """

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock = clock
        self._started = self._last_s = clock()
        self._before: dict[str, int] = {}
        self._open_line = False

    def __call__(self, status: Status) -> None:
        now = self._clock()
        elapsed, self._last_s = max(now - self._last_s, 1e-3), now
        parts = []
        for vertex in status["vertices"]:
            records = records_in(vertex)
            rate = (records - self._before.get(vertex["id"], 0)) / elapsed
            self._before[vertex["id"]] = records
            parts.append(f"{_short(vertex['name'], 24)} {rate:,.0f}/s to {moment(watermark(vertex))}")
        line = f"{now - self._started:5.1f} s  {status['state']}  {' | '.join(parts)}"
        if self._stream.isatty():
            self._stream.write(f"\r\x1b[K{line}")
            self._open_line = True
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line."""
        if self._open_line:
            self._stream.write("\n")
            self._stream.flush()
            self._open_line = False


def records_in(vertex: Status) -> int:
    """Records a vertex has received, or read where it is a source."""
    received = int(vertex["numRecordsIn"])
    return received or sum(ops[0]["numRecordsOut"] for ops in _operators(vertex))


def late_records(vertex: Status) -> int:
    """Records that came after their windows were over and were dropped."""
    return sum(
        int(count)
        for operators in _operators(vertex)
        for operator in operators
        for name, count in operator["metrics"].items()
        if name.rpartition(".")[2] == LATE_METRIC
    )


def watermark(vertex: Status) -> int | None:
    """The lowest watermark in a vertex: of what it receives, or of what it sends where it is a source."""
    found = []
    for operators in _operators(vertex):
        seen = [op["currentInputWatermark"] for op in operators if op["currentInputWatermark"] is not None]
        if not seen:
            return None
        found.append(min(seen))
    return min(found, default=None)


def _operators(vertex: Status) -> list[list[Status]]:
    """The operators' reports, one list a subtask that has reported."""
    return [subtask["metrics"]["operators"] for subtask in vertex["subtasks"] if subtask["metrics"].get("operators")]


def _vertex_row(vertex: Status) -> tuple[Any, ...]:
    records = records_in(vertex)
    seconds = _seconds(vertex)
    rate = round(records / seconds) if seconds else None
    out = int(vertex["numRecordsOut"])
    late = late_records(vertex)
    return (
        _short(vertex["name"], _NAME_CHARACTERS), vertex["parallelism"], records, out, late, rate,
        moment(watermark(vertex)),
    )  # fmt: skip


def _seconds(vertex: Status) -> float:
    """From the first subtask's start to the last one's end, or to now where one still runs."""
    begun = [s["timestamps"]["RUNNING"] for s in vertex["subtasks"] if "RUNNING" in s["timestamps"]]
    ends = [s["timestamps"].get(s["state"]) for s in vertex["subtasks"] if s["state"] in _ENDED]
    if not begun:
        return 0.0
    still_running = len(ends) < len(vertex["subtasks"])
    end = time.time() * 1000 if still_running else max(filter(None, ends), default=0)
    return float(max(end - min(begun), 1)) / 1000


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if _is_number(value) else str(value)


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


__all__ = ["Progress", "exceptions_table", "late_records", "moment", "records_in", "table", "vertex_table", "watermark"]
