"""Subtasks, partitions and channels."""

from __future__ import annotations

import pickle
from dataclasses import replace

import cloudpickle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.graph.distribution import pointwise_consumers, pointwise_producers
from rayflink.graph.errors import DuplicateVertexError, ForwardParallelismError, PlanError
from rayflink.graph.execution_graph import ExecutionGraph, InputChannel, Subpartition, execution_graph
from rayflink.graph.job_graph import JobGraph
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.partitioners import Forward, Rebalance, Rescale
from rayflink.graph.transformations import Partition, Source, Transformation
from rayflink.graph.translation import stream_graph

from .programs import operator, sink, socket_window_count, source, step
from .random_graphs import Program, build, programs

counts = st.integers(1, 40)


def job(*ends: Transformation) -> JobGraph:
    return job_graph(stream_graph(ends))


def rescaled(producers: int, consumers: int) -> ExecutionGraph:
    return execution_graph(job(step(Partition(source(parallelism=producers), Rescale()), parallelism=consumers)))


@pytest.mark.spec("X43", "I36", "I35")
@pytest.mark.parametrize(
    ("producers", "consumers", "read"),
    [
        (3, 3, [[0], [1], [2]]),
        (2, 4, [[0], [0], [1], [1]]),
        (2, 5, [[0], [0], [0], [1], [1]]),
        (4, 2, [[0, 1], [2, 3]]),
        (5, 3, [[0], [1, 2], [3, 4]]),
    ],
    ids=["equal", "fewer, divisible", "fewer, not divisible", "more, divisible", "more, not divisible"],
)
def test_pointwise_edges_join_as_in_flink(producers: int, consumers: int, read: list[list[int]]) -> None:
    graph = rescaled(producers, consumers)
    last = graph.vertices[1]
    assert read == [[e.source.number for e in graph.edges_into(last.id, task.subtask)] for task in last.tasks]


@pytest.mark.spec("I36", "N16")
@given(counts, counts)
def test_pointwise_edges_cover_both_ends_evenly(producers: int, consumers: int) -> None:
    read = [list(pointwise_producers(i, producers, consumers)) for i in range(consumers)]
    served = [list(pointwise_consumers(p, producers, consumers)) for p in range(producers)]
    assert {p for group in read for p in group} == set(range(producers))
    assert [(p, c) for p, group in enumerate(served) for c in group] == sorted(
        (p, c) for c, group in enumerate(read) for p in group
    )
    for sizes in (list(map(len, read)), list(map(len, served))):
        assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1


@pytest.mark.spec("I27", "X34", "I32", "total", "I33", "subtasks")
def test_every_vertex_unfolds_into_named_subtasks() -> None:
    graph = execution_graph(job(socket_window_count(3)))
    tasks = {task.name for vertex in graph.vertices for task in vertex.tasks}
    window = graph.vertices[1].name
    assert tasks == {
        "Source: Socket Stream -> Flat Map -> Map (1/1)",
        f"{window} (1/3)",
        f"{window} (2/3)",
        f"{window} (3/3)",
        "Sink: Print to Std. Out (1/1)",
    }
    assert graph.task_count == 5


@pytest.mark.spec("I28", "I29", "I33", "results", "I34", "partitions")
def test_every_data_set_has_one_partition_a_producer_and_edges_name_both_ends() -> None:
    graph = execution_graph(job(socket_window_count(3)))
    result = graph.vertices[1].results[0]
    assert [partition.producer for partition in result.partitions] == list(graph.vertices[1].tasks)
    edges = graph.edges_into(graph.vertices[2].id, 0)
    assert [(edge.source, edge.target.name) for edge in edges] == [
        (partition, "Sink: Print to Std. Out (1/1)") for partition in result.partitions
    ]
    for task in graph.vertices[1].tasks:
        assert {edge.target for edge in graph.edges_into(graph.vertices[1].id, task.subtask)} == {task}


@pytest.mark.spec("I35", "I37", "N16", "I28")
def test_all_to_all_gives_every_consumer_a_subpartition_of_every_producer() -> None:
    graph = execution_graph(job(step(Partition(source(parallelism=2), Rebalance()), parallelism=3)))
    producer, consumer = graph.vertices
    assert graph.channels_of(consumer.id, 1).gates[0].channels == (
        InputChannel(producer.id, 0, 1),
        InputChannel(producer.id, 1, 1),
    )
    assert graph.channels_of(producer.id, 1).results[0].subpartitions == (
        Subpartition(consumer.id, 0, 0, 1),
        Subpartition(consumer.id, 1, 0, 1),
        Subpartition(consumer.id, 2, 0, 1),
    )


@pytest.mark.spec("D01", "N16")
def test_a_forward_producer_has_one_subpartition_for_the_consumer_of_its_index() -> None:
    graph = execution_graph(job(step(Partition(step(source(parallelism=3), parallelism=3), Forward()), parallelism=3,
                                     slot_sharing_group="other")))  # fmt: skip
    producer, consumer = graph.vertices
    for subtask in range(3):
        results = graph.channels_of(producer.id, subtask).results
        assert [part.subpartitions for part in results] == [(Subpartition(consumer.id, subtask, 0, 0),)]


