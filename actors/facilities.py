"""What the process that runs a task lends it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayflink.common.managed_memory import MemoryManager


@dataclass(frozen=True, slots=True)
class Facilities:
    """Of one process, for its tasks.

    Args:
        managed: the managed memory of its slot; None: the task has one for itself.
        halt: ends this process; called instead of failing the task when memory has run out and
            `taskmanager.jvm-exit-on-oom` is set. None: the task fails alone.
        wake: lets the task step soon; called by other threads of the process. None: there are none, and nothing happens
            beside the steps of the task.
        open_worker: makes workers in processes of their own; see `rayflink.operators.workers`. None: in this process.
    """

    managed: MemoryManager | None = None
    halt: Callable[[BaseException], None] | None = None
    wake: Callable[[], None] | None = None
    open_worker: Callable[[Any], Any] | None = None


__all__ = ["Facilities"]
