"""Redistribution of operator state when the parallelism changes: lists of p subtasks become lists of q. Pure.

Source: apache/flink RoundRobinOperatorStateRepartitioner; the same subtask gets the same entries, equality tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import SnapshotMismatch
from .snapshots import Blob

Lists = Mapping[str, tuple[str, tuple[Blob, ...]]]
"""State -> mode and entries, each as bytes or as a place in a file."""


def redistributed(lists: Sequence[Lists], parallelism: int, operator_uid: str = "") -> list[Lists]:
    """Return the lists of each of `parallelism` subtasks, from those of all former ones in the order of their index.

    The entries of a "split" list are put in a row, subtask by subtask, and cut into even parts; the parts of two lists
    that are longer by one begin at different subtasks. Where the parallelism stays, each subtask keeps its own. A
    "union" list is the whole row for everyone, and of "broadcast" state everyone gets one subtask's copy.

    >>> redistributed([{"l": ("split", (b"1", b"2"))}, {"l": ("split", (b"3",))}], 3)
    [{'l': ('split', (b'1',))}, {'l': ('split', (b'2',))}, {'l': ('split', (b'3',))}]

    Raises:
        SnapshotMismatch: two subtasks have a list of one name in different modes.
    """
    modes = _modes(lists, operator_uid)
    result: list[dict[str, tuple[str, tuple[Blob, ...]]]] = [{} for _ in range(parallelism)]
    first_longer = 0
    for name, mode in modes.items():
        per_subtask = [part[name][1] if name in part else () for part in lists]
        if mode == "broadcast":
            copies = [entries for part, entries in zip(lists, per_subtask, strict=True) if name in part]
            shares = [copies[subtask % len(copies)] for subtask in range(parallelism)]
        elif mode == "union":
            shares = [tuple(entry for entries in per_subtask for entry in entries)] * parallelism
        elif len(lists) == parallelism:
            shares = list(per_subtask)
        else:
            shares, first_longer = _cut(
                [entry for entries in per_subtask for entry in entries], parallelism, first_longer
            )
        for subtask, share in enumerate(shares):
            result[subtask][name] = mode, share
    return list(result)


def _modes(lists: Sequence[Lists], operator_uid: str) -> dict[str, str]:
    modes: dict[str, str] = {}
    for part in lists:
        for name, (mode, _) in part.items():
            first_mode = modes.setdefault(name, mode)
            if first_mode != mode:
                raise SnapshotMismatch(
                    name, operator_uid, f"{first_mode} state", f"{mode} state", "subtasks differ in it"
                )
    return modes


def _cut(row: list[Blob], parallelism: int, first_longer: int) -> tuple[list[tuple[Blob, ...]], int]:
    """Cut a list into even parts, one per subtask; also return where the longer ones of the next list begin."""
    size, longer = divmod(len(row), parallelism)
    shares: list[tuple[Blob, ...]] = [()] * parallelism
    start = 0
    for turn in range(parallelism):
        stop = start + size + (turn < longer)
        shares[(first_longer + turn) % parallelism] = tuple(row[start:stop])
        start = stop
    return shares, (first_longer + longer) % parallelism


__all__ = ["redistributed"]
