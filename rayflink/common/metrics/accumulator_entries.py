"""Accumulators that are numbers, as a task reports them while it runs: name, type and value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..functions.accumulators import AverageAccumulator, DoubleCounter, IntCounter, Maximum, Minimum

__all__ = ["ACCUMULATORS", "accumulator_entries", "merged_entries"]

ACCUMULATORS = "accumulators"
"""Name under which a task reports its accumulators beside its metrics, where it has some."""
_NUMBERS = (IntCounter, DoubleCounter, Minimum, Maximum, AverageAccumulator)
"""Types whose value is read at once. Lists and users' own types are read when their task ends."""
_SUMS = ("IntCounter", "DoubleCounter")
_ENDS = {"Minimum": min, "Maximum": max}

Entry = Mapping[str, Any]


def accumulator_entries(accumulators: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return name, type and value of the accumulators that are numbers.

    >>> accumulator_entries({"parsed": IntCounter(3)})
    [{'name': 'parsed', 'type': 'IntCounter', 'value': 3}]
    """
    return [
        {"name": name, "type": type(accumulator).__name__, "value": accumulator.get_local_value()}
        for name, accumulator in list(accumulators.items())
        if type(accumulator) in _NUMBERS
    ]


def merged_entries(of_subtasks: Iterable[Iterable[Entry]]) -> list[dict[str, Any]]:
    """Return the accumulators of several subtasks by name: the sum of counters, the end of extremes.

    Averages of several subtasks are left out: their numbers of values are not known.

    >>> entry = {"name": "parsed", "type": "IntCounter", "value": 2}
    >>> merged_entries([[entry], [entry]])
    [{'name': 'parsed', 'type': 'IntCounter', 'value': 4}]
    """
    by_name: dict[str, list[Entry]] = {}
    for entries in of_subtasks:
        for entry in entries:
            by_name.setdefault(entry["name"], []).append(entry)
    merged = ((entries[0], _merged(entries)) for _, entries in sorted(by_name.items()))
    return [{**first, "value": value} for first, value in merged if value is not None]


def _merged(entries: list[Entry]) -> Any:
    kind, values = entries[0]["type"], [entry["value"] for entry in entries if entry["value"] is not None]
    if kind in _SUMS:
        return sum(values)
    if kind in _ENDS:
        return _ENDS[kind](values, default=None)
    return values[0] if len(values) == 1 else None
