"""The open windows of each key where windows merge, each with its state window.

The state window of a window is the one under whose name, as namespace, its contents are stored: at first itself. A
merged window keeps the state window of one of its parts, so that these contents need not be moved; those of the other
parts are added to them. The set is state: it is in snapshots and moves with its key.

Source: apache/flink MergingWindowSet.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from typing import Any

from rayflink.state.backend import MapEntries

from .session_windows import MergeCallback, MergingWindowAssigner

Merged = Callable[[Any, list[Any], Any, list[Any]], None]
"""Called for each merge: the new window, the windows it is made of, the state window it keeps, and the other ones."""


class UnknownWindow(LookupError):
    """A window was asked for that is not in flight.

    Args:
        window: as text.
    """

    def __init__(self, window: str) -> None:
        super().__init__(window)
        self.window = window

    def __str__(self) -> str:
        return f"Window {self.window} is not in in-flight window set; merge_windows must give each new window a place"


class _Noted(MergeCallback[Any]):
    def __init__(self) -> None:
        self.merges: list[tuple[Any, Iterable[Any]]] = []

    def merge(self, to_be_merged: Iterable[Any], merge_result: Any) -> None:
        self.merges.append((merge_result, to_be_merged))


class MergingWindowSet:
    """The open windows of all keys.

    Args:
        assigner: says which windows merge.
        table: key -> (window -> state window).
    """

    def __init__(self, assigner: MergingWindowAssigner[Any, Any], table: MapEntries) -> None:
        self._assigner = assigner
        self._table = table
        self._sorted: dict[Any, list[Any]] = {}
        """The windows of keys that have many, by time, where only those that touch merge; built from the table."""

    def state_window(self, key: Any, window: Any) -> Any:
        """Return the window under whose name the contents are stored, or None where the window is not open."""
        return self._table.get(key, window)

    def retire(self, key: Any, window: Any) -> None:
        """Remove a window that is over.

        Raises:
            UnknownWindow: it is not in flight.
        """
        if not self._table.contains(key, window):
            raise UnknownWindow(repr(window))
        self._remove(key, window)

    def forget(self) -> None:
        """Forget all windows: the table was cleared."""
        self._sorted.clear()

    def add(self, key: Any, window: Any, merged: Merged) -> Any:
        """Take in the window of a record; gives the window in flight the record belongs to.

        Args:
            merged: called for each merge, after the set has changed.
        """
        in_flight = self._near(key, window)
        if window in in_flight:
            return window
        noted = _Noted()
        if in_flight:
            self._assigner.merge_windows([*in_flight, window], noted)
        belongs_to, is_placed = window, False
        for result, group in noted.merges:
            among = set(group)
            if window in among:
                belongs_to, is_placed = result, True
            parts = [part for part in (group if isinstance(group, (list, tuple)) else in_flight) if part in in_flight]
            parts = [part for part in parts if part in among]
            if parts:
                self._merge(key, result, parts, in_flight, merged)
        if not is_placed:
            self._put(key, window, window)
        return belongs_to

    def _merge(self, key: Any, result: Any, parts: list[Any], in_flight: dict[Any, Any], merged: Merged) -> None:
        target, *others = [in_flight.pop(part) for part in parts]
        in_flight[result] = target
        if parts == [result]:  # the new window lies within the old one
            return
        for part in parts:
            self._remove(key, part)
        self._put(key, result, target)
        merged(result, parts, target, others)

    def _near(self, key: Any, window: Any) -> dict[Any, Any]:
        """Return the open windows that may merge with `window`, with their state windows."""
        if not self._assigner.merges_touching_only:
            return dict(self._table.items(key))
        ordered = self._sorted.get(key)
        if ordered is None:
            items = list(self._table.items(key))
            if len(items) <= _FEW:
                return {
                    other: state for other, state in items if other.start <= window.end and window.start <= other.end
                }
            if len(self._sorted) >= _MOST_KEYS:
                self._sorted.clear()
            ordered = self._sorted[key] = sorted(other for other, _ in items)
        index = bisect_left(ordered, window)
        if index and ordered[index - 1].end >= window.start:
            index -= 1
        near = {}
        while index < len(ordered) and ordered[index].start <= window.end:
            near[ordered[index]] = self._table.get(key, ordered[index])
            index += 1
        return near

    def _put(self, key: Any, window: Any, state_window: Any) -> None:
        self._table.put(key, window, state_window)
        ordered = self._sorted.get(key)
        if ordered is not None:
            insort(ordered, window)

    def _remove(self, key: Any, window: Any) -> None:
        self._table.remove(key, window)
        ordered = self._sorted.get(key)
        if ordered is not None:
            del ordered[bisect_left(ordered, window)]
            if len(ordered) <= _FEW // 2:
                del self._sorted[key]


_FEW = 16
"""Most windows of a key that are compared one by one."""
_MOST_KEYS = 4096
"""Keys whose windows are kept by time; when there are more, all are made anew as they come."""


__all__ = ["MergingWindowSet", "UnknownWindow"]
