"""Counts of the requests that a server has answered, by path and status, and how long they took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

from rayflink.common.metrics.prometheus import Sample

__all__ = ["OTHER", "RequestStatistics"]

BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of a histogram, seconds."""
OTHER = "other"
"""Stands for paths and methods that no route has: clients must not add series."""
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_REQUESTS, _DURATION = "rayflink_http_requests_total", "rayflink_http_request_duration_seconds"


@dataclass
class _Durations:
    """A histogram: the number of requests in each bucket, the last one without a bound, and their sum."""

    buckets: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS_S) + 1))
    total_s: float = 0.0


class RequestStatistics:
    """The requests of a server, counted by the thread that answers them, read by any.

    >>> statistics = RequestStatistics()
    >>> statistics.record("GET", "/v1/jobs/{job}", 200, 0.003)
    >>> next(statistics.samples()).labels
    {'method': 'GET', 'path': '/jobs/{job}', 'status': '200'}
    """

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, int], int] = {}
        self._durations: dict[tuple[str, str], _Durations] = {}

    def record(self, method: str, pattern: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: of HTTP.
            pattern: of its route, which is counted without its version; `OTHER`: it has none.
            status: of the answer.
            seconds: from its arrival to the answer.
        """
        path = pattern.removeprefix("/v1")
        method = method if method in _METHODS else OTHER
        counted = method, path, status
        self._counts[counted] = self._counts.get(counted, 0) + 1
        durations = self._durations.setdefault((method, path), _Durations())
        durations.buckets[bisect_left(BOUNDS_S, seconds)] += 1
        durations.total_s += seconds

    def samples(self) -> Iterator[Sample]:
        """Return a counter for each method, path and status, and a histogram for each method and path."""
        for (method, path, status), count in list(self._counts.items()):
            labels = {"method": method, "path": path, "status": str(status)}
            yield Sample(_REQUESTS, labels, count, "Requests that were answered", "counter")
        for (method, path), durations in list(self._durations.items()):
            yield from _histogram({"method": method, "path": path}, durations)


def _histogram(labels: dict[str, str], durations: _Durations) -> Iterator[Sample]:
    family, help = _DURATION, "Seconds from the arrival of a request to its answer"
    below = 0
    for bound, count in zip((*BOUNDS_S, "+Inf"), tuple(durations.buckets), strict=True):
        below += count
        yield Sample(f"{family}_bucket", {**labels, "le": str(bound)}, below, help, "histogram", family)
    yield Sample(f"{family}_sum", labels, durations.total_s, help, "histogram", family)
    yield Sample(f"{family}_count", labels, below, help, "histogram", family)
