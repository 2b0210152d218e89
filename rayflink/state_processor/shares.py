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
    snapshots = [one for one in whole.subtasks if one is not None]
    if any(state.is_keyed for state in whole.states):
        groups = {group: blob for one in snapshots for group, blob in one.keyed.items()}
        databases = [database for one in snapshots for database in one.databases]
        parts = [replace(whole, subtasks=(one,)) for one in _keyed(groups, databases, most_bytes)]
        parts = parts or [replace(whole, subtasks=())]
    elif name == ENUMERATOR:
        parts = [replace(whole, subtasks=(), coordinator=operator.manifest.coordinator)]
    elif name == RAW_KEYED:
        groups = {group: blob for one in snapshots for group, blob in one.raw_keyed.items()}
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
    snapshots = [one for one in operator.manifest.subtasks if one is not None]
    there = {listed.removeprefix(USER) for one in snapshots for listed in one.lists}
    if name in there and operator.manifest.states:
        return tuple(said)
    found = operator.state(name)
    return (found.summary,) if found.is_keyed else tuple(said)


def _keyed(groups: dict[int, Blob], databases: Iterable[DatabaseFiles], most_bytes: int) -> Iterator[StoredSnapshot]:
    """Yield runs of key groups, together with the database, or overlapping databases, that hold them."""
    parts: list[tuple[int, StoredSnapshot]] = []
    end = 0
    for one in sorted(databases, key=lambda one: one.first_group):
        if parts and one.first_group < end:
            first, before = parts.pop()
            held = (*before.databases, one)
        else:
            first, held = one.first_group, (one,)
        end = max(end, one.end_group) if len(held) > 1 else one.end_group
        near = {group: blob for group, blob in groups.items() if first <= group < end}
        parts.append((first, StoredSnapshot(keyed=near, databases=held)))
    with_them = {group for _, part in parts for group in part.keyed}
    others = {group: blob for group, blob in groups.items() if group not in with_them}
    parts += [(min(run), StoredSnapshot(keyed=run)) for run in _runs(others, most_bytes)]
    for _, part in sorted(parts, key=lambda placed: placed[0]):
        yield part


def _runs(groups: dict[int, Blob], most_bytes: int) -> Iterator[dict[int, Blob]]:
    """Yield the key groups in order, grouped into runs of at most that many bytes."""
    run: dict[int, Blob] = {}
    held = 0
    for group in sorted(groups):
        size = size_of(groups[group])
        if run and held + size > most_bytes:
            yield run
            run, held = {}, 0
        run[group] = groups[group]
        held += size
    if run:
        yield run


def _of_subtasks(whole: OperatorManifest, name: str) -> Iterator[OperatorManifest]:
    """Yield a share for each subtask that has entries of an operator list; broadcast state is in one of them."""
    for at, one in enumerate(whole.subtasks):
        lists = {} if one is None else {key: held for key, held in one.lists.items() if key.removeprefix(USER) == name}
        first = sorted(lists, key=lambda key: not key.startswith(USER))[:1]
        for key in first:
            mode, entries = lists[key]
            subtasks: list[StoredSnapshot | None] = [None] * len(whole.subtasks)
            subtasks[at] = StoredSnapshot(lists={key: (mode, entries)})
            yield replace(whole, subtasks=tuple(subtasks))
            if mode == "broadcast" and entries:
                return


__all__ = ["StateShare", "shares_of"]
