"""Writing of savepoints by a program, in the format of all backends, so that jobs on any backend start from them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from rayflink.state.errors import StateError
from rayflink.state.group_content import encode_states
from rayflink.state.snapshots import Blob, StoredSnapshot
from rayflink.state.state_sizes import GroupSizes
from rayflink.state.storage.manifest import METADATA, CheckpointManifest, OperatorManifest
from rayflink.state.storage.manifest_format import encode_manifest
from rayflink.state.storage.snapshot_files import SnapshotFileWriter, SnapshotPlace
from rayflink.state.storage.storage_schemes import open_storage

from .savepoint import OperatorState, Savepoint

_INLINE_BYTES = 20 << 10


class SavepointExistsError(StateError):
    """Raised when there is already a savepoint where one is to be written.

    Args:
        path: where.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path

    def __str__(self) -> str:
        return f"there is a savepoint or checkpoint at {self.path} already; give a folder that does not exist yet"


def write_savepoint(savepoint: Savepoint, path: str, options: Mapping[str, str] | None = None) -> Savepoint:
    """Write a savepoint to a folder of its own; the savepoint as it is there.

    Of each operator one key group is in memory at a time, and what edits have given.

    Raises:
        SavepointExistsError: the folder has one.
        SerializationError: a value cannot be written: its class is not there.
        StorageError: the storage refuses.
    """
    storage = open_storage(path, options)
    if METADATA in storage.list():
        raise SavepointExistsError(path)
    number = savepoint.manifest.checkpoint_id
    writer = SnapshotFileWriter(storage, SnapshotPlace.of_savepoint(number, _INLINE_BYTES))
    try:
        operators = tuple(_write_operator(operator, writer) for operator in savepoint.operators)
        writer.finish()
        manifest = replace(
            savepoint.manifest,
            kind="savepoint",
            own_base=True,
            operators=operators,
            completed_ms=int(time.time() * 1000),
        )
        if not storage.put_if_absent(METADATA, encode_manifest(manifest)):
            raise SavepointExistsError(path)
    except BaseException:
        writer.abort()
        raise
    return Savepoint.load(path, options)


def empty_manifest(job_name: str) -> CheckpointManifest:
    """Return the manifest of a savepoint that no job has written."""
    now_ms = int(time.time() * 1000)
    return CheckpointManifest("savepoint", 1, 0, "0" * 32, job_name, now_ms, now_ms, True, ())


def _write_operator(operator: OperatorState, writer: SnapshotFileWriter) -> OperatorManifest:
    width, most = operator.parallelism, operator.max_parallelism
    keyed: list[dict[int, Blob]] = [{} for _ in range(width)]
    sizes = [GroupSizes() for _ in range(width)]
    for group, content in operator.contents.groups():
        subtask = group * width // most
        data, states = encode_states(content, "a savepoint")
        keyed[subtask][group] = writer.put(data)
        sizes[subtask].add_all(group, states)
    raw: list[dict[int, Blob]] = [{} for _ in range(width)]
    for group, data in operator.contents.raw_groups():
        raw[group * width // most][group] = writer.put(data)
    lists: list[dict[str, tuple[str, tuple[Blob, ...]]]] = [{} for _ in range(width)]
    for name, (mode, shares) in operator.contents.lists().items():
        for subtask, entries in enumerate(shares):
            if entries or mode == "broadcast":
                lists[subtask][name] = mode, tuple(map(writer.put, entries))
    snapshots = [
        StoredSnapshot(groups, of_lists, raw_groups, sizes=of_states.states())
        for groups, of_lists, raw_groups, of_states in zip(keyed, lists, raw, sizes, strict=True)
    ]
    coordinator = operator.manifest.coordinator
    return replace(
        operator.manifest,
        subtasks=tuple(
            snapshot if snapshot.keyed or snapshot.lists or snapshot.raw_keyed else None for snapshot in snapshots
        ),
        coordinator=None if coordinator is None else operator.reader.read(coordinator),
    )


__all__ = ["SavepointExistsError", "empty_manifest", "write_savepoint"]
