"""A job in a process: what its tasks there share."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import lru_cache, partial
from typing import Protocol

from rayflink.common.metrics.metric_names import PROCESS_SLOTS
from rayflink.common.options.store_options import storage_options
from rayflink.state.storage.storage_schemes import open_storage

from ...exchange.frames import Envelope, TaskAddress
from ...messages.messages import TaskDeployment
from ...messages.scheduling import Slot
from ...task.failures import halt_process
from ...task.file_cache import FileCache
from ...task.services import TaskServices
from ...task.slot_memory import SlotMemory
from ..driver.terminal import Printed
from ..ray_workers import RayWorker
from ..shared_output import SharedStream
from .deployment_check import LoadedProgram
from .process_garbage import ProcessGarbage
from .slot_heartbeats import SlotHeartbeats

SNAPSHOT_UPLOADS = 4
"""Files of a snapshot that are stored at the same time."""


class AttemptRunner(Protocol):
    """Runs an attempt, as its peers and its coordinator see it; any thread may call."""

    def receive(self, envelope: Envelope) -> None:
        """Receive an envelope of a peer."""

    def command(self, message: bytes) -> None:
        """Receive a command of the coordinator."""


class ProcessJob:
    """The state that the tasks of one job in one process share.

    Args:
        place: pid, begin, node and host of the process, for reports.
        printed: what the job has printed here.
        streams: in which lines may have been begun.
        garbage: of the process.
    """

    def __init__(
        self,
        place: Mapping[str, object],
        printed: Printed,
        streams: Sequence[SharedStream] = (),
        garbage: ProcessGarbage | None = None,
    ) -> None:
        self.place, self.printed, self._streams = place, printed, streams
        self.garbage = garbage or ProcessGarbage()
        self.program, self.heartbeats = LoadedProgram(), SlotHeartbeats()
        self._file_cache = FileCache()
        self.tasks: dict[TaskAddress, AttemptRunner] = {}
        self._memory: dict[Slot, SlotMemory] = {}
        self._early: dict[TaskAddress, list[Envelope]] = {}
        self._ended: set[TaskAddress] = set()
        self._background = ThreadPoolExecutor(2, "snapshots")
        self._lock = threading.Lock()

    @property
    def process_id(self) -> str:
        """Return the process's id in the cluster, which Flink calls the id of a TaskManager."""
        return f"{self.place['host']}:{self.place['pid']}"

    def thread_name(self, deployment: TaskDeployment) -> str:
        """Return the name of the thread of a task: its own, with the job where the process may have others."""
        return f"{deployment.name} of {deployment.job_id[:8]}" if PROCESS_SLOTS in self.place else deployment.name

    def take_in(self, attempt: TaskAddress, task: AttemptRunner) -> None:
        """Add a task that this process will run."""
        with self._lock:
            for envelope in self._early.pop(attempt, ()):
                task.receive(envelope)
            self.tasks[attempt] = task

    def let_go(self, attempt: TaskAddress) -> None:
        """Remove an attempt that has ended; messages that still arrive for it are dropped."""
        with self._lock:
            self.tasks.pop(attempt, None)
            self._ended.add(attempt)

    def has_ended_here(self, attempt: TaskAddress) -> bool:
        """Return whether an attempt was here and has ended."""
        return attempt in self._ended

    def services_for(self, deployment: TaskDeployment, slot: Slot, wake: Callable[[], None]) -> TaskServices:
        """Return the services of the process for one of its tasks.

        Raises:
            ConfigError: the parts of the slot's memory do not fit the whole.
        """
        return TaskServices(
            self.memory_of(deployment, slot).manager,
            halt_process,
            wake,
            RayWorker,
            self._in_background,
            lru_cache(partial(open_storage, options=storage_options(deployment.config))),
            uploads=SNAPSHOT_UPLOADS,
            cached_files=self._file_cache.files_of,
        )

    def _in_background(self, work: Callable[[], None]) -> None:
        self._background.submit(copy_context().run, work)

    def deliver(self, envelope: Envelope) -> None:
        """Deliver an envelope to its receiver, which may not be here yet."""
        with self._lock:
            if envelope.receiver in self._ended:
                return
            task = self.tasks.get(envelope.receiver)
            if task is None:
                self._early.setdefault(envelope.receiver, []).append(envelope)
                return
        task.receive(envelope)

    def memory_of(self, deployment: TaskDeployment, slot: Slot) -> SlotMemory:
        """Return the memory of a slot, which its first task divides as the job's options say.

        Raises:
            ConfigError: its parts do not fit the whole.
        """
        with self._lock:
            memory = self._memory.get(slot)
            if memory is None:
                place = f"the slot of {deployment.title} on {self.place['host']}"
                memory = self._memory[slot] = SlotMemory(deployment.config, place)
            return memory

    def free_memory(self, attempt: TaskAddress, slot: Slot) -> None:
        """Free the memory of an attempt that is gone."""
        memory = self._memory.get(slot)
        if memory is not None:
            memory.free(attempt)

    def show(self) -> None:
        """Return when all text that this thread has printed has arrived."""
        for stream in self._streams:
            stream.flush()
        self.printed.send(wait=True)

    def close(self) -> None:
        """Drop what is kept for tasks to come: the job has no slot here any more."""
        self._file_cache.stop()
        self._background.shutdown(wait=False)


__all__ = ["AttemptRunner", "ProcessJob"]
