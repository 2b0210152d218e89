"""The coordinator of one job as a Ray actor.

A driver and the tasks load this module to call the actor; what it does is loaded in its own process alone.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import ray

if TYPE_CHECKING:
    from .commands import Answer, Request
    from .exchange.frames import TaskAddress
    from .terminal import News, Text

START_WITHIN_S = 120.0
"""A coordinator that has no job by then has lost its driver, which waits less long for it to begin."""


@dataclass(frozen=True, slots=True)
class Submission:
    """What a driver hands in.

    Args:
        program: the packed job graph.
        cached_files: name -> path of the distributed cache.
        slot_cpus: CPUs of one slot.
        namespace: Ray namespace of all actors of the job.
        placement: Ray's strategy for the slots: PACK, SPREAD, STRICT_PACK or STRICT_SPREAD.
        owner_timeout_ms: the job is cancelled when its driver has not been heard of for so long; None: it goes on.
    """

    program: bytes
    cached_files: Mapping[str, str] = field(default_factory=dict)
    slot_cpus: float = 1.0
    namespace: str = "rayflink"
    placement: str = "PACK"
    owner_timeout_ms: int | None = None


class CoordinatorActor:
    """A `Coordinator` as others call it; `coordinator_class()` makes the Ray class."""

    def __init__(self) -> None:
        from .ray_coordinator import Coordinator

        self._coordinator = Coordinator()
        self._started = threading.Event()
        threading.Thread(target=self._expect_start, name="start", daemon=True).start()

    def _expect_start(self) -> None:
        """End a process that is detached, and that no driver has given its job: it died before it could."""
        if not self._started.wait(START_WITHIN_S):
            os._exit(1)

    # calls of the driver

    @ray.method(concurrency_group="control")
    def start(self, submission: Submission) -> None:
        """Begin.

        Raises: whatever loading the program here raises.
        """
        self._coordinator.start(submission)
        self._started.set()

    @ray.method(concurrency_group="control")
    def cancel(self, by: str) -> None:
        """Ask for cancellation."""
        self._coordinator.cancel(by)

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """Let the sources end."""
        self._coordinator.stop()

    @ray.method(concurrency_group="wait")
    def answer_to(self, request: Request, timeout_s: float) -> Answer | None:
        """Ask for something, or wait on for what was asked for; None when it takes longer than `timeout_s`."""
        return self._coordinator.answer_to(request, timeout_s)

    @ray.method(concurrency_group="control")
    def status(self) -> dict[str, Any]:
        """The job as plain data."""
        return self._coordinator.status()

    @ray.method(concurrency_group="control")
    def checkpoints(self) -> dict[str, Any]:
        """Statistics of the job's checkpoints."""
        return self._coordinator.checkpoints()

    @ray.method(concurrency_group="wait")
    def result(self, timeout_s: float) -> bytes | None:
        """The result, packed, or None when the job has not ended within `timeout_s`."""
        return self._coordinator.result(timeout_s)

    @ray.method(concurrency_group="follow")
    def follow(self, timeout_s: float, with_texts: bool) -> News:
        """What is new for the driver, within `timeout_s`; also tells that the driver lives, if only that."""
        return self._coordinator.follow(timeout_s, with_texts)

    @ray.method(concurrency_group="wait")
    def rows(self, timeout_s: float) -> tuple[bytes, ...] | None:
        """Blocks of collected rows, waiting for the first at most `timeout_s`; None when all have been drawn."""
        return self._coordinator.rows(timeout_s)

    @ray.method(concurrency_group="control")
    def accumulators(self) -> bytes:
        """Name -> value of the subtasks that have finished, packed."""
        return self._coordinator.accumulators()

    # calls of the tasks

    @ray.method(concurrency_group="events")
    def report(self, reports: bytes) -> None:
        """What a task has to say: a list of messages."""
        self._coordinator.report(reports)

    @ray.method(concurrency_group="prints")
    def printed(self, texts: list[Text]) -> None:
        """What a task has printed; returns when there is room for more."""
        self._coordinator.printed(texts)

    @ray.method(concurrency_group="rows")
    def collected(self, block: bytes) -> None:
        """Rows for the driver; returns when there is room for more."""
        self._coordinator.collected(block)

    @ray.method(concurrency_group="events")
    def process_of(self, attempt: TaskAddress) -> Any:
        """The actor in which an attempt runs, for a peer that was deployed before it."""
        return self._coordinator.process_of(attempt)


def coordinator_class() -> Any:
    """The Ray actor class: threads for what tasks report, print and collect, for control calls, and for who waits."""
    groups = {"events": 1, "prints": 1, "rows": 1, "control": 1, "follow": 1, "wait": 4}
    options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "concurrency_groups": groups}
    return ray.remote(**options)(CoordinatorActor)
