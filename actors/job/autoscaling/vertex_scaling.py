"""The parallelism that one vertex needs, and the reason in words. Pure.

Source: apache/flink-kubernetes-operator JobVertexScaler.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rayflink.common.options.autoscaler_options import ParallelismAlignment

from .alignment import aligned, sufficient
from .decisions import Need, ScaleDownWish, VertexDecision
from .evaluation import VertexEvaluation
from .settings import RateSettings, VertexSettings

_ADVICE = "would not help: look for a hot key, or for an outside system that is slow"
REVERT_ENDS_AT = 0.2
"""Share by which a vertex has to become faster before one that has lost subtasks in vain may get them again."""


@dataclass(frozen=True, slots=True)
class VertexPlan:
    """The plan of a vertex.

    Args:
        wanted: subtasks.
        reason: for people.
        is_outside: its utilization is outside the bounds, so that the job has to be rescaled.
        expected_rate: records a second that it can take then.
        wish: the smaller parallelism that it waits for; None where it needs none.
        reach: share of the rate needed that it can take at most, with any parallelism; 1 where that is all.
        is_revert: it takes back subtasks that have not made the vertex faster.
    """

    wanted: int
    reason: str
    is_outside: bool = False
    expected_rate: float = math.inf
    wish: ScaleDownWish | None = None
    reach: float = 1.0
    is_revert: bool = False


@dataclass(frozen=True, slots=True)
class Moment:
    """The circumstances in which vertices are planned.

    Args:
        restart_s: expected pause of a rescaling.
        share: of the rate needed that the slowest vertex of the job can take at most.
    """

    now_ms: int
    restart_s: float
    share: float = 1.0


def plan_vertex(
    vertex: VertexEvaluation,
    past: Sequence[VertexDecision],
    wish: ScaleDownWish | None,
    moment: Moment,
    rates: RateSettings,
    settings: VertexSettings,
) -> VertexPlan:
    """Return the parallelism that a vertex needs.

    Args:
        past: earlier decisions about it, oldest first.
        wish: the smaller parallelism that it has waited for.
    """
    current = vertex.facts.parallelism
    if vertex.facts.is_fixed:
        return VertexPlan(current, "its parallelism cannot change")
    capacity = vertex.needed(rates, moment.restart_s) * moment.share
    exact = capacity / vertex.true_rate if math.isfinite(vertex.true_rate) else 0.0
    exact /= _scalability(past, settings)
    factor = min(max(exact, 1 - settings.max_down_factor), 1 + settings.max_up_factor)
    expected = vertex.true_rate * factor if math.isfinite(vertex.true_rate) else capacity
    wanted, limit, reach = _parallelism(vertex, factor, settings)
    why = f"needs {capacity:,.0f} records/s and can do {_rate(vertex.true_rate)} with {current}{limit}"
    if vertex.has_more:
        why += "; its source always has more, and does not say how much"
    if wanted == current and reach >= 1.0:
        return VertexPlan(current, why)
    if wanted >= current:
        if gain := _ineffective_gain(vertex, past, current, settings):
            reach = min(1.0, vertex.true_rate / capacity)
            stays = VertexPlan(current, f"{why}; {gain}", reach=reach)
            return _taken_back(vertex, past[-1], wish, moment, settings, stays)
        if (revert := _revert_that_holds(vertex, past, settings)) is not None and wanted > revert.after:
            wanted = max(current, revert.after)
            tried = f"going from {revert.after} to {revert.before} was tried in vain, and was taken back"
            why += f"; {tried}, so more {_ADVICE}"
            reach = min(1.0, vertex.true_rate * wanted / current / capacity)
        return VertexPlan(wanted, why, wanted > current and vertex.is_outside, expected, reach=reach)
    if settings.scale_down_interval_ms <= 0:
        return VertexPlan(wanted, why, vertex.is_outside, expected)
    need = Need(moment.now_ms, wanted, vertex.is_outside)
    wish = (wish or ScaleDownWish(moment.now_ms)).with_need(need, settings.scale_down_interval_ms)
    if waits := _waits(wish, moment.now_ms, settings):
        return VertexPlan(current, f"{why}; {wanted} would do, {waits}", wish=wish)
    most = wish.most.subtasks
    if most != wanted:
        why += f"; it needed {most} in the last {settings.scale_down_interval_ms / 1000:.0f} s"
    return VertexPlan(most, why, wish.most.is_outside, expected, wish)


def _parallelism(vertex: VertexEvaluation, factor: float, settings: VertexSettings) -> tuple[int, str, float]:
    """Return the parallelism for a factor, what limits it, for people, and the share of the rate that it is for."""
    facts, current = vertex.facts, vertex.facts.parallelism
    least = min(current, settings.min_parallelism)
    most = max(1, min(facts.most, max(current, settings.max_parallelism)))
    exact = math.ceil(min(round(factor * current, 6), 1e9))
    shares = vertex.partitions if facts.is_source else facts.max_parallelism if facts.is_keyed else 0
    kind = "partitions" if facts.is_source else "key groups"
    limit, reach, computed = "", 1.0, min(max(least, exact), most)
    if shares and factor > 0 and settings.alignment is ParallelismAlignment.SUFFICIENT:
        enough, reach = sufficient(factor, current, shares)
        exact = max(enough, min(exact, math.ceil(round(current * (1 - settings.max_down_factor), 6))))
    if exact > most:
        limit, reach = f"; {exact} would be more than the {most} that it may have", most / exact
    elif reach < 1.0:
        limit = f"; it has {shares} {kind}, and a subtask needs at least one"
    wanted = min(max(least, exact), most)
    if shares and settings.alignment is not ParallelismAlignment.SUFFICIENT:
        wanted = aligned(wanted, current, shares, (least, most), settings.alignment)
    if wanted != computed:
        limit += f"; {computed} subtasks would not share {shares} {kind} well"
    return wanted, limit, reach


def _ineffective_gain(
    vertex: VertexEvaluation, past: Sequence[VertexDecision], current: int, settings: VertexSettings
) -> str:
    """Return, for people, that more subtasks did not help before; "" where they did."""
    newest = past[-1] if past else None
    if newest is None or not newest.is_up or newest.after != current or not settings.detects_ineffective:
        return ""
    expected, gained = newest.expected_rate - newest.true_rate, vertex.true_rate - newest.true_rate
    if expected <= 0 or gained / expected >= settings.effectiveness:
        return ""
    return (
        f"but going from {newest.before} to {newest.after} brought {gained:,.0f} of the {expected:,.0f} records/s "
        f"expected, so more {_ADVICE}"
    )


def _taken_back(
    vertex: VertexEvaluation,
    scale_up: VertexDecision,
    wish: ScaleDownWish | None,
    moment: Moment,
    settings: VertexSettings,
    plan: VertexPlan,
) -> VertexPlan:
    """Return the plan that takes back a scale-up in vain, or waits for that; `plan` where it brought a little.

    A vertex that works off a backlog must not get much slower, so what is taken back must have brought next to nothing;
    and one that takes all that comes in must go on to do so. Where its source does not say what waits, and always has
    more, it does not take all.
    """
    slower = vertex.true_rate > scale_up.true_rate * (1 + settings.effectiveness)
    takes_all = not vertex.has_more and vertex.true_rate >= vertex.target_rate > scale_up.true_rate
    if not settings.reverts_ineffective or slower or takes_all:
        return plan
    need = Need(moment.now_ms, scale_up.before, True)
    wish = (wish or ScaleDownWish(moment.now_ms)).with_need(need, settings.scale_down_interval_ms)
    if waits := _waits(wish, moment.now_ms, settings):
        return replace(plan, reason=f"{plan.reason}; {scale_up.before} would do as much, {waits}", wish=wish)
    reason = f"{plan.reason}; it goes back to {scale_up.before}, which did as much"
    expected = max(vertex.true_rate, scale_up.true_rate)  # more subtasks may even have been slower
    return replace(
        plan, wanted=scale_up.before, reason=reason, is_outside=True, expected_rate=expected, is_revert=True
    )


def _revert_that_holds(
    vertex: VertexEvaluation, past: Sequence[VertexDecision], settings: VertexSettings
) -> VertexDecision | None:
    """Return the newest revert; None where there is none, or a subtask has become faster since, so it may grow again.

    With as many subtasks as it went back to, the vertex then does clearly more than it did before.
    """
    revert = next((each for each in reversed(past) if each.is_revert), None)
    if revert is None or not settings.reverts_ineffective:
        return None
    rate = vertex.true_rate * revert.after / max(vertex.facts.parallelism, revert.after)
    return revert if rate <= revert.expected_rate * (1 + REVERT_ENDS_AT) else None


def _waits(wish: ScaleDownWish, now_ms: int, settings: VertexSettings) -> str:
    """Return, for people, how long fewer subtasks have to be enough before a vertex gets fewer; "" if they were."""
    waited_ms, interval_ms = wish.waited_ms(now_ms), settings.scale_down_interval_ms
    waited = f"and did for {waited_ms / 1000:.0f} of the {interval_ms / 1000:.0f} s after which it gets fewer"
    return waited if waited_ms < interval_ms else ""


def _scalability(past: Sequence[VertexDecision], settings: VertexSettings) -> float:
    """Return how much of a linear gain more subtasks brought, by least squares over past decisions; 1 if not known."""
    if settings.scalability_min is None or len(past) < settings.scalability_min:
        return 1.0
    base = min(past, key=lambda each: each.before)
    single = base.true_rate / base.before
    if not (math.isfinite(single) and single > 0) or not all(math.isfinite(each.true_rate) for each in past):
        return 1.0
    measured = sum(each.before * each.true_rate for each in past)
    linear = sum(each.before**2 for each in past) * single
    return min(1.0, max(settings.scalability_least, measured / linear))


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if math.isfinite(rate) else "any number"


__all__ = ["Moment", "VertexPlan", "plan_vertex"]
