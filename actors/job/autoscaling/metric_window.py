"""The metrics of the last minutes: samples in a window, and rates over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .figures import Sample, SubtaskFigures

NEWEST_PART = 0.25
"""The part of a window that shows where a load that rises has got to."""
ALWAYS = 0.95
"""Share of its time from which a task counts as doing something always: between two reports it rests for a moment."""


@dataclass(frozen=True, slots=True)
class SubtaskRates:
    """The rates of one subtask between two reports.

    Args:
        records_in, records_out: a second.
        busy: share of its time; above 1 where a step was counted that is not over.
        back_pressured: share of its time, in [0, 1].
    """

    records_in: float
    records_out: float
    busy: float
    back_pressured: float

    @property
    def never_waits(self) -> bool:
        """Return whether it always had something to take: it was busy, or waited only for room."""
        return self.busy + self.back_pressured >= ALWAYS


class MetricWindow:
    """Samples of one layout of a job, the newest `window_ms` of them.

    Args:
        window_ms: length of the window.
        stabilization_ms: time after the first sample, whose samples do not count.
    """

    def __init__(self, window_ms: int, stabilization_ms: int) -> None:
        self._window_ms, self._stabilization_ms = window_ms, stabilization_ms
        self._samples: deque[tuple[int, Sample]] = deque()
        self._attempts: frozenset[str] | None = None
        self.begun_ms: int | None = None
        """When all tasks ran; None before."""

    def clear(self) -> None:
        """Forget all samples: the job starts, or changes."""
        self._samples.clear()
        self._attempts = self.begun_ms = None

    def add(self, now_ms: int, sample: Sample | None) -> None:
        """Add the sample of a moment; None, or one of other attempts, starts afresh."""
        if sample is None:
            self.clear()
            return
        attempts = frozenset(attempt for figures in sample.values() for attempt in figures)
        if attempts != self._attempts:
            self.clear()
            self._attempts, self.begun_ms = attempts, now_ms
        assert self.begun_ms is not None
        if now_ms - self.begun_ms < self._stabilization_ms:
            return
        self._samples.append((now_ms, sample))
        while len(self._samples) > 1 and self._samples[1][0] <= now_ms - self._window_ms:
            self._samples.popleft()

    @property
    def has_rates(self) -> bool:
        """Return whether there are two samples."""
        return len(self._samples) > 1

    @property
    def is_full(self) -> bool:
        """Return whether the samples span the window."""
        return self.has_rates and self._samples[-1][0] - self._samples[0][0] >= self._window_ms

    def progress(self, now_ms: int) -> str:
        """Return, for people, what is missing until it is full."""
        if self.begun_ms is None:
            return "waits until all tasks run and have reported"
        stable_ms = self.begun_ms + self._stabilization_ms
        if now_ms < stable_ms:
            return f"waits {_seconds(stable_ms - now_ms)} more until the job is stable"
        missing = self._window_ms - (now_ms - self._samples[0][0] if self._samples else 0)
        return f"collects metrics for {_seconds(max(0, missing))} more"

    @property
    def newest(self) -> Sample:
        """Return the newest sample."""
        return self._samples[-1][1]

    def rates(self, vertex_id: str) -> list[SubtaskRates]:
        """Return the rates of each subtask of a vertex over the window; those that have not reported twice are missing.
        """
        return self._between(vertex_id, self._samples[0][1], self.newest) if self.has_rates else []

    def steps(self, vertex_id: str) -> list[tuple[list[SubtaskRates], float]]:
        """Return the rates of a vertex between each two samples, and the records pending at the later."""
        samples = [sample for _, sample in self._samples]
        return [
            (self._between(vertex_id, earlier, later), pending_of(later, vertex_id))
            for earlier, later in zip(samples, samples[1:], strict=False)
        ]

    def knows_lag(self, vertex_id: str) -> bool:
        """Return whether a source reports how many records are pending."""
        return any(each.pending is not None for each in self.newest.get(vertex_id, {}).values())

    def lag_growth(self, vertex_id: str) -> float:
        """Return the records a second by which those pending at a source grew over the window."""
        (begun_ms, first), (ended_ms, last) = self._samples[0], self._samples[-1]
        grown = pending_of(last, vertex_id) - pending_of(first, vertex_id)
        return grown * 1000 / max(1, ended_ms - begun_ms)

    def newest_arrival_rate(self, vertex_id: str) -> float:
        """Return the records a second that have come in at a source in the newest part of the window.

        That part is `NEWEST_PART` of the window, and has two steps between samples at least.
        """
        since_ms = self._samples[-1][0] - NEWEST_PART * self._window_ms
        begun = max(0, len(self._samples) - 3)
        while begun > 0 and self._samples[begun][0] > since_ms:
            begun -= 1
        (begun_ms, first), (ended_ms, last) = self._samples[begun], self._samples[-1]
        taken = sum(rate.records_in for rate in self._between(vertex_id, first, last))
        grown = pending_of(last, vertex_id) - pending_of(first, vertex_id)
        return max(0.0, taken + grown * 1000 / max(1, ended_ms - begun_ms))

    def mean(self, read: Callable[[SubtaskFigures], float]) -> float:
        """Return the mean over the samples of the highest figure of a subtask; 0 where there is none."""
        highest = [
            max((read(each) for figures in sample.values() for each in figures.values()), default=0.0)
            for _, sample in self._samples
        ]
        return sum(highest) / len(highest) if highest else 0.0

    @staticmethod
    def _between(vertex_id: str, earlier: Sample, later: Sample) -> list[SubtaskRates]:
        rates = []
        before_by_attempt = earlier.get(vertex_id, {})
        for attempt, after in later.get(vertex_id, {}).items():
            before = before_by_attempt.get(attempt)
            if before is None or (passed_ms := after.reported_ms - before.reported_ms) <= 0:
                continue
            seconds = passed_ms / 1000
            rates.append(
                SubtaskRates(
                    (after.records_in - before.records_in) / seconds,
                    (after.records_out - before.records_out) / seconds,
                    max(0.0, (after.busy_ms - before.busy_ms) / passed_ms),
                    min(1.0, max(0.0, (after.back_pressured_ms - before.back_pressured_ms) / passed_ms)),
                )
            )
        return rates


def pending_of(sample: Sample, vertex_id: str) -> float:
    """Return the records pending at a source, over its subtasks; 0 where it reports none."""
    return sum(each.pending or 0.0 for each in sample.get(vertex_id, {}).values())


def _seconds(ms: int) -> str:
    return f"{ms / 1000:.0f} s"


__all__ = ["ALWAYS", "MetricWindow", "SubtaskRates", "pending_of"]
