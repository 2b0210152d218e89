"""Metrics of user functions, under PyFlink's module path; see `RuntimeContext.get_metrics_group`.

`metricbase` re-exports the counters, gauges, meters, distributions and groups that a function registers in `open`.
They are written in `rayflink.common.metrics`, which also has the names of all built-in metrics and the reports of a
job. Reporters to Prometheus belong to the runner (`rayflink.actors.on_ray.ray_metrics`). Nothing is computed here,
so that the import stays light.
"""

from __future__ import annotations

from rayflink.common.metrics.metric_group import Counter, Distribution, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"]
