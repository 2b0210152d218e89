"""The autoscaler in its job: windows, requests and answers, quotas, excluded times, advice, options."""

from __future__ import annotations

import json
import math
from datetime import datetime
from typing import Any

import pytest

from rayflink.actors.job.autoscaling.decisions import DecisionHistory, JobDecision
from rayflink.actors.job.autoscaling.excluded_periods import ExcludedPeriod
from rayflink.actors.job.autoscaling.figures import figures_of, sample_of
from rayflink.actors.job.autoscaling.metric_window import pending_of
from rayflink.actors.job.autoscaling.settings import AutoscalerSettings
from rayflink.actors.messages.commands import AnswerRescale, RequestRescale, RescaleRefused, Tick
from rayflink.actors.messages.messages import TaskReport
from rayflink.common.errors import ConfigError
from rayflink.testing.fluid_jobs import KEYED, MAP, FluidJob, three_steps
from tests.actors.job.job_events import Job

SPEEDS = {MAP: 50.0, KEYED: 30.0}


def busy_job(parallelism: int = 2, **options: str) -> FluidJob:
    return FluidJob(three_steps(parallelism, **options), lambda second: 200, SPEEDS)


def test_nothing_is_decided_before_the_job_is_stable_and_the_window_full() -> None:
    job = busy_job().run(10)
    assert job.autoscaler.reason == "waits 5 s more until the job is stable"
    job.run(40)
    assert job.autoscaler.reason == "collects metrics for 25 s more" and not job.rescales
    assert job.run(30).rescales[0] == (75, {"Source: in": 2, MAP: 6, KEYED: 11})


def test_the_status_says_what_it_knows_and_why_as_json() -> None:
    described = busy_job(scaling__enabled="false").run(90).autoscaler.describe()
    assert described is not None
    json.dumps(described, allow_nan=False)
    mapped = next(vertex for vertex in described["vertices"] if vertex["name"] == MAP)
    assert (mapped["parallelism"], mapped["wanted"], mapped["targetDataRate"]) == (2, 7, 200)
    assert mapped["reason"].startswith("needs 313 records/s and can do 100 with 2")
    assert described["decisions"][0]["outcome"] == "advice" and described["reason"].startswith("would change")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"quota__cpu": "8"}, "it would need 16 CPU, more than the 8 of job.autoscaler.quota.cpu"),
        ({"excluded__periods": "* * * * * ?"}, "nothing is rescaled now, by job.autoscaler.excluded.periods"),
    ],
)
def test_what_forbids_a_rescaling_is_given(options: dict[str, str], reason: str) -> None:
    job = busy_job(**options).run(200)
    assert not job.rescales and reason in job.autoscaler.reason
    assert [each.outcome for each in job.autoscaler.history.decisions] == ["blocked"] * len(
        job.autoscaler.history.decisions
    )


def test_excluded_vertices_stay_as_they_are() -> None:
    graph = three_steps(2)
    mapped = next(vertex.id for vertex in graph.vertices if vertex.name == MAP)
    job = busy_job(vertex__exclude__ids=mapped).run(600)
    assert job.parallelism[MAP] == 2 and job.parallelism[KEYED] > 2


def test_a_job_master_hands_on_the_request_and_hears_the_answer() -> None:
    fluid = FluidJob(three_steps(2), lambda second: 200, SPEEDS)
    job = Job(fluid.graph)
    job.all_run()
    requests: list[Any] = []
    while not requests:
        fluid.run(5)
        for mine, theirs in zip(job.master.executions.values(), fluid.executions, strict=True):
            job.on(TaskReport(mine.attempt, theirs.metrics), fluid.second * 1000)
        requests = [each for each in job.on(Tick()) if isinstance(each, RequestRescale)]
    request = requests[0].request
    assert sorted(request.parallelism.values()) == [6, 11]
    refusal = AnswerRescale(request.request_id, failure="there was no room")
    before = job.master.history_revision
    assert job.on(RescaleRefused(refusal)) == [] and job.master.history_revision != before
    described = job.master.report.describe()["autoscaler"]
    assert described["decisions"][-1]["outcome"] == "failed"
    assert described["reason"] == "could not rescale: there was no room"


