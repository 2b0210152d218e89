"""Captures of a RocksDB database: hard links to its files, of which only new ones are stored.

A file of sorted rows never changes, so a checkpoint refers to the stored files of an earlier one that is complete. With
several under way one may only refer to what those before it refer to as well: when the next one is complete, what only
the earlier ones have may be deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

from ..group_capture import GroupCapture
from ..group_content import encode_states
from ..snapshots import Blob, DatabaseFiles, FileSlice, KeyedParts, SnapshotWriter
from ..state_sizes import GroupSizes, StateSize
from .rocksdb_files import STATE, TIMERS, AboutDatabase, StoredDatabase
from .rocksdb_store import RocksDBStore
from .sorted_files import StoredColumn

_SHARED = ".sst"
_UNUSED = (".log", "LOCK", "LOG", "IDENTITY")
"""Files that a database makes anew: the log that is never written, and those of a process."""


class Increments:
    """The record of which files of the database are stored already, and which a checkpoint may refer to.

    >>> a, b = FileSlice("shared/a", 0, 5, 1), FileSlice("shared/b", 0, 5, 2)
    >>> increments = Increments()
    >>> increments.begin(1), increments.stored(1, {"1.sst": a})
    ({}, None)
    >>> increments.begin(2), increments.stored(2, {"1.sst": b})
    ({}, None)
    >>> increments.confirm(1)
    >>> increments.begin(3)  # what 2 stored by itself may be all that is left when 3 is complete
    {}
    >>> increments.confirm(2), increments.abort(3)
    (None, None)
    >>> list(increments.begin(4))
    ['1.sst']
    """

    def __init__(self) -> None:
        self._confirmed: dict[str, FileSlice] = {}
        self._under_way: dict[int, dict[str, FileSlice]] = {}
        self._written: dict[int, dict[str, FileSlice]] = {}

    def begin(self, checkpoint_id: int) -> Mapping[str, FileSlice]:
        """Begin a checkpoint; return where files are stored that it may refer to: file -> place."""
        others = list(self._under_way.values())
        base = {
            name: stored
            for name, stored in self._confirmed.items()
            if all(other.get(name) == stored for other in others)
        }
        self._under_way[checkpoint_id] = base
        return base

    def stored(self, checkpoint_id: int, files: Mapping[str, Blob]) -> None:
        """Note the files of this checkpoint; may be called by any thread, before it is confirmed."""
        self._written[checkpoint_id] = {name: blob for name, blob in files.items() if isinstance(blob, FileSlice)}

    def start_from(self, files: Mapping[str, Blob]) -> None:
        """Let checkpoints refer to these files, from which the database was restored."""
        self._confirmed = {name: blob for name, blob in files.items() if isinstance(blob, FileSlice)}

    def confirm(self, checkpoint_id: int) -> None:
        """Note that this checkpoint is complete; earlier ones do not matter any more."""
        if checkpoint_id in self._written:
            self._confirmed = self._written[checkpoint_id]
        for files in (self._under_way, self._written):
            for number in [number for number in list(files) if number <= checkpoint_id]:  # another thread adds
                del files[number]

    def abort(self, checkpoint_id: int) -> None:
        """Note that this checkpoint will never be complete."""
        self._under_way.pop(checkpoint_id, None)
        self._written.pop(checkpoint_id, None)


class DatabaseCapture:
    """A database as it was at a barrier, with the timers that were in memory; a `KeyedCapture`.

    Args:
        link: gives the folder with links to its files, when it is made.
        store: the database.
        key_groups: those of the subtask.
        about: describes what the database holds; asked when the links are made, for rows are written before.
        near: the timers in memory, and the filters.
        increments: file -> where it is stored already; and what is called with the files, once all are stored.
    """

    def __init__(
        self,
        link: Future[Path],
        store: RocksDBStore,
        key_groups: range,
        about: Callable[[], AboutDatabase],
        near: GroupCapture,
        increments: tuple[Mapping[str, FileSlice], Callable[[Mapping[str, Blob]], None]],
    ) -> None:
        self._link, self._store, self._key_groups, self._about = link, store, key_groups, about
        self._near, (self._base, self._written) = near, increments

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        """Store the files that are new, or for a savepoint the content of each key group.

        Raises:
            DatabaseError: the files could not be made.
            SerializationError: a value cannot be turned into bytes.
        """
        if writer.is_savepoint:
            return self._write_groups(writer)
        near = self._near.write(writer)
        files: dict[str, Blob] = {}
        folder = self._link.result()
        for file in sorted(folder.iterdir()):
            if file.name.endswith(_UNUSED):
                continue
            stored = self._base.get(file.name)
            files[file.name] = writer.put_file(file, file.suffix == _SHARED) if stored is None else stored
        shared = frozenset(name for name in files if name.endswith(_SHARED))
        self._written({name: files[name] for name in shared})
        first, end, about = self._key_groups.start, self._key_groups.stop, self._about()
        database = DatabaseFiles(first, end, files, shared, about.encode())
        return KeyedParts(near.groups, (database,), (*near.sizes, *self._sizes(folder, about)))

    def _sizes(self, folder: Path, about: AboutDatabase) -> tuple[StateSize, ...]:
        """Return the sizes of the states, and of the queues of which timers are in the database."""
        columns = [StoredColumn(name, kind, STATE + name, not kind.endswith("list"))
                   for name, kind in about.tables.items()]  # fmt: skip
        columns += [StoredColumn(name, "timers", TIMERS + name) for name in about.far_from_ms]
        return self._store.sorted_files.sizes(folder, columns, self._base.keys(), self._key_groups)

    def release(self) -> None:
        """Remove the links."""
        self._near.release()
        self._store.unlink(self._link)

    def _write_groups(self, writer: SnapshotWriter) -> KeyedParts:
        contents, sizes = self._near.contents(), GroupSizes()
        groups: dict[int, Blob] = {}
        folder = self._link.result()
        with StoredDatabase(folder, self._about()) as stored:
            for group in self._key_groups:
                content = contents.pop(group, None) or {"tables": {}, "timers": {}}
                stored.add_group(group, content, self._near.filters)
                if content["tables"] or content["timers"]:
                    data, states = encode_states(content, "the RocksDB backend")
                    groups[group] = writer.put(data)
                    sizes.add_all(group, states)
        return KeyedParts(groups, sizes=sizes.states())


__all__ = ["DatabaseCapture", "Increments"]
