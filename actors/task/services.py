"""The services of a process for the tasks that it runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rayflink.common.managed_memory import MemoryManager
from rayflink.state.storage.storage import Storage

from ..messages.messages import TaskDeployment


def _random_name() -> str:
    return os.urandom(16).hex()


@dataclass(frozen=True, slots=True)
class TaskServices:
    """The services of one process, shared by its tasks.

    Args:
        managed: the managed memory of its slot; None: the task has one for itself.
        halt: ends this process; called instead of failing the task when memory has run out and
            `taskmanager.jvm-exit-on-oom` is set. None: the task fails alone.
        wake: lets the task step soon; called by other threads of the process. None: there are none, and nothing happens
            beside the steps of the task.
        open_worker: makes workers in processes of their own; see `rayflink.operators.async_io.workers`. None: in this
            process.
        background: runs what may take long and is not the task's own work; None: at once, within the step.
        open_storage: the checkpoint storage at an address; None: as the scheme of the address says.
        uploads: files a task stores at the same time, by threads; 0: one after the other, by the thread that writes.
        new_name: a unique name for a file.
        cached_files: gives a task the local paths of the files that the program registered, by name; None: the paths
            that it registered.
    """

    managed: MemoryManager | None = None
    halt: Callable[[BaseException], None] | None = None
    wake: Callable[[], None] | None = None
    open_worker: Callable[[Any], Any] | None = None
    background: Callable[[Callable[[], None]], None] | None = None
    open_storage: Callable[[str], Storage] | None = None
    uploads: int = 0
    new_name: Callable[[], str] = _random_name
    cached_files: Callable[[TaskDeployment], Mapping[str, str]] | None = None


__all__ = ["TaskServices"]
