"""Calls of a committer beside its task: any call, and the beginning of commits whose checkpoint is not yet complete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import copy_context
from threading import Event, Thread
from typing import Any

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import Committer

from .base import ProcessingTime


class BackgroundCall:
    """A call of a committer in a thread of its own.

    Args:
        work: the call.
        wake: called by the thread when the call has ended.
    """

    def __init__(self, work: Callable[[], None], wake: Callable[[], None]) -> None:
        self._work, self._wake = work, wake
        self._ended = Event()
        self._error: BaseException | None = None
        Thread(target=copy_context().run, args=(self._run,), name="commit", daemon=True).start()

    @property
    def has_ended(self) -> bool:
        """Return whether `wait` returns at once."""
        return self._ended.is_set()

    def ends_within(self, seconds: float | None) -> bool:
        """Wait for the end of the call; return whether it has ended in time."""
        return self._ended.wait(seconds)

    def wait(self) -> None:
        """Return when the call has ended; raise what it raised."""
        self._ended.wait()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            self._error = error
        self._ended.set()
        self._wake()


class EarlyCommits:
    """The commits that a committer begins before their checkpoint is complete, those of one checkpoint at a time.

    They are taken back after a while. Then nothing is begun early until a checkpoint is complete sooner than that.

    Args:
        clock: of the task.
        wake: lets the task step soon, may be called by any thread.
    """

    def __init__(self, committer: Committer, clock: ProcessingTime, wake: Callable[[], None]) -> None:
        self._committer, self._clock, self._wake = committer, clock, wake
        self._call: tuple[BackgroundCall, list[CommitRequest[Any]]] | None = None
        self._snapshot_ms = self._until_ms = 0
        self._is_slow = False

    @property
    def due_ms(self) -> int | None:
        """Return the time at which `end_late` takes back what was begun; None: nothing was."""
        return None if self._call is None else self._until_ms

    def begin(self, requests: list[CommitRequest[Any]]) -> None:
        """Let the committer begin requests, beside the task, unless it has begun others or checkpoints take long."""
        self._snapshot_ms = self._clock.now_ms()
        if self._call is not None or self._is_slow or not requests:
            return
        self._until_ms = self._snapshot_ms + self._committer.early_ms
        self._call = BackgroundCall(lambda: self._committer.begin(requests), self._wake), requests

    def complete(self) -> None:
        """Note that a checkpoint is complete."""
        self._is_slow = self._clock.now_ms() - self._snapshot_ms >= self._committer.early_ms

    def end_late(self) -> None:
        """Take back what was begun too long ago."""
        if self._call is not None and self._clock.now_ms() >= self._until_ms:
            self._is_slow = True
            self.drop()

    def has_begun(self, requests: Sequence[CommitRequest[Any]]) -> bool:
        """Return whether exactly these requests were begun, when that has ended; others are taken back.

        Raises:
            Exception: it failed.
        """
        if self._call is not None and self._call[1] == requests:
            (call, _), self._call = self._call, None
            call.wait()
            return True
        self.drop()
        return False

    def drop(self) -> None:
        """Take back what was begun, when that has ended."""
        if self._call is not None:
            (call, _), self._call = self._call, None
            call.ends_within(None)
            self._committer.abandon()


__all__ = ["BackgroundCall", "EarlyCommits"]
