"""Decides when the coordinator may trigger, and when the next periodic checkpoint is due. Pure.

Other than in Flink, where the first one comes after a random part of the interval, it comes after the whole interval.

Source: apache/flink CheckpointCoordinator.ScheduledTrigger, CheckpointRequestDecider.
"""

from __future__ import annotations

from collections.abc import Collection

from ..messages.checkpoint_settings import CheckpointSettings
from .plan import CheckpointProperties


class CheckpointTiming:
    """Tracks the interval, the minimum pause between two checkpoints, and requests for one at once.

    It begins suspended. While it is suspended, and while a savepoint stops the job, no checkpoint begins.
    """

    def __init__(self, settings: CheckpointSettings) -> None:
        self._settings = settings
        self._due_ms: int | None = None
        self._ended_ms: int | None = None
        self._wanted_from: int | None = None
        self.is_suspended = True
        """True if tasks are being started anew."""
        self.stopping: CheckpointProperties | None = None
        """The savepoint that stops the job, under way or complete; None while there is none."""

    @property
    def is_open(self) -> bool:
        """Return whether checkpoints may begin."""
        return not self.is_suspended and self.stopping is None

    def resume(self, now_ms: int) -> None:
        """Let checkpoints begin, and restart the interval."""
        self.is_suspended = False
        self._start(now_ms)

    def suspend(self) -> None:
        """Let no checkpoint begin until `resume`; stop the interval and drop requests."""
        self.is_suspended = True
        self._stop()

    def stop_with(self, savepoint: CheckpointProperties) -> None:
        """Let no further checkpoint begin: the job ends with a savepoint."""
        self._stop()
        self.stopping = savepoint

    def stop_failed(self, now_ms: int) -> None:
        """Go on as before: the job does not end with the savepoint."""
        self.stopping = None
        if not self.is_suspended:
            self._start(now_ms)

    def _start(self, now_ms: int) -> None:
        interval = self._settings.interval_ms
        self._due_ms = None if interval is None else now_ms + interval

    def _stop(self) -> None:
        self._due_ms = self._wanted_from = None

    def want(self, next_id: int) -> None:
        """Request a checkpoint with this number or a later one as soon as possible."""
        self._wanted_from = next_id

    def completed(self, checkpoint_id: int, commits: bool, now_ms: int) -> None:
        """Note that a checkpoint is complete; `commits` when the tasks are notified of it."""
        self._ended_ms = now_ms
        if commits and self._wanted_from is not None and checkpoint_id >= self._wanted_from:
            self._wanted_from = None

    def is_due(self, under_way: Collection[int], now_ms: int) -> bool:
        """Return whether a checkpoint should begin now; if so, the next periodic one is due an interval later.

        Args:
            under_way: numbers of those that have begun, savepoints included.
        """
        if not self.is_open or len(under_way) >= self._settings.max_concurrent:
            return False
        if self._wanted_from is not None and all(number < self._wanted_from for number in under_way):
            return True
        if self._due_ms is None or now_ms < self._due_ms:
            return False
        if self._ended_ms is not None and now_ms < self._ended_ms + self._settings.min_pause_ms:
            self._due_ms = self._ended_ms + self._settings.min_pause_ms
            return False
        assert self._settings.interval_ms is not None
        missed = (now_ms - self._due_ms) // self._settings.interval_ms
        self._due_ms += (missed + 1) * self._settings.interval_ms
        return True

    @property
    def due_ms(self) -> int | None:
        """Return the time at which the interval has passed; None when it does not run."""
        return self._due_ms


__all__ = ["CheckpointTiming"]
