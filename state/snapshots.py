"""Snapshots as values: the state of one operator's subtask at one checkpoint, as bytes or as places in stored files.

What is small stays in the value and travels with the messages; the rest is in files of a checkpoint storage, and the
value says where. Taking a snapshot has two parts. The first, between two records, captures the state as it is then. The
second writes what was captured, in another thread while the task goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from .schema.state_summary import StateSummary
from .state_sizes import StateSize

SNAPSHOT_VERSION = 1


@dataclass(frozen=True, slots=True)
class FileSlice:
    """The bytes [offset, offset + length) of a stored file.

    Args:
        path: relative to the base of the snapshot's storage, with "/" between folders.
        checksum: CRC-32 of these bytes.
    """

    path: str
    offset: int
    length: int
    checksum: int


Blob = bytes | FileSlice
"""Some bytes of a snapshot, or where they are."""
Pieces = Sequence[bytes | memoryview]
"""Some bytes of a snapshot that follow each other, and are not joined because they are many; nothing changes them."""


def size_of(blob: Blob) -> int:
    """Return the size in bytes.

    >>> size_of(b"abc"), size_of(FileSlice("chk-1/a", 10, 5, 0))
    (3, 5)
    """
    return blob.length if isinstance(blob, FileSlice) else len(blob)


@dataclass(frozen=True, slots=True)
class DatabaseFiles:
    """Keyed state as the files of a database's own checkpoint.

    Args:
        first_group, end_group: it holds the key groups [first_group, end_group).
        files: name in the database's folder -> its bytes.
        shared: those names whose bytes later snapshots may refer to as well.
        about: what the backend has to know to open it, in its own versioned form.
    """

    first_group: int
    end_group: int
    files: Mapping[str, Blob]
    shared: frozenset[str]
    about: bytes


class SnapshotWriter(Protocol):
    """A writer of the parts of one subtask's snapshot; used by one thread."""

    @property
    def checkpoint_id(self) -> int:
        """Return the number of the checkpoint."""
        ...

    @property
    def is_savepoint(self) -> bool:
        """Return whether the snapshot is a savepoint: then everything is written anew, in the format of all
        backends.
        """
        ...

    def put(self, data: bytes) -> Blob:
        """Keep some bytes: small ones as they are, others in a file of this snapshot's own.

        Raises:
            StorageError: they cannot be stored; so do the others.
        """
        ...

    def put_pieces(self, pieces: Pieces) -> Blob:
        """Keep the bytes of pieces, as `put` does."""
        ...

    def put_file(self, local: Path, shared: bool) -> Blob:
        """Keep the bytes of a local file; with `shared` where later checkpoints may refer to them."""
        ...


class SnapshotReader(Protocol):
    """A reader of what a `SnapshotWriter` stored; may be used by several threads."""

    def read(self, blob: Blob) -> bytes:
        """Return the bytes.

        Raises:
            StorageError: the file is missing, or cannot be read.
            DamagedFileError: they are not the bytes that were written.
        """
        ...

    def copy(self, blob: Blob, local: Path) -> None:
        """Write the bytes to a local file that does not exist yet; raises as `read`."""
        ...


@dataclass(frozen=True, slots=True)
class KeyedParts:
    """Written keyed state: key groups in the format of all backends, or the files of databases; and its sizes."""

    groups: Mapping[int, Blob] = field(default_factory=dict)
    databases: tuple[DatabaseFiles, ...] = ()
    sizes: tuple[StateSize, ...] = ()


class KeyedCapture(Protocol):
    """Keyed state as it was at a barrier."""

    def write(self, writer: SnapshotWriter) -> KeyedParts:
        """Store it; called at most once, by another thread than the task's, while the task goes on."""
        ...

    def release(self) -> None:
        """Let go of it, written or not; called exactly once, by the thread that wrote it or the task's."""
        ...


@dataclass(frozen=True, slots=True)
class OperatorSnapshot:
    """The state of one operator's subtask at one checkpoint, as the operator returns it and restores it.

    Args:
        keyed: key group -> the keyed state and timers of that group.
        lists: operator list state; name -> (mode, entries); mode is "split" (redistributed on rescale), "union" (all
            entries to every subtask) or "broadcast" (one copy to every subtask).
        raw_keyed: key group -> bytes that the user's code wrote for it.
        version: of this layout.
        capture: keyed state that is still to be written; then `keyed` is empty. It never leaves its process.
        databases: keyed state to restore that is in files of databases.
        reader: of those files; None where there are none.
        reusable: whether later checkpoints may refer to those files: they are in the job's own storage.
        states: what its states are, as far as known.
        pieces: lists whose entries are still to be written, in pieces. It never leaves its process.
    """

    keyed: Mapping[int, bytes] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, tuple[bytes, ...]]] = field(default_factory=dict)
    raw_keyed: Mapping[int, bytes] = field(default_factory=dict)
    version: int = SNAPSHOT_VERSION
    capture: KeyedCapture | None = None
    databases: tuple[DatabaseFiles, ...] = ()
    reader: SnapshotReader | None = None
    reusable: bool = False
    states: tuple[StateSummary, ...] = ()
    pieces: Mapping[str, tuple[str, tuple[Pieces, ...]]] = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """Return the bytes of state that are in this value."""
        keyed = (*self.keyed.values(), *self.raw_keyed.values())
        pieces = [piece for _, entries in self.pieces.values() for entry in entries for piece in entry]
        lists = [entry for _, entries in self.lists.values() for entry in entries]
        return sum(map(len, (*keyed, *lists, *pieces)))


