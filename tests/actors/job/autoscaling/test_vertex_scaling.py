"""The parallelism of one vertex: bounds, factors, alignment, delayed scale-down, ineffective scale-up."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.autoscaling.alignment import aligned
from rayflink.actors.job.autoscaling.decisions import (
    DecisionHistory,
    JobDecision,
    ScaleDownWish,
    VertexDecision,
)
from rayflink.actors.job.autoscaling.evaluation import VertexEvaluation
from rayflink.actors.job.autoscaling.figures import VertexFacts
from rayflink.actors.job.autoscaling.settings import RateSettings, VertexSettings
from rayflink.actors.job.autoscaling.vertex_scaling import Moment, VertexPlan, plan_vertex
from rayflink.common.options.autoscaler_options import ParallelismAlignment

EVENLY, MOST = ParallelismAlignment.EVENLY_SPREAD, ParallelismAlignment.MAXIMIZE_UTILISATION
AT_ONCE = VertexSettings(scale_down_interval_ms=0)


def vertex(parallelism: int, true: float, target: float, keyed: bool = False, most: int = 128) -> VertexEvaluation:
    facts = VertexFacts("v", "Map", parallelism, 128, ("in",), 0, False, keyed, most, frozenset({"v"}))
    load = 0.0 if math.isinf(true) else min(1.0, target / true)
    bounds = target / 1.0, target / 0.4
    return VertexEvaluation(facts, target, 0.0, load, true, None, target, 0.0, 0.0, 0, *bounds)


def plan(
    evaluated: VertexEvaluation,
    settings: VertexSettings = AT_ONCE,
    past: tuple[VertexDecision, ...] = (),
    wish: ScaleDownWish | None = None,
    now_ms: int = 0,
) -> VertexPlan:
    return plan_vertex(evaluated, past, wish, Moment(now_ms, 0.0), RateSettings(), settings)


@given(st.integers(1, 100), st.floats(1, 1e5), st.floats(0, 1e5), st.booleans())
def test_what_is_wanted_is_enough_within_its_bounds(current: int, true: float, target: float, keyed: bool) -> None:
    settings = VertexSettings(scale_down_interval_ms=0, max_parallelism=64, max_down_factor=0.6)
    wanted = plan(vertex(current, true, target, keyed), settings).wanted
    most = min(128, max(current, 64))
    assert 1 <= wanted <= most and wanted >= math.floor(current * 0.4)
    if not keyed:
        assert wanted == most or true / current * wanted * 0.7 >= target * 0.999
    if target >= true:
        assert wanted >= current
    if target / 0.7 <= true:
        assert wanted <= current


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 256), st.sampled_from([EVENLY, MOST]))
def test_alignment_never_turns_back_and_never_leaves_the_bounds(
    wanted: int, current: int, shares: int, mode: ParallelismAlignment
) -> None:
    most = max(current, 200)
    wanted = min(wanted, most)
    result = aligned(wanted, current, shares, (1, most), mode)
    assert result >= 1
    assert result == current or (result > current) == (wanted > current)
    if result != current and wanted <= shares:
        assert math.ceil(shares / result) <= math.ceil(shares / max(1, min(wanted, result)))


def test_divisors_are_preferred_where_key_groups_are_shared() -> None:
    assert plan(vertex(4, 100, 100, keyed=True)).wanted == 8  # 6 would be enough
    assert plan(vertex(4, 100, 100)).wanted == 6
    assert aligned(6, 4, 128, (1, 200), MOST) == 7 and aligned(3, 8, 16, (1, 200), EVENLY) == 4


def test_a_vertex_without_input_goes_down_by_the_factor() -> None:
    assert plan(vertex(10, math.inf, 0)).wanted == 4
    assert plan(vertex(10, math.inf, 0), VertexSettings(scale_down_interval_ms=0, max_down_factor=1.0)).wanted == 1


def test_fewer_subtasks_come_after_the_interval_as_many_as_it_needed() -> None:
    settings = VertexSettings(scale_down_interval_ms=1_000)
    first = plan(vertex(10, 100, 35), settings, now_ms=5_000)
    assert first.wanted == 10 and "5 would do" in first.reason
    second = plan(vertex(10, 100, 49), settings, wish=first.wish, now_ms=5_600)
    third = plan(vertex(10, 100, 35), settings, wish=second.wish, now_ms=6_000)
    assert (second.wanted, third.wanted) == (10, 7) and third.is_outside
    later = plan(vertex(10, 100, 35), settings, wish=third.wish, now_ms=6_700)
    assert later.wanted == 5
    assert plan(vertex(10, 100, 70), settings, wish=third.wish, now_ms=6_100).wish is None


@pytest.mark.parametrize(("true", "wanted"), [(105, 4), (150, 7)])
def test_after_a_scale_up_that_brought_little_there_is_no_other(true: float, wanted: int) -> None:
    past = (VertexDecision(0, 2, 4, 100, 200),)
    result = plan(vertex(4, true, 180), VertexSettings(reverts_ineffective=False), past)
    assert result.wanted == wanted
    assert ("brought 5 of the 100 records/s" in result.reason) == (wanted == 4)
    assert result.reach == (1.0 if wanted > 4 else pytest.approx(true / (180 / 0.7)))
    ignoring = VertexSettings(scale_down_interval_ms=0, detects_ineffective=False)
    assert plan(vertex(4, true, 180), ignoring, past).wanted > 4


def test_subtasks_that_brought_nothing_are_taken_back_after_the_interval() -> None:
    past = (VertexDecision(0, 2, 4, 100, 200),)
    settings = VertexSettings(scale_down_interval_ms=1_000)
    waiting = plan(vertex(4, 105, 180), settings, past, now_ms=5_000)
    assert waiting.wanted == 4 and "2 would do as much" in waiting.reason
    reverted = plan(vertex(4, 105, 180), settings, past, waiting.wish, now_ms=6_000)
    assert reverted.wanted == 2 and reverted.is_revert and reverted.is_outside
    assert plan(vertex(4, 109, 180), AT_ONCE, (VertexDecision(0, 2, 4, 100, 200),)).wanted == 2
    assert plan(vertex(4, 115, 180), AT_ONCE, (VertexDecision(0, 2, 4, 100, 400),)).wanted == 4  # slower, it would lag


def test_subtasks_that_just_let_a_vertex_keep_up_stay() -> None:
    past = (VertexDecision(0, 2, 4, 100, 300),)
    assert [plan(vertex(4, 108, load), AT_ONCE, past).wanted for load in (99, 104, 120)] == [2, 4, 2]


def test_at_its_limit_a_vertex_gives_back_what_was_in_vain() -> None:
    past = (VertexDecision(0, 2, 4, 100, 200),)
    limited = VertexSettings(scale_down_interval_ms=0, max_parallelism=4)
    assert plan(vertex(4, 101, 180), limited, past).wanted == 2
    stays = plan(vertex(4, 190, 180), limited, past)
    assert stays.wanted == 4 and not stays.is_outside and stays.reach < 1


@pytest.mark.parametrize(("current", "true", "wanted"), [(2, 105, 2), (1, 52, 2), (2, 130, 4), (1, 90, 2)])
def test_what_was_taken_back_is_not_tried_again_until_a_subtask_is_faster(
    current: int, true: float, wanted: int) -> None:
    past = (VertexDecision(0, 2, 4, 100, 200), VertexDecision(9, 4, 2, 105, 105, is_revert=True))
    result = plan(vertex(current, true, 180), AT_ONCE, past)
    assert result.wanted == wanted and ("tried in vain" in result.reason) == (wanted == 2)


def test_the_history_remembers_what_was_taken_back() -> None:
    history = DecisionHistory(2, 10_000)
    for number, is_revert in enumerate((False, True, False, False, False)):
        job = JobDecision(number, {}, "done")
        history.add(job, {"v": VertexDecision(number, 2, 1, 1.0, 1.0, is_revert=is_revert)})
    restored = DecisionHistory(2, 10_000, json.loads(json.dumps(history.as_json())))
    assert [each.decided_ms for each in restored.of_vertex("v", 5)] == [1, 3, 4]
    assert [each.decided_ms for each in restored.of_vertex("v", 10_002)] == [3, 4]


@pytest.mark.parametrize(("parallelism", "outcome", "decisions"), [(2, "done", 1), (1, "failed", 0)])
def test_a_decision_under_way_gets_its_outcome_from_the_next_coordinator(
    parallelism: int, outcome: str, decisions: int
) -> None:
    history = DecisionHistory(3, 10_000)
    history.add(JobDecision(4, {}, "under way"), {"v": VertexDecision(4, 1, 2, 1.0, 2.0)})
    history.wishes["v"] = ScaleDownWish(1).with_need(4, 1, 100)
    successor = DecisionHistory(3, 10_000, json.loads(json.dumps(history.as_json())))
    successor.resume({"v": parallelism})
    assert successor.decisions[-1].outcome == outcome and successor.scalings == decisions
    assert len(successor.of_vertex("v", 5)) == decisions
    assert not successor.wishes  # it cannot know that fewer were enough while no coordinator looked


def test_scalability_is_estimated_from_the_past() -> None:
    past = tuple(VertexDecision(0, count, count + 1, rate, 0) for count, rate in ((1, 100), (2, 150), (4, 220)))
    linear = plan(vertex(5, 250, 300), VertexSettings(detects_ineffective=False), past).wanted
    observed = plan(vertex(5, 250, 300), VertexSettings(detects_ineffective=False, scalability_min=3), past).wanted
    assert (linear, observed) == (9, 15)
