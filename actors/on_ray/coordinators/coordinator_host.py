"""A process that the coordinators of many jobs share, as a Ray actor, which Ray makes anew where it is lost.

A coordinator of its own costs each job a process, of which Ray itself takes 0.8 % of a CPU all the time. Jobs share a
process where their programs have the same packages (`shared_hosts`); their tasks have other processes.

Source: apache/flink JobManager, whose Dispatcher has a JobMaster for each job.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import ray

from rayflink.common.text_output.logs import get_logger, keep_logs

from ...job.submission import Submission
from ..coordinator_actor import CALLS
from ..process_session import begin_session
from ..ray_coordinator import Coordinator
from ..ray_handles import RayActorClass
from ..ray_remains import end_named, named
from ..slots.slot_hosts import SlotHosts
from ..task_log import JobLogs, TaskLog
from .hosted_coordinator import CoordinatorBusy, CoordinatorGone, HostedCoordinator
from .job_places import JobPlace, JobPlaces
from .slot_starts import SlotStarts

log = get_logger(__name__)

THREADS = {"start": 8, "control": 1, "wait": 64, "follow": 4, "events": 1, "prints": 8, "rows": 8, "end": 4}
"""Threads for the calls of each group, for all jobs; in `start` jobs begin, in `end` they are abandoned."""
SWITCH_S = 0.05
"""Time that a thread waits for the interpreter before it asks the one that runs to give way, 5 ms by default.

