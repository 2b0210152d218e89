"""The sizes of a job's state by operator, state and key group, as the manifest of a checkpoint has them.

No state is read: whatever a snapshot contains, none of its objects is created.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..snapshots import StoredSnapshot, size_of
from ..state_sizes import UNKNOWN, GroupSize, StateSize, sum_entries
from .manifest import CheckpointManifest, OperatorManifest, StateSummary

MOST_RANGES = 256
"""Ranges of key groups that are listed of an operator, or a state."""
USER = "user/"
"""Prefix of the names of users' operator states, in the table of all lists of an operator."""
ENUMERATOR = "source-enumerator"
RAW_KEYED = "raw keyed state"
_SPLITS = "source-splits"
Document: TypeAlias = "dict[str, Any]"


def describe_state(manifest: CheckpointManifest) -> Document:
    """Return the sizes of the state in a checkpoint, as JSON.

    Returns: "checkpoint_id", "kind", "timestamp_ms", "bytes", "written_bytes" (new in this checkpoint; null where it is
        not known) and "operators". Each of these has "id", "uid", "name", "parallelism", "max_parallelism", "bytes",
        "written_bytes", "states", "subtasks" (the bytes of each), "largest_group" and "key_groups": ranges with
        "first", "end" and "bytes". A state has "name", "kind", "is_keyed", "values", "ttl", "bytes" (null where several
        share their files), "written_bytes", "entries" (null where they were not counted), "is_estimate",
        "largest_group" ("group", "bytes", "share") and "key_groups".
    """
    operators = [_operator(operator) for operator in manifest.operators]
    return {
        "checkpoint_id": manifest.checkpoint_id,
        "kind": manifest.kind,
        "timestamp_ms": manifest.timestamp_ms,
        "bytes": sum(operator["bytes"] for operator in operators),
        "written_bytes": _sum(operator["written_bytes"] for operator in operators),
        "operators": operators,
    }


@dataclass
class _Sizes:
    """The sizes of one state over all subtasks."""

    written: int = 0
    entries: list[int] = field(default_factory=list)
    groups: list[GroupSize] = field(default_factory=list)
    is_estimate: bool = False

    def add(self, size: StateSize) -> None:
        """Add those of a subtask."""
        self.written += size.written_bytes
        self.entries.append(size.entries)
        self.groups += size.groups
        self.is_estimate |= size.is_estimate


def _operator(operator: OperatorManifest) -> Document:
    snapshots = [snapshot for snapshot in operator.subtasks if snapshot is not None]
    coordinator = 0 if operator.coordinator is None else size_of(operator.coordinator)
    states = [*_keyed(operator, snapshots), *_others(operator, snapshots)]
    groups = [*_all_groups(snapshots)]
    return {
        "id": operator.operator_id,
        "uid": operator.uid or None,
        "name": operator.name,
        "parallelism": operator.parallelism,
        "max_parallelism": operator.max_parallelism,
        "bytes": sum(snapshot.size_bytes for snapshot in snapshots) + coordinator,
        "written_bytes": _sum(state["written_bytes"] for state in states),
        "keyed_bytes": sum(map(_keyed_bytes, snapshots)),
        "states": states,
        "subtasks": [0 if snapshot is None else snapshot.size_bytes for snapshot in operator.subtasks],
        "largest_group": _largest(groups),
        "key_groups": _ranges(groups),
    }


def _keyed(operator: OperatorManifest, snapshots: Sequence[StoredSnapshot]) -> Iterator[Document]:
    """Yield the keyed states and timers; of a checkpoint that does not note their sizes, their names."""
    sizes: dict[tuple[str, bool], tuple[str, _Sizes]] = {}
    for snapshot in snapshots:
        for size in snapshot.sizes:
            _, known = sizes.setdefault((size.name, size.kind == "timers"), (size.kind, _Sizes()))
            known.add(size)
    said = {(state.name, state.kind == "timers"): state for state in operator.states if state.is_keyed}
    is_noted = bool(sizes) or not any(map(_keyed_bytes, snapshots))
    for place in dict.fromkeys([*sorted(said), *sorted(sizes)]):
        kind, known = sizes.get(place, ("", _Sizes()))
        summary = said.get(place)
        document = _state(place[0], kind if summary is None else summary.kind, summary, known.groups)
        document |= {"is_keyed": True, "written_bytes": known.written, "is_estimate": known.is_estimate}
        document["entries"] = _entries(known.entries)
        if not is_noted:
            whole = sum(map(_keyed_bytes, snapshots)) if len(said) == 1 else None
            document |= {"bytes": whole, "written_bytes": None, "entries": None}
        yield document


