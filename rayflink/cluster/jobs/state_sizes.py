"""The sizes of a job's state by operator, state and key group, as the manifest of a checkpoint has them.

No state is read: whatever a snapshot contains, none of its objects is created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rayflink.state.snapshots import StoredSnapshot, size_of
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest
from rayflink.state.storage.stored_checkpoints import read_manifest

from .cluster_job import Document

__all__ = ["describe_state", "stored_state"]

MOST_RANGES = 256
"""Ranges of key groups that are listed of an operator."""
_USERS = "user/"


def stored_state(path: str, options: Mapping[str, str]) -> Document:
    """Return the sizes of the state in a checkpoint, as `describe_state` does.

    Args:
        path: of the checkpoint.
        options: of the storage that it lies in.

    Raises:
        NoCheckpointError: there is none.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    return {"path": path, **describe_state(read_manifest(path, options).manifest)}


def describe_state(manifest: CheckpointManifest) -> Document:
    """Return the sizes of the state in a checkpoint, as JSON.

    Returns: "checkpoint_id", "kind", "timestamp_ms", "bytes" and "operators". Each of these has "id", "uid", "name",
        "bytes", its "states" with "name", "kind", "values", "ttl" and "bytes" (null where several share their
        files), "subtasks", the bytes of each, and "key_groups", ranges with "first", "end" and "bytes".
    """
    operators = [_operator(operator) for operator in manifest.operators]
    return {
        "checkpoint_id": manifest.checkpoint_id,
        "kind": manifest.kind,
        "timestamp_ms": manifest.timestamp_ms,
        "bytes": sum(operator["bytes"] for operator in operators),
        "operators": operators,
    }


def _operator(operator: OperatorManifest) -> Document:
    snapshots = [snapshot for snapshot in operator.subtasks if snapshot is not None]
    coordinator = 0 if operator.coordinator is None else size_of(operator.coordinator)
    keyed = sum(map(_keyed_bytes, snapshots))
    keyed_states = [state for state in operator.states if state.is_keyed]
    states: list[Document] = [
        {
            "name": state.name,
            "kind": state.kind,
            "values": state.value_type or None,
            "ttl": state.ttl or None,
            "bytes": keyed if len(keyed_states) == 1 else None,
        }
        for state in keyed_states
    ]
    said = {state.name: state for state in operator.states if not state.is_keyed}
    for name, (mode, size) in sorted(_lists(snapshots).items()):
        summary = said.get(name.removeprefix(_USERS))
        values = None if summary is None else summary.value_type or None
        states.append({"name": name, "kind": f"{mode} list", "values": values, "ttl": None, "bytes": size})
    if coordinator:
        states.append({"name": "splits to assign", "kind": "enumerator", "values": None, "ttl": None,
                       "bytes": coordinator})  # fmt: skip
    return {
        "id": operator.operator_id,
        "uid": operator.uid or None,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "bytes": sum(snapshot.size_bytes for snapshot in snapshots) + coordinator,
        "keyed_bytes": keyed,
        "states": states,
        "subtasks": [0 if snapshot is None else snapshot.size_bytes for snapshot in operator.subtasks],
        "key_groups": _ranges(snapshots),
    }


def _keyed_bytes(snapshot: StoredSnapshot) -> int:
    databases = sum(size_of(blob) for database in snapshot.databases for blob in database.files.values())
    return databases + sum(map(size_of, snapshot.keyed.values())) + sum(map(size_of, snapshot.raw_keyed.values()))


def _lists(snapshots: Iterable[StoredSnapshot]) -> dict[str, tuple[str, int]]:
    sizes: dict[str, tuple[str, int]] = {}
    for snapshot in snapshots:
        for name, (mode, entries) in snapshot.lists.items():
            size = sizes.get(name, (mode, 0))[1] + sum(map(size_of, entries))
            sizes[name] = mode, size
    return sizes


def _ranges(snapshots: Iterable[StoredSnapshot]) -> list[Document]:
    """Return ranges of key groups with their bytes: those of a database together, as its files hold all of them."""
    ranges: Counter[tuple[int, int]] = Counter()
    for snapshot in snapshots:
        for first, end, size in _parts(snapshot):
            ranges[first, end] += size
    parts = [{"first": first, "end": end, "bytes": size} for (first, end), size in sorted(ranges.items())]
    if len(parts) <= MOST_RANGES:
        return [*parts]
    step = -(-len(parts) // MOST_RANGES)
    folded = []
    for begin in range(0, len(parts), step):
        group = parts[begin : begin + step]
        folded.append({"first": group[0]["first"], "end": group[-1]["end"], "bytes": sum(p["bytes"] for p in group)})
    return [*folded]


def _parts(snapshot: StoredSnapshot) -> Iterator[tuple[int, int, int]]:
    for blobs in (snapshot.keyed, snapshot.raw_keyed):
        for group, blob in blobs.items():
            yield group, group + 1, size_of(blob)
    for database in snapshot.databases:
        yield database.first_group, database.end_group, sum(map(size_of, database.files.values()))
