"""Compares what came out of an operator with what should have, output by output, and shows the difference."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

from .elements import OutputElement, Record

__tracebackhide__ = True  # pytest shows the line of the test instead


def by_output(entries: Iterable[OutputElement], tags: Iterable[str] = ()) -> dict[str | None, list[OutputElement]]:
    """Return main output (None) and side outputs separately, each with the events between its records.

    Args:
        tags: side outputs to show even when they have no records.
    """
    everything = list(entries)
    tags_of_records = {entry.tag for entry in everything if isinstance(entry, Record) and entry.tag is not None}
    return {
        tag: [entry for entry in everything if not isinstance(entry, Record) or entry.tag == tag]
        for tag in (None, *sorted(tags_of_records.union(tags)))
    }


def assert_same(actual: list[OutputElement], expected: list[OutputElement], name: str) -> None:
    """Compare the outputs of two runs, each output by itself; `name` begins the error."""
    tags = {entry.tag for entry in (*actual, *expected) if isinstance(entry, Record) and entry.tag is not None}
    mine, wanted = by_output(actual, tags), by_output(expected, tags)
    for tag, left in wanted.items():
        if left != mine[tag]:
            output = "the main output" if tag is None else f"side output {tag!r}"
            raise AssertionError(f"{name}: {output} differs (- expected, + found)\n{_difference(left, mine[tag])}")


def assert_same_in_parallel(
    alone: list[OutputElement], parts: list[list[OutputElement]], name: str, records_only: bool
) -> None:
    """Compare the output of one subtask with that of several.

    Args:
        parts: the output of each subtask.
        records_only: only the records are compared; else also the events of each subtask with those of the one.
    """
    left = [entry for entry in alone if isinstance(entry, Record)]
    right = [entry for part in parts for entry in part if isinstance(entry, Record)]
    if not _same_bag(left, right):
        text = _difference(sorted(left, key=repr), sorted(right, key=repr))
        raise AssertionError(f"{name}: the records differ (- one subtask, + all together)\n{text}")
    if records_only:
        return
    events = [entry for entry in alone if not isinstance(entry, Record)]
    for index, part in enumerate(parts):
        mine = [entry for entry in part if not isinstance(entry, Record)]
        if mine != events:
            raise AssertionError(f"{name}: subtask {index} gave the events {mine}, expected {events}")


def _same_bag(left: list[Record], right: list[Record]) -> bool:
    rest = list(right)
    for entry in left:
        if entry not in rest:
            return False
        rest.remove(entry)
    return not rest


def _difference(expected: Sequence[Any], actual: Sequence[Any], limit: int = 60) -> str:
    lines = list(difflib.ndiff([repr(entry) for entry in expected], [repr(entry) for entry in actual]))
    lines = [f"  {line}" for line in lines if not line.startswith("?")]
    if all(line.startswith("    ") for line in lines):  # equal in print, not by ==
        pairs = [(left, right) for left, right in zip(expected, actual, strict=True) if left != right]
        return "\n".join(f"  {left!r} prints alike and is not equal" for left, _ in pairs[:limit])
    return "\n".join(lines[:limit] + ([f"  ... {len(lines) - limit} more lines"] if len(lines) > limit else []))
