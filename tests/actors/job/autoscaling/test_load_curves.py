"""The laws of the autoscaler over load curves: it converges, gives what is needed, rescales seldom, never flaps."""

from __future__ import annotations

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rayflink.testing.fluid_jobs import KEYED, MAP, SOURCE, FluidJob, three_steps

FEW = settings(max_examples=3, deadline=None, phases=[Phase.generate])
SPEEDS = {SOURCE: 1_000.0, MAP: 50.0, KEYED: 30.0}


@pytest.mark.slow
@FEW
@given(load=st.integers(1, 700), start=st.integers(1, 16), map_speed=st.integers(40, 400))
def test_a_constant_load_gets_what_it_needs_and_then_is_left_alone(load: int, start: int, map_speed: int) -> None:
    job = FluidJob(three_steps(start), lambda second: load, {**SPEEDS, MAP: map_speed}).run(1_200)
    assert job.capacity >= load and job.lag <= 5 * load
    assert len(job.rescales) <= 5
    before = len(job.rescales)
    job.run(900)
    assert len(job.rescales) <= before + 1  # what is left of the backlog no longer counts
    assert job.capacity >= load
    for name, speed in (*SPEEDS.items(), (MAP, float(map_speed))):
        width, others = job.parallelism[name], [other for key, other in job.parallelism.items() if key != name]
        if name != MAP or speed == map_speed:  # what idles is given back, if that frees slots
            assert width == 1 or load / (speed * width) > 0.15 or width <= max(others)


@pytest.mark.slow
@FEW
@given(loads=st.lists(st.integers(5, 600), min_size=2, max_size=4))
def test_after_each_step_of_the_load_the_backlog_goes_and_rescalings_are_few(loads: list[int]) -> None:
    job = FluidJob(three_steps(), lambda second: loads[min(int(second // 900), len(loads) - 1)], SPEEDS)
    for load in loads:
        before = len(job.rescales)
        job.run(895)
        assert job.capacity >= load and job.lag <= 5 * load, job.rescales
        assert len(job.rescales) - before <= 6
        job.run(5)


def test_a_step_of_the_load_within_the_window_is_answered_by_the_rate_after_it() -> None:
    """The mean over the window is 180 records/s, which 6 subtasks would take; the last 15 s show 500."""
    speeds = {SOURCE: 1_000.0, MAP: 500.0, KEYED: 50.0}
    job = FluidJob(three_steps(3), lambda second: 100 if second < 600 else 500, speeds).run(690)
    first, *_ = job.rescales
    assert first[0] <= 620 and first[1][KEYED] == 7
    assert max(job.lags) < 20_000  # 29,256 by the mean


@pytest.mark.slow
@pytest.mark.parametrize("period_s", [600, 3_600])
def test_a_sine_is_followed_without_flapping(period_s: int) -> None:
    job = FluidJob(three_steps(), lambda second: 200 + 180 * math.sin(2 * math.pi * second / period_s), SPEEDS)
    job.run(2 * 3_600)
    periods = 2 * 3_600 / period_s
    assert max(job.lags[600:]) < 380 * 120  # two minutes of the highest load
    assert len(job.rescales) <= 4 + 8 * periods
    assert job.turns <= 2 * periods


@pytest.mark.slow
def test_a_short_spike_is_worked_off_and_its_subtasks_are_given_back() -> None:
    job = FluidJob(three_steps(4), lambda second: 900 if 600 <= second < 630 else 60, SPEEDS).run(595)
    before = len(job.rescales)
    job.run(1_800)
    assert job.lag <= 300 and len(job.rescales) - before <= 4 and job.turns <= 2
    assert job.parallelism[KEYED] <= 4


@pytest.mark.slow
@FEW
@given(hot=st.floats(0.6, 1.0), load=st.integers(40, 300))
def test_a_hot_key_does_not_let_a_job_grow_again_and_again(hot: float, load: int) -> None:
    job = FluidJob(three_steps(), lambda second: load, SPEEDS, hot=hot).run(3_000)
    assert len(job.rescales) <= 5 and job.turns <= 1
    at_limit = 30 / hot < load
    if at_limit:
        keyed = next(each for each in job.autoscaler.describe()["vertices"] if each["name"].startswith(KEYED))
        assert "would not help" in keyed["reason"] or keyed["parallelism"] == 32


@pytest.mark.slow
def test_a_slow_sink_stops_the_growth_and_the_reason_is_given() -> None:
    job = FluidJob(three_steps(2), lambda second: 200, SPEEDS, limit=60).run(3_000)
    assert len(job.rescales) <= 3 and job.turns <= 1 and job.parallelism[KEYED] == 2  # as before it grew in vain
    keyed = next(each for each in job.autoscaler.describe()["vertices"] if each["name"].startswith(KEYED))
    assert "an outside system that is slow" in keyed["reason"]


@pytest.mark.slow
def test_detection_switched_off_grows_to_the_limit() -> None:
    graph = three_steps(2, scaling__effectiveness__detection__enabled="false")
    job = FluidJob(graph, lambda second: 200, SPEEDS, limit=60).run(3_000)
    assert job.parallelism[KEYED] == 32


@pytest.mark.slow
def test_the_next_coordinator_goes_on_with_decisions_and_pauses() -> None:
    job = FluidJob(three_steps(), lambda second: 200, SPEEDS, limit=60).run(1_500)
    past = job.autoscaler.history.as_json()
    successor = FluidJob(job.graph, job.load, SPEEDS, limit=60, past=past, lag=job.lag).run(3_000)
    assert successor.rescales == [] and successor.autoscaler.restart_s == 5
    assert successor.autoscaler.history.scalings == len(job.rescales) > 0
