"""The client of a job that runs in this process, and lets it run."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from rayflink.actors.local.local_runs import LocalRows, fewer_collections, sleep, warn_not_executed, without_restarts
from rayflink.actors.messages.commands import RescaleRequested, SavepointRequested
from rayflink.actors.task.stalls import running_code
from rayflink.common.completable_future import CompletableFuture
from rayflink.common.errors import JobExecutionError
from rayflink.common.job_execution_result import JobExecutionResult
from rayflink.common.job_status import JobStatus
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.signals import heeding_signals
from rayflink.connectors.collected import DrawnOnce, rows_go_to
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock

from .submitted_job import SubmittedJob

if TYPE_CHECKING:
    from rayflink.actors.local.in_process import InProcessCluster
    from rayflink.actors.messages.commands import JobResult

TURN_S = 0.05
"""Seconds that a local job goes on when its status is asked for."""
STILL_RUNS_S = 3.0
"""Seconds after Ctrl-C at which a program prints which function keeps its job from ending."""
LEFT_TIMEOUT_S = 10.0
"""Seconds that the end of the program waits for a thread that still lets a local job run."""


class LocalJobClient(SubmittedJob):
    """A job in this process: it runs while the program waits for it, draws its rows, or asks for its status.

    It prints a note where the program has not let it run to its end.
    """

    def __init__(self, graph: JobGraph) -> None:
        super().__init__(graph.id)
        from rayflink.actors.local.in_process import InProcessCluster  # slow: it loads numpy

        woken = threading.Event()
        files = dict(graph.user_artifacts)
        graph = without_restarts(graph)
        self._cluster = InProcessCluster(graph, SystemClock(), partial(sleep, woken), files, wake=woken.set)
        self._unasked = weakref.finalize(self, warn_not_executed, graph.name)
        self._rows, self._once = LocalRows(), DrawnOnce(graph.id)
        self._turning = threading.RLock()
        """Held by the thread that lets the job run."""
        self._left = weakref.finalize(self, _end_left, self._cluster, self._rows, self._turning, os.getpid())

    def get_job_status(self) -> CompletableFuture[JobStatus]:
        """Return where the job stands; it then runs on for a moment, so that a program which polls it sees progress."""
        asked = super().get_job_status()
        self._poll(TURN_S)
        return asked

    def wait(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> JobResult:
        self._unasked.detach()
        last = time.monotonic()

        def report() -> None:
            nonlocal last
            if on_progress is not None and time.monotonic() - last >= 1:
                last = time.monotonic()
                on_progress(self.status())

        with self._turning, heeding_signals(self._interrupted), rows_go_to(self._rows), fewer_collections():
            return self._cluster.run(report)

    def draw(self) -> list[Any] | None:
        self._unasked.detach()
        while True:
            with self._turning, heeding_signals(self._interrupted), rows_go_to(self._rows), fewer_collections():
                while not self._rows and self._cluster.result is None:
                    if not self._cluster.turn():
                        self._cluster.pause()
            if not self._rows:
                self._ask_result(None)
                return None
            try:
                if rows := self._once.new(self._rows.taken()):
                    return rows
            except JobExecutionError:
                self._left()
                raise

    def _interrupted(self, by: str) -> None:
        """End the job on a signal, as soon as the function that runs returns; one that does not is named."""
        self._cluster.cancel(by)
        timer = threading.Timer(STILL_RUNS_S, self._name_running_function, [threading.get_ident()])
        timer.daemon = True
        timer.start()

    def _name_running_function(self, thread: int) -> None:
        operator, place = running_code(sys._current_frames().get(thread))
        if operator and self._cluster.result is None:
            where = f" ({place})" if place else ""
            message = f"the job ends when {operator!r} returns{where}; another Ctrl-C interrupts that"
            print(message, file=sys.stderr, flush=True)

    def abandon(self) -> None:
        self._left()

    def detach(self) -> JobExecutionResult:
        self._cancel()
        reason = "cannot go on without this program: execution.target is local, and execution.attached is false"
        raise JobExecutionError(self._job_id, reason, "run it on a cluster, or attached")

    def _poll(self, timeout_s: float) -> JobResult | None:
        until = time.monotonic() + max(timeout_s, TURN_S)
        if self._turning.acquire(timeout=max(timeout_s, 0)):  # else another thread lets it run
            try:
                with rows_go_to(self._rows):
                    while self._cluster.result is None and time.monotonic() < until:
                        if self._cluster.turn():
                            continue
                        if timeout_s <= TURN_S:
                            break  # whoever only looks does not wait for it
                        self._cluster.pause()
            finally:
                self._turning.release()
        if self._cluster.result is not None:
            self._unasked.detach()
        return self._cluster.result

    def _cancel(self) -> None:
        self._unasked.detach()
        self._cluster.cancel()

    def _ask_savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float | None
    ) -> tuple[str, str] | None:
        answer = self._ask(SavepointRequested(request_id, directory, stop), timeout_s)
        return answer if answer is None else (answer.location, answer.failure)

    def _ask_rescale(
        self, request_id: str, parallelism: Mapping[str, int], timeout_s: float | None
    ) -> tuple[int, str] | None:
        answer = self._ask(RescaleRequested(request_id, parallelism), timeout_s)
        return answer if answer is None else (answer.pause_ms, answer.failure)

    def _ask(self, request: Any, timeout_s: float | None) -> Any:
        """Let the job run until it has answered; None where it has not within `timeout_s`."""
        cluster = self._cluster
        self._unasked.detach()
        cluster.request(request)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while request.request_id not in cluster.answers:
            if cluster.result is not None:
                return request.job_has_ended()
            if until is not None and time.monotonic() >= until:
                return None
            if not self._turning.acquire(timeout=TURN_S):
                continue  # another thread lets it run
            try:
                with rows_go_to(self._rows):
                    if request.request_id not in cluster.answers and not cluster.turn():
                        cluster.pause()
            finally:
                self._turning.release()
        return cluster.answers[request.request_id]

    def _checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        return self._cluster.job.checkpoints.history.describe(checkpoint_id)

    def _accumulators(self) -> dict[str, Any]:
        return self._cluster.job.report.accumulators()

    def _describe(self) -> dict[str, Any]:
        return self._cluster.job.report.describe()


def _end_left(cluster: InProcessCluster, rows: LocalRows, turning: threading.RLock, process: int) -> None:
    """Cancel a job that has begun and will not be run further, so that its functions close and its files are removed.

    Args:
        turning: held by the thread that lets the job run; one that still does so at exit ends the job itself.
        process: that of the job; a fork of it leaves the job alone.
    """
    if cluster.result is not None or not cluster.has_started or os.getpid() != process:
        return
    cluster.cancel("the end of those who had a hold of it")
    if not turning.acquire(timeout=LEFT_TIMEOUT_S):
        print("a local job that another thread runs did not end with the program", file=sys.stderr)
        return
    until = time.monotonic() + LEFT_TIMEOUT_S
    try:
        with rows_go_to(rows):
            while cluster.result is None and time.monotonic() < until:
                if not cluster.turn():
                    if not cluster.tasks:  # an error on the way left none that could answer
                        break
                    cluster.pause()
    finally:
        for attempt in list(cluster.tasks):  # an error on the way left them
            cluster.kill(attempt, "its job was left")
        turning.release()


__all__ = ["LocalJobClient"]
