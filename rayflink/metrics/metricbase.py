"""Metrics of user functions, under PyFlink's module path."""

from __future__ import annotations

from rayflink.common.metrics.metric_group import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
