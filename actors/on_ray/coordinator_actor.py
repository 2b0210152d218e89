"""The coordinator of one job as a Ray actor.

A driver and the tasks load this module to call the actor; what it does is loaded in its own process alone.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import ray

if TYPE_CHECKING:
    from ..exchange.frames import TaskAddress
    from ..job.submission import Stored, Submission
    from ..messages.commands import Answer, Request
    from .driver.terminal import News, Text

START_WITHIN_S = 120.0
"""A coordinator that has no job by then has lost its driver, which waits less long for it to begin."""


class CoordinatorActor:
    """A `Coordinator` as other processes call it; `coordinator_class()` makes the Ray class.

    Where its process is lost, Ray makes another one by the same call: that one goes on with the job as it is stored.

    Args:
        job_id: 32 hex digits.
        stored: where the job is; None: nowhere, and it is lost with this process.
        title: name and id of the job, for people.

    Raises: when it comes back, what keeps it from going on.
    """

    def __init__(self, job_id: str, stored: Stored | None = None, title: str = "") -> None:
        from .ray_coordinator import Coordinator

        self._title = title or job_id
        self._coordinator = Coordinator(stored)
        self._started = threading.Event()
        if ray.get_runtime_context().was_current_actor_reconstructed:
            self._coordinator.come_back(job_id)
            self._started.set()
            return
        threading.Thread(target=self._expect_start, name="start", daemon=True).start()

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return f"coordinator of {self._title}"

    def _expect_start(self) -> None:
        """End a detached process whose driver died before it submitted the job."""
        if not self._started.wait(START_WITHIN_S):
            self._coordinator.leave()

    # calls of the driver

    @ray.method(concurrency_group="control")
    def start(self, submission: Submission) -> None:
        """Start the job.

        Raises: whatever loading the program here raises.
        """
        self._coordinator.start(submission)
        self._started.set()

    @ray.method(concurrency_group="control")
    def cancel(self, by: str) -> None:
        """Request cancellation."""
        self._coordinator.cancel(by)

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """Request that the sources end."""
        self._coordinator.stop()

    @ray.method(concurrency_group="wait")
    def answer_to(self, request: Request, timeout_s: float) -> Answer | None:
        """Send a request, or wait on for the answer to an earlier one; None when it takes longer than `timeout_s`."""
        return self._coordinator.answer_to(request, timeout_s)

    @ray.method(concurrency_group="control")
    def status(self) -> dict[str, Any]:
        """Return the job as plain data."""
        return self._coordinator.status()

    @ray.method(concurrency_group="control")
    def checkpoints(self, checkpoint_id: int | None) -> dict[str, Any] | None:
        """Return statistics of the job's checkpoints, or of one."""
        return self._coordinator.checkpoints(checkpoint_id)

    @ray.method(concurrency_group="wait")
    def result(self, timeout_s: float) -> bytes | None:
        """Return the result, packed, or None when the job has not ended within `timeout_s`."""
        return self._coordinator.result(timeout_s)

    @ray.method(concurrency_group="follow")
    def follow(self, timeout_s: float, with_texts: bool) -> News:
        """Return the news for the driver, within `timeout_s`; the call also shows that the driver lives."""
        return self._coordinator.follow(timeout_s, with_texts)

    @ray.method(concurrency_group="wait")
    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Return blocks of rows, waiting for the first at most `timeout_s`; None when all have been fetched."""
        return self._coordinator.rows(timeout_s)

    @ray.method(concurrency_group="control")
    def accumulators(self) -> bytes:
        """Return name -> value of the finished subtasks' accumulators, packed."""
        return self._coordinator.accumulators()

    # calls of the tasks

    @ray.method(concurrency_group="events")
    def report(self, reports: bytes) -> None:
        """Take a list of messages from a task."""
        self._coordinator.report(reports)

    @ray.method(concurrency_group="prints")
    def printed(self, chunks: list[Text]) -> None:
        """Take printed text of a task; returns when there is room for more."""
        self._coordinator.printed(chunks)

    @ray.method(concurrency_group="rows")
    def collected(self, block: bytes) -> None:
        """Take rows for the driver; returns when there is room for more."""
        self._coordinator.collected(block)

    @ray.method(concurrency_group="events")
    def process_of(self, attempt: TaskAddress) -> Any:
        """Return the actor in which an attempt runs, for a peer that was deployed before it."""
        return self._coordinator.process_of(attempt)


def coordinator_class() -> Any:
    """Return the Ray actor class: threads for tasks' reports, prints and rows, for control calls, and for waiting
    calls.
    """
    groups = {"events": 1, "prints": 1, "rows": 1, "control": 1, "follow": 1, "wait": 4}
    options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "concurrency_groups": groups}
    return ray.remote(**options)(CoordinatorActor)