def _others(operator: OperatorManifest, snapshots: Sequence[StoredSnapshot]) -> Iterator[Document]:
    """Yield lists, raw keyed state, and what the coordinator stores; all of it is written anew each time."""
    said = {state.name: state for state in operator.states if not state.is_keyed}
    sizes: dict[str, tuple[str, list[int]]] = {}
    for snapshot in snapshots:
        for name, (mode, entries) in snapshot.lists.items():
            sizes.setdefault(name, (mode, []))[1].extend(map(size_of, entries))
    for name, (mode, entry_sizes) in sorted(sizes.items()):
        shown = name.removeprefix(USER)
        kind = "splits" if name == _SPLITS else "broadcast" if mode == "broadcast" else f"{mode} list"
        yield {**_state(shown, kind, said.get(shown), ()), **_written(sum(entry_sizes)), "entries": len(entry_sizes)}
    raw = [GroupSize(group, group + 1, size_of(blob)) for part in snapshots for group, blob in part.raw_keyed.items()]
    if raw:
        yield _state(RAW_KEYED, "raw keyed", None, raw) | _written(sum(group.size_bytes for group in raw))
    if operator.coordinator is not None:
        yield _state(ENUMERATOR, "enumerator", None, ()) | _written(size_of(operator.coordinator))


def _state(name: str, kind: str, summary: StateSummary | None, groups: Iterable[GroupSize]) -> Document:
    groups = [*groups]
    return {
        "name": name,
        "kind": kind,
        "is_keyed": False,
        "values": None if summary is None else summary.value_type or None,
        "ttl": None if summary is None else summary.ttl or None,
        "bytes": sum(group.size_bytes for group in groups),
        "written_bytes": None,
        "entries": None,
        "is_estimate": False,
        "largest_group": _largest(groups),
        "key_groups": _ranges(groups),
    }


def _written(size: int) -> Document:
    return {"bytes": size, "written_bytes": size}


def _entries(counts: Sequence[int]) -> int | None:
    total = sum_entries(counts)
    return None if total == UNKNOWN else total


def _keyed_bytes(snapshot: StoredSnapshot) -> int:
    databases = sum(size_of(blob) for database in snapshot.databases for blob in database.files.values())
    return databases + sum(map(size_of, snapshot.keyed.values()))


def _all_groups(snapshots: Iterable[StoredSnapshot]) -> Iterator[GroupSize]:
    """Yield the sizes of key groups; of files whose content is not noted, of all key groups that they hold together."""
    for snapshot in snapshots:
        for group, blob in snapshot.raw_keyed.items():
            yield GroupSize(group, group + 1, size_of(blob))
        for size in snapshot.sizes:
            yield from size.groups
        if snapshot.sizes:
            continue
        for group, blob in snapshot.keyed.items():
            yield GroupSize(group, group + 1, size_of(blob))
        for database in snapshot.databases:
            size_bytes = sum(map(size_of, database.files.values()))
            yield GroupSize(database.first_group, database.end_group, size_bytes)


def _by_range(groups: Iterable[GroupSize]) -> Mapping[tuple[int, int], int]:
    ranges: Counter[tuple[int, int]] = Counter()
    for group in groups:
        ranges[group.first, group.end] += group.size_bytes
    return ranges


def _largest(groups: Iterable[GroupSize]) -> Document | None:
    """Return the key group with most bytes; None where there is none, or bytes are known of several together only."""
    ranges = _by_range(groups)
    total = sum(ranges.values())
    if not total or any(end - first > 1 for first, end in ranges):
        return None
    (group, _), size = max(ranges.items(), key=lambda entry: entry[1])
    return {"group": group, "bytes": size, "share": round(size / total, 4)}


def _ranges(groups: Iterable[GroupSize]) -> list[Document]:
    """Return ranges of key groups with their bytes: those of a database together, as its files hold all of them."""
    ordered = sorted(_by_range(groups).items())
    parts = [{"first": first, "end": end, "bytes": size} for (first, end), size in ordered]
    if len(parts) <= MOST_RANGES:
        return [*parts]
    step = -(-len(parts) // MOST_RANGES)
    folded = []
    for begin in range(0, len(parts), step):
        group = parts[begin : begin + step]
        folded.append({"first": group[0]["first"], "end": group[-1]["end"], "bytes": sum(p["bytes"] for p in group)})
    return [*folded]


def _sum(sizes: Iterable[int | None]) -> int | None:
    """Return a sum; None where a part of it is not known."""
    known = [*sizes]
    return None if any(size is None for size in known) else sum(size or 0 for size in known)


__all__ = ["ENUMERATOR", "MOST_RANGES", "RAW_KEYED", "USER", "describe_state"]
