"""The tasks of one process: their memory and files, one step of each, and their end.

Source: apache/flink TaskExecutor; there each task has a thread of its own, here a runner steps them by turns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

from rayflink.common.text_output.logs import spoken_by
from rayflink.state.clock import Clock

from ..checkpoints.files import OpenStorage
from ..exchange.frames import Envelope, TaskAddress
from ..job.deployment import announce
from ..messages.messages import TaskDeployment, ToCoordinator
from ..task.file_cache import FileCache
from ..task.progress import Mail, Progress
from ..task.services import TaskServices
from ..task.slicing import Slicer
from ..task.slot_memory import SlotMemory
from ..task.task import StreamTask
from ..task.task_folders import remove_folders, remove_spills, report_disks


class TaskCarrier(Protocol):
    """Carries what tasks send: envelopes to each other, and reports to the coordinator that deployed them."""

    def deliver(self, envelope: Envelope) -> None:
        """Bring an envelope to its receiver, and call `returned` of its sender when that is done."""
        ...

    def post(self, event: ToCoordinator) -> None:
        """Bring a report of a task to its coordinator; those of one task arrive in their order."""
        ...


class TaskExecutor:
    """Creates, steps and drops the tasks of one process.

    Args:
        config: of the job, option key -> value.
        clock: the time, for the tasks and for the measurement of their steps.
        carrier: takes what the tasks send.
        open_storage: the checkpoint storage at an address.
        wake: lets a runner that waits go on, called by other threads; None: there are none.
        has_disks: tasks report the room on the machine's disks; a simulated run has none, and is the same each time.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        clock: Clock,
        carrier: TaskCarrier,
        open_storage: OpenStorage,
        wake: Callable[[], None] | None = None,
        has_disks: bool = True,
    ) -> None:
        self._has_disks = has_disks
        self._config, self._clock, self._carrier = config, clock, carrier
        self._open_storage, self._wake = open_storage, wake
        self._file_cache = FileCache()
        self.tasks: dict[TaskAddress, StreamTask] = {}

    @cached_property
    def memory(self) -> SlotMemory:
        """Return the memory that all tasks share, like those of one slot.

        Raises:
            ConfigError: its parts do not fit the whole.
        """
        return SlotMemory(self._config, "the process")

    @cached_property
    def services(self) -> TaskServices:
        """Return the services that this process provides to its tasks."""
        return TaskServices(
            self.memory.manager,
            wake=self._wake,
            open_storage=self._open_storage,
            cached_files=self._file_cache.files_of,
        )

    def create(
        self,
        deployment: TaskDeployment,
        services: TaskServices | None = None,
        mailbox: deque[Mail] | None = None,
        slicer: Slicer | None = None,
    ) -> StreamTask:
        """Create the task of a deployment, without starting it.

        Args:
            services: None: those of this process.
            mailbox: where messages for the task may be left; None: one of its own.
            slicer: sizes the slices of its input; None: the clock does.
        """
        announce(deployment, "localhost")
        with spoken_by(deployment.identity):
            task = StreamTask(deployment, self._clock, mailbox, slicer, services or self.services)
        self.memory.report_in(task.metrics.group.group)
        if self._has_disks:
            report_disks(task.metrics.group.group, deployment.config)
        self.tasks[deployment.attempt] = task
        return task

    def start(self, attempt: TaskAddress) -> None:
        """Start a task; all that were deployed with it exist."""
        task = self.tasks[attempt]
        with spoken_by(task.identity):
            task.start()

    def step(self, attempt: TaskAddress) -> bool:
        """Run one step of a task and hand on what it sends; return whether it was active.

        A task that is done is dropped.
        """
        task = self.tasks[attempt]
        started = self._clock.monotonic()
        with spoken_by(task.identity):
            progress = task.step()
        task.metrics.stepped(started, self._clock.monotonic(), progress is Progress.BACK_PRESSURED)
        is_active = progress is Progress.BUSY
        for envelope in task.outgoing():
            is_active = True
            self._carrier.deliver(envelope)
        for report in task.reports():
            is_active = True
            self._carrier.post(report)
        if progress is Progress.DONE:
            del self.tasks[attempt]
            self.memory.free(attempt)
        return is_active

    def drop(self, attempt: TaskAddress) -> None:
        """Drop a task without notice, and free its spilled data and its managed memory."""
        remove_spills(self.tasks.pop(attempt).deployment)
        self.memory.free(attempt)

    def close(self, job_id: str) -> None:
        """Drop the tasks that are left, and remove the files of the job from the disks of this node."""
        for attempt in list(self.tasks):
            self.drop(attempt)
        self._file_cache.stop()
        remove_folders(job_id, self._config, copies=True)


__all__ = ["TaskCarrier", "TaskExecutor"]
