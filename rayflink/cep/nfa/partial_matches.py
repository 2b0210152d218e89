"""The partial matches of a key, which the automaton knows between two events, and how they are stored.

Each partial match refers to the node of its last event, and each node to the node before it. Partial matches that began
alike share the nodes of their common beginning, so the nodes are a tree that grows towards its leaves, and a node lives
as long as a partial match needs it. Flink's shared buffer merges the nodes of one event and one step, separates the
paths through them by Dewey numbers, and counts the references. With one predecessor for each node neither is needed,
and an edge of Flink's buffer costs as much as a node here.

As bytes the nodes are a table of rows, parents first, so that a match of a million events is no deep recursion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from rayflink.user_types import UserRecord

Node: TypeAlias = tuple[int, int, UserRecord, Any]
"""(index of the step, number of the event, event, node before it or None). The events of a key are numbered in the
order in which they are matched."""
PartialMatch: TypeAlias = tuple[int, Any, int, int, int]
"""(state, node of the last event, timestamp of the first event, its number, timestamp of the last event)."""
STATE: Final = 0
NODE: Final = 1
START_TIME: Final = 2
START: Final = 3
LAST_TIME: Final = 4


class KeyMatches:
    """All partial matches of a key.

    Args:
        partial: ordered by their first events. The start state is in no list: it is always there.
        completed: matches that wait for an earlier partial match, as the skip strategy may drop them; a heap.
        next_number: of the next event.
        timer: timestamp of the timer that is set for the next timeout, or before it; None where none is.
    """

    __slots__ = ("completed", "next_number", "partial", "timer")

    def __init__(
        self,
        partial: list[PartialMatch] | None = None,
        completed: list[PartialMatch] | None = None,
        next_number: int = 0,
        timer: int | None = None,
    ) -> None:
        self.partial: list[PartialMatch] = [] if partial is None else partial
        self.completed: list[PartialMatch] = [] if completed is None else completed
        self.next_number = next_number
        self.timer = timer

    @property
    def is_empty(self) -> bool:
        """Return whether nothing has to be stored."""
        return not self.partial and not self.completed

    def __reduce__(self) -> tuple[Callable[..., KeyMatches], tuple[Any, ...]]:
        return read_rows, (self.next_number, *write_rows(self.partial, self.completed), self.timer)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyMatches) and self.__reduce__()[1] == other.__reduce__()[1]

    def __repr__(self) -> str:
        return f"KeyMatches({len(self.partial)} partial, {len(self.completed)} completed)"


def write_rows(
    partial: Iterable[PartialMatch], completed: Iterable[PartialMatch]
) -> tuple[list[Any], list[tuple[int, int, int, int]], list[tuple[int, int, int, int, int]], int]:
    """Return partial matches as flat rows.

    Returns:
        the events; the nodes as (step, number, event, node before it or -1), where the last two are places in the
        lists; the matches as (state, node, start time, start, last time); and how many of these are partial.
    """
    events: list[Any] = []
    nodes: list[tuple[int, int, int, int]] = []
    event_places: dict[int, int] = {}
    node_places: dict[int, int] = {}
    matches: list[tuple[int, int, int, int, int]] = []
    partial = list(partial)
    for match in (*partial, *completed):
        path = []
        node = match[NODE]
        while node is not None and id(node) not in node_places:
            path.append(node)
            node = node[3]
        for node in reversed(path):
            step, number, event, before = node
            place = event_places.get(number)
            if place is None:
                place = event_places[number] = len(events)
                events.append(event)
            node_places[id(node)] = len(nodes)
            nodes.append((step, number, place, -1 if before is None else node_places[id(before)]))
        matches.append((match[STATE], node_places[id(match[NODE])], *match[START_TIME:]))
    return events, nodes, matches, len(partial)


def read_rows(
    next_number: int,
    events: list[Any],
    rows: list[tuple[int, int, int, int]],
    matches: list[tuple[int, int, int, int, int]],
    count: int,
    timer: int | None = None,
) -> KeyMatches:
    """Return the partial matches that `write_rows` wrote."""
    nodes: list[Node] = []
    for step, number, place, before in rows:
        nodes.append((step, number, events[place], None if before < 0 else nodes[before]))
    read: list[PartialMatch] = [(state, nodes[node], *times) for state, node, *times in matches]  # type: ignore[misc]
    return KeyMatches(read[:count], read[count:], next_number, timer)


def events_of(
    node: Node | None, steps: tuple[str, ...], copied: Callable[[Any], Any] | None = None
) -> dict[str, list[Any]]:
    """Return the events on the path to a node by the names of their steps, the first ones first.

    Args:
        copied: gives what stands for an event; None: the event itself.

    >>> events_of((1, 7, "b", (0, 3, "a", None)), ("first", "second"))
    {'first': ['a'], 'second': ['b']}
    """
    path = []
    while node is not None:
        path.append(node)
        node = node[3]
    path.reverse()
    events: dict[str, list[Any]] = {}
    for step, _, event, _ in path:
        if copied is not None:
            event = copied(event)
        name = steps[step]
        if name in events:
            events[name].append(event)
        else:
            events[name] = [event]
    return events


__all__ = [
    "LAST_TIME", "NODE", "START", "START_TIME", "STATE", "KeyMatches", "Node", "PartialMatch", "events_of", "read_rows",
    "write_rows",
]  # fmt: skip
