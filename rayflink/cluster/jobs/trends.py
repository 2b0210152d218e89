"""The figures of running jobs over the last hour, so that a reader sees since when something is as it is."""

from __future__ import annotations

import math
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable
from typing import TypeAlias

from .cluster_job import Document
from .job_figures import job_row

__all__ = ["FIGURES", "Trends"]

FIGURES = ("read_per_second", "lag_ms", "busy_ms_per_second", "back_pressured_ms_per_second")
"""The figures of `job_row` that are remembered."""
_WIDTH = 1 + len(FIGURES)
Point: TypeAlias = "list[float | None]"


class Trends:
    """Remembers the figures of jobs at even distances; the oldest points go, and the jobs that ended first.

    >>> trends = Trends(every_ms=10)
    >>> trends.is_due(0), trends.of("a" * 32)
    (True, [])

    Args:
        every_ms: between two points.
        most_points: of a job.
        most_jobs: that are remembered, those that have ended included.
    """

    def __init__(self, every_ms: int = 10_000, most_points: int = 360, most_jobs: int = 250) -> None:
        self.every_ms = every_ms
        self._most_points, self._most_jobs = most_points, most_jobs
        self._noted_ms: int | None = None
        self._lock = threading.Lock()
        self._points: OrderedDict[str, array[float]] = OrderedDict()
        """Job id -> its points one after the other, each a time and its figures, NaN where one is not known."""

    def is_due(self, now_ms: int) -> bool:
        """Return whether it is time for the next point; a clock that was put back does not stop them."""
        return self._noted_ms is None or not 0 <= now_ms - self._noted_ms < self.every_ms

    def note(self, statuses: Iterable[Document], now_ms: int) -> None:
        """Add a point for each job, if it is time.

        Args:
            statuses: of jobs, as `JobView.status` gives them.
            now_ms: the time, epoch milliseconds.
        """
        if not self.is_due(now_ms):
            return
        self._noted_ms = now_ms
        rows = [row for status in statuses if (row := _row(status, now_ms)) is not None]
        with self._lock:
            for row in rows:
                self._add(str(row["jid"]), [row[name] for name in FIGURES], now_ms)
            while len(self._points) > self._most_jobs:
                self._points.popitem(last=False)

    def of(self, job_id: str) -> list[Point]:
        """Return the points of a job, the oldest first: the time, then the `FIGURES`; None where one is not known."""
        with self._lock:
            flat = list(self._points.get(job_id, ()))
        known = [None if math.isnan(value) else value for value in flat]
        return [known[begin : begin + _WIDTH] for begin in range(0, len(known), _WIDTH)]

    def _add(self, job_id: str, figures: Iterable[object], now_ms: int) -> None:
        points = self._points.setdefault(job_id, array("d"))
        self._points.move_to_end(job_id)
        points.append(now_ms)
        points.extend(float(value) if isinstance(value, (int, float)) else math.nan for value in figures)
        del points[: max(len(points) - self._most_points * _WIDTH, 0)]


def _row(status: Document, now_ms: int) -> Document | None:
    """Return the figures of a job; None where it has ended, or a build with another form of them runs it."""
    try:
        row: Document = job_row(status, now_ms)
    except (KeyError, TypeError, ValueError):
        return None
    return None if row["has_ended"] else row
