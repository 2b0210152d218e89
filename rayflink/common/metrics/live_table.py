"""The progress of a running job: a table at the foot of a terminal, elsewhere a line now and then.

What the program prints meanwhile goes above the table: while it is shown, `sys.stdout` and `sys.stderr`, where they are
terminals, erase it before they write; it comes back with the next look at the job.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ..records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP
from ..text_output.plain_table import table
from .job_report import moment, records_in, short, state_text, watermark
from .metric_names import BACK_PRESSURED_TIME, BUSY_TIME
from .watermark_lag import held_back

Status = Mapping[str, Any]
COLUMNS = ("vertex", "subtasks", "records in", "records/s", "lag", "busy", "back-pressure")
_BESIDE_NAMES = 70
"""Characters of a row that are not its name."""
_LEAST_NAME, _MOST_NAME = 12, 60
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))


class Progress:
    """Shows how a running job gets on: give it to `get_job_execution_result(on_progress=...)`.

    On a terminal a table is written over again: per vertex the records it received (or read, where it is a source),
    their rate since the last look, how far the watermark is behind the clock, and the parts of the time that its
    busiest and its most back-pressured subtask spent so. Elsewhere a line follows the other.

    Args:
        stream: where to write; None for standard error.
        clock: seconds, for rates.
        now_ms: epoch milliseconds, for watermarks.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], float] = lambda: time.time() * 1000,
    ) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._clock, self._now_ms = clock, now_ms
        self._started = self._last_s = clock()
        self._before: dict[str, int] = {}
        self._foot = _Foot(self._stream) if is_terminal(self._stream) else None

    def __call__(self, status: Status) -> None:
        now = self._clock()
        elapsed, self._last_s = max(now - self._last_s, 1e-3), now
        rates = [self._rate(vertex, elapsed) for vertex in status["vertices"]]
        head = f"{now - self._started:5.1f} s  {state_text(status)}"
        if self._foot is not None:
            self._foot.draw(self._table(head, status, rates))
            return
        parts = [
            f"{short(vertex['name'], 24)} {rate:,.0f}/s to {moment(watermark(vertex))}"
            for vertex, rate in zip(status["vertices"], rates, strict=True)
        ]
        self._stream.write(f"{head}  {' | '.join(parts)}\n")
        self._stream.flush()

    def close(self, erase: bool = False) -> None:
        """Leave the last table, or erase it; what the program prints is written as before again."""
        if self._foot is not None:
            self._foot.close(erase)

    def _rate(self, vertex: Status, elapsed: float) -> float:
        records = records_in(vertex)
        rate = (records - self._before.get(vertex["id"], 0)) / elapsed
        self._before[vertex["id"]] = records
        return rate

    def _table(self, head: str, status: Status, rates: list[float]) -> list[str]:
        columns, lines = _size(self._stream)
        room = max(_LEAST_NAME, min(columns - _BESIDE_NAMES, _MOST_NAME))
        rows = [self._row(vertex, rate, room) for vertex, rate in zip(status["vertices"], rates, strict=True)]
        shown = [f"{head}  {short(str(status.get('name', '')), 40)}".rstrip(), *table(COLUMNS, rows).splitlines()]
        slowest = held_back(status)
        if slowest is not None:
            shown.append(str(slowest))
        if len(shown) >= lines:
            hidden = len(shown) - lines + 2
            shown = [*shown[: lines - 2], f"... and {hidden} vertices more"]
        return [line[: columns - 1] for line in shown]

    def _row(self, vertex: Status, rate: float, room: int) -> tuple[Any, ...]:
        lag = lag_text(watermark(vertex), self._now_ms())
        busy, pressed = (_most(vertex, name) for name in (BUSY_TIME, BACK_PRESSURED_TIME))
        name = short(vertex["name"], room)
        return name, vertex["parallelism"], records_in(vertex), max(0, round(rate)), lag, busy, pressed


def lag_text(mark: int | None, now_ms: float) -> str:
    """Return how far a watermark is behind `now_ms`; "-" for none yet, "end" for the last.

    >>> lag_text(10_000, 12_500), lag_text(0, 2 * 86_400_000), lag_text(None, 0), lag_text(5_000, 4_000)
    ('2.5 s', '2.0 d', '-', '-1.0 s')
    """
    if mark is None or mark <= MIN_TIMESTAMP:
        return "-"
    if mark >= MAX_TIMESTAMP:
        return "end"
    behind = now_ms - mark
    for size, unit in _UNITS:
        if abs(behind) >= size:
            return f"{behind / size:,.1f} {unit}"
    return f"{behind:.0f} ms"


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether a stream is a terminal that can erase what it shows."""
    return stream is not None and stream.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def progress_shown() -> Iterator[Progress]:
    """Show a table on standard error until the block ends."""
    progress = Progress()
    try:
        yield progress
    finally:
        progress.close(erase=True)


def _most(vertex: Status, name: str) -> str:
    """Return the largest part of a second that a running subtask spent in this way."""
    running = [s["metrics"] for s in vertex["subtasks"] if s["state"] == "RUNNING"]
    parts = [metrics[name] for metrics in running if name in metrics]
    return f"{max(parts) / 10:.0f} %" if parts else "-"


def _size(stream: TextIO) -> tuple[int, int]:
    try:
        columns, lines = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):  # a terminal only by its word
        return 80, 24
    return columns or 80, lines or 24


class _Foot:
    """Lines at the end of what is on a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._height = 0
        self._within_line = False
        self._put_above: list[tuple[str, TextIO, _Above]] = []

    def draw(self, lines: list[str]) -> None:
        """Show these lines in place of the earlier ones; not while a line has been begun above them."""
        with self._lock:
            if not self._put_above:
                self._begin()
            for _, real, _ in self._put_above:
                real.flush()
            if not self._within_line:
                self._stream.write(f"{self._erasing()}{chr(10).join(lines)}\n")
                self._stream.flush()
                self._height = len(lines)

    def write_above(self, real: TextIO, text: str) -> int:
        """Write a string of the program."""
        with self._lock:
            self._erase()
            written = real.write(text)
            if text:
                self._within_line = not text.endswith("\n")
            return written

    def close(self, erase: bool) -> None:
        """Give the program its streams back."""
        with self._lock:
            for name, real, above in self._put_above:
                if getattr(sys, name) is above:
                    setattr(sys, name, real)
            self._put_above.clear()
            if erase:
                self._erase()
            self._height = 0

    def _begin(self) -> None:
        for name in ("stdout", "stderr"):
            real = getattr(sys, name)
            if is_terminal(real):
                above = _Above(self, real)
                self._put_above.append((name, real, above))
                setattr(sys, name, cast(TextIO, above))

    def _erase(self) -> None:
        if self._height:
            self._stream.write(self._erasing())
            self._stream.flush()
            self._height = 0

    def _erasing(self) -> str:
        return f"\x1b[{self._height}A\r\x1b[J" if self._height else ""


class _Above:
    """Stands for a stream of the program while there is a foot."""

    def __init__(self, foot: _Foot, real: TextIO) -> None:
        self._foot, self._real = foot, real

    def write(self, text: str) -> int:
        return self._foot.write_above(self._real, text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


__all__ = ["COLUMNS", "Progress", "is_terminal", "lag_text", "progress_shown"]
