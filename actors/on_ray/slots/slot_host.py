"""A process of several slots, of one job or of many, as a Ray actor.

A process of Ray takes 0.5 to 1 % of a CPU all the time, and seconds of a CPU to start: slots of tiny jobs share one.
Its slots share the interpreter lock and their fate: a task that ends its process ends those of the other slots too,
whose jobs then restart from their checkpoints.

Source: apache/flink TaskExecutor, with several slots.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from typing import Any

import ray

from rayflink.common.metrics.metric_names import PROCESS_SLOTS

from ...exchange.envelopes import join_envelope
from ...exchange.frames import Envelope, TaskAddress
from ...messages.messages import TaskDeployment
from ...messages.scheduling import Slot
from ..process_files import ProcessFiles
from ..ray_handles import RayActorClass
from ..task_log import JobLogs
from .deployment_check import SlotAssignment
from .job_output import JobOutput, OutputOfJobs
from .job_slot import JobSlot, SlotClosed
from .process_calls import GROUPS, MAIN_LOG, ProcessCalls
from .process_garbage import ProcessGarbage
from .process_job import ProcessJob
from .ray_task import PeerDirectory
from .slot_actor import begin_process

MOST_CLOSED = 10_000
"""Closed slots that are remembered, for calls that arrive late."""


class SlotHost(ProcessCalls):
    """The slots of a process; each call names the slot by its token.

    Args:
        slots: the number of slots that it may have.
    """

    def __init__(self, slots: int) -> None:
        self._place: Mapping[str, object] = {**begin_process(), PROCESS_SLOTS: slots}
        super().__init__(lambda: ProcessFiles([output.source for output in self._outputs.values()], MAIN_LOG))
        self._garbage = ProcessGarbage()
        self._logs = JobLogs(below=logging.WARNING)
        self._slots: dict[str, JobSlot] = {}
        self._closed: dict[str, None] = {}
        """Tokens of the slots that were closed last, in that order."""
        self._early: dict[str, list[Envelope]] = {}
        """Token of a slot that is not open yet -> data for its tasks."""
        self._outputs: dict[str, JobOutput] = {}
        """Job id -> its output; replaced as a whole."""
        self._changed = threading.Condition()
        self._streams = tuple(OutputOfJobs(lambda: self._outputs, to_stderr) for to_stderr in (False, True))

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return "slots"

    @ray.method(concurrency_group="control")
    def open(self, token: str, assignment: SlotAssignment) -> None:
        """Open a slot for a job, unless it was closed before this call has arrived."""
        assignment.log_levels.apply()
        with self._changed:
            if token in self._closed:
                return
            slot = next((each for each in self._slots.values() if each.is_of(assignment)), None)
            if slot is None:
                output = JobOutput(assignment)
                job = ProcessJob(self._place, output.printed, output.streams, self._garbage)
                self._outputs = {**self._outputs, assignment.job_id: output}
                self._logs.add(assignment.job_id, output.log)
            else:
                output, job = slot.output, slot.job
            self._slots[token] = JobSlot(assignment, job, output)
            for envelope in self._early.pop(token, ()):
                job.deliver(envelope)
            self._changed.notify_all()

    @ray.method(concurrency_group="end")
    def close(self, token: str, within_s: float) -> bool:
        """Close a slot, whose tasks are cancelled, and return whether they have ended in time."""
        with self._changed:
            self._closed[token] = None
            if len(self._closed) > MOST_CLOSED:
                del self._closed[next(iter(self._closed))]
            self._early.pop(token, None)
            self._changed.notify_all()
            slot = self._slots.get(token)
        if slot is None or not slot.close(within_s):
            return slot is None
        with self._changed:
            self._slots.pop(token, None)
            if any(each.job is slot.job for each in self._slots.values()):
                return True
            self._outputs = {job: each for job, each in self._outputs.items() if each is not slot.output}
        self._logs.remove(slot.job_id, slot.output.log)
        slot.job.close()
        self._garbage.has_ended()
        return True

    def _slot(self, token: str) -> JobSlot:
        slot = self._slots.get(token)
        if slot is None:
            raise SlotClosed(token)
        return slot

    @ray.method(concurrency_group="data")
    def deliver(self, token: str, header: bytes, *bodies: bytes) -> None:
        """Receive an envelope of a peer in another process.

        Raises:
            SlotClosed: it is for a slot that is gone.
        """
        envelope = join_envelope(header, bodies)
        with self._changed:
            if token in self._closed:
                raise SlotClosed(token)
            slot = self._slots.get(token)
            if slot is None:
                self._early.setdefault(token, []).append(envelope)
                return
        slot.job.deliver(envelope)

    @ray.method(concurrency_group="control")
    def command(self, token: str, attempt: TaskAddress, message: bytes) -> None:
        """Receive a command of the coordinator to one of the tasks; one that has ended needs none."""
        self._slot(token).command(attempt, message)

    @ray.method(concurrency_group="control")
    def submit(
        self, token: str, program: bytes, deployment: TaskDeployment, slot: Slot, around: PeerDirectory
    ) -> None:  # fmt: skip
        """Accept an attempt, which `run` then runs.

        Raises:
            SlotClosed: the slot is gone.
            TaskSubmissionError: it is none that this slot may run.
        """
        self._slot(token).submit(program, deployment, slot, around)
        sys.stdout, sys.stderr = self._streams  # not before: Ray prints the name of a new actor there

    @ray.method(concurrency_group="life")
    def run(self, token: str, attempt: TaskAddress) -> None:
        """Run an attempt, once it is submitted, to its end.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
            SlotClosed: the slot is gone.
        """
        with self._changed:  # this call may be faster than `open`, as Ray keeps no order between groups
            self._changed.wait_for(lambda: token in self._slots or token in self._closed)
            slot = self._slot(token)
        slot.run(attempt)

    @ray.method(concurrency_group="exist")
    def exist(self) -> None:
        """Return never: the error of this call is the end of the process."""
        threading.Event().wait()

def host_class(slots: int, tasks: int) -> RayActorClass:
    """Return the Ray actor class of processes with `slots` slots, each of which runs at most `tasks` tasks."""
    groups = {"data": 1, "control": 1, "life": slots * tasks, "end": slots, "exist": 1, **GROUPS}
    options: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "concurrency_groups": groups,
                               "enable_task_events": False}  # fmt: skip
    return ray.remote(**options)(SlotHost)


__all__ = ["SlotHost", "host_class"]
