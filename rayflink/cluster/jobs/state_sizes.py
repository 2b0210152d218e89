"""The sizes of a job's state by operator, state and key group, as a stored checkpoint has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict, cast

from rayflink.state.storage.state_report import describe_state
from rayflink.state.storage.stored_checkpoints import read_manifest

__all__ = ["GroupBytes", "LargestGroup", "OperatorSizes", "StateSizes", "SizesOfState", "stored_state"]


class GroupBytes(TypedDict):
    """The bytes of key groups from `first` to before `end`."""

    first: int
    end: int
    bytes: int


class LargestGroup(TypedDict):
    """The key group with most bytes; a large `share` of all, from 0 to 1, has a hot key, or one with much state."""

    group: int
    bytes: int
    share: float


class SizesOfState(TypedDict):
    """The sizes of one state, of all subtasks together; null stands for what was not noted."""

    name: str
    kind: str
    is_keyed: bool
    values: str | None
    ttl: str | None
    bytes: int | None
    written_bytes: int | None
    entries: int | None
    is_estimate: bool
    largest_group: LargestGroup | None
    key_groups: list[GroupBytes]


class OperatorSizes(TypedDict):
    """The sizes of the state of one operator; `subtasks` has the bytes of each."""

    id: str
    uid: str | None
    name: str
    parallelism: int
    max_parallelism: int
    bytes: int
    written_bytes: int | None
    keyed_bytes: int
    states: list[SizesOfState]
    subtasks: list[int]
    largest_group: LargestGroup | None
    key_groups: list[GroupBytes]


class _Operators(TypedDict):
    operators: list[OperatorSizes]


class StateSizes(_Operators, total=False):
    """The sizes of the state in a checkpoint; where they are not known, `reason` says why, and there is no operator."""

    path: str | None
    reason: str
    checkpoint_id: int
    kind: str
    timestamp_ms: int
    bytes: int
    written_bytes: int | None


def stored_state(path: str, options: Mapping[str, str]) -> StateSizes:
    """Return the sizes of the state in a checkpoint, as `describe_state` does.

    Args:
        path: of the checkpoint.
        options: of the storage that it lies in.

    Raises:
        NoCheckpointError: there is none.
        StorageError, DamagedFileError, VersionMismatch: it cannot be read.
    """
    return cast(StateSizes, {"path": path, **describe_state(read_manifest(path, options).manifest)})
