"""A slot as a Ray actor: one process that runs the subtasks of its slot, each in a thread of its own.

Subtasks of one slot hand each other their envelopes; data of other processes comes in one thread, so that it keeps its
order, control calls in another.

Source: apache/flink TaskExecutor, with one slot.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

import ray
from ray.util import get_node_ip_address as node_address

from rayflink.common.text_output.logs import keep_logs
from rayflink.common.text_output.plain_table import printable

from ...exchange.envelopes import join_envelope
from ...exchange.frames import TaskAddress
from ...messages.messages import TaskDeployment
from ...messages.scheduling import Slot
from ...task.allocators import reuse_large_blocks, use_malloc_for_columns
from ...task.process_inspection import process_begin
from ..process_files import ProcessFiles
from ..ray_handles import RayActorClass
from ..task_log import log_goes_to
from .deployment_check import SlotAssignment
from .job_output import JobOutput
from .job_slot import JobSlot
from .process_calls import GROUPS, MAIN_LOG, ProcessCalls
from .process_garbage import ProcessGarbage
from .process_job import ProcessJob
from .ray_task import PeerDirectory


def begin_process() -> dict[str, object]:
    """Set up allocators and logs of this process, which runs tasks from now on; return pid, begin, node and host."""
    use_malloc_for_columns()
    reuse_large_blocks()
    keep_logs(sys.stderr)  # which is a file of Ray's
    node, host = ray.get_runtime_context().get_node_id(), node_address()  # type: ignore[no-untyped-call]
    pid = os.getpid()
    return {"pid": pid, "begin": process_begin(pid), "node": node, "host": host}


class SlotActor(ProcessCalls):
    """Shell around the tasks of a slot; `actor_class()` makes the Ray class.

    Args:
        assignment: what the process was made for.
    """

    def __init__(self, assignment: SlotAssignment) -> None:
        self._place: Mapping[str, object] = begin_process()
        super().__init__(lambda: ProcessFiles([self._output.source], MAIN_LOG))
        self._garbage = ProcessGarbage()
        self._begin(assignment)

    def _begin(self, assignment: SlotAssignment) -> None:
        """Begin with a job: its deployments are accepted, and what its tasks print and log goes to its log."""
        self._title, self._output = assignment.title, JobOutput(assignment)
        log_goes_to(self._output.log, below=logging.WARNING)
        assignment.log_levels.apply()
        job = ProcessJob(self._place, self._output.printed, self._output.streams, self._garbage)
        self._slot = JobSlot(assignment, job, self._output)

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return printable(self._title)

    @ray.method(concurrency_group="data")
    def deliver(self, header: bytes, *bodies: bytes) -> None:
        """Receive an envelope of a peer in another process."""
        self._slot.job.deliver(join_envelope(header, bodies))

    @ray.method(concurrency_group="control")
    def command(self, attempt: TaskAddress, message: bytes) -> None:
        """Receive a command of the coordinator to one of the tasks; one that has ended needs none."""
        self._slot.command(attempt, message)

    @ray.method(concurrency_group="control")
    def assign(self, assignment: SlotAssignment) -> None:
        """Begin with another job, after all tasks of the one before have finished."""
        self._slot.job.close()
        self._begin(assignment)

    @ray.method(concurrency_group="control")
    def submit(self, program: bytes, deployment: TaskDeployment, slot: Slot, around: PeerDirectory) -> None:
        """Accept an attempt, which `run` then runs.

        Raises:
            TaskSubmissionError: it is none that this process may run.
        """
        self._slot.submit(program, deployment, slot, around)
        sys.stdout, sys.stderr = self._output.streams  # not before: Ray prints the name of a new actor there

    @ray.method(concurrency_group="life")
    def run(self, attempt: TaskAddress) -> None:
        """Run an attempt, once it is submitted, to its end.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
        """
        self._slot.run(attempt)


def actor_class(tasks: int) -> RayActorClass:
    """Return the Ray actor class of slots that run at most `tasks` tasks at a time."""
    groups = {"data": 1, "control": 1, "life": tasks, **GROUPS}
    options: dict[str, Any] = {"concurrency_groups": groups, "enable_task_events": False}
    return ray.remote(**options)(SlotActor)


__all__ = ["SlotActor", "actor_class", "begin_process"]
