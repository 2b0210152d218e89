"""The contents of panes: accumulators that can be merged into that of a window of several panes.

A pane notes which of its key's records came first, for a window holds the fields of its first record, and its keys fire
in the order of their first records. Numbers of arrival grow with each first record, and belong to the snapshot.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rayflink.state.value_isolation import isolated

from ..keyed.aggregations import misfit, orders
from .window_functions import WindowContents

Entry = Any
"""A pane's accumulator in state: [number of arrival of its first record, accumulator]."""


class Arrivals:
    """The next number of arrival, which orders records."""

    __slots__ = ("next",)

    def __init__(self) -> None:
        self.next = 0

    def take(self) -> int:
        """Return a number above all that were taken."""
        self.next += 1
        return self.next


@dataclass(frozen=True)
class PaneContents:
    """The accumulation of records in panes, and the merge of panes.

    Args:
        first, add: as of `WindowContents`.
        merge: accumulator of the earlier pane, of the later one -> that of both.
        by_arrival: the earlier pane is that whose first record came first; else the one that lies before in time.
        copies: what `merge` is given must be copies, for it may change them or keep parts of them.
        unwrap: accumulator -> what the window's result is made of; None: the accumulator itself.
    """

    first: Callable[[Any], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    by_arrival: bool
    copies: bool
    unwrap: Callable[[Any], Any] | None = None

    def merge_entries(self, earlier: Entry, later: Entry) -> Entry:
        """Merge the entries of two panes, of which `earlier` lies before the other in time.

        Raises:
            TypeError: the user's merge gave nothing.
        """
        arrived = min(earlier[0], later[0])
        if self.by_arrival and later[0] == arrived:
            earlier, later = later, earlier
        before, behind = earlier[1], later[1]
        if self.copies:
            merged = self.merge(isolated(before), isolated(behind))
            if merged is None and before is not None and behind is not None:
                raise TypeError("merge gave None; it must give an accumulator with the content of both")
        else:
            merged = self.merge(before, behind)
        return arrived, merged


def can_share(contents: WindowContents) -> bool:
    """Return whether windows that overlap may share these contents: they are aggregated, and can be merged."""
    if contents.kind == "reducing":
        return True
    return contents.kind == "aggregating" and merges(contents.function)


def merges(function: Any) -> bool:
    """Return whether an AggregateFunction's `merge` reads both accumulators; if not, it does not merge them.

    >>> from types import SimpleNamespace
    >>> merges(SimpleNamespace(merge=lambda a, b: a + b)), merges(SimpleNamespace(merge=lambda a, b: None))
    (True, False)
    """
    merge = getattr(function, "merge", None)
    plain = getattr(merge, "__func__", merge)
    code = getattr(plain, "__code__", None)
    if not callable(merge) or code is None:
        return callable(merge)
    wanted = set(code.co_varnames[: code.co_argcount][-2:])
    read: set[Any] = set(code.co_cellvars)
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD_FAST"):
            names = instruction.argval
            read.update(names if isinstance(names, tuple) else (names,))
    return len(wanted) < 2 or wanted <= read


def pane_contents(contents: WindowContents, arrivals: Arrivals) -> PaneContents:
    """Return the contents of panes for windows of these contents, which `can_share`."""
    if contents.built_in is not None and contents.where in ("min_by", "max_by"):
        return _winners(contents, *contents.built_in, arrivals)
    of_user, reduces = contents.built_in is None, contents.kind == "reducing"
    return PaneContents(contents.first, contents.add, contents.merge, by_arrival=reduces, copies=of_user)


def _winners(contents: WindowContents, kind: str, position: int | str, arrivals: Arrivals) -> PaneContents:
    """Return accumulators (number of arrival, record), so that the first of equal records in several panes is known."""
    wins = orders(kind, position)

    def add(accumulator: Any, value: Any) -> Any:
        try:
            return (arrivals.take(), value) if wins(value, accumulator[1]) else accumulator
        except TypeError as error:
            raise misfit(kind, position, accumulator[1], value) from error

    def merge(left: Any, right: Any) -> Any:
        try:
            if wins(right[1], left[1]):
                return right
            return left if wins(left[1], right[1]) or left[0] < right[0] else right
        except TypeError as error:
            raise misfit(kind, position, left[1], right[1]) from error

    def first(value: Any) -> Any:
        return arrivals.take(), contents.first(value)

    return PaneContents(first, add, merge, by_arrival=False, copies=False, unwrap=lambda accumulator: accumulator[1])


__all__ = ["Arrivals", "Entry", "PaneContents", "can_share", "merges", "pane_contents"]
