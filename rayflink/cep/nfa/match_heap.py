"""A binary heap of matches by their first events, with the order of java.util.PriorityQueue among equal ones.

Several matches of one event may begin with the same event. Flink emits these in the order in which its heap gives them
out, so this heap moves its entries in the same way, and the matches come in the same order.
"""

from __future__ import annotations

from collections.abc import Callable

from .partial_matches import START, PartialMatch


def push(heap: list[PartialMatch], match: PartialMatch) -> None:
    """Add a match."""
    place, start = len(heap), match[START]
    heap.append(match)
    while place > 0:
        parent = (place - 1) >> 1
        if start >= heap[parent][START]:
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = match


def pop(heap: list[PartialMatch]) -> PartialMatch:
    """Remove and return the match with the earliest first event."""
    first, last = heap[0], heap.pop()
    if heap:
        _sift_down(heap, 0, last)
    return first


def drop(heap: list[PartialMatch], should_drop: Callable[[PartialMatch], bool]) -> None:
    """Remove the matches for which `should_drop` is true."""
    remaining = [match for match in heap if not should_drop(match)]
    if len(remaining) < len(heap):
        heap[:] = remaining
        for place in range((len(remaining) >> 1) - 1, -1, -1):
            _sift_down(heap, place, heap[place])


def _sift_down(heap: list[PartialMatch], place: int, match: PartialMatch) -> None:
    size, start = len(heap), match[START]
    while place < size >> 1:
        child = 2 * place + 1
        if child + 1 < size and heap[child][START] > heap[child + 1][START]:
            child += 1
        if start <= heap[child][START]:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = match


__all__ = ["drop", "pop", "push"]
