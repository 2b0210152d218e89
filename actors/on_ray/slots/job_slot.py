"""A slot of a job in a process: it accepts the deployments to it, and runs them."""

from __future__ import annotations

import threading
import time

from ...exchange.frames import TaskAddress
from ...messages.messages import TaskDeployment
from ...messages.scheduling import Slot
from .deployment_check import DeploymentGuard, SlotAssignment, TaskSubmissionError
from .job_output import JobOutput
from .process_job import ProcessJob
from .ray_task import PeerDirectory, RayTask


class SlotClosed(Exception):
    """The slot is closed: its job has given it up."""


class JobSlot:
    """A slot of a job; any thread may call.

    Args:
        assignment: the slot, and what may be deployed to it.
        job: in this process.
        output: of the job in this process.
    """

    def __init__(self, assignment: SlotAssignment, job: ProcessJob, output: JobOutput) -> None:
        self.job, self.output = job, output
        self.job_id, self._leader_id = assignment.job_id, assignment.leader_id
        self._guard = DeploymentGuard(assignment)
        self._tasks: dict[TaskAddress, RayTask] = {}
        self._under_way: set[TaskAddress] = set()
        self._refused: set[TaskAddress] = set()
        self._is_closed = False
        self._changed = threading.Condition()

    def is_of(self, assignment: SlotAssignment) -> bool:
        """Return whether another slot is of the same job and life of its coordinator."""
        return (self.job_id, self._leader_id) == (assignment.job_id, assignment.leader_id)

    def submit(self, program: bytes, deployment: TaskDeployment, slot: Slot, around: PeerDirectory) -> None:
        """Accept an attempt, which `run` then runs.

        Raises:
            TaskSubmissionError: it is none that this slot may run.
        """
        try:
            self._guard.accept(deployment, slot, around.leader_id)
        except TaskSubmissionError:
            with self._changed:
                self._refused.add(deployment.attempt)
                self._changed.notify_all()
            raise
        self.output.call = lambda chunks: around.coordinator.printed.remote(chunks)
        task = RayTask(program, deployment, slot, around, self.job)
        self.job.take_in(deployment.attempt, task)
        with self._changed:
            self._tasks[deployment.attempt] = task
            self._changed.notify_all()

    def run(self, attempt: TaskAddress) -> None:
        """Run an attempt, once it is submitted, to its end; return at once from one that was refused.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
            SlotClosed: the slot was closed before.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or attempt in self._tasks or attempt in self._refused)
            if self._is_closed:
                raise SlotClosed(attempt)
            if attempt not in self._tasks:  # it was refused: `submit` says so
                return
            task = self._tasks[attempt]
            self._under_way.add(attempt)
        try:
            task.run()
        finally:
            self.job.let_go(attempt)
            with self._changed:
                self._tasks.pop(attempt, None)
                self._under_way.discard(attempt)
                self._changed.notify_all()

    def command(self, attempt: TaskAddress, message: bytes) -> None:
        """Receive a command of the coordinator to one of the tasks; one that has ended needs none."""
        if not self.job.has_ended_here(attempt):
            self.job.tasks[attempt].command(message)

    def close(self, within_s: float) -> bool:
        """Cancel the tasks that run, and return whether all have ended in time; none begins from now on."""
        until = time.monotonic() + within_s
        with self._changed:
            self._is_closed = True
            for attempt in self._under_way:
                self._tasks[attempt].cancel()
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not self._under_way, until - time.monotonic())


__all__ = ["JobSlot", "SlotClosed"]
