"""Runs the coordinator's work on the checkpoint storage in order, beside its decisions."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass

from rayflink.common.text_output.logs import get_logger

log = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class StorageWorkStatistics:
    """The work on a checkpoint storage."""

    unfinished: int
    """Pieces of work that wait or are being done."""


class StorageWork:
    """A thread that does one piece of work after the other; a storage that hangs blocks that thread only."""

    def __init__(self) -> None:
        self._work: queue.Queue[tuple[Callable[..., object], tuple[object, ...]] | None] = queue.Queue()
        threading.Thread(target=self._run, name="checkpoint-files", daemon=True).start()

    def submit(self, do: Callable[..., object], *arguments: object) -> None:
        """Run this after all earlier work, with what is bound in this thread for its lines; an exception is logged."""
        self._work.put((copy_context().run, (_do, do, arguments)))

    def end(self, within_s: float) -> bool:
        """Wait until all is done; return False, and log it, if that takes longer than `within_s`."""
        deadline = time.monotonic() + within_s
        with self._work.all_tasks_done:
            while self._work.unfinished_tasks:
                left = deadline - time.monotonic()
                if left <= 0:
                    waiting = self._work.unfinished_tasks
                    log.warning(
                        "the storage of checkpoints did not answer within %.0f s: files of the job may be left behind "
                        "there (%d steps are not done)",
                        within_s,
                        waiting,
                    )
                    return False
                self._work.all_tasks_done.wait(left)
        return True

    def abandon(self, within_s: float) -> bool:
        """Drop the work that waits, and wait as `end` does for what is being done."""
        while True:
            try:
                self._work.get_nowait()
            except queue.Empty:
                return self.end(within_s)
            self._work.task_done()

    def close(self) -> None:
        """End the thread after all earlier work."""
        self._work.put(None)

    def statistics(self) -> StorageWorkStatistics:
        """Return the present counts."""
        return StorageWorkStatistics(self._work.unfinished_tasks)

    def _run(self) -> None:
        while True:
            work = self._work.get()
            try:
                if work is None:
                    return
                run, arguments = work
                run(*arguments)
            finally:
                self._work.task_done()


def _do(do: Callable[..., object], arguments: tuple[object, ...]) -> None:
    try:
        do(*arguments)
    except Exception:  # of one piece; the next ones are done all the same
        log.exception("work on the files of checkpoints failed")


__all__ = ["StorageWork"]
