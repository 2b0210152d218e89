"""The autoscaler when something is missing: slots, metrics, lag, the rest of the input."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.states import ExecutionState
from rayflink.common.errors import ConfigError
from rayflink.testing.fluid_jobs import KEYED, MAP, SOURCE, FluidJob, three_steps

SPEEDS = {SOURCE: 1_000.0, MAP: 50.0, KEYED: 30.0}


def busy_job(parallelism: int = 2, **options: str) -> FluidJob:
    return FluidJob(three_steps(parallelism, **options), lambda second: 200, SPEEDS)


def test_a_job_without_slots_to_grow_into_goes_on_and_asks_less_and_less_often() -> None:
    job = busy_job()
    job.slots = 4
    job.run(420)
    decisions = job.autoscaler.history.decisions
    assert [each.outcome for each in decisions] == ["failed"] * len(decisions) and len(decisions) >= 2
    assert "not carried out (there are not enough free slots); it waits" in job.autoscaler.reason
    job.run(3_180)
    assert not job.rescales and len(decisions) <= 7  # with a window of a minute
    assert job.autoscaler.errors == len(decisions)
    job.slots = 64
    job.run(3_600)
    assert job.capacity >= 200 and decisions[-1].outcome == "done" and job.rescales[0][0] <= 3_600 + 3_700


def test_a_request_that_was_carried_out_ends_the_waiting() -> None:
    job = busy_job()
    job.slots = 4
    job.run(240)
    job.slots = 64
    job.run(600)
    assert job.rescales and "not carried out" not in job.autoscaler.reason


def test_a_vertex_without_metrics_keeps_the_job_as_it_is() -> None:
    job = busy_job().run(70)
    for execution in job.executions:
        if execution.vertex.name == MAP:
            execution.metrics = {}
    assert job.autoscaler.tick(job.graph, job.executions, 75_000) is None
    assert job.autoscaler.reason == "waits until all tasks run and have reported"


@pytest.mark.slow
@pytest.mark.parametrize("reads", [1_000.0, 300.0, 60.0])
def test_a_source_that_always_has_more_and_says_no_more_lets_a_job_grow(reads: float) -> None:
    speeds = {**SPEEDS, SOURCE: reads}
    job = FluidJob(three_steps(1), lambda second: 200 if second < 3_600 else 20, speeds, reports_lag=False).run(1_200)
    assert job.capacity >= 200 and job.lag == 0 and len(job.rescales) <= 7
    before = len(job.rescales)
    job.run(2_400)
    assert len(job.rescales) <= before + 1 and job.capacity >= 200 and job.turns <= 1
    job.run(1_800)
    assert job.parallelism[KEYED] <= 2 and job.turns <= 1


def test_what_a_source_may_have_more_counts_as_much_as_it_reads_at_most() -> None:
    job = FluidJob(three_steps(1), lambda second: 200, SPEEDS, reports_lag=False).run(75)
    (first,) = job.autoscaler.history.decisions
    assert "needs 86 records/s and can do 30 with 1; its source always has more" in next(
        change for name, change in first.changes.items() if name.startswith(KEYED)
    )  # twice the 30 that it reads, at a utilization of 0.7
    assert job.parallelism == {SOURCE: 1, MAP: 2, KEYED: 3}


@pytest.mark.parametrize("load", [25, 29])
def test_a_source_that_waits_now_and_then_has_no_more_and_the_job_stays(load: int) -> None:
    job = FluidJob(three_steps(1), lambda second: load, {SOURCE: 45.0, KEYED: 30.0}, reports_lag=False).run(600)
    assert not job.rescales and job.lag == 0


@pytest.mark.slow
def test_a_slow_system_behind_a_source_that_says_nothing_lets_the_job_go_back() -> None:
    job = FluidJob(three_steps(1), lambda second: 200, SPEEDS, limit=60, reports_lag=False).run(1_200)
    assert job.parallelism[KEYED] == 3 and len(job.rescales) == 3 and job.turns == 1
    assert len(job.run(2_400).rescales) == 3


def test_the_rest_of_a_job_whose_source_has_ended_is_rescaled_by_what_it_does() -> None:
    job = busy_job().run(60)
    rest = [each for each in job.executions if not each.vertex.is_input]
    for execution in job.executions:
        if execution.vertex.is_input:
            execution.state = ExecutionState.FINISHED
    for second in range(65, 65 + 90, 5):
        for execution in rest:
            execution.metrics_ms = second * 1_000
            counters = {"numRecordsIn": second * 100, "accumulateBusyTimeMs": second * 900}
            execution.metrics = {**execution.metrics, **counters}
        request = job.autoscaler.tick(job.graph, job.executions, second * 1_000)
        if request is not None:
            break
    evaluation = job.autoscaler.evaluation
    assert evaluation is not None and not any(each.facts.is_source for each in evaluation.vertices.values())
    assert request is None or all(job.graph.vertex(key) is not None for key in request.parallelism)


@pytest.mark.parametrize("key_groups", [1, 2, 3, 5, 7])
def test_a_job_with_few_key_groups_gets_as_many_subtasks_as_it_has_of_them(key_groups: int) -> None:
    job = FluidJob(three_steps(1, key_groups), lambda second: 400, SPEEDS).run(300)
    assert job.parallelism[KEYED] == key_groups and len(job.rescales) <= 2
    keyed = next(each for each in job.autoscaler.describe()["vertices"] if each["name"].startswith(KEYED))
    assert "needs" in keyed["reason"] and keyed["wanted"] == key_groups


@pytest.mark.parametrize("option", ["metrics__custom_evaluators", "scaling__custom_executors"])
def test_classes_of_java_are_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="no classes of Java"):
        three_steps(1, **{option: "one"})


@pytest.mark.parametrize(
    ("newer", "older", "wanted"),
    [("", "", 6), ("BALANCED", "EVENLY_SPREAD", 7), ("", "EVENLY_SPREAD", 8), ("OFF", "", 6), ("EVENLY_SPREAD", "", 8)],
)
def test_the_newer_option_of_alignment_counts_where_it_is_set(newer: str, older: str, wanted: int) -> None:
    names = ("scaling__parallelism_alignment__mode", newer), ("scaling__key_group__partitions__adjust__mode", older)
    given = {name.replace("key_group__", "key-group__"): value for name, value in names if value}
    job = FluidJob(three_steps(4, **given), lambda second: 120, SPEEDS).run(200)
    assert job.parallelism[KEYED] == wanted
