"""A job in this process that loses tasks, ends without notice, and goes on from its newest checkpoint."""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.local.local_runs import sleep
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.clock import SystemClock

from .crash_points import CrashPoints

CHECKPOINT_INTERVAL_MS = 20
ENDS_WITHIN_S = 60.0
"""Time in which a condition is to come true."""
_OPTIONS = {
    "execution.target": "local",
    "execution.checkpointing.interval": f"{CHECKPOINT_INTERVAL_MS} ms",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


@contextmanager
def quick_collections() -> Iterator[None]:
    """Let garbage collections look at objects of the block alone, however many the program has.

    What the program itself froze before stays frozen, and with it all other objects of that time.
    """
    gc.collect()
    had_frozen = gc.get_freeze_count() > 0
    gc.freeze()
    try:
        yield
    finally:
        if not had_frozen:
            gc.unfreeze()


class CrashingJob:
    """A job that a test kills and restores.

    Args:
        write: writes the program into an environment; operators with state have a uid.
        folder: of the checkpoints.
        points: whose choices the job shares, and whose connectors lose their connections with their process.
        parallelisms: of which each start draws one.
        options: of the job; None for none.
    """

    def __init__(
        self,
        write: Callable[[StreamExecutionEnvironment], object],
        folder: Path,
        points: CrashPoints,
        parallelisms: Sequence[int],
        options: Mapping[str, str] | None = None,
    ) -> None:
        self._options = options or {}
        self._write, self._folder, self._points, self._parallelisms = write, folder, points, parallelisms
        self._draw = points.draw
        self._newest = ""
        self.events: list[str] = []
        """What happened to the job, in order."""
        self._cluster = self._start()

    @property
    def has_ended(self) -> bool:
        """Return whether the job has ended by itself, or failed."""
        return self._cluster.result is not None

    @property
    def checkpoints(self) -> int:
        """Return how many checkpoints have been completed since the last start."""
        return len(self._metadata())

    def turn(self, turns: int, within_s: float = math.inf) -> None:
        """Let the job go on for some rounds, or to its end.

        Args:
            turns: number of rounds.
            within_s: seconds after which no round begins; one in which restored commits are tried again takes long.
        """
        deadline = time.monotonic() + within_s
        for _ in range(turns):
            if self.has_ended or time.monotonic() > deadline:
                return
            if not self._cluster.turn():
                self._cluster.pause()

    def turn_until(self, condition: Callable[[], bool], problem: Callable[[], str]) -> None:
        """Let the job go on until a condition holds.

        Args:
            problem: describes for the error that it does not hold.

        Raises:
            AssertionError: it does not hold in time, or the job failed.
        """
        deadline = time.monotonic() + ENDS_WITHIN_S
        while not condition():
            self.check()
            assert not self.has_ended or condition(), f"{problem()}, and the job has ended; {self.describe()}"
            assert time.monotonic() < deadline, f"{problem()} after {ENDS_WITHIN_S:.0f} s; {self.describe()}"
            self.turn(5)

    def check(self) -> None:
        """Check that the job has not failed for good.

        Raises:
            AssertionError: it has; with its failure.
        """
        result = self._cluster.result
        failure = None if result is None else result.failure
        assert failure is None, f"the job failed: {failure.describe() if failure else ''}; {self.describe()}"

    def kill_task(self) -> None:
        """Kill a task without notice; the job restarts it, and what depends on it."""
        attempts = list(self._cluster.tasks)
        if attempts and not self.has_ended:
            self.events.append("kill a task")
            attempt = self._draw.choice(attempts)
            subtask = self._cluster.job.executions[attempt].subtask
            self._cluster.kill(attempt, "the test killed it")
            self._points.release(subtask)

    def end_without_notice(self) -> None:
        """Drop the job as a process drops it that is killed, and restore it with a parallelism that is drawn."""
        if self.has_ended:  # its records are final, and its checkpoints are deleted
            return
        self._newest = self._newest_checkpoint()
        for attempt in list(self._cluster.tasks):
            self._cluster.kill(attempt, "its process is killed")
        del self._cluster
        self._points.release()
        gc.collect()  # connections end with their process
        self._cluster = self._start()

    def cancel(self) -> None:
        """End the job."""
        if not self.has_ended:
            self._cluster.cancel()
            deadline = time.monotonic() + ENDS_WITHIN_S
            while not self.has_ended and time.monotonic() < deadline:
                self.turn(1)

    def describe(self) -> str:
        """Return the happenings, and the failures of the present start."""
        failures = [entry.failure.message for entry in self._cluster.job.exceptions]
        return f"happenings: {self.events}; failures: {failures[-5:]}"

    def _start(self) -> InProcessCluster:
        parallelism = self._draw.choice(list(self._parallelisms))
        self.events.append(f"start with parallelism {parallelism} from {self._newest or 'nothing'}")
        options = {
            **_OPTIONS, "parallelism.default": str(parallelism), "execution.checkpointing.dir": str(self._folder),
            **self._options,
        }  # fmt: skip
        if self._newest:
            options["execution.state-recovery.path"] = self._newest
        env = StreamExecutionEnvironment(options)
        self._write(env)
        graph = env.get_job_graph()
        self._job_folder = self._folder / str(graph.id)
        woken = threading.Event()
        return InProcessCluster(graph, SystemClock(), partial(sleep, woken), wake=woken.set)

    def _metadata(self) -> list[Path]:
        return sorted(self._job_folder.glob("chk-*/_metadata"), key=lambda path: int(path.parent.name[4:]))

    def _newest_checkpoint(self) -> str:
        metadata_paths = self._metadata()
        return str(metadata_paths[-1].parent) if metadata_paths else self._newest


__all__ = ["CrashingJob", "quick_collections"]