@pytest.mark.spec("I37")
@settings(max_examples=25)
@given(programs())
def test_both_ends_of_every_channel_agree(program: Program) -> None:
    graph = execution_graph(job(*build(program)))
    read, written = set(), set()
    for vertex in graph.vertices:
        for task in vertex.tasks:
            channels = graph.channels_of(vertex.id, task.subtask)
            for gate in channels.gates:
                for index, channel in enumerate(gate.channels):
                    ends = (channel.producer, channel.producer_subtask, vertex.id, task.subtask)
                    read.add((gate.edge.dataset_id, *ends, channel.subpartition, gate.edge.gate, index))
            for result in channels.results:
                assert result.subpartitions
                for index, sub in enumerate(result.subpartitions):
                    ends = (vertex.id, task.subtask, sub.consumer, sub.consumer_subtask)
                    written.add((result.dataset.id, *ends, index, sub.gate, sub.channel))
    assert read == written


@pytest.mark.spec("J10", "J11", "I33", "slots")
def test_slots_are_the_largest_parallelism_of_each_sharing_group_together() -> None:
    graph = execution_graph(job(sink(step(source(), parallelism=5), parallelism=2)))
    assert (graph.slots_by_group, graph.required_slots) == ({"default": 5}, 5)
    heavy = step(source(), parallelism=5, slot_sharing_group="heavy")
    graph = execution_graph(job(sink(heavy, parallelism=2, slot_sharing_group="default")))
    assert (graph.slots_by_group, graph.required_slots) == ({"default": 2, "heavy": 5}, 7)


@pytest.mark.spec("I32", "attached", "I33", "sanity")
def test_two_vertices_or_data_sets_of_one_id_are_refused_in_flinks_words() -> None:
    graph = job(sink(step(source(), parallelism=2)))
    twice = replace(graph, vertices=(graph.vertices[0], graph.vertices[0]))
    with pytest.raises(DuplicateVertexError) as refused:
        execution_graph(twice)
    text, name = str(refused.value), graph.vertices[0].name
    assert text.startswith(
        f"Encountered two job vertices with ID {graph.vertices[0].id} : previous=[{name}] / new=[{name}]"
    )
    other = replace(graph.vertices[0], id="0" * 32, name="Other")
    with pytest.raises(DuplicateVertexError) as refused:
        execution_graph(replace(graph, vertices=(graph.vertices[0], other)))
    dataset = graph.vertices[0].outputs[0].id
    wanted = f"Encountered two intermediate data set with ID {dataset} : previous=[{name}] / new=[Other]"
    assert str(refused.value).startswith(wanted)


@pytest.mark.spec("I31", "server", "I32", "attached")
def test_vertices_stand_after_their_producers_and_a_missing_data_set_is_refused() -> None:
    graph = job(sink(step(source(), parallelism=2)))
    with pytest.raises(PlanError, match="No previous intermediate result found for ID"):
        execution_graph(replace(graph, vertices=graph.vertices[::-1]))
    with pytest.raises(PlanError, match="no vertex reads the data set"):
        execution_graph(replace(graph, vertices=graph.vertices[:1]))


@pytest.mark.spec("I32", "stoppable")
def test_one_source_that_cannot_stop_makes_the_job_unstoppable() -> None:
    endless = Source(operator, stoppable=False, name="Endless")
    assert execution_graph(job(source())).stoppable
    assert not execution_graph(job(source(), endless)).stoppable


def test_a_vertex_may_run_at_another_parallelism_within_its_max() -> None:
    graph = job(socket_window_count(3))
    window = graph.vertices[1].id
    assert execution_graph(graph, {window: 5}).vertices[1].tasks[4].name.endswith("(5/5)")
    with pytest.raises(PlanError, match=r"parallelism 129 of 'Window.*is not in \[1, max parallelism 128\]"):
        execution_graph(graph, {window: 129})
    with pytest.raises(PlanError, match="no vertex has the id nope"):
        execution_graph(graph, {"nope": 1})


def test_a_forward_edge_keeps_both_ends_at_one_parallelism() -> None:
    graph = job(step(source(), slot_sharing_group="other"))
    with pytest.raises(ForwardParallelismError):
        execution_graph(graph, {graph.vertices[1].id: 2})


def test_an_execution_graph_compares_prints_and_pickles() -> None:
    graph, same = (execution_graph(job(socket_window_count(2))) for _ in range(2))
    assert graph == same and str(graph) == str(same)
    assert graph.channels_of(graph.vertices[0].id, 0)
    assert pickle.loads(cloudpickle.dumps(graph)) == graph
    assert "  [3] Sink: Print to Std. Out (1/1)\n    <- REBALANCE [2] 1[0], 2[0]" in str(graph)
