"""An autoscaler as plain data, for people and for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from .decisions import DecisionHistory
from .evaluation import JobEvaluation, VertexEvaluation
from .job_scaling import JobPlan


def describe(
    reason: str,
    acts: bool,
    restart_s: float,
    evaluation: JobEvaluation | None,
    plan: JobPlan | None,
    history: DecisionHistory,
) -> dict[str, Any]:
    """Return what an autoscaler does now and has done, as JSON has it: a rate without a bound is None."""
    vertices = {} if evaluation is None else evaluation.vertices
    return {
        "acts": acts,
        "reason": reason,
        "backlog": evaluation is not None and evaluation.backlog,
        "restartMs": round(restart_s * 1000),
        "scalings": history.scalings,
        "vertices": [_vertex(vertex, plan) for vertex in vertices.values()],
        "decisions": [
            {
                "timestamp": each.decided_ms,
                "changes": dict(each.changes),
                "outcome": each.outcome,
                "pauseMs": each.pause_ms,
                "detail": each.detail,
            }
            for each in history.decisions
        ],
    }


def _vertex(vertex: VertexEvaluation, plan: JobPlan | None) -> dict[str, Any]:
    facts = vertex.facts
    mine = None if plan is None else plan.vertices.get(facts.id)
    return {
        "id": facts.id,
        "name": facts.name,
        "parallelism": facts.parallelism,
        "wanted": facts.parallelism if mine is None else mine.wanted,
        "reason": "" if mine is None else mine.reason,
        **{name: _finite(value) for name, value in figures_by_name(vertex).items()},
    }


def figures_by_name(vertex: VertexEvaluation) -> Mapping[str, float]:
    """Return the figures of a vertex under names like Flink's metrics, in the style of the status."""
    return {
        "inputRate": vertex.input_rate,
        "load": vertex.load,
        "trueProcessingRate": vertex.true_rate,
        "targetDataRate": vertex.target_rate,
        "catchUpDataRate": vertex.catch_up_rate,
        "lag": vertex.lag,
        "scaleUpRateThreshold": vertex.scale_up_below,
        "scaleDownRateThreshold": vertex.scale_down_above,
        "numSourcePartitions": vertex.partitions,
    }


def _finite(value: float) -> float | None:
    return round(value, 3) if math.isfinite(value) else None


__all__ = ["describe", "figures_by_name"]
