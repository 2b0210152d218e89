"""Captures that are written as key groups, in the format of all backends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, repeat
from typing import Any

from .group_content import Content, encode_states
from .snapshot_copies import copy_values, read_copy
from .snapshots import Blob, KeyedParts, SnapshotWriter
from .state_sizes import GroupSizes
from .timers import TimersCopy

_PART = 4096
"""Entries that are distributed to their groups in one go; other threads get the interpreter in between."""


class TableCopy:
    """The entries of one table as they were when it was copied: (key, namespace, value).

    Args:
        spaces: namespace -> key -> value, of which the keys and values are taken now.
    """

    def __init__(self, spaces: dict[Any, dict[Any, Any]]) -> None:
        self._namespaces = list(spaces)
        self._sizes = list(map(len, spaces.values()))
        self._keys = list(chain.from_iterable(spaces.values()))
        self._values = copy_values(list(chain.from_iterable(map(dict.values, spaces.values()))))

    def __iter__(self) -> Iterator[tuple[Any, Any, Any]]:
        """Yield the entries by namespace; iterate once only."""
        spaces = chain.from_iterable(map(repeat, self._namespaces, self._sizes))
        return zip(self._keys, spaces, map(read_copy, self._values), strict=True)


class GroupCapture:
    """Tables and timers as they were at a barrier; a `KeyedCapture`.

    Args:
        backend: who wrote it, for errors.
        tables: state -> (stored kind, its entries).
        timers: queue -> its timers.
        filters: state -> what a snapshot holds of a value, nothing where that is None; asked when it is written.
        groups_of: keys -> their key groups; called by the thread that writes.
    """

    def __init__(
        self,
        backend: str,
        tables: Mapping[str, tuple[str, Iterable[tuple[Any, Any, Any]]]],
        timers: dict[str, TimersCopy],
        filters: dict[str, Callable[[Any], Any]],
        groups_of: Callable[[list[Any]], list[int]],
    ) -> None:
        self._backend, self._groups_of = backend, groups_of
        self.filters = dict(filters)
        self._tables: Mapping[str, tuple[str, Iterable[tuple[Any, Any, Any]]]] = tables
        self._timers = timers
        self.is_released = False

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        """Store each key group; one that is empty is left out."""
        contents = self.contents()
        groups: dict[int, Blob] = {}
        sizes = GroupSizes()
        for group in sorted(contents):
            data, states = encode_states(contents.pop(group), self._backend)
            groups[group] = writer.put(data)
            sizes.add_all(group, states)
        return KeyedParts(groups, sizes=sizes.states())

    def release(self) -> None:
        """Let go of all values."""
        self._tables, self._timers = {}, {}
        self.is_released = True

    def contents(self) -> dict[int, Content]:
        """Return the content of each key group.

        Raises:
            ForeignKeyError: a key belongs to another subtask.
        """
        contents: dict[int, Content] = {}
        for name, (kind, entries) in self._tables.items():
            for group, row in self._by_group(self._filtered(name, entries)):
                tables = contents.setdefault(group, {"tables": {}, "timers": {}})["tables"]
                tables.setdefault(name, (kind, []))[1].append(row)
        for name, timers in self._timers.items():
            for group, row in self._by_group((key, namespace, timestamp) for timestamp, key, namespace in timers):
                queues = contents.setdefault(group, {"tables": {}, "timers": {}})["timers"]
                queues.setdefault(name, []).append(row)
        return contents

    def _filtered(self, name: str, entries: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
        snapshot_filter = self.filters.get(name)
        if snapshot_filter is None:
            return iter(entries)
        filtered = ((key, namespace, snapshot_filter(value)) for key, namespace, value in entries)
        return (entry for entry in filtered if entry[2] is not None)

    def _by_group(self, entries: Iterator[tuple[Any, Any, Any]]) -> Iterator[tuple[int, tuple[int, Any, Any, Any]]]:
        position = 0
        while part := list(islice(entries, _PART)):
            for group, (key, namespace, value) in zip(self._groups_of([entry[0] for entry in part]), part, strict=True):
                yield group, (position, namespace, key, value)
                position += 1


__all__ = ["TableCopy", "GroupCapture"]
