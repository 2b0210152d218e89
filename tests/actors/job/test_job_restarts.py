"""When tasks of a job fail that may restart: who is cancelled, when who is deployed again, and when it is enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.messages.commands import CancelRequested, DeployTask, EndJob, SendToTask, TaskGone, Tick
from rayflink.actors.messages.messages import CancelTask, TaskStateChanged
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.common.functions.accumulators import IntCounter
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from tests.actors.job.job_events import Job, failure, names, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
ALL = [SOURCE, MAP_1, MAP_2, SINK]
FAILED, CANCELED, FINISHED = ExecutionState.FAILED, ExecutionState.CANCELED, ExecutionState.FINISHED
TWICE = {
    "restart_strategy__type": "fixed-delay",
    "restart_strategy__fixed_delay__attempts": "2",
    "restart_strategy__fixed_delay__delay": "100 ms",
}


@pytest.fixture
def running() -> Job:
    job = Job(three_vertices(**TWICE))
    job.all_run()
    return job


def fail(job: Job, name: str, now: int) -> list:
    return job.says(name, FAILED, now, failure=failure("no"))


def cancel_all_but(job: Job, name: str, now: int) -> list:
    commands = []
    for other in ALL:
        if other != name:
            commands = job.says(other, CANCELED, now)
    return commands


@pytest.mark.spec("H20", "restart", "H71")
def test_what_is_connected_is_cancelled_and_deployed_again_after_the_delay(running):
    former = {e.name: e.attempt for e in running.master.executions.values()}
    assert running.sent(fail(running, MAP_1, 1_000)) == dict.fromkeys([SOURCE, MAP_2, SINK], CancelTask())
    assert running.master.status is JobStatus.RESTARTING
    assert cancel_all_but(running, MAP_1, 1_050) == []
    assert running.on(Tick(), 1_099) == []
    deployed = running.on(Tick(), 1_100)
    assert names(deployed) == ALL
    assert {c.deployment.attempt_number for c in deployed} == {1}
    assert running.master.status is JobStatus.RUNNING
    fresh = {e.name: e.attempt for e in running.master.executions.values()}
    assert all(fresh[name] != former[name] for name in ALL)
    sink = next(c.deployment for c in deployed if c.deployment.name == SINK)
    assert {spec.producer for spec in sink.inputs} == {fresh[MAP_1], fresh[MAP_2]}
    assert [e.failure.message for e in running.master.exceptions] == ["no"]


def test_nothing_is_deployed_before_the_last_of_the_old_attempts_has_ended(running):
    fail(running, MAP_1, 0)
    running.says(SOURCE, CANCELED, 50)
    running.says(MAP_2, CANCELED, 50)
    assert running.on(Tick(), 5_000) == []
    assert names(running.says(SINK, CANCELED, 6_000)) == ALL


def test_what_an_attempt_of_before_says_changes_nothing(running):
    old = running.execution(MAP_2).attempt
    fail(running, MAP_1, 0)
    cancel_all_but(running, MAP_1, 10)
    running.on(Tick(), 200)
    before = running.states()
    assert running.on(TaskStateChanged(old, FAILED, failure("late"))) == []
    assert running.on(TaskGone(old, "late")) == []
    assert running.states() == before and running.master.status is JobStatus.RUNNING


@pytest.mark.spec("H70", "fixed-delay", "X32", "H71")
def test_after_the_last_attempt_the_job_fails_with_the_failure_and_the_reason(running):
    for now in (0, 1_000):
        fail(running, MAP_1, now)
        cancel_all_but(running, MAP_1, now + 10)
        running.on(Tick(), now + 500)
        for name in ALL:
            running.says(name, ExecutionState.RUNNING, now + 600)
    fail(running, MAP_1, 2_000)
    assert running.master.status is JobStatus.FAILING
    (end,) = cancel_all_but(running, MAP_1, 2_100)
    assert isinstance(end, EndJob) and end.result.status is JobStatus.FAILED
    assert end.result.failure.message.startswith("no (Recovery is suppressed by FixedDelay")
    assert running.master.report.job_metrics()["metrics"]["numRestarts"] == 2


def test_a_failure_that_is_not_recoverable_ends_the_job_whatever_the_strategy(running):
    final = replace(failure("gone"), recoverable=False)
    running.says(MAP_1, FAILED, 0, failure=final)
    assert running.master.status is JobStatus.FAILING
    (end,) = cancel_all_but(running, MAP_1, 10)
    assert isinstance(end, EndJob) and end.result.status is JobStatus.FAILED
    assert end.result.failure.message == "gone (the failure is not recoverable)"


def test_the_recovery_tells_the_end_of_the_old_attempts_from_the_delay(running):
    fail(running, MAP_1, 1_000)
    cancel_all_but(running, MAP_1, 1_030)
    running.on(Tick(), 1_100)
    found = running.master.report.describe()["recovery"]
    assert (found["cancelled_ms"], found["delayed_ms"]) == (30, 70)


def test_what_fails_while_it_is_cancelled_is_remembered_and_is_no_second_failure(running):
    fail(running, MAP_1, 0)
    fail(running, SINK, 60)
    running.says(SOURCE, CANCELED, 60)
    assert names(running.says(MAP_2, CANCELED, 101)) == ALL
    assert len(running.master.exceptions) == 2


def test_a_job_that_restarts_can_be_cancelled(running):
    fail(running, MAP_1, 0)
    cancel_all_but(running, MAP_1, 10)
    (end,) = running.on(CancelRequested("me"), 20)
    assert end.result.status is JobStatus.CANCELED and end.result.cancelled_by == "me"


def test_what_a_finished_task_had_added_up_does_not_count_when_it_runs_again(running):
    running.says(SOURCE, FINISHED, 0, accumulators={"n": IntCounter(5)})
    fail(running, MAP_1, 10)
    for name in (MAP_2, SINK):
        running.says(name, CANCELED, 20)
    running.on(Tick(), 200)
    for name in ALL:
        running.says(name, ExecutionState.RUNNING, 300)
    commands = []
    for name in ALL:
        commands = running.says(name, FINISHED, 400, accumulators={"n": IntCounter(1)})
    assert commands[0].result.accumulators == {"n": 4}


def test_only_the_region_that_failed_restarts():
    given = {key.replace("__", ".").replace("_", "-"): value for key, value in TWICE.items()}
    env = StreamExecutionEnvironment.get_execution_environment({**given, "parallelism.default": "2"})
    env.from_sequence(1, 10).map(lambda n: n).sink_to(CollectSink())
    job = Job(env.get_job_graph())
    job.all_run()
    first, second = job.states()
    assert [c for c in fail(job, first, 0) if isinstance(c, SendToTask)] == []
    commands = job.on(Tick(), 200)
    assert [c.deployment.name for c in commands if isinstance(c, DeployTask)] == [first]
    assert job.states()[second] == "RUNNING"


def test_a_restart_is_told_with_the_failure_and_the_delay(running, caplog):
    fail(running, MAP_1, 0)
    said = "Map (1/2) failed, and restarts in 0.1 s (restart 1): no"
    assert list(running.master.restarts.notices) == [said]
    assert [r.getMessage() for r in caplog.records if r.levelname == "WARNING"] == [said]
