"""Derives rates from samples: what each vertex can do, what it has to do, and how far it is behind. Pure.

Source: apache/flink-kubernetes-operator ScalingMetricEvaluator, ScalingMetrics; DS2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rayflink.common.options.autoscaler_options import BusyTimeAggregator

from .figures import VertexFacts
from .metric_window import ALWAYS, MetricWindow, SubtaskRates, pending_of
from .settings import RateSettings

MOST_UNKNOWN = 2.0
"""How many times more may come in than a source reads, where it does not say what waits."""


@dataclass(frozen=True, slots=True)
class VertexEvaluation:
    """The rates of a vertex, in records a second, over the window.

    Args:
        facts: of the vertex.
        input_rate: records that it has taken.
        output_rate: records that it has sent.
        load: share of its time that it was busy, of the subtask that counts.
        true_rate: records that all its subtasks could take if they were always busy; inf where none came.
        observed_rate: those that it has taken while it had more than it could take; None where that is not known.
        target_rate: records that come in, at its sources, as far as they concern it.
        catch_up_rate: further ones, so that the lag of its sources is over in time.
        lag: records pending at its source.
        newest_rate: target rate of the newest part of the window, where that is higher; it shows where a load that
            rises has got to.
        partitions: those that its source reads; 0 where it names none.
        scale_up_below, scale_down_above: true rates beyond which it is rescaled.
        has_more: a source of it has always more to read than it reads, and does not say how much; the target rate is
            an estimate then.
    """

    facts: VertexFacts
    input_rate: float
    output_rate: float
    load: float
    true_rate: float
    observed_rate: float | None
    target_rate: float
    catch_up_rate: float
    lag: float
    newest_rate: float = 0.0
    partitions: int = 0
    scale_up_below: float = 0.0
    scale_down_above: float = math.inf
    has_more: bool = False

    @property
    def is_outside(self) -> bool:
        """Return whether its utilization is outside the bounds."""
        return self.true_rate < self.scale_up_below or self.true_rate > self.scale_down_above

    def capacity(self, utilization: float, restart_s: float, catch_up_s: float, rate: float | None = None) -> float:
        """Return the rate that it should be able to take, at a utilization.

        Args:
            restart_s: pause whose records have to be caught up, too.
            catch_up_s: time for that; 0: they are left out of account.
            rate: of the records that come in; None: the target rate.
        """
        if utilization <= 0:
            return math.inf
        rate = self.target_rate if rate is None else rate
        after_restart = rate * restart_s / catch_up_s if catch_up_s else 0.0
        return self.catch_up_rate + after_restart + rate / utilization

    def needed(self, settings: RateSettings, restart_s: float) -> float:
        """Return the rate that it needs: at the target of its utilization; or, if that is more, to catch up in time.

        While it catches up, it may be as busy as it may be at all. Flink adds the two, and so leaves the room for peaks
        free even then: the subtasks for that are too many afterwards.
        """
        rate = max(self.target_rate, self.newest_rate)
        behind = self.capacity(settings.highest, restart_s, settings.catch_up_s, rate)
        return max(rate / settings.target, behind)


@dataclass(frozen=True, slots=True)
class JobEvaluation:
    """The rates of a job.

    Args:
        vertices: by id, producers first.
        backlog: it works off a backlog, so that it may be busy all the time.
    """

    vertices: Mapping[str, VertexEvaluation]
    backlog: bool


def evaluate(
    facts: Mapping[str, VertexFacts], window: MetricWindow, settings: RateSettings, restart_s: float
) -> JobEvaluation | None:
    """Return the rates of a job; None while a vertex has not reported twice.

    Args:
        facts: of all vertices, by id, producers first.
        restart_s: expected pause of a rescaling.
    """
    rates = {vertex_id: window.rates(vertex_id) for vertex_id in facts if window.newest.get(vertex_id)}
    if not rates or not all(rates.values()):
        return None
    inputs = {vertex_id: sum(rate.records_in for rate in mine) for vertex_id, mine in rates.items()}
    outputs = {vertex_id: sum(rate.records_out for rate in mine) for vertex_id, mine in rates.items()}
    evaluated: dict[str, VertexEvaluation] = {}
    for vertex_id, mine in rates.items():
        vertex = facts[vertex_id]
        if vertex.is_source:
            growth, lag = window.lag_growth(vertex_id), pending_of(window.newest, vertex_id)
            has_more = not window.knows_lag(vertex_id) and any(rate.never_waits for rate in mine)
            target = _readable(mine) if has_more else max(0.0, inputs[vertex_id] + growth)
            newest = window.newest_arrival_rate(vertex_id)
            catch_up = lag / settings.catch_up_s if settings.catch_up_s else 0.0
            observed = _observed_rate(window, vertex_id, inputs[vertex_id], settings)
        else:
            known = [(evaluated[each], each) for each in vertex.inputs if each in evaluated]
            ratios = [(source, _output_ratio(facts, inputs, outputs, each, vertex_id)) for source, each in known]
            target = sum(source.target_rate * ratio for source, ratio in ratios)
            newest = sum(source.newest_rate * ratio for source, ratio in ratios)
            catch_up = sum(source.catch_up_rate * ratio for source, ratio in ratios)
            target = target if known else inputs[vertex_id]
            has_more = any(source.has_more and ratio > 0 for source, ratio in ratios)
            lag, observed = 0.0, None
        load = _load(mine, settings.aggregator)
        true_rate = _true_rate(inputs[vertex_id], load, observed, settings)
        partitions = frozenset(name for each in window.newest[vertex_id].values() for name in each.partitions)
        evaluated[vertex_id] = VertexEvaluation(
            vertex, inputs[vertex_id], outputs[vertex_id], min(1.0, load), true_rate, observed, target, catch_up, lag,
            max(newest, target), len(partitions), has_more=has_more,
        )  # fmt: skip
    backlog = any(
        each.lag > settings.backlog_lag_s * each.input_rate and each.lag > 0 and each.input_rate > 0
        for each in evaluated.values()
    )
    bounded = {key: _with_bounds(each, settings, restart_s, backlog) for key, each in evaluated.items()}
    return JobEvaluation(bounded, backlog)


def _with_bounds(
    vertex: VertexEvaluation, settings: RateSettings, restart_s: float, backlog: bool
) -> VertexEvaluation:
    highest, lowest = (1.0, 0.0) if backlog else (settings.highest, settings.lowest)
    if vertex.has_more:  # no lag shows that a vertex which is always busy is too slow
        highest, lowest = min(highest, ALWAYS), min(lowest, ALWAYS)
    return replace(
        vertex,
        scale_up_below=vertex.capacity(highest, 0.0, settings.catch_up_s),
        scale_down_above=vertex.capacity(lowest, restart_s, settings.catch_up_s),
    )


def _load(rates: list[SubtaskRates], aggregator: BusyTimeAggregator) -> float:
    shares = [rate.busy for rate in rates]
    match aggregator:
        case BusyTimeAggregator.MAX:
            return max(shares)
        case BusyTimeAggregator.MIN:
            return min(shares)
        case _:
            return sum(shares) / len(shares)


def _true_rate(input_rate: float, load: float, observed: float | None, settings: RateSettings) -> float:
    """Return the rate by busy time, or the observed one where that is clearly lower."""
    by_busy_time = input_rate / load if input_rate > 0 and load > 0 else math.inf
    if observed is not None and by_busy_time > observed * (1 + settings.observed_switch):
        return observed
    return by_busy_time


def _readable(rates: list[SubtaskRates]) -> float:
    """Return the records a second that a source is taken to have, which never waits for any and says no more.

    That is what it could read if nothing held it up. How long it could go on like that is not known, so it counts at
    most `MOST_UNKNOWN` times what it reads: what is missing after that shows when the job has grown.
    """
    return sum(
        rate.records_in / (min(1.0, max(rate.busy, 1 / MOST_UNKNOWN)) if rate.never_waits else 1.0)
        for rate in rates
    )


def _observed_rate(
    window: MetricWindow, vertex_id: str, input_rate: float, settings: RateSettings
) -> float | None:
    """Return the rate of a source while it was behind, as if nothing had held it up; None where it was not behind.

    Flink takes the mean of the rates between samples; over all of them together, a sample of few records counts less.
    """
    taken = free = 0.0
    observations = 0
    for rates, lag in window.steps(vertex_id):
        if rates and input_rate > 0 and lag >= settings.observed_lag_s * input_rate:
            observations += 1
            taken += sum(rate.records_in for rate in rates)
            free += 1 - sum(rate.back_pressured for rate in rates) / len(rates)
    return taken / free if observations >= settings.observed_min and taken > 0 and free > 0 else None


def _output_ratio(
    facts: Mapping[str, VertexFacts],
    inputs: Mapping[str, float],
    outputs: Mapping[str, float],
    source: str,
    target: str,
) -> float:
    """Return the records that one vertex sends another for each that it takes; 0 where it takes none."""
    if inputs[source] <= 0:
        return 0.0
    readers_of = {each: facts[each].outputs for each in facts[target].inputs}
    others = [each for each in readers_of if each != source]
    if not others:
        sent = inputs[target]
    elif all(readers_of[each] == 1 and each in outputs for each in others):
        sent = inputs[target] - sum(outputs[each] for each in others)
    else:
        sent = outputs[source] / readers_of.get(source, 1)
    return max(0.0, sent) / inputs[source]


__all__ = ["JobEvaluation", "VertexEvaluation", "evaluate"]
