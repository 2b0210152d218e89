"""What an attempt is told when it is deployed: who reads what at which address."""

from __future__ import annotations

from collections import defaultdict

import pytest

from rayflink.actors.messages.commands import DeployTask, SlotsGranted
from rayflink.actors.messages.messages import TaskDeployment
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.task.task import StreamTask
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.sources import ReaderSourceOperator
from rayflink.operators.stateless import FlatMapOperator, MapOperator
from rayflink.state.clock import ManualClock
from tests.actors.job.job_events import Job, three_vertices
from tests.golden_jobs import GOLDEN_JOBS


def deployments(graph) -> list[TaskDeployment]:
    job = Job(graph)
    job.start()
    return [command.deployment for command in job.on(SlotsGranted()) if isinstance(command, DeployTask)]


@pytest.mark.spec("J17", "attempt", "J22", "C35", "partitions-and-gates", "I34", "execution")
def test_a_deployment_says_all_that_an_attempt_needs():
    source, map_1, map_2, sink = deployments(three_vertices(parallelism__default="1"))
    assert [d.name for d in (source, map_1, map_2, sink)] == [
        "Source: Collection Source (1/1)", "Map (1/2)", "Map (2/2)", "Sink: Collect (1/1)",
    ]  # fmt: skip
    assert {d.attempt_number for d in (source, map_1, map_2, sink)} == {0}
    assert len({d.attempt for d in (source, map_1, map_2, sink)}) == 4
    assert (source.inputs, sink.outputs) == ((), ())
    (channel,) = map_2.inputs
    assert (channel.producer, channel.subpartition, channel.partition.producer) == (source.attempt, 1, 0)
    assert source.outputs[0].dataset == channel.partition.dataset
    assert source.outputs[0].subpartitions == 2
    assert [(c.producer, c.subpartition) for c in sink.inputs] == [(map_1.attempt, 0), (map_2.attempt, 0)]
    assert sink.job_name == "three"


@pytest.mark.spec("J17", "slot")
def test_a_deployment_goes_to_the_slot_of_its_subtask():
    job = Job(three_vertices(parallelism__default="1"))
    job.start()
    slots = {c.deployment.name: c.slot for c in job.on(SlotsGranted()) if isinstance(c, DeployTask)}
    first, second = Slot("default", 0), Slot("default", 1)
    assert slots == {"Source: Collection Source (1/1)": first, "Map (1/2)": first, "Map (2/2)": second,
                     "Sink: Collect (1/1)": first}  # fmt: skip


@pytest.mark.spec("X47")
def test_a_map_that_is_rebalanced_to_three_has_one_partition_of_three_subpartitions():
    env = StreamExecutionEnvironment().disable_operator_chaining()
    env.from_collection(["a"]).map(str.upper).rebalance().map(str.lower).set_parallelism(3).sink_to(CollectSink())
    source, first, *others = deployments(env.get_job_graph())
    assert [[output.subpartitions for output in one.outputs] for one in (source, first)] == [[1], [3]]
    assert [(c.producer, c.subpartition) for c in first.inputs] == [(source.attempt, 0)]
    assert [[(c.producer, c.subpartition) for c in one.inputs] for one in others[:3]] == [
        [(first.attempt, number)] for number in range(3)
    ]


@pytest.mark.parametrize("golden", GOLDEN_JOBS, ids=lambda job: job.name)
def test_every_subpartition_has_exactly_one_reader(golden):
    """Producers and consumers of every golden job agree, whatever the pattern of the edge."""
    made = deployments(golden.graph())
    by_attempt = {d.attempt: d for d in made}
    readers: dict[tuple[str, int, int], int] = defaultdict(int)
    for consumer in made:
        for channel in consumer.inputs:
            producer = by_attempt[channel.producer]
            assert producer.subtask == channel.partition.producer
            (output,) = [o for o in producer.outputs if o.dataset == channel.partition.dataset]
            assert channel.subpartition < output.subpartitions
            readers[channel.partition.dataset, producer.subtask, channel.subpartition] += 1
    written = {(o.dataset, d.subtask, i) for d in made for o in d.outputs for i in range(o.subpartitions)}
    assert set(readers) == written
    assert set(readers.values()) <= {1}


@pytest.mark.spec("I24", "I25", "direct", "network", "X36", "I13", "build", "I21")
def test_the_chain_of_a_task_is_wired_as_its_vertex_says():
    """source -> flat_map -> map in one task: each operator hands on by a direct call, the last one to the network."""
    env = StreamExecutionEnvironment.get_execution_environment()
    mapped = env.from_collection(["a"]).flat_map(str.split).map(str.upper)
    mapped.rebalance().map(str.lower).set_parallelism(2).sink_to(CollectSink())
    task = StreamTask(deployments(env.get_job_graph())[0], ManualClock())
    links = task._chain.links
    assert [type(link.operator) for link in links] == [ReaderSourceOperator, FlatMapOperator, MapOperator]
    assert [[edge.target for edge in link.edges] for link in links] == [[1], [2], []]
    assert [len(link.outputs) for link in links] == [0, 0, 1]
    assert links[2].outputs[0].writer is task._writers[0]
