"""Shares of one state of a savepoint, of about one size, each read by itself in any process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from rayflink.state.schema.state_summary import StateSummary
from rayflink.state.snapshots import Blob, DatabaseFiles, StoredSnapshot, size_of
from rayflink.state.storage.manifest import OperatorManifest
from rayflink.state.storage.snapshot_files import SnapshotFileReader
from rayflink.state.storage.storage_schemes import open_storage

from .contents import StoredContents
from .savepoint import OperatorState
from .states import ENUMERATOR, RAW_KEYED, USER, SavedState


@dataclass(frozen=True, slots=True)
class StateShare:
    """Some key groups of a keyed state, or one subtask's part of a list.

    Args:
        base: address of the storage that the names of files begin at.
        manifest: of the operator, with this share of this state alone.
        name: of the state.
    """

    base: str
    manifest: OperatorManifest
    name: str

    def read(self, options: Mapping[str, str] | None = None) -> SavedState:
        """Return the state, with the rows of this share."""
        reader = SnapshotFileReader(open_storage(self.base, options))
        return OperatorState(self.manifest, StoredContents(self.manifest, reader), reader).state(self.name)


def shares_of(operator: OperatorState, name: str, base: str, most_bytes: int) -> list[StateShare]:
    """Return the shares of a state, in the order of its rows; a key group, or a database, is never divided.

    Args:
        name: of the state.
        base: address of the storage that the names of files begin at.
        most_bytes: of a share, where what it is made of is not larger.

    Raises:
        NotInSavepointError: there is no such state.
    """
    whole = replace(operator.manifest, states=_described(operator, name), coordinator=None, finished=frozenset())
    snapshots = [snapshot for snapshot in whole.subtasks if snapshot is not None]
    if any(state.is_keyed for state in whole.states):
        groups = {group: blob for snapshot in snapshots for group, blob in snapshot.keyed.items()}
        databases = [database for snapshot in snapshots for database in snapshot.databases]
        parts = [replace(whole, subtasks=(snapshot,)) for snapshot in _keyed(groups, databases, most_bytes)]
        parts = parts or [replace(whole, subtasks=())]
    elif name == ENUMERATOR:
        parts = [replace(whole, subtasks=(), coordinator=operator.manifest.coordinator)]
    elif name == RAW_KEYED:
        groups = {group: blob for snapshot in snapshots for group, blob in snapshot.raw_keyed.items()}
        parts = [replace(whole, subtasks=(StoredSnapshot(raw_keyed=run),)) for run in _runs(groups, most_bytes)]
    else:
        parts = list(_of_subtasks(whole, name))
    return [StateShare(base, part, name) for part in parts]


def _described(operator: OperatorState, name: str) -> tuple[StateSummary, ...]:
    """Return the savepoint's summary of a state; keyed state always has one."""
    said = [state for state in operator.manifest.states if state.name == name]
    keyed = [state for state in said if state.is_keyed]
    if keyed:
        return tuple(keyed)
    snapshots = [snapshot for snapshot in operator.manifest.subtasks if snapshot is not None]
    there = {listed.removeprefix(USER) for snapshot in snapshots for listed in snapshot.lists}
    if name in there and operator.manifest.states:
        return tuple(said)
    saved_state = operator.state(name)
    return (saved_state.summary,) if saved_state.is_keyed else tuple(said)


def _keyed(groups: dict[int, Blob], databases: Iterable[DatabaseFiles], most_bytes: int) -> Iterator[StoredSnapshot]:
    """Yield runs of key groups, together with the database, or overlapping databases, that hold them."""
    parts: list[tuple[int, StoredSnapshot]] = []
    end = 0
    for database in sorted(databases, key=lambda database: database.first_group):
        if parts and database.first_group < end:
            first, before = parts.pop()
            overlapping_databases = (*before.databases, database)
        else:
            first, overlapping_databases = database.first_group, (database,)
        end = max(end, database.end_group) if len(overlapping_databases) > 1 else database.end_group
        near = {group: blob for group, blob in groups.items() if first <= group < end}
        parts.append((first, StoredSnapshot(keyed=near, databases=overlapping_databases)))
    with_them = {group for _, part in parts for group in part.keyed}
    others = {group: blob for group, blob in groups.items() if group not in with_them}
    parts += [(min(run), StoredSnapshot(keyed=run)) for run in _runs(others, most_bytes)]
    for _, part in sorted(parts, key=lambda placed: placed[0]):
        yield part


def _runs(groups: dict[int, Blob], most_bytes: int) -> Iterator[dict[int, Blob]]:
    """Yield the key groups in order, grouped into runs of at most that many bytes."""
    run: dict[int, Blob] = {}
    run_bytes = 0
    for group in sorted(groups):
        size = size_of(groups[group])
        if run and run_bytes + size > most_bytes:
            yield run
            run, run_bytes = {}, 0
        run[group] = groups[group]
        run_bytes += size
    if run:
        yield run


def _of_subtasks(whole: OperatorManifest, name: str) -> Iterator[OperatorManifest]:
    """Yield a share for each subtask that has entries of an operator list; broadcast state is in one of them."""
    for subtask, snapshot in enumerate(whole.subtasks):
        lists = (
            {}
            if snapshot is None
            else {key: pair for key, pair in snapshot.lists.items() if key.removeprefix(USER) == name}
        )
        first = sorted(lists, key=lambda key: not key.startswith(USER))[:1]
        for key in first:
            mode, entries = lists[key]
            subtasks: list[StoredSnapshot | None] = [None] * len(whole.subtasks)
            subtasks[subtask] = StoredSnapshot(lists={key: (mode, entries)})
            yield replace(whole, subtasks=tuple(subtasks))
            if mode == "broadcast" and entries:
                return


__all__ = ["StateShare", "shares_of"]
