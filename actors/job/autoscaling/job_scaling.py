"""Plans which vertices of a job change together, and says what forbids it: excluded times, quotas, short memory. Pure.

Source: apache/flink-kubernetes-operator ScalingExecutor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayflink.graph.job_graph import JobGraph

from ...messages.scheduling import bundle_of, required_slots
from ..rescaled_graph import rescaled_graph
from .decisions import DecisionHistory, VertexDecision
from .evaluation import JobEvaluation, VertexEvaluation
from .excluded_periods import period_at
from .settings import AutoscalerSettings
from .vertex_scaling import Moment, VertexPlan, plan_vertex


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The plan of a job.

    Args:
        vertices: vertex id -> what it needs, alone.
        wanted: vertex id -> subtasks that it gets, of those that change.
        reason: why nothing changes, for people; "" where something does.
    """

    vertices: Mapping[str, VertexPlan]
    wanted: Mapping[str, int]
    reason: str = ""


def plan_job(
    evaluation: JobEvaluation,
    history: DecisionHistory,
    now_ms: int,
    restart_s: float,
    settings: AutoscalerSettings,
) -> JobPlan:
    """Return what a job needs; wishes for fewer subtasks in the history are brought up to date.

    Vertices joined by forward edges get the most that one of them needs. Nothing changes while all that would change
    are within the bounds of their utilization.

    Args:
        restart_s: expected pause of a rescaling.
    """
    moment = Moment(now_ms, restart_s)
    plans = {key: _plan(vertex, history, moment, settings) for key, vertex in evaluation.vertices.items()}
    for vertex_id, plan in plans.items():
        history.set_wish(vertex_id, plan.wish, settings.vertex.scale_down_interval_ms)
    plans = _within_reach(evaluation, plans, history, moment, settings)
    plans = _together(evaluation, plans)
    changes = {
        vertex_id: plan.wanted
        for vertex_id, plan in plans.items()
        if plan.wanted != evaluation.vertices[vertex_id].facts.parallelism
    }
    if not changes:
        return JobPlan(plans, {}, "all vertices have the parallelism that they need")
    if not any(plans[vertex_id].is_outside for vertex_id in changes):
        return JobPlan(plans, {}, "all vertices are within the bounds of their utilization")
    return JobPlan(plans, changes)


def _plan(
    vertex: VertexEvaluation, history: DecisionHistory, moment: Moment, settings: AutoscalerSettings
) -> VertexPlan:
    facts = vertex.facts
    if settings.excluded_ids & facts.group:
        return VertexPlan(facts.parallelism, "excluded by job.autoscaler.vertex.exclude.ids")
    past, wish = history.of_vertex(facts.id, moment.now_ms), history.wish(facts.id, moment.now_ms)
    return plan_vertex(vertex, past, wish, moment, settings.rates, settings.vertex)


def _within_reach(
    evaluation: JobEvaluation,
    plans: Mapping[str, VertexPlan],
    history: DecisionHistory,
    moment: Moment,
    settings: AutoscalerSettings,
) -> dict[str, VertexPlan]:
    """Return the plans without subtasks that would only wait for a vertex that cannot get fast enough.

    What comes in beyond its reach piles up at the sources, so that a growing backlog would let all others grow.
    """
    slowest = min(plans, key=lambda each: plans[each].reach)
    share = plans[slowest].reach
    if share >= 1.0:
        return dict(plans)
    holds_up = f"{evaluation.vertices[slowest].facts.name} cannot do more than {share:.0%} of what is needed"
    limited = {}
    for vertex_id, plan in plans.items():
        vertex = evaluation.vertices[vertex_id]
        limited[vertex_id] = plan
        if vertex_id != slowest and plan.wanted > vertex.facts.parallelism:
            within = _plan(vertex, history, replace(moment, share=share), settings)
            wanted = max(within.wanted, vertex.facts.parallelism)
            limited[vertex_id] = replace(plan, wanted=wanted, reason=f"{plan.reason}; {holds_up}")
    return limited


