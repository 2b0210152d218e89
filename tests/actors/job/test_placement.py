"""When consumers of pipelined results are deployed, and what sitting together gives and costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.job.deployment import Deployer
from rayflink.actors.messages.commands import DeployTask, RequestSlots, SlotsGranted, Tick
from rayflink.actors.messages.scheduling import Slot, slot_of, tenants
from rayflink.actors.messages.states import ExecutionState
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph, ScheduleMode
from tests.actors.job.job_events import Job, ids, names, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
RUNNING = ExecutionState.RUNNING


@pytest.mark.spec("J07", "once", "N02", "consumable", "deployed", "N18")
def test_a_lazy_job_deploys_consumers_of_a_pipelined_result_once_its_producers_run():
    job = Job(replace(three_vertices(), schedule_mode=ScheduleMode.LAZY_FROM_SOURCES))
    assert job.deploy() == [SOURCE]
    assert names(job.says(SOURCE, RUNNING)) == [MAP_1, MAP_2]
    assert names(job.says(MAP_1, RUNNING)) == []
    assert names(job.says(MAP_2, RUNNING)) == [SINK]
    assert names(job.says(SINK, RUNNING)) == names(job.says(MAP_1, RUNNING)) == [], "nothing is deployed twice"


@pytest.mark.spec("J07", "eager")
def test_an_eager_job_needs_no_word_of_its_producers():
    job = Job(three_vertices())
    assert job.deploy() == [SOURCE, MAP_1, MAP_2, SINK]
    assert [job.says(name, RUNNING) for name in (SOURCE, MAP_1, MAP_2, SINK)] == [[], [], [], []]


def three_in_a_row(*groups: str) -> JobGraph:
    """Source -> Map -> Sink in four subtasks each, forward edges, unchained, each in a group of `groups`."""
    env = StreamExecutionEnvironment.get_execution_environment().disable_operator_chaining().set_parallelism(4)
    stream = env.from_source(NumberSequenceSource(0, 9), None, "A").slot_sharing_group(groups[0])
    mapped = stream.map(lambda n: n).slot_sharing_group(groups[1])
    mapped.sink_to(CollectSink()).slot_sharing_group(groups[2])
    return env.get_job_graph()


@pytest.mark.spec("J13")
@pytest.mark.parametrize(("groups", "local", "most"), [("aaa", 8, 3), ("aab", 4, 2), ("abc", 0, 1)])
def test_tasks_that_share_slots_exchange_locally_and_share_the_slots_process(groups, local, most):
    graph = three_in_a_row(*groups)
    deployer = Deployer(graph, ids(), {})
    place = {attempt: slot_of(vertex, subtask) for vertex, subtask, attempt in deployer.attempts()}
    channels = [
        (place[spec.producer], slot_of(vertex, subtask))
        for vertex, subtask, _ in deployer.attempts()
        for spec in deployer.deployment(vertex, subtask, 0).inputs
    ]
    assert len(channels) == 8
    assert sum(producer == consumer for producer, consumer in channels) == local
    assert max(tenants(graph).values()) == most, "the more tasks, the less of the slot's CPU for each"


def slots_of(job: Job) -> dict[str, Slot]:
    """Task name -> the slot it is deployed to."""
    job.start()
    commands = job.on(SlotsGranted())
    return {c.deployment.title: c.slot for c in commands if isinstance(c, DeployTask)}


@pytest.mark.spec("J08")
@pytest.mark.parametrize("groups", ["aaa", "aab", "abc"])
def test_a_later_attempt_of_a_subtask_runs_in_the_slot_of_the_one_before(groups):
    """So it finds there what the one before has left, and its node: the slots of a job are its own until its end.

    LocationPreferenceConstraint.ALL says that a subtask is placed when the places of all its inputs are known. Here the
    place of every subtask is known before one is deployed, and a subtask whose producers share its slots is with those
    of its index. Queued scheduling is that the one request for all slots waits until they are there.
    """
    first, again = Job(three_in_a_row(*groups)), Job(three_in_a_row(*groups))
    for execution in again.master.executions.values():
        execution.number = 1
    before, after = slots_of(first), slots_of(again)
    assert {title.replace("#0", "#1"): slot for title, slot in before.items()} == after
    assert len(after) == 12 and all("#1" in title for title in after)


@pytest.mark.spec("J08")
def test_the_request_for_all_slots_waits_and_then_each_subtask_joins_its_inputs():
    job = Job(three_in_a_row(*"aab"))
    [request] = job.start()
    assert isinstance(request, RequestSlots) and len(request.slots) == 8
    assert [job.on(Tick(), now) for now in (1_000, 10_000)] == [[], []], "it is asked for once, and nothing deployed"
    commands = [command for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]
    place = {command.deployment.attempt: command.slot for command in commands}
    for command in commands:
        inputs = {place[spec.producer] for spec in command.deployment.inputs}
        subtask, group = command.deployment.subtask, "b" if command.deployment.name.startswith("Sink") else "a"
        assert inputs <= {Slot("a", subtask)}, "all its inputs are in one slot"
        assert command.slot == Slot(group, subtask)
