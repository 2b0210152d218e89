"""Sends collected rows from a task on Ray to its coordinator."""

from __future__ import annotations

import ray

from rayflink.common.user_code.value_bytes import to_bytes
from rayflink.connectors.collected import RowBlock

from .ray_handles import RayActor, RayRef


class RowCalls:
    """Sends rows to the coordinator, one call under way at a time.

    Args:
        coordinator: its actor; it answers a call when there is room for more.
    """

    def __init__(self, coordinator: RayActor) -> None:
        self._coordinator = coordinator
        self._under_way: RayRef = None

    def put(self, block: RowBlock) -> None:
        """Send rows, once those before have arrived.

        Raises:
            NotSerializable: one of them cannot be sent to another process.
        """
        packed = to_bytes(block)
        self.flush()
        self._under_way = self._coordinator.collected.remote(packed)

    def flush(self) -> None:
        """Return when all rows have arrived."""
        call, self._under_way = self._under_way, None
        if call is not None:
            ray.get(call)


__all__ = ["RowCalls"]
