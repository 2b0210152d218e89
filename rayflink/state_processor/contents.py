"""The contents of one operator in a savepoint or checkpoint: key groups one after the other, and lists by
subtask.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from rayflink.state.classes.unknown_objects import loads_leniently
from rayflink.state.group_content import Content, decode_group
from rayflink.state.rocksdb.rocksdb_files import database_groups
from rayflink.state.snapshots import Blob, SnapshotReader
from rayflink.state.storage.manifest import OperatorManifest

Lists = Mapping[str, tuple[str, tuple[tuple[bytes, ...], ...]]]
"""State -> mode, and the entries of each subtask."""


class OperatorContents(Protocol):
    """The state of one operator, whatever its source."""

    def groups(self) -> Iterator[tuple[int, Content]]:
        """Yield (key group, its keyed state and timers) in order, one at a time; the same at each call."""
        ...

    def lists(self) -> Lists:
        """Return its operator state."""
        ...

    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        """Yield (key group, the bytes that the user's code wrote for it)."""
        ...


class StoredContents:
    """The contents of an operator as they were stored.

    Args:
        manifest: of the operator.
        reader: of the files that the manifest names.
    """

    def __init__(self, manifest: OperatorManifest, reader: SnapshotReader) -> None:
        self._manifest, self._reader = manifest, reader
        names = {name: schema.names for state in manifest.states for name, schema in state.classes.items()}
        self._loads: Callable[[Any], Any] = partial(loads_leniently, names=names)

    def groups(self) -> Iterator[tuple[int, Content]]:
        """Yield the contents in the order of key groups; only one database is on this machine at a time."""
        snapshots = [part for part in self._manifest.subtasks if part is not None]
        plain = {group: blob for part in snapshots for group, blob in part.keyed.items()}
        whose = self._manifest.max_parallelism, self._manifest.uid or self._manifest.operator_id
        databases = sorted(
            (database for part in snapshots for database in part.databases), key=lambda database: database.first_group
        )
        waiting = sorted(plain)
        waiting.reverse()
        everything = range(self._manifest.max_parallelism)
        for group, content in database_groups(databases, self._reader, everything, whose, self._loads):
            while waiting and waiting[-1] < group:
                before = waiting.pop()
                yield before, self._decoded(plain[before], whose[1])
            if waiting and waiting[-1] == group:
                content = _merge_contents(self._decoded(plain[waiting.pop()], whose[1]), content)
            if content["tables"] or content["timers"]:
                yield group, content
        while waiting:
            group = waiting.pop()
            yield group, self._decoded(plain[group], whose[1])

    def _decoded(self, blob: Blob, operator_uid: str) -> Content:
        return decode_group(self._reader.read(blob), operator_uid, self._loads)

    def lists(self) -> Lists:
        """Return the lists of all subtasks, in the order of their index."""
        names: dict[str, str] = {}
        for part in self._manifest.subtasks:
            if part is not None:
                names.update((name, mode) for name, (mode, _) in part.lists.items())
        lists = {}
        for name, mode in names.items():
            entries = (() if part is None else part.lists.get(name, ("", ()))[1] for part in self._manifest.subtasks)
            lists[name] = mode, tuple(tuple(map(self._reader.read, blobs)) for blobs in entries)
        return lists

    def raw_groups(self) -> Iterator[tuple[int, bytes]]:
        """Yield the raw state in the order of key groups."""
        parts = [part.raw_keyed for part in self._manifest.subtasks if part is not None]
        raw = {group: blob for part in parts for group, blob in part.items()}
        for group in sorted(raw):
            yield group, self._reader.read(raw[group])


def _merge_contents(near: Content, far: Content) -> Content:
    """Merge timers that were in memory with those of the database, which come after them; the tables of the two
    differ.
    """
    timers = dict(far["timers"])
    for name, rows in near["timers"].items():
        behind = 1 + max((row[0] for row in rows), default=-1)
        timers[name] = [*rows, *((position + behind, *row) for position, *row in timers.get(name, ()))]
    return {"tables": {**far["tables"], **near["tables"]}, "timers": timers}


ENTRY_IN_USE: bytes = b"\x01"
"""Prefix of an entry of a user's list; a pickle follows."""


def entry_value(name: str, data: bytes) -> Any:
    """Return the value in an entry of operator state; the bytes themselves where they are no pickle."""
    if name == "_watermark":
        return int.from_bytes(data, "big", signed=True)
    for body in (data[1:],) if data[:1] == ENTRY_IN_USE else (data,):
        try:
            return loads_leniently(body)
        except (pickle.UnpicklingError, EOFError, IndexError, ValueError):
            break
    return data


__all__ = ["ENTRY_IN_USE", "Lists", "OperatorContents", "StoredContents", "entry_value"]
