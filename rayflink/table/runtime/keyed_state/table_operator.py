"""The part of an operator that its keyed tables ask for: restore, snapshots, and the removal of what has expired."""

from __future__ import annotations

from abc import abstractmethod

from rayflink.operators.base import Operator, OperatorSnapshot
from rayflink.operators.capabilities import CheckpointListener, Upkeep

from .stored_table import StoredTable, StoredTables


class KeyedTableOperator(Operator, Upkeep, CheckpointListener):
    """An operator whose state is keyed tables; one that has more state than these extends the methods."""

    @property
    @abstractmethod
    def stored(self) -> StoredTable | StoredTables:
        """Return what takes and restores the snapshots of the tables; it is there when the operator is set up."""

    def initialize_state(self, snapshots: tuple[OperatorSnapshot, ...]) -> None:
        self.stored.restore(snapshots)

    def snapshot_state(self, checkpoint_id: int) -> OperatorSnapshot:
        return OperatorSnapshot(capture=self.stored.capture(checkpoint_id))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.stored.confirm(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.stored.abort(checkpoint_id)

    def next_upkeep_ms(self) -> int | None:
        due = [table.sweep_at for table in self.stored.tables if table.sweep_at is not None]
        return min(due, default=None)

    def upkeep(self, now_ms: int) -> None:
        for table in self.stored.tables:
            if table.sweep_at is not None and table.sweep_at <= now_ms:
                table.sweep(now_ms)


__all__ = ["KeyedTableOperator"]
