"""The order in which routes are looked at: names before parameters, as "/jobs/{jobid}" fits "/jobs/overview" too."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.serving.json_requests import Route

__all__ = ["by_precision"]


def by_precision(routes: Iterable[Route]) -> list[Route]:
    """Return routes so that each comes before those whose patterns also fit its paths.

    >>> paths = ["/jobs/{jobid}", "/jobs/{jobid}/plan", "/jobs/overview"]
    >>> [route.pattern for route in by_precision(Route("GET", path, lambda request: b"") for path in paths)]
    ['/jobs/overview', '/jobs/{jobid}', '/jobs/{jobid}/plan']
    """
    return sorted(routes, key=lambda route: [part.startswith("{") for part in route.pattern.split("/")])
