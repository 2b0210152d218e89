"""The job that a request of rayflink's own clients is about, which may be on its way back."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from rayflink.common.errors import ControlPlaneTimeout, TaskLost
from rayflink.common.job_status import JobStatus
from rayflink.serving.json_requests import JsonRequest, Refusal
from rayflink.state.storage.storage import StorageError

from ..dispatcher.dispatcher import Dispatcher, NotReady
from ..jobs.cluster_job import JobHasEnded, JobView, RunningJob, UnknownJob
from ..registry.leadership import DispatcherFenced
from ..runners.runner import StartedJob
from .typed_requests import hex_id

__all__ = ["MOST_WAIT_S", "EndedJob", "JobFinder", "asked", "natural", "wait_s"]

T = TypeVar("T")
MOST_DIGITS = 18
MOST_WAIT_S = 20.0
"""The longest time that a request waits."""
LOOK_EVERY_S = 0.1


@dataclass(frozen=True)
class EndedJob:
    """A job that has ended, and of which nothing is left to draw.

    Args:
        view: what can be read of it.
    """

    view: JobView


class JobFinder:
    """Finds jobs; one that a dispatcher is about to bring back is waited for, and not unknown.

    Args:
        dispatcher: of the cluster.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def ensure_ready(self) -> None:
        """Refuse a request while the dispatcher does not know its jobs yet. Raises: `Refusal`."""
        if not self._dispatcher.is_ready:
            raise Refusal(503, str(NotReady()))

    def view(self, request: JsonRequest) -> JobView:
        """Return the job to read. Raises: `Refusal`: there is none, or its end cannot be read now."""
        self.ensure_ready()
        try:
            return asked(lambda: self._dispatcher.view(hex_id(request, "jobid")))
        except UnknownJob as error:
            raise Refusal(404, str(error)) from error

    def running(self, request: JsonRequest) -> RunningJob:
        """Return the job to ask.

        Raises:
            Refusal: there is none, it is being brought back, or it has ended.
        """
        view, job_id = self.view(request), hex_id(request, "jobid")
        try:
            return self._dispatcher.running(job_id)
        except JobHasEnded as error:
            raise Refusal(410, str(error)) from error
        except UnknownJob as error:
            if is_over(view):
                raise Refusal(410, f"job {job_id} has ended") from error
            raise Refusal(503, f"job {job_id} is being brought back; ask again in a moment") from error

    def started(self, request: JsonRequest, timeout_s: float) -> StartedJob | EndedJob | None:
        """Return the job with what its client draws from it; None where it has not come back in time.

        Raises:
            Refusal: there is none.
        """
        until = time.monotonic() + timeout_s
        while True:
            view, job_id = self.view(request), hex_id(request, "jobid")
            try:
                return self._dispatcher.client(job_id)
            except UnknownJob:
                if is_over(view):
                    return EndedJob(view)
            if time.monotonic() >= until:
                return None
            time.sleep(LOOK_EVERY_S)


def asked(question: Callable[[], T]) -> T:
    """Return the answer of a job.

    Raises:
        Refusal: its processes or the registry do not answer, or another dispatcher leads: the client asks again.
    """
    try:
        return question()
    except (TaskLost, ControlPlaneTimeout, DispatcherFenced, NotReady, StorageError) as error:
        raise Refusal(503, str(error)) from error


def is_over(view: JobView) -> bool:
    """Return whether a job has ended."""
    return JobStatus(str(view.status()["state"])).is_terminal


def wait_s(request: JsonRequest) -> float:
    """Return how long a request may wait. Raises: `Refusal`: that is no number."""
    text = request.query.get("wait_s", "1")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        raise Refusal(400, f"found wait_s={text:.80}, wanted seconds")
    return min(max(seconds, 0.0), MOST_WAIT_S)


def natural(request: JsonRequest, name: str) -> int:
    """Return a number of the query. Raises: `Refusal`: it is none, or has more than 18 digits."""
    text = request.query[name]
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise Refusal(400, f"found {name}={text:.80}, wanted a number of at most {MOST_DIGITS} digits")
    return int(text)