def test_files_that_no_reader_has_are_lag_by_the_records_in_a_byte() -> None:
    job = busy_job().run(5)
    source = next(e for e in job.executions if e.vertex.is_input)
    head = {"numRecordsOut": 50, "metrics": {"numBytesIn": 1_000, "pendingRecords": 7}}
    source.metrics = {**source.metrics, "operators": [head]}
    others = [e for e in job.executions if e.vertex.is_input and e is not source]
    for other in others:
        other.metrics = {**other.metrics, "operators": [{**head, "metrics": {"numBytesIn": 1_000}}]}
    sample = sample_of(job.executions, {source.vertex.head.operator_id: 4_000})
    assert sample is not None and pending_of(sample, source.vertex.id) == 7 + 4_000 * 50 / 1_000


@pytest.mark.parametrize(
    ("period", "moment", "expected"),
    [
        ("* * 9-11,14-16 * * ?", "2026-11-30 11:59:59", True),
        ("* * 9-11,14-16 * * ?", "2026-11-30 12:00:00", False),
        ("* * * ? * 2-6", "2026-11-29 10:00:00", False),
        ("9:30:30-10:50:20 && * * * ? * MON", "2026-11-30 09:30:29", False),
        ("9:30:30-10:50:20 && * * * ? * MON", "2026-11-30 09:30:30", True),
        ("0 0/15 * * * ? 2026", "2026-11-30 12:45:00", True),
        ("* * 22-4 * * ?", "2026-11-30 03:00:00", True),
    ],
)
def test_excluded_periods_are_those_of_quartz(period: str, moment: str, expected: bool) -> None:
    assert ExcludedPeriod.parse(period).contains(datetime.fromisoformat(moment)) is expected


@pytest.mark.parametrize("period", ["9-11", "10:00-9:00", "* * 25 * * ?", "9:00-10:00 && 11:00-12:00", "* * L * * ?"])
def test_other_periods_are_refused(period: str) -> None:
    with pytest.raises(ConfigError, match="excluded.periods"):
        ExcludedPeriod.parse(period)


def test_bounds_that_exclude_each_other_are_refused() -> None:
    enabled = {"job.autoscaler.enabled": "true"}
    with pytest.raises(ConfigError, match="utilization.target"):
        AutoscalerSettings.of({**enabled, "job.autoscaler.utilization.max": "0.5"})
    with pytest.raises(ConfigError, match="vertex.min-parallelism"):
        AutoscalerSettings.of({**enabled, "job.autoscaler.vertex.min-parallelism": "300"})
    older = AutoscalerSettings.of({**enabled, "kubernetes.operator.job.autoscaler.target.utilization": "0.6"})
    assert older.rates.target == 0.6 and older.rates.lowest == pytest.approx(0.3)


@pytest.mark.parametrize("pending", [10**400, math.inf, math.nan, -1, "many", None])
def test_a_gauge_of_a_source_may_say_anything(pending: object) -> None:
    job = busy_job().run(20)
    for execution in job.executions:
        for operator in execution.metrics["operators"][:1]:
            operator["metrics"]["pendingRecords"] = pending
        figures = figures_of(execution)
        assert figures is not None and (figures.pending is None or 0 <= figures.pending <= 1 << 63)


def test_a_request_lost_with_its_coordinator_is_not_under_way() -> None:
    history = DecisionHistory(3, 1_000)
    history.add(JobDecision(5, {"map": "1 -> 2: busy"}, "under way"), {})
    (decision,) = DecisionHistory(3, 1_000, history.as_json()).decisions
    assert (decision.outcome, decision.detail) == ("failed", "its coordinator was lost before it was done")
