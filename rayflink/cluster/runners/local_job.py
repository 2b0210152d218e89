"""A job in a thread of this process, which other threads read and ask."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Any, TypeVar

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.actors.job.notes.registry_notes import note_end
from rayflink.actors.job.rates import Rates
from rayflink.actors.job.submission import Stored
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.local.local_runs import sleep
from rayflink.actors.messages.commands import (
    CheckpointRequested,
    JobResult,
    Request,
    RescaleRequested,
    SavepointRequested,
)
from rayflink.actors.on_ray.driver.terminal import News, Terminal
from rayflink.actors.on_ray.result_buffer import ResultBuffer
from rayflink.common.errors import ControlPlaneTimeout, described
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.text_output.logs import bind, get_logger
from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.connectors.collected import RowBlock, rows_go_to
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock

from ..jobs.cluster_job import Document
from .printed_lines import PrintedLines

__all__ = ["LocalJob"]

log = get_logger(__name__)
T = TypeVar("T")

PUBLISH_EVERY_S = 0.25
"""Time between two descriptions of the job for other threads."""
MOVING_S = 0.1
"""Time in which a suspended job answers."""
ANSWER_S = 5.0
"""A question that the job's thread has not answered by then is an error: a function of the user does not return."""


class LocalJob:
    """A job that begins with `begin`.

    Args:
        graph: the job.
        description: as `describe_graph` gives it.
        owner_timeout_ms: it is cancelled when no client has asked for news for so long; None: it goes on.
        at_end: called in the job's thread when it has ended.
        ends_at: where its end is noted before anybody learns of it; None: nowhere.
        began_ms: when the job began, epoch milliseconds; 0: it begins now.

    Raises:
        StateError: what the job starts from cannot be read.
    """

    def __init__(
        self, graph: JobGraph, description: Document, owner_timeout_ms: int | None,
        at_end: Callable[[LocalJob], None], ends_at: Stored | None = None, began_ms: int = 0,
    ) -> None:  # fmt: skip
        self.job_id = str(graph.id)
        self._description, self._at_end, self._ends_at = description, at_end, ends_at
        self._owner_timeout_s = None if owner_timeout_ms is None else owner_timeout_ms / 1000
        self._owner_seen = time.monotonic()
        self._woken, self._ended = threading.Event(), threading.Event()
        self._cluster = InProcessCluster(
            graph, SystemClock(), partial(sleep, self._woken), dict(graph.user_artifacts), wake=self._woken.set
        )
        self._cluster.job.begun_at(began_ms)
        self.terminal = Terminal()
        self._buffer = ResultBuffer(lambda: not self._ended.is_set() and not self._is_leaving)
        self._is_cancelled = self._is_suspended = False
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._result: JobResult | None = None
        self._fault: str | None = None
        self._rates, self._published_at = Rates(), 0.0
        self._status: Document = {}
        self._answers_seen = 0
        self._answered: dict[str, Any] = {}
        """The answers to requests whose effect others see already."""
        self._checkpoint_statistics: Document = {}
        self._publish()
        self._thread = threading.Thread(target=self._run, name=f"job {graph.name}", daemon=True)

    def begin(self, lines: PrintedLines) -> None:
        """Start the thread; what its functions print goes to the lines of this job."""
        self._lines = lines
        self._thread.start()

    def join(self, timeout_s: float) -> bool:
        """Wait for the job's end; return whether it has ended."""
        return self._ended.wait(timeout_s)

    # for readers

    def status(self) -> Document:
        return self._status

    def description(self) -> Document:
        return self._description

    def checkpoints(self, checkpoint_id: int | None = None) -> Document | None:
        if checkpoint_id is None:
            return self._checkpoint_statistics
        return self._in_job(lambda: self._cluster.job.checkpoints.history.describe(checkpoint_id))

    def accumulators(self) -> Document:
        return self._in_job(self._cluster.job.report.accumulators)

    # for operators

    def cancel(self, by: str = "the user") -> None:
        self._ensure_here()
        self._cancel(by)

    def _cancel(self, by: str) -> None:
        self._is_cancelled = True
        self._buffer.discard()
        self._cluster.cancel(by)
        self._woken.set()

    def stop(self) -> None:
        self._ensure_here()
        self._cluster.stop()
        self._woken.set()

    def suspend(self) -> None:
        """Let the job end here without being over: it goes on elsewhere, from its newest checkpoint.

        Rows that its client has not drawn can still be drawn.
        """
        self._is_suspended = True
        self._woken.set()

    def wait_until_drawn(self, timeout_s: float) -> bool:
        """Wait until the client has drawn all rows; return whether it has."""
        return self._buffer.wait_until_empty(timeout_s)

    def _ensure_here(self) -> None:
        if self.is_suspended:
            raise ControlPlaneTimeout("a request", f"job {self.job_id}, which goes on elsewhere", 0)

    @property
    def is_suspended(self) -> bool:
        """Return whether it has ended here without being over."""
        return self._is_suspended and self._result is None

    @property
    def _is_leaving(self) -> bool:
        return self._is_cancelled or self._is_suspended

    def savepoint(
        self, request_id: str, directory: str, stop: StopMode | None, timeout_s: float
    ) -> tuple[str, str] | None:
        answer = self._answer(SavepointRequested(request_id, directory, stop), timeout_s)
        return None if answer is None else (answer.location, answer.failure)

    def checkpoint(self, request_id: str, timeout_s: float) -> tuple[int, str] | None:
        answer = self._answer(CheckpointRequested(request_id), timeout_s)
        return None if answer is None else (answer.checkpoint_id, answer.failure)

    def rescale(self, request_id: str, parallelism: Mapping[str, int], timeout_s: float) -> tuple[int, str] | None:
        answer = self._answer(RescaleRequested(request_id, dict(parallelism)), timeout_s)
        return None if answer is None else (answer.pause_ms, answer.failure)

    def _answer(self, request: Request, timeout_s: float) -> Any:
        """Return the answer to a request, which the job is asked once; None where it takes longer."""
        until = time.monotonic() + timeout_s
        self._cluster.request(request)
        self._woken.set()
        while request.request_id not in self._answered:
            if self._ended.wait(min(0.02, max(until - time.monotonic(), 0))):
                self._ensure_here()
                return self._answered.get(request.request_id) or request.job_has_ended()
            if time.monotonic() >= until:
                return None
        return self._answered[request.request_id]

    # for its client

    def news(self, timeout_s: float, with_texts: bool) -> News:
        self._owner_seen = time.monotonic()
        if not with_texts:
            self.terminal.attend()
            return News()
        chunks = self.terminal.take(timeout_s)
        self._owner_seen = time.monotonic()
        if self.is_suspended and not chunks:
            return self._moving(timeout_s, News())
        is_over = self._ended.is_set() and not self.is_suspended and self.terminal.is_empty and self._buffer.is_empty
        return News(chunks, "", self._packed_result() if is_over else None)

    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        self._owner_seen = time.monotonic()
        blocks = self._buffer.take(timeout_s)
        return self._moving(timeout_s, ()) if blocks is None and self.is_suspended else blocks

    def result(self, timeout_s: float) -> bytes | None:
        if not self._ended.wait(timeout_s):
            return None
        return self._moving(timeout_s, None) if self.is_suspended else self._packed_result()

    def _moving(self, timeout_s: float, answer: T) -> T:
        """Return the answer of a job that goes on elsewhere, a moment later, so that it is not asked all the time."""
        time.sleep(min(timeout_s, MOVING_S))
        return answer

    def packed_accumulators(self) -> bytes:
        return to_bytes(self._in_job(self._cluster.job.report.accumulators))

    def _packed_result(self) -> bytes:
        if self._result is None:
            raise RuntimeError(f"job {self.job_id} ended without a result: {self._fault}")
        return to_bytes(self._result)

    # the job's thread

    def _run(self) -> None:
        bind(job=self.job_id)
        try:
            with self._lines.of_this_thread(self.job_id, self.terminal), rows_go_to(_Rows(self._buffer)):
                self._result = self._cluster.run(self._between)
        except _Suspended:
            self._cluster.abandon()
        except BaseException as error:  # the last resort: whoever waits for the job must learn of it
            log.exception("a local job broke down")
            self._fault = described(error)
        finally:
            self._publish()
            if self._result is not None:
                self._note_end(self._result)
            self._ended.set()
            self._buffer.close()
            self.terminal.close()
            self._answer_calls()
            self._at_end(self)

    def _note_end(self, result: JobResult) -> None:
        """Note the end in the registry, so that no dispatcher starts the job again, also if this process ends now."""
        if self._ends_at is None:
            return
        details = self._cluster.job.checkpoints.history.describe
        try:
            archive = JobArchive.of(self._status, self._description, details, result.accumulators)
            note_end(self._ends_at.open(), archive)
        except Exception as error:  # the dispatcher notes it later; its clients wait for the end
            log.warning("the end of the job could not be noted: %s", described(error))

    def _between(self) -> None:
        """Answer other threads, between two rounds of the job."""
        if self._is_suspended and not self._is_cancelled:  # a job that is being cancelled comes to its end
            raise _Suspended
        self._answer_calls()
        now = time.monotonic()
        changed = self._cluster.job.status.value != self._status["state"]
        if changed or self._cluster.answers.count != self._answers_seen or now - self._published_at >= PUBLISH_EVERY_S:
            self._publish()
        if self._owner_timeout_s is not None and now - self._owner_seen > self._owner_timeout_s:
            self._owner_timeout_s = None
            self._cancel("the loss of its client")

    def _answer_calls(self) -> None:
        while self._calls:
            call, future = self._calls.popleft()
            try:
                future.set_result(call())
            except Exception as error:  # is raised where it was asked
                future.set_exception(error)

    def _publish(self) -> None:
        job = self._cluster.job
        self._cluster.record_history()
        described = job.report.describe()
        self._published_at = time.monotonic()
        described["vertices"] = self._rates.added(described["vertices"], self._published_at)
        if self._fault is not None:
            described = {**described, "state": "FAILED", "fault": self._fault}
        self._status = described
        self._checkpoint_statistics = job.checkpoints.history.describe(None) or {}
        if self._answers_seen != self._cluster.answers.count:
            self._answered = dict(self._cluster.answers)
            self._answers_seen = self._cluster.answers.count

    def _in_job(self, call: Callable[[], T]) -> T:
        """Return what a call returns in the job's thread, which no other thread may read meanwhile.

        Raises:
            ControlPlaneTimeout: that thread does not come to it, as a function of the user has not returned.
        """
        if self._ended.is_set():
            return call()
        future: Future[T] = Future()
        self._calls.append((call, future))
        self._woken.set()
        try:
            return future.result(ANSWER_S)
        except FutureTimeout as error:
            if self._ended.is_set():
                return call()
            raise ControlPlaneTimeout("a question", f"job {self.job_id}", int(ANSWER_S * 1000)) from error


class _Suspended(Exception):
    """Ends the thread of a job that is suspended."""


class _Rows:
    """Takes rows of the job's tasks; the job waits while its client has drawn too few."""

    def __init__(self, buffer: ResultBuffer) -> None:
        self._buffer = buffer

    def put(self, block: RowBlock) -> None:
        self._buffer.put(to_bytes(block))

    def flush(self) -> None:
        pass