@dataclass(frozen=True, slots=True)
class StoredSnapshot:
    """The written state of one operator's subtask at one checkpoint, as the coordinator stores it.

    The parts are those of `OperatorSnapshot`, each as bytes or as a place in a stored file.

    Args:
        sizes: of the keyed states and timers, by name; empty where the writer did not note them.
    """

    keyed: Mapping[int, Blob] = field(default_factory=dict)
    lists: Mapping[str, tuple[str, tuple[Blob, ...]]] = field(default_factory=dict)
    raw_keyed: Mapping[int, Blob] = field(default_factory=dict)
    version: int = SNAPSHOT_VERSION
    databases: tuple[DatabaseFiles, ...] = ()
    states: tuple[StateSummary, ...] = ()
    sizes: tuple[StateSize, ...] = ()

    @property
    def blobs(self) -> Iterable[Blob]:
        """Yield all its parts."""
        yield from self.keyed.values()
        yield from self.raw_keyed.values()
        for _, entries in self.lists.values():
            yield from entries
        for database in self.databases:
            yield from database.files.values()

    @property
    def size_bytes(self) -> int:
        """Return the bytes of state in all parts."""
        return sum(map(size_of, self.blobs))


def stored(snapshot: OperatorSnapshot, writer: SnapshotWriter) -> StoredSnapshot:
    """Write what an operator gave.

    Raises:
        StorageError: it cannot be stored.
        SerializationError: a value of it cannot be turned into bytes.
    """
    keyed = KeyedParts({group: writer.put(data) for group, data in snapshot.keyed.items()})
    if snapshot.capture is not None:
        keyed = snapshot.capture.write(writer)
    lists = {name: (mode, tuple(map(writer.put, entries))) for name, (mode, entries) in snapshot.lists.items()}
    lists |= {name: (mode, tuple(map(writer.put_pieces, own))) for name, (mode, own) in snapshot.pieces.items()}
    raw_keyed = {group: writer.put(data) for group, data in snapshot.raw_keyed.items()}
    version, states = snapshot.version, snapshot.states
    return StoredSnapshot(keyed.groups, lists, raw_keyed, version, keyed.databases, states, keyed.sizes)


def loaded(snapshot: StoredSnapshot, reader: SnapshotReader, reusable: bool = False) -> OperatorSnapshot:
    """Return the snapshot that an operator restores; a key group is read when it is asked for.

    Args:
        reusable: whether later checkpoints may refer to the files of its databases: they are in the job's own storage.
    Raises:
        StorageError, DamagedFileError: a list or a group cannot be read.
    """
    lists = {name: (mode, tuple(map(reader.read, entries))) for name, (mode, entries) in snapshot.lists.items()}
    keyed, raw_keyed = _Read(snapshot.keyed, reader), _Read(snapshot.raw_keyed, reader)
    databases = snapshot.databases
    database_reader = reader if databases else None
    return OperatorSnapshot(
        keyed, lists, raw_keyed, snapshot.version, None, databases, database_reader, reusable, snapshot.states
    )


class _Read(Mapping[int, bytes]):
    """Blobs by key group, read lazily as bytes."""

    def __init__(self, blobs: Mapping[int, Blob], reader: SnapshotReader) -> None:
        self._blobs, self._reader = blobs, reader

    def __getitem__(self, group: int) -> bytes:
        return self._reader.read(self._blobs[group])

    def __iter__(self) -> Iterator[int]:
        return iter(self._blobs)

    def __len__(self) -> int:
        return len(self._blobs)


class InlineSnapshots:
    """A writer and reader of snapshots that are bytes and no files."""

    def __init__(self, checkpoint_id: int = 0, is_savepoint: bool = True) -> None:
        self.checkpoint_id, self.is_savepoint = checkpoint_id, is_savepoint

    def put(self, data: bytes) -> Blob:
        """Return the bytes."""
        return data

    def put_pieces(self, pieces: Pieces) -> Blob:
        """Return the bytes of pieces."""
        return self.put(b"".join(pieces))

    def put_file(self, local: Path, shared: bool) -> Blob:
        """Return the bytes of the file."""
        return local.read_bytes()

    def read(self, blob: Blob) -> bytes:
        """Return the bytes, which are in the value itself."""
        assert isinstance(blob, bytes), f"found {blob}, which is in a file; a reader of its storage is wanted"
        return blob

    def copy(self, blob: Blob, local: Path) -> None:
        """Write the bytes to a file."""
        local.write_bytes(self.read(blob))


__all__ = [
    "SNAPSHOT_VERSION", "Blob", "DatabaseFiles", "FileSlice", "InlineSnapshots", "KeyedCapture", "KeyedParts",
    "OperatorSnapshot", "Pieces", "SnapshotReader", "SnapshotWriter", "StoredSnapshot", "loaded", "size_of", "stored",
]  # fmt: skip
