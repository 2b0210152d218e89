"""Rates and times of a finished job, from the counters and state changes of its subtasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

Vertex = Mapping[str, Any]


def ready_ms(vertices: Sequence[Vertex]) -> int:
    """Epoch milliseconds at which the first subtask of the first vertex, the source, was RUNNING."""
    return int(min(task["timestamps"]["RUNNING"] for task in vertices[0]["subtasks"]))


def working_seconds(vertices: Sequence[Vertex], began: float | None = None) -> float:
    """From `began` (epoch seconds; by default when the first source subtask ran) to the last subtask's end."""
    ended = max(task["timestamps"]["FINISHED"] for vertex in vertices for task in vertex["subtasks"])
    return float(ended) / 1000 - (ready_ms(vertices) / 1000 if began is None else began)


def calls(vertex: Vertex) -> int:
    """Calls that the subtasks of a vertex made to their peers."""
    return int(sum(task["metrics"]["calls"] for task in vertex["subtasks"]))


def shuffle_numbers(vertices: Sequence[Vertex], began: float) -> dict[str, float]:
    """The numbers of a job of two vertices with one shuffle between, which was let go at `began` (epoch seconds).

    Rates are over the time from then to the last subtask's end; times are summed over the subtasks of a vertex.
    """
    source, sink = vertices
    seconds = working_seconds(vertices, began)
    return {
        "rows": sink["numRecordsIn"],
        "seconds": seconds,
        "m_rows_per_second": sink["numRecordsIn"] / seconds / 1e6,
        "mb_per_second": sink["numBytesIn"] / seconds / 1e6,
        "calls_per_second": (calls(source) + calls(sink)) / seconds,
        "seconds_busy_source": source["busyTimeMs"] / 1000,
        "seconds_busy_sink": sink["busyTimeMs"] / 1000,
        "seconds_back_pressured_source": source["backPressuredTimeMs"] / 1000,
    }


def medians(measured: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Of each number of the first one, over those that have it.

    >>> medians([{"x": 1, "y": 2}, {"x": 3}])
    {'x': 2.0, 'y': 2}
    """
    return {name: median(one[name] for one in measured if name in one) for name in measured[0]}


def flat(nested: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """{"a": {"x": 1}} as {"a.x": 1}, for a table of numbers.

    >>> flat({"a": {"x": 1}, "b": {"x": 2}})
    {'a.x': 1, 'b.x': 2}
    """
    return {f"{case}.{name}": value for case, numbers in nested.items() for name, value in numbers.items()}
