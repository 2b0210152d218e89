"""The parallelism of one vertex: bounds, factors, alignment, delayed scale-down, ineffective scale-up."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.autoscaling.alignment import AlignmentMode, aligned, sufficient
from rayflink.actors.job.autoscaling.decisions import (
    DecisionHistory,
    JobDecision,
    Need,
    ScaleDownWish,
    VertexDecision,
)
from rayflink.actors.job.autoscaling.evaluation import VertexEvaluation
from rayflink.actors.job.autoscaling.figures import VertexFacts
from rayflink.actors.job.autoscaling.settings import RateSettings, VertexSettings
from rayflink.actors.job.autoscaling.vertex_scaling import Moment, VertexPlan, plan_vertex
from rayflink.common.options.autoscaler_options import KeyGroupAdjustment, ParallelismAlignment

EVENLY, MOST = KeyGroupAdjustment.EVENLY_SPREAD, KeyGroupAdjustment.MAXIMIZE_UTILISATION
BALANCED, SPREAD = ParallelismAlignment.BALANCED, ParallelismAlignment.EVENLY_SPREAD
OFF = ParallelismAlignment.OFF
MODES = [EVENLY, MOST, BALANCED, SPREAD, OFF]
AT_ONCE = VertexSettings(scale_down_interval_ms=0)


def vertex(
    parallelism: int, true: float, target: float, keyed: bool = False, most: int = 128, has_more: bool = False
) -> VertexEvaluation:
    facts = VertexFacts("v", "Map", parallelism, 128, ("in",), 0, False, keyed, most, frozenset({"v"}))
    load = 0.0 if math.isinf(true) else min(1.0, target / true)
    bounds = target / 1.0, target / 0.4
    return VertexEvaluation(facts, target, 0.0, load, true, None, target, 0.0, 0.0, target, 0, *bounds, has_more)


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


@given(st.integers(1, 300), st.integers(1, 300), st.integers(1, 256), st.sampled_from(MODES))
def test_alignment_never_turns_back_and_never_leaves_the_bounds(
    wanted: int, current: int, shares: int, mode: AlignmentMode
) -> None:
    most = max(current, 200)
    wanted = min(wanted, most)
    result = aligned(wanted, current, shares, (1, most), mode)
    assert result >= 1
    assert result == current or (result > current) == (wanted > current)
    assert result <= most
    if result != current and wanted <= shares:
        assert math.ceil(shares / result) <= math.ceil(shares / max(1, min(wanted, result)))


@given(st.integers(1, 300), st.integers(1, 256), st.floats(0.05, 20))
def test_the_sufficient_parallelism_is_the_least_that_is_fast_enough(
    current: int, shares: int, factor: float
) -> None:
    def most_of(parallelism: int) -> int:
        return math.ceil(shares / min(parallelism, shares))

    result, reach = sufficient(factor, current, shares)
    affordable = most_of(current) / factor
    assert 1 <= result <= shares
    if affordable >= 1:
        assert reach == 1.0 and most_of(result) <= affordable + 1e-5
        assert result == 1 or most_of(result - 1) > affordable - 1e-5
    else:
        assert result == shares and reach == pytest.approx(affordable)
    if factor >= 1:
        assert result >= min(current, shares) or most_of(result) == most_of(current)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 7])
def test_a_vertex_with_few_key_groups_gets_at_most_as_many_subtasks(most: int) -> None:
    facts = VertexFacts("v", "Map", 1, most, ("in",), 0, False, True, most, frozenset({"v"}))
    busy = VertexEvaluation(facts, 50, 0.0, 1.0, 50, None, 1_000, 0.0, 0.0, 1_000, 0, 1_000, 2_500)
    result = plan(busy)
    assert result.wanted == most and result.reach < 1
    assert result.is_outside == (most > 1)
    others = (ParallelismAlignment.BALANCED, ParallelismAlignment.EVENLY_SPREAD, KeyGroupAdjustment.EVENLY_SPREAD)
    for mode in others:
        assert plan(busy, VertexSettings(scale_down_interval_ms=0, alignment=mode)).wanted == most


def test_key_groups_are_shared_as_the_mode_says() -> None:
    def with_mode(mode: AlignmentMode) -> int:
        return plan(vertex(4, 100, 100, keyed=True), VertexSettings(scale_down_interval_ms=0, alignment=mode)).wanted

    assert plan(vertex(4, 100, 100, keyed=True)).wanted == 6  # 32 groups / 1.43 = 22 for each at most
    assert [with_mode(mode) for mode in (BALANCED, SPREAD, OFF, EVENLY)] == [7, 8, 6, 8]
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
    assert (second.wanted, third.wanted) == (10, 7) and not third.is_outside
    later = plan(vertex(10, 100, 35), settings, wish=third.wish, now_ms=6_700)
    assert later.wanted == 5 and later.is_outside
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


def test_a_source_that_does_not_say_what_waits_gives_back_what_was_in_vain() -> None:
    """It reads all that it reads: that shows nothing about what there is."""
    past = (VertexDecision(0, 2, 4, 100, 143),)
    assert plan(vertex(4, 100.5, 100.5, has_more=True), AT_ONCE, past).wanted == 2
    assert plan(vertex(4, 100.5, 100.5), AT_ONCE, past).wanted == 4


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
    successor = DecisionHistory(3, 10_000, json.loads(json.dumps(history.as_json())))
    successor.resume({"v": parallelism})
    assert successor.decisions[-1].outcome == outcome and successor.scalings == decisions
    assert len(successor.of_vertex("v", 5)) == decisions


def test_the_next_coordinator_goes_on_waiting_for_fewer_subtasks() -> None:
    history = DecisionHistory(3, 10_000)
    wish = ScaleDownWish(100).with_need(Need(100, 6, True), 1_000).with_need(Need(700, 4, True), 1_000)
    history.set_wish("v", wish, 1_000)
    successor = DecisionHistory(3, 10_000, json.loads(json.dumps(history.as_json())))
    assert successor.as_json()["wishes"] == history.as_json()["wishes"]  # also if it is lost before its first look
    resumed = successor.wish("v", 5_000)
    assert resumed is not None and resumed.waited_ms(5_000) == 600, "the time without a coordinator does not count"
    settings = VertexSettings(scale_down_interval_ms=1_000)
    assert plan(vertex(10, 100, 35), settings, wish=resumed, now_ms=5_300).wanted == 10
    assert plan(vertex(10, 100, 35), settings, wish=resumed, now_ms=5_400).wanted == 6  # the most of both coordinators


def test_a_wish_is_stored_as_often_as_is_worth_it() -> None:
    history, stored = DecisionHistory(3, 10_000), []
    wish = None
    for now_ms in range(0, 1_001, 20):
        wish = (wish or ScaleDownWish(now_ms)).with_need(Need(now_ms, 3, True), 1_000)
        history.set_wish("v", wish, 1_000)
        stored.append(history.revision)
    assert stored[-1] == 11  # at first, and with each tenth of the interval
    history.set_wish("v", None, 1_000)
    assert history.revision == 12 and history.wish("v", 2_000) is None


def test_wishes_outlive_a_decision_that_gives_no_vertex_more() -> None:
    def history() -> DecisionHistory:
        past = DecisionHistory(3, 10_000)
        for name in ("v", "w"):
            past.set_wish(name, ScaleDownWish(0).with_need(Need(0, 2, True), 1_000), 1_000)
        return past

    down, done, up = history(), history(), history()
    down.add(JobDecision(5, {}, "under way"), {"v": VertexDecision(5, 8, 4, 1.0, 1.0)})
    done.add(JobDecision(5, {}, "under way"), {"v": VertexDecision(5, 8, 2, 1.0, 1.0)})
    up.add(JobDecision(5, {}, "under way"), {"v": VertexDecision(5, 1, 2, 1.0, 1.0)})
    left = [[name for name in ("v", "w") if past.wish(name, 6) is not None] for past in (down, done, up)]
    assert left == [["v", "w"], ["w"], []]


def test_a_vertex_that_was_within_its_bounds_lately_is_not_rescaled_for_a_little() -> None:
    settings = VertexSettings(scale_down_interval_ms=1_000)
    first = plan(vertex(10, 100, 62), settings, now_ms=0)  # 9 would do, but it is busy enough
    later = plan(vertex(10, 100, 20), settings, wish=first.wish, now_ms=1_000)
    assert later.wanted == 9 and not later.is_outside and "it needed 9 in the last 1 s" in later.reason
    assert plan(vertex(10, 100, 20), settings, wish=later.wish, now_ms=1_500).is_outside


def test_scalability_is_estimated_from_the_past() -> None:
    past = tuple(VertexDecision(0, count, count + 1, rate, 0) for count, rate in ((1, 100), (2, 150), (4, 220)))
    linear = plan(vertex(5, 250, 300), VertexSettings(detects_ineffective=False), past).wanted
    observed = plan(vertex(5, 250, 300), VertexSettings(detects_ineffective=False, scalability_min=3), past).wanted
    assert (linear, observed) == (9, 15)
