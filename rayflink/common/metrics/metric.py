"""The common type of all metrics."""

from __future__ import annotations

__all__ = ["Metric"]


class Metric:
    """A number, or several, that a task or function counts or measures: see `MetricGroup`."""

    __slots__ = ()