def _together(evaluation: JobEvaluation, plans: Mapping[str, VertexPlan]) -> dict[str, VertexPlan]:
    """Return the plans with one parallelism for vertices that are joined."""
    joined: dict[str, VertexPlan] = {}
    for vertex_id, plan in plans.items():
        members = [each for each in evaluation.vertices[vertex_id].facts.group if each in plans]
        leader = max(members, key=lambda each: (plans[each].wanted, plans[each].is_outside, each))
        wanted = min(plans[leader].wanted, *(evaluation.vertices[each].facts.most for each in members), 1 << 30)
        if any(evaluation.vertices[each].facts.is_fixed for each in members):
            wanted = evaluation.vertices[vertex_id].facts.parallelism
        reason = plan.reason
        if wanted != plan.wanted:
            reason += f"; it goes with {evaluation.vertices[leader].facts.name}"
        outside = any(plans[each].is_outside for each in members)
        joined[vertex_id] = replace(plan, wanted=wanted, reason=reason, is_outside=outside)
    return joined


def frees_nothing(graph: JobGraph, plan: JobPlan) -> bool:
    """Return whether a plan only takes subtasks away whose slots others need, so that it is not worth a pause.

    Vertices within the bounds of their utilization do not count: they would go along with those outside.
    """
    if any(wanted > graph.vertex(vertex_id).parallelism for vertex_id, wanted in plan.wanted.items()):
        return False
    outside = {vertex_id: wanted for vertex_id, wanted in plan.wanted.items() if plan.vertices[vertex_id].is_outside}
    return len(required_slots(rescaled_graph(graph, outside))) == len(required_slots(graph))


def forbidden(
    graph: JobGraph, plan: JobPlan, memory: float, slot_cpus: float, now_ms: int, settings: AutoscalerSettings
) -> str:
    """Return, for people, what forbids a plan now; "" where nothing does.

    Args:
        memory: share of the managed memory of the fullest slot in use.
        slot_cpus: CPUs of a slot whose group says nothing.
    """
    if memory > settings.heap_usage:
        return (
            f"{memory:.0%} of the managed memory of a slot is in use, more than the {settings.heap_usage:.0%} of "
            "job.autoscaler.memory.heap-usage.threshold: give the slots more memory"
        )
    if period := period_at(settings.excluded_periods, now_ms):
        return f"nothing is rescaled now, by job.autoscaler.excluded.periods: {period}"
    return _over_quota(graph, rescaled_graph(graph, plan.wanted), slot_cpus, settings)


def _over_quota(before: JobGraph, after: JobGraph, slot_cpus: float, settings: AutoscalerSettings) -> str:
    quotas: tuple[tuple[str, str, float | None], ...] = (
        ("CPU", "cpu", settings.cpu_quota),
        ("memory", "memory", settings.memory_quota),
    )
    for resource, key, quota in quotas:
        if quota is None:
            continue
        had, needs = (
            sum(bundle_of(graph, slot, slot_cpus).get(resource, 0.0) for slot in required_slots(graph))
            for graph in (before, after)
        )
        if needs > quota and needs > had:
            return f"it would need {needs:g} {resource}, more than the {quota:g} of job.autoscaler.quota.{key}"
    return ""


def decisions_of(
    evaluation: JobEvaluation, plan: JobPlan, now_ms: int
) -> tuple[dict[str, VertexDecision], dict[str, str]]:
    """Return the decisions about the vertices that change, and their description by name."""
    decisions, changes = {}, {}
    for vertex_id, wanted in plan.wanted.items():
        vertex, mine = evaluation.vertices[vertex_id], plan.vertices[vertex_id]
        before = vertex.facts.parallelism
        decisions[vertex_id] = VertexDecision(
            now_ms, before, wanted, vertex.true_rate, mine.expected_rate, mine.reason,
            mine.is_revert and wanted < before,
        )  # fmt: skip
        changes[vertex.facts.name] = f"{before} -> {wanted}: {mine.reason}"
    return decisions, changes


__all__ = ["JobPlan", "decisions_of", "forbidden", "frees_nothing", "plan_job"]
