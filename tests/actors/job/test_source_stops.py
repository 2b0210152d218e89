"""Sources whose records nobody uses any more are ended by the coordinator."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.commands import CancelRequested, Tick
from rayflink.actors.messages.messages import CancelTask, OperatorsSatisfied, StopTask
from rayflink.actors.messages.states import ExecutionState
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from tests.actors.job.job_events import Job, failure, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"


def satisfied(job: Job, *names: str) -> list:
    """What follows from the last report when the head of each task reports."""
    commands: list = []
    for name in names:
        execution = job.execution(name)
        commands = job.on(OperatorsSatisfied(execution.attempt, (execution.vertex.head.operator_id,)))
    return job.sent(commands)


@pytest.fixture
def running() -> Job:
    job = Job(three_vertices(restart_strategy__type="fixed-delay"))
    job.all_run()
    return job


@pytest.mark.parametrize("names", [(SINK,), (MAP_1, MAP_2), (SOURCE,)])
def test_a_source_ends_once_all_behind_it_are_satisfied(running, names):
    assert satisfied(running, *names[:-1]) == {}
    assert satisfied(running, *names) == {SOURCE: StopTask()}
    assert satisfied(running, *names) == {}


def test_a_subtask_that_has_ended_uses_no_record(running):
    running.says(MAP_1, ExecutionState.FINISHED)
    assert satisfied(running, MAP_2) == {SOURCE: StopTask()}


def test_an_operator_that_is_unknown_ends_nothing(running):
    assert running.on(OperatorsSatisfied(running.execution(SINK).attempt, ("f" * 32,))) == []


def test_what_was_reported_before_a_restart_says_nothing_of_what_begins_again(running):
    satisfied(running, MAP_1)
    running.says(SINK, ExecutionState.FAILED, failure=failure("broken"))
    for name in (SOURCE, MAP_1, MAP_2):
        running.says(name, ExecutionState.CANCELED)
    running.on(Tick(), running.now + 60_000)
    assert satisfied(running, MAP_2) == {}
    assert satisfied(running, MAP_1) == {SOURCE: StopTask()}


def test_a_source_with_another_consumer_goes_on():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = env.from_collection(["a"])
    for name in ("one", "two"):
        source.rebalance().map(str.upper).name(name).sink_to(CollectSink(name))
    job = Job(env.get_job_graph())
    job.all_run()
    heads = sorted(e.name for e in job.master.executions.values() if not e.vertex.is_input)
    assert len(heads) == 2
    assert satisfied(job, heads[0]) == {}
    assert satisfied(job, heads[1]) == {SOURCE: StopTask()}


def test_records_of_a_chained_operator_are_used_though_its_neighbour_uses_none():
    env = StreamExecutionEnvironment.get_execution_environment()
    source = env.from_collection(["a"])
    for name in ("one", "two"):
        source.map(str.upper).name(name).sink_to(CollectSink(name))
    job = Job(env.get_job_graph())
    job.all_run()
    [only] = job.master.executions.values()
    ids = {one.name: one.operator_id for one in only.vertex.operators}
    assert job.on(OperatorsSatisfied(only.attempt, (ids["one"],))) == []
    assert job.sent(job.on(OperatorsSatisfied(only.attempt, (ids["two"],)))) == {only.name: StopTask()}


def test_a_job_that_is_cancelled_is_not_asked_to_end(running):
    assert set(running.sent(running.on(CancelRequested("me"))).values()) == {CancelTask()}
    assert StopTask() not in satisfied(running, SINK).values()
