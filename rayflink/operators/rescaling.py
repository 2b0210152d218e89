"""The snapshots of an operator for another number of subtasks: keyed state by key group, lists by their mode. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.redistribution import redistributed
from rayflink.state.schema.state_summary import merge_summaries
from rayflink.state.snapshots import Blob, StoredSnapshot


def rescaled(
    snapshots: Sequence[StoredSnapshot | None], parallelism: int, max_parallelism: int, operator_uid: str = ""
) -> list[StoredSnapshot | None]:
    """Return the state that each of `parallelism` subtasks starts from, given the snapshots of all former ones by
    index.

    A database goes to every subtask that owns one of its key groups. None stands for a subtask without state; where
    all are, so is every new one.

    Args:
        max_parallelism: key groups in all, as when the snapshots were taken.
        operator_uid: for errors.

    Raises:
        SnapshotMismatch: subtasks have a list of one name in different modes.
    """
    if all(snapshot is None for snapshot in snapshots):
        return [None] * parallelism
    held = [snapshot or StoredSnapshot() for snapshot in snapshots]
    keyed = _together([snapshot.keyed for snapshot in held])
    raw_keyed = _together([snapshot.raw_keyed for snapshot in held])
    databases = [database for snapshot in held for database in snapshot.databases]
    lists = redistributed([snapshot.lists for snapshot in held], parallelism, operator_uid)
    owned = [key_group_range(subtask, parallelism, max_parallelism) for subtask in range(parallelism)]
    version = max(snapshot.version for snapshot in held)
    states = merge_summaries(state for snapshot in held for state in snapshot.states)
    return [
        StoredSnapshot(
            _of(groups, keyed),
            mine,
            _of(groups, raw_keyed),
            version,
            tuple(d for d in databases if d.first_group < groups.stop and groups.start < d.end_group),
            states,
        )
        for groups, mine in zip(owned, lists, strict=True)
    ]


def _together(parts: Sequence[Mapping[int, Blob]]) -> dict[int, Blob]:
    """Return all key groups; each belongs to one subtask."""
    return {group: data for part in parts for group, data in part.items()}


def _of(groups: range, parts: Mapping[int, Blob]) -> dict[int, Blob]:
    return {group: data for group, data in parts.items() if group in groups}


__all__ = ["rescaled"]
