"""Text for people: tables, the progress of a running job, and the counts of one that has ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from rayflink.common.job_report import VERTEX_COLUMNS, late_records, moment, records_in, short, vertex_row, watermark
from rayflink.common.metric_report import USER_METRIC_COLUMNS, identified, user_metrics

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
    return table(VERTEX_COLUMNS, [vertex_row(vertex) for vertex in vertices])


def exceptions_table(exceptions: Iterable[Status]) -> str:
    """The failures of a job, oldest first."""
    rows = [(moment(entry["timestamp"]), entry["task"], short(entry["exception"], 120)) for entry in exceptions]
    return table(("time", "task", "failure"), rows)


def user_metrics_table(vertices: Iterable[Status]) -> str:
    """The metrics of user functions and connectors, over the subtasks of each operator; "" where there are none."""
    rows = user_metrics(vertices)
    return table(USER_METRIC_COLUMNS, rows) if rows else ""


def metric_lines(status: Status) -> str:
    """Every metric of a job by its identifier, one a line."""
    job = {f"{status['scope']}.{name}": value for name, value in status.get("metrics", {}).items()}
    return "\n".join(f"{name} {value}" for name, value in {**job, **identified(status["vertices"])}.items())


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
            parts.append(f"{short(vertex['name'], 24)} {rate:,.0f}/s to {moment(watermark(vertex))}")
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


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.1f}"
    return f"{value:,}" if _is_number(value) else str(value)


__all__ = [
    "Progress", "exceptions_table", "late_records", "metric_lines", "moment", "records_in", "table",
    "user_metrics_table", "vertex_table", "watermark",
]  # fmt: skip