Each of hundreds of threads that wait would ask 200 times a second. Where the CPUs are full that takes more than the
work, and the thread that they wait for is not there to answer.
"""
STARTS_A_CPU = 2
"""Processes of slots that start at a time, for each CPU: one loads its modules while another waits for Ray."""
IDLE_S = 30.0
"""A process without a job ends after so long."""
EXPECTS_S = 120.0
"""Time in which a job that was announced begins."""
ABANDON_WITHIN_S = 12.0
"""Time for a coordinator to begin, for its slots to close and their folders to be removed, and for its work on files to
end: as much for each of the three."""


def most_starts() -> int:
    """Return how many processes of slots start at a time, on a cluster with nodes like this one."""
    nodes = sum(bool(node["Alive"]) for node in ray.nodes())  # type: ignore[no-untyped-call]
    return STARTS_A_CPU * (os.cpu_count() or 1) * max(nodes, 1)


class HostedJob:
    """A coordinator in this process, and its home.

    Args:
        host: that has it.
        place: of its job.
    """

    def __init__(self, host: CoordinatorHost, place: JobPlace) -> None:
        self.place, self._host = place, host
        self._answers, self._has_settled = False, threading.Event()
        self.log: TaskLog | None = None
        self.starts, self.hosts = host.starts, host.hosts
        self._coordinator = Coordinator(place.stored, is_first=False, home=self)

    def actor(self) -> HostedCoordinator:
        """Return the coordinator as the tasks of its job call it."""
        return HostedCoordinator(self._host.me, self._host.namespace, self.place.token)

    def log_goes_to(self, task_log: TaskLog) -> None:
        """Route what is logged for the job to its log."""
        self.log = task_log
        self._host.logs.add(self.place.job_id, task_log)

    def answer(self) -> None:
        """Answer calls from now on."""
        self._answers = True

    def leave(self) -> None:
        """Leave the process, which goes on for the others."""
        self._host.drop(self)

    def start(self, submission: Submission) -> None:
        """Start the job.

        Raises: whatever loading the program here raises.
        """
        self._begin(lambda: self._coordinator.start(submission))

    def come_back(self) -> None:
        """Go on with a job whose process was lost.

        Raises: whatever prevents that.
        """
        self._begin(lambda: self._coordinator.come_back(self.place.job_id))

    def _begin(self, begin: Callable[[], None]) -> None:
        try:
            begin()
        except BaseException:
            self._coordinator.discard()
            raise
        finally:
            self._has_settled.set()

    @property
    def coordinator(self) -> Coordinator:
        """Return the coordinator.

        Raises:
            CoordinatorBusy: it has not begun yet.
        """
        if not self._answers:
            raise CoordinatorBusy(self.place.job_id)
        return self._coordinator

    def abandon(self) -> bool:
        """End the coordinator as the end of the process would, and return whether it has ended."""
        if not self._has_settled.wait(ABANDON_WITHIN_S):
            return False
        return not self._answers or self._coordinator.abandon(ABANDON_WITHIN_S)


class CoordinatorHost:
    """The coordinators of many jobs; each call names the start of a job by its token.

    Args:
        name: of this actor.
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, name: str, namespace: str) -> None:
        keep_logs(sys.stderr, warn=False)
        begin_session()
        sys.setswitchinterval(SWITCH_S)
        self.namespace, self._places = namespace, JobPlaces.of_cluster(namespace)
        self.me = ray.get_runtime_context().current_actor
        self.logs, self.starts, self.hosts = JobLogs(), SlotStarts(most_starts), SlotHosts(name)
        self._lock = threading.Lock()
        self._jobs: dict[str, HostedJob] = {}
        self._refused: set[str] = set()
        self._busy_until = time.monotonic() + EXPECTS_S
        if ray.get_runtime_context().was_current_actor_reconstructed:
            end_named(named(f"{name}/", namespace), namespace)  # slots that jobs of the lost process shared
            for place in self._places.all():
                if place.host == name:
                    self._jobs[place.token] = job = HostedJob(self, place)
                    threading.Thread(target=self._come_back, args=(job,), name="come back", daemon=True).start()
        threading.Thread(target=self._end_when_idle, name="idle", daemon=True).start()

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return "coordinators"

    @ray.method(concurrency_group="control")
    def expect(self) -> int:
        """Wait for a job that is about to start, and return how many jobs are here."""
        with self._lock:
            self._busy_until = time.monotonic() + EXPECTS_S
            return len(self._jobs)

    @ray.method(concurrency_group="start")
    def start(self, token: str, submission: Submission) -> None:
        """Start a job that has its place here.

        Raises:
            CoordinatorGone: it has not, or no longer.
            BaseException: whatever loading the program here raises.
        """
        place = self._places.find(token.partition("/")[0])
        with self._lock:
            if place is None or place.token != token or token in self._refused or token in self._jobs:
                raise CoordinatorGone(token)
            self._jobs[token] = job = HostedJob(self, place)
        try:
            job.start(submission)
        except BaseException:
            self.drop(job)
            raise
        if token in self._refused:  # who has asked for it waits no longer
            job.abandon()
            self.drop(job)
            raise CoordinatorGone(token)

    @ray.method(concurrency_group="control")
    def withdraw(self, token: str) -> bool:
        """Refuse the start from now on, unless it has arrived; return whether it is refused."""
        with self._lock:
            if token not in self._jobs:
                self._refused.add(token)
        return token in self._refused

    @ray.method(concurrency_group="end")
    def end(self, token: str) -> bool:
        """End a coordinator, whose job is not over; return False where it does not end."""
        with self._lock:
            self._refused.add(token)
            job = self._jobs.get(token)
        if job is not None and not job.abandon():
            return False
        self._places.free(token)
        return True

    def coordinator(self, token: str) -> Coordinator:
        """Return the coordinator of a start.

        Raises:
            CoordinatorGone: it is not here.
            CoordinatorBusy: it has not begun yet.
        """
        job = self._jobs.get(token)
        if job is None:
            raise CoordinatorGone(token)
        return job.coordinator

    def ensure_here(self, token: str) -> None:
        """Ensure that an answer is that of a coordinator, and not of one that was abandoned meanwhile.

        Raises:
            CoordinatorGone: it was.
        """
        if token in self._refused:
            raise CoordinatorGone(token)

    def drop(self, job: HostedJob) -> None:
        """Forget a job that has no coordinator here any more."""
        with self._lock:
            self._jobs.pop(job.place.token, None)
            self._busy_until = max(self._busy_until, time.monotonic() + IDLE_S)
        if job.log is not None:
            self.logs.remove(job.place.job_id, job.log)
        try:
            self._places.free(job.place.token)
        except Exception as error:  # the place is withdrawn when a dispatcher asks for the job
            log.warning("the place of a job could not be freed: %s", error, extra={"job": job.place.job_id})

    def _come_back(self, job: HostedJob) -> None:
        try:
            job.come_back()
        except BaseException:  # of one job; its dispatcher brings it back
            log.exception("a job could not come back", extra={"job": job.place.job_id})
            self.drop(job)

    def _end_when_idle(self) -> None:
        while True:
            time.sleep(1)
            with self._lock:
                is_idle = not self._jobs and time.monotonic() > self._busy_until
            if is_idle:
                ray.kill(self.me, no_restart=True)
                return


def _forwarded(name: str, group: str) -> Callable[..., object]:
    """Return the method of the process that calls the method `name` of a coordinator, in a thread of the group."""

    def call(self: CoordinatorHost, token: str, *arguments: object) -> object:
        answer: object = getattr(self.coordinator(token), name)(*arguments)
        self.ensure_here(token)
        return answer

    call.__name__, call.__qualname__ = name, f"CoordinatorHost.{name}"
    call.__doc__ = f"Call `Coordinator.{name}`, which describes arguments and result."
    return cast("Callable[..., object]", ray.method(concurrency_group=group)(call))


for _group, _calls in CALLS.items():
    for _call in _calls.names:
        setattr(CoordinatorHost, _call, _forwarded(_call, _group))


def host_class() -> RayActorClass:
    """Return the Ray actor class, with the threads of `THREADS`."""
    options: dict[str, Any] = {
        "num_cpus": 0, "max_restarts": -1, "concurrency_groups": dict(THREADS), "enable_task_events": False,
    }  # fmt: skip
    return ray.remote(**options)(CoordinatorHost)


__all__ = ["CoordinatorHost", "HostedJob", "host_class"]
