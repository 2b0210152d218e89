"""The snapshots of an operator for another number of subtasks: keyed state by key group, lists by their mode. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.redistribution import redistributed
from rayflink.state.schema.state_summary import merge_summaries
from rayflink.state.snapshots import Blob, StoredSnapshot


def rescale(
    snapshots: Sequence[StoredSnapshot | None], parallelism: int, max_parallelism: int, operator_uid: str = ""
) -> list[StoredSnapshot | None]:
    """Return the state that each of `parallelism` subtasks starts from.

    A database goes to every subtask that owns one of its key groups. None stands for a subtask without state; where
    all are, so is every new one.

    Args:
        snapshots: of all former subtasks, by index.
        parallelism: the new number of subtasks.
        max_parallelism: key groups in all, as when the snapshots were taken.
        operator_uid: for errors.

    Raises:
        SnapshotMismatch: subtasks have a list of one name in different modes.
    """
    if all(snapshot is None for snapshot in snapshots):
        return [None] * parallelism
    present = [snapshot or StoredSnapshot() for snapshot in snapshots]
    keyed = _merge_groups([snapshot.keyed for snapshot in present])
    raw_keyed = _merge_groups([snapshot.raw_keyed for snapshot in present])
    databases = [database for snapshot in present for database in snapshot.databases]
    lists = redistributed([snapshot.lists for snapshot in present], parallelism, operator_uid)
    owned = [key_group_range(subtask, parallelism, max_parallelism) for subtask in range(parallelism)]
    version = max(snapshot.version for snapshot in present)
    states = merge_summaries(state for snapshot in present for state in snapshot.states)
    return [
        StoredSnapshot(
            _only(groups, keyed),
            lists_of_subtask,
            _only(groups, raw_keyed),
            version,
            tuple(d for d in databases if d.first_group < groups.stop and groups.start < d.end_group),
            states,
        )
        for groups, lists_of_subtask in zip(owned, lists, strict=True)
    ]


def _merge_groups(parts: Sequence[Mapping[int, Blob]]) -> dict[int, Blob]:
    """Return all key groups; each belongs to one subtask."""
    return {group: data for part in parts for group, data in part.items()}


def _only(groups: range, parts: Mapping[int, Blob]) -> dict[int, Blob]:
    return {group: data for group, data in parts.items() if group in groups}


__all__ = ["rescale"]
