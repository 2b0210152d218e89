"""Work on the checkpoint storages of a simulated cluster that waits for its turn, and takes the time faults give it."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from rayflink.actors.exchange.frames import TaskAddress

from ..simulated_storage import SimulatedDisk
from .context import SimulationContext
from .scheduler import Lanes, Pool, ScheduledEvent


class SimulatedStorageWork:
    """The storage work that tasks and coordinators ask for: writes and deletions.

    Writes of tasks happen in any order. The work of one coordinator keeps its order, as its storage thread does.

    Args:
        context: of the run.
        disk: on which all checkpoint storages are.
    """

    def __init__(self, context: SimulationContext, disk: SimulatedDisk) -> None:
        self._context, self.disk = context, disk
        self.writes = Pool()
        self.file_work = Lanes(keep_places=True)

    def add_write(self, attempt: TaskAddress, name: str, write: Callable[[], None]) -> None:
        """Add what a task writes beside its steps; `name` is the task's."""

        def happen() -> None:
            self._context.note("write", name)
            write()

        self.writes.add(self._event(attempt, happen))

    def drop_writes(self, attempt: TaskAddress) -> None:
        """Remove what a task that is gone has not written yet."""
        self.writes.drop(attempt)

    def add_file_work(self, epoch: int, work: Callable[[], None]) -> None:
        """Add work of a coordinator, behind all its earlier work."""
        self.file_work.add(self._event(epoch, work))

    def drop_file_work(self, epoch: int) -> None:
        """Remove the work of a coordinator that is gone."""
        self.file_work.drop(epoch)

    def _event(self, target: Hashable, action: Callable[[], None]) -> ScheduledEvent:
        due_ms = self._context.clock.now_ms() + self._context.faults.storage_delay_ms()
        return ScheduledEvent(due_ms, target, action)


__all__ = ["SimulatedStorageWork"]
