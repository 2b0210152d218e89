"""Sizes of the states of a snapshot by name and key group, which whoever writes the snapshot knows at no cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .group_content import EncodedState

UNKNOWN = -1
"""In place of a number of entries that only reading the state would tell."""


class GroupSize(NamedTuple):
    """The size of one state in a range of key groups; most often a range of one.

    Args:
        first, end: the key groups [first, end).
        size_bytes: in the snapshot.
        entries: values, elements of lists, entries of maps or timers; `UNKNOWN` where they were not counted.
    """

    first: int
    end: int
    size_bytes: int
    entries: int = UNKNOWN


@dataclass(frozen=True, slots=True)
class StateSize:
    """The size of one keyed state, or queue of timers, in the snapshot of a subtask.

    Args:
        name: of the state.
        kind: in which it is stored, such as "value" or "timers".
        written_bytes: that were written anew for this snapshot; the others it shares with earlier ones.
        groups: its sizes by key group, without overlaps, in order.
        is_estimate: whether entries, and bytes by key group, are estimates: files of a database hold several key
            groups, and old versions of entries.
    """

    name: str
    kind: str
    written_bytes: int
    groups: tuple[GroupSize, ...]
    is_estimate: bool = False

    @property
    def size_bytes(self) -> int:
        """Return the bytes of all key groups."""
        return sum(group.size_bytes for group in self.groups)

    @property
    def entries(self) -> int:
        """Return the number of entries; `UNKNOWN` where it is not known of all key groups."""
        return sum_entries(group.entries for group in self.groups)


def sum_entries(counts: Iterable[int]) -> int:
    """Return the sum of numbers of entries; `UNKNOWN` where one of them is.

    >>> sum_entries([2, 3]), sum_entries([2, UNKNOWN]), sum_entries([])
    (5, -1, 0)
    """
    total = 0
    for count in counts:
        if count == UNKNOWN:
            return UNKNOWN
        total += count
    return total


class GroupSizes:
    """Collects the sizes of states while key groups are written one after the other.

    >>> sizes = GroupSizes()
    >>> sizes.add(3, "total", "value", 120, 2)
    >>> sizes.add(5, "total", "value", 60, 1)
    >>> [(state.name, state.size_bytes, state.entries) for state in sizes.states()]
    [('total', 180, 3)]
    """

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], list[GroupSize]] = {}

    def add(self, group: int, name: str, kind: str, size_bytes: int, entries: int) -> None:
        """Add one state of one key group; key groups come in ascending order."""
        self._groups.setdefault((name, kind), []).append(GroupSize(group, group + 1, size_bytes, entries))

    def add_all(self, group: int, states: Iterable[EncodedState]) -> None:
        """Add all states of one key group."""
        for state in states:
            self.add(group, *state)

    def states(self) -> tuple[StateSize, ...]:
        """Return the sizes of all states so far, all of whose bytes were written."""
        return tuple(
            StateSize(name, kind, sum(group.size_bytes for group in groups), tuple(groups))
            for (name, kind), groups in self._groups.items()
        )


__all__ = ["UNKNOWN", "GroupSize", "GroupSizes", "StateSize", "sum_entries"]
