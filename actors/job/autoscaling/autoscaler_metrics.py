"""The metrics of an autoscaler in the metric group of its job, under the names of Flink's autoscaler.

Source: apache/flink-kubernetes-operator AutoscalerFlinkMetrics, ScalingMetric.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from rayflink.common.metrics.metric_group import MetricGroup

from .autoscaler import Autoscaler
from .evaluation import VertexEvaluation
from .vertex_scaling import VertexPlan

GROUP, VERTEX = "AutoScaler", "jobVertexID"
_AVERAGES: dict[str, Callable[[VertexEvaluation], float]] = {
    "LOAD": lambda vertex: vertex.load,
    "TRUE_PROCESSING_RATE": lambda vertex: vertex.true_rate,
    "TARGET_DATA_RATE": lambda vertex: vertex.target_rate,
}
_CURRENT: dict[str, Callable[[VertexEvaluation], float]] = {
    "CATCH_UP_DATA_RATE": lambda vertex: vertex.catch_up_rate,
    "LAG": lambda vertex: vertex.lag,
    "PARALLELISM": lambda vertex: vertex.facts.parallelism,
    "MAX_PARALLELISM": lambda vertex: vertex.facts.max_parallelism,
    "NUM_SOURCE_PARTITIONS": lambda vertex: vertex.partitions,
    "SCALE_UP_RATE_THRESHOLD": lambda vertex: vertex.scale_up_below,
    "SCALE_DOWN_RATE_THRESHOLD": lambda vertex: vertex.scale_down_above,
}
_PLANNED: dict[str, Callable[[VertexPlan], float]] = {
    "RECOMMENDED_PARALLELISM": lambda plan: plan.wanted,
    "EXPECTED_PROCESSING_RATE": lambda plan: plan.expected_rate,
}


def measure(autoscaler: Autoscaler, vertex_ids: list[str], job: MetricGroup) -> None:
    """Register the metrics of an autoscaler that is enabled; a rate without a bound has no value."""
    if not autoscaler.settings.enabled:
        return
    group = job.add_group(GROUP)
    group.gauge("scalings", lambda: autoscaler.history.scalings)
    group.gauge("errors", lambda: autoscaler.errors)
    group.gauge("balanced", lambda: autoscaler.balanced)
    for vertex_id in vertex_ids:
        vertex = group.add_group(VERTEX, vertex_id)
        for kind, readers in (("Average", _AVERAGES), ("Current", _CURRENT)):
            for name, read in readers.items():
                vertex.add_group(name).gauge(kind, partial(_evaluated, autoscaler, vertex_id, read))
        for name, read_plan in _PLANNED.items():
            vertex.add_group(name).gauge("Current", partial(_planned, autoscaler, vertex_id, read_plan))


def _evaluated(autoscaler: Autoscaler, vertex_id: str, read: Callable[[VertexEvaluation], float]) -> float | None:
    vertices = {} if autoscaler.evaluation is None else autoscaler.evaluation.vertices
    return _finite(read(vertices[vertex_id])) if vertex_id in vertices else None


def _planned(autoscaler: Autoscaler, vertex_id: str, read: Callable[[VertexPlan], float]) -> float | None:
    plans = {} if autoscaler.plan is None else autoscaler.plan.vertices
    return _finite(read(plans[vertex_id])) if vertex_id in plans else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


__all__ = ["measure"]
