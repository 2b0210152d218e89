"""When consumers of pipelined results are deployed, and what sitting together gives and costs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.deployment import Deployer
from rayflink.actors.scheduling import slot_of, tenants
from rayflink.actors.states import ExecutionState
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph, ScheduleMode
from tests.actors.job_events import Job, ids, names, three_vertices

SOURCE, MAP_1, MAP_2, SINK = "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)"
RUNNING = ExecutionState.RUNNING


@pytest.mark.spec("J07")
def test_a_lazy_job_deploys_the_consumers_of_a_pipelined_result_once_when_its_producers_run():
    job = Job(replace(three_vertices(), schedule_mode=ScheduleMode.LAZY_FROM_SOURCES))
    assert job.deploy() == [SOURCE]
    assert names(job.says(SOURCE, RUNNING)) == [MAP_1, MAP_2]
    assert names(job.says(MAP_1, RUNNING)) == []
    assert names(job.says(MAP_2, RUNNING)) == [SINK]
    assert names(job.says(SINK, RUNNING)) == names(job.says(MAP_1, RUNNING)) == [], "nothing is deployed twice"


@pytest.mark.spec("J07")
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
