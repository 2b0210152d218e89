"""A slot as a Ray actor: one process that runs the subtasks of its slot, each in a thread of its own.

Subtasks of one slot hand each other their envelopes; data of other processes comes in one thread, so that it keeps its
order, control calls in another.

Source: apache/flink TaskExecutor, with one slot.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

import ray
from ray.util import get_node_ip_address as node_address

from rayflink.common.text_output.logs import keep_logs
from rayflink.common.text_output.plain_table import printable

from ..exchange.envelopes import join_envelope
from ..exchange.frames import TaskAddress
from ..messages.messages import TaskDeployment
from ..messages.scheduling import Slot
from ..task.allocators import reuse_large_blocks, use_malloc_for_columns
from ..task.process_inspection import ProcessInspection, process_begin
from .deployment_check import DeploymentGuard, SlotAssignment
from .driver.terminal import Text
from .process_files import FileFacts, ProcessFiles
from .ray_handles import RayActor, RayActorClass
from .ray_job_files import job_folder
from .ray_task import PeerDirectory, RayTask, SlotProcess
from .shared_output import SharedStream
from .task_log import LoggedPrinted, TaskLog, log_goes_to

MAIN_LOG = "taskmanager"
"""The name of the whole log of a process, as Flink's."""


class SlotActor:
    """Shell around the tasks of a slot; `actor_class()` makes the Ray class.

    Args:
        assignment: what the process was made for.
    """

    def __init__(self, assignment: SlotAssignment) -> None:
        use_malloc_for_columns()
        reuse_large_blocks()
        self._coordinator: RayActor = None
        keep_logs(sys.stderr)  # which is a file of Ray's
        printed = self._begin(assignment)
        self._inspection = ProcessInspection()
        node, host = ray.get_runtime_context().get_node_id(), node_address()  # type: ignore[no-untyped-call]
        pid = os.getpid()
        place = {"pid": pid, "begin": process_begin(pid), "node": node, "host": host}
        self._process = SlotProcess(place, printed, self._streams)

    def _begin(self, assignment: SlotAssignment) -> LoggedPrinted:
        """Begin with a job: its deployments are accepted, and what its tasks print and log goes to its log."""
        self._guard, self._title = DeploymentGuard(assignment), assignment.title
        name = str(assignment.slot).replace("/", "-")
        folder = job_folder(assignment.namespace, assignment.job_id)
        task_log, self._files = TaskLog(folder, name), ProcessFiles([(folder, name)], MAIN_LOG)
        log_goes_to(task_log, below=logging.WARNING)
        assignment.log_levels.apply()
        printed = LoggedPrinted(self._send_texts, task_log)
        self._streams = SharedStream(printed, False), SharedStream(printed, True)
        return printed

    def __repr__(self) -> str:
        """Return the name that Ray shows for this actor on its dashboard and in its logs."""
        return printable(self._title)

    @ray.method(concurrency_group="data")
    def deliver(self, header: bytes, *bodies: bytes) -> None:
        """Receive an envelope of a peer in another process."""
        self._process.deliver(join_envelope(header, bodies))

    @ray.method(concurrency_group="control")
    def command(self, attempt: TaskAddress, message: bytes) -> None:
        """Receive a command of the coordinator to one of the tasks; one that has ended needs none."""
        if not self._process.has_ended_here(attempt):
            self._process.tasks[attempt].command(message)

    @ray.method(concurrency_group="inspection")
    def threads(self) -> list[tuple[str, str]]:
        """Return name and stack of every thread."""
        return self._inspection.threads()

    @ray.method(concurrency_group="inspection")
    def figures(self) -> dict[str, float]:
        """Return what the process uses."""
        return self._inspection.figures()

    @ray.method(concurrency_group="inspection")
    def log_files(self) -> list[FileFacts]:
        """Return the files that the process writes."""
        return self._files.list()

    @ray.method(concurrency_group="inspection")
    def log(self, name: str, most_bytes: int) -> bytes | None:
        """Return the end of a file; None: there is none of this name."""
        try:
            return self._files.read(name, most_bytes)
        except FileNotFoundError:
            return None

    @ray.method(concurrency_group="profile")
    def profile(self, duration_s: float, with_idle: bool) -> Sequence[tuple[str, int]]:
        """Sample the stacks of this process.

        Raises:
            ProfilerError: it cannot be profiled.
        """
        return self._inspection.profile(duration_s, with_idle)

    @ray.method(concurrency_group="control")
    def assign(self, assignment: SlotAssignment) -> None:
        """Begin with another job, after all tasks of the one before have finished."""
        printed = self._begin(assignment)
        self._process.renew(printed, self._streams)

    @ray.method(concurrency_group="control")
    def submit(self, program: bytes, deployment: TaskDeployment, slot: Slot, around: PeerDirectory) -> None:
        """Accept an attempt, which `run` then runs.

        Raises:
            TaskSubmissionError: it is none that this process may run.
        """
        self._guard.accept(deployment, slot, around.leader_id)
        self._coordinator = around.coordinator
        sys.stdout, sys.stderr = self._streams  # not before: Ray prints the name of a new actor there
        self._process.take_in(deployment.attempt, RayTask(program, deployment, around, self._process))

    @ray.method(concurrency_group="life")
    def run(self, attempt: TaskAddress) -> None:
        """Run an attempt, once it is submitted, to its end.

        Raises:
            LostCall: the coordinator did not get a report; this is another way to tell it.
        """
        try:
            self._process.task(attempt).run()
        finally:
            self._process.let_go(attempt)

    def _send_texts(self, chunks: list[Text]) -> Callable[[float], bool]:
        call = self._coordinator.printed.remote(chunks)
        return lambda timeout_s: bool(ray.wait([call], timeout=timeout_s)[0])


def actor_class(tasks: int) -> RayActorClass:
    """Return the Ray actor class of slots that run at most `tasks` tasks at a time."""
    groups = {"data": 1, "control": 1, "life": tasks, "inspection": 1, "profile": 1}
    options: dict[str, Any] = {"concurrency_groups": groups, "enable_task_events": False}
    return ray.remote(**options)(SlotActor)
