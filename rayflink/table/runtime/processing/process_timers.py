"""The timers of partitions: with names, of which each has one time, and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rayflink.common.functions.runtime_context import KeyedStateStore
from rayflink.state.backend import KeyContext, Timers
from rayflink.state.descriptors import MapStateDescriptor
from rayflink.user_types import UserKey

if TYPE_CHECKING:
    from rayflink.state.handles import MapState

TIMERS = "$timers"
"""Name of the state that has the timers of a key: name -> time, and time -> time for those without a name."""


class PartitionTimers:
    """Sets and deletes timers of the current key.

    Args:
        queue: of the operator.
        store: of its state.
        context: which has the current key.
    """

    def __init__(self, queue: Timers, store: KeyedStateStore, context: KeyContext) -> None:
        self._queue, self._context = queue, context
        self._known: MapState[UserKey, int] = store.get_map_state(MapStateDescriptor(TIMERS))

    def register(self, time_ms: int, name: str | None) -> None:
        """Set a timer; one of the same name is replaced."""
        if name is not None:
            self.clear(None, name)
        self._queue.register(time_ms, self._context.key, name)
        self._known.put(time_ms if name is None else name, time_ms)

    def clear(self, time_ms: int | None, name: str | None) -> None:
        """Delete a timer, if it is set."""
        entry = time_ms if name is None else name
        known_ms = self._known.get(entry)
        if known_ms is not None:
            self._queue.delete(known_ms, self._context.key, name)
            self._known.remove(entry)

    def clear_all(self) -> None:
        """Delete all timers of the key."""
        for entry, time_ms in self._known.items():
            self._queue.delete(time_ms, self._context.key, entry if isinstance(entry, str) else None)
        self._known.clear()

    def note_firing(self, time_ms: int, name: str | None) -> None:
        """Forget a timer that fires."""
        self._known.remove(time_ms if name is None else name)


__all__ = ["TIMERS", "PartitionTimers"]
