"""Records per second of each vertex: between two calls, and over its whole life."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

COUNTERS = ("numRecordsIn", "numRecordsOut")
LEAST_S = 0.5
"""Two looks closer than this give the rate of the looks before."""


class Rates:
    """Adds `numRecordsInPerSecond` and `numRecordsOutPerSecond` to vertices, measured since the previous call.

    >>> rates = Rates()
    >>> vertex = {"id": "a", "numRecordsIn": 0, "numRecordsOut": 100}
    >>> rates.added([vertex], 10.0)[0]["numRecordsOutPerSecond"]
    0.0
    >>> rates.added([{**vertex, "numRecordsOut": 300}], 12.0)[0]["numRecordsOutPerSecond"]
    100.0
    """

    def __init__(self) -> None:
        self._seen_s = float("-inf")
        self._seen: dict[str, tuple[int, ...]] = {}
        self._rates: dict[str, tuple[float, ...]] = {}

    def added(self, vertices: Iterable[Mapping[str, Any]], now_s: float) -> list[dict[str, Any]]:
        """Return copies of `vertices` with their rates since the previous call."""
        vertices = list(vertices)
        if now_s - self._seen_s >= LEAST_S:
            counts = {vertex["id"]: tuple(vertex[name] for name in COUNTERS) for vertex in vertices}
            passed = now_s - self._seen_s
            self._rates = {
                key: tuple(max(0, now - then) / passed for now, then in zip(new, self._seen.get(key, new), strict=True))
                for key, new in counts.items()
            }
            self._seen, self._seen_s = counts, now_s
        return [_with(vertex, self._rates.get(vertex["id"], (0.0, 0.0))) for vertex in vertices]


def averaged(vertex: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of an ended vertex with its rates from its first subtask's RUNNING to its last one's end."""
    stamps = [subtask["timestamps"] for subtask in vertex["subtasks"]]
    starts = [stamp["RUNNING"] for stamp in stamps if "RUNNING" in stamp]
    seconds = (max(max(stamp.values()) for stamp in stamps if stamp) - min(starts)) / 1000 if starts else 0
    return _with(vertex, tuple(vertex[name] / seconds if seconds > 0 else 0.0 for name in COUNTERS))


def _with(vertex: Mapping[str, Any], rates: tuple[float, ...]) -> dict[str, Any]:
    return {**vertex, **{f"{name}PerSecond": round(rate, 1) for name, rate in zip(COUNTERS, rates, strict=True)}}
