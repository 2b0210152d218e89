"""Chains become vertices, the edges between them data sets."""

from __future__ import annotations

import pickle

import cloudpickle
import pytest
from hypothesis import given, settings

from rayflink.common.ids import JobID
from rayflink.graph.attributes import ChainingStrategy, ResourceSpec, ResultPartitionType
from rayflink.graph.errors import JobGraphVersionMismatch, PlanError
from rayflink.graph.job_graph import ChainedOutput, JobGraph, NetworkOutput, ScheduleMode
from rayflink.graph.job_graph_builder import chain_calls, job_graph
from rayflink.graph.partitioners import DistributionPattern, Forward, KeyGroup, Rebalance
from rayflink.graph.stream_graph import StreamEdge
from rayflink.graph.transformations import SideOutput, Transformation, Union
from rayflink.graph.translation import PlanSettings, stream_graph

from .programs import WINDOW, first, key_by, operator, sink, socket_window_count, source, step
from .random_graphs import Program, build, programs


def assemble(*ends: Transformation, settings: PlanSettings | None = None) -> JobGraph:
    return job_graph(stream_graph(ends, settings))


def names(graph: JobGraph) -> list[str]:
    return [vertex.name for vertex in graph.vertices]


@pytest.mark.spec("I19", "X34")
def test_the_vertices_of_socket_window_count_have_flinks_names() -> None:
    graph = assemble(socket_window_count(window_parallelism=3))
    assert names(graph) == ["Source: Socket Stream -> Flat Map -> Map", WINDOW, "Sink: Print to Std. Out"]
    assert [vertex.parallelism for vertex in graph.vertices] == [1, 3, 1]


@pytest.mark.spec("X38", "I17", "I18", "I15", "chaining")
def test_chains_are_made_in_flinks_order_of_calls() -> None:
    counted = step(key_by(step(source(chaining_strategy=ChainingStrategy.NEVER), "Flat Map")), "Window")
    calls = chain_calls(stream_graph([sink(counted)]))

    def shown(edges: tuple[StreamEdge, ...]) -> str:
        return " ".join(map(str, edges))

    table = [
        (c.start, c.current, shown(c.chainable), shown(c.non_chainable), shown(c.transitive), c.creates_vertex)
        for c in calls
    ]
    assert table == [
        (1, 1, "", "1->2", "1->2", True),
        (2, 2, "", "2->3", "2->3", True),
        (3, 3, "3->4", "", "", True),
        (3, 4, "", "", "", False),
    ]


@pytest.mark.spec("I17", "I15", "edges")
def test_a_vertex_that_two_edges_reach_is_made_once() -> None:
    one = step(source(), "Left")
    graph = assemble(sink(step(key_by(Union((one, step(source("Other"), "Right")))), "Both")))
    assert names(graph) == [
        "Source: Socket Stream -> Left",
        "Source: Other -> Right",
        "Both -> Sink: Print to Std. Out",
    ]
    both = graph.vertices[2]
    assert [operator.name for operator in both.operators] == ["Both", "Sink: Print to Std. Out"], "each once"
    assert [(edge.gate, edge.source) for edge in both.inputs] == [(0, graph.vertices[0].id), (1, graph.vertices[1].id)]


@pytest.mark.spec("X37", "X39")
def test_a_keyed_aggregation_chains_with_its_filter_and_sink() -> None:
    counts = step(key_by(step(source("Collection Source"), "Flat Map")), "Keyed Aggregation")
    graph = assemble(sink(step(counts, "Filter"), "Unnamed"))
    assert names(graph)[1] == "Keyed Aggregation -> Filter -> Sink: Unnamed"
    assert [op.chained_outputs for op in graph.vertices[1].operators] == [
        (ChainedOutput(1),),
        (ChainedOutput(2),),
        (),
    ]


@pytest.mark.spec("X36", "I24")
def test_a_chain_lists_its_operators_tail_first_as_flink_does() -> None:
    vertex = assemble(step(step(source(), "Flat Map"))).vertices[0]
    assert [op.name for op in vertex.tail_first()] == ["Map", "Flat Map", "Source: Socket Stream"]
    assert vertex.head.name == "Source: Socket Stream"


@pytest.mark.spec("X41", "I22", "tasks", "I23", "application")
def test_chaining_off_gives_every_operator_a_vertex() -> None:
    end = sink(step(source()))
    chained = assemble(end, settings=PlanSettings(parallelism=2))
    apart = assemble(end, settings=PlanSettings(parallelism=2, chaining=False))
    assert [sum(vertex.parallelism for vertex in graph.vertices) for graph in (chained, apart)] == [2, 6]


@pytest.mark.spec("I19")
def test_a_chain_that_branches_names_its_branches_in_brackets() -> None:
    mapped = step(source())
    graph = assemble(sink(mapped, "A"), sink(step(mapped, "Filter"), "B"))
    assert names(graph) == ["Source: Socket Stream -> Map -> (Sink: A, Filter -> Sink: B)"]


@pytest.mark.spec("I19")
def test_resources_of_a_chain_are_summed_and_unknown_when_one_is() -> None:
    half, one = ResourceSpec(0.5, 64), ResourceSpec(1.0, 128, (("GPU", 1.0),))
    vertex = assemble(step(source(min_resources=half), min_resources=one, preferred_resources=one)).vertices[0]
    assert vertex.min_resources == ResourceSpec(1.5, 192, (("GPU", 1.0),))
    assert vertex.preferred_resources is None
    both = assemble(step(source(preferred_resources=half), preferred_resources=one)).vertices[0]
    assert both.preferred_resources == ResourceSpec(1.5, 192, (("GPU", 1.0),))


@pytest.mark.spec("I26", "I18", "I28")
def test_a_vertex_has_one_data_set_for_each_consumer() -> None:
    mapped = step(source())
    graph = assemble(
        sink(step(key_by(mapped), "A", parallelism=2)), sink(step(key_by(SideOutput(mapped, "late")), "B")), mapped
    )
    producer = graph.vertices[0]
    edges = [graph.consumer_of(dataset.id) for dataset in producer.outputs]
    assert [graph.vertex(edge.target).head.name for edge in edges] == ["A", "B"]
    assert producer.operators[1].network_outputs == (NetworkOutput(0), NetworkOutput(1, "late"))
    assert len({dataset.id for dataset in producer.outputs}) == 2
    assert all(edge.source == producer.id for edge in edges)


@pytest.mark.spec("I35")
def test_forward_and_rescale_edges_are_pointwise_and_the_others_all_to_all() -> None:
    graph = assemble(
        sink(step(key_by(source()), parallelism=2), chaining_strategy=ChainingStrategy.NEVER, parallelism=2)
    )
    assert [(edge.partitioner, edge.pattern) for edge in graph.edges] == [
        (KeyGroup(first, 128), DistributionPattern.ALL_TO_ALL),
        (Forward(), DistributionPattern.POINTWISE),
    ]
    assert [edge.not_chained_because for edge in graph.edges] == [
        "the edge is HASH, not FORWARD",
        "Sink: Print to Std. Out does not chain to its input (NEVER)",
    ]


@pytest.mark.spec("N13", "N14", "I15", "mode")
def test_streams_are_pipelined_and_bounded_and_batches_block() -> None:
    stream, batch = (assemble(socket_window_count(2), settings=PlanSettings(batch=b)) for b in (False, True))
    assert {edge.partition_type for edge in stream.edges} == {ResultPartitionType.PIPELINED_BOUNDED}
    assert {edge.partition_type for edge in batch.edges} == {ResultPartitionType.BLOCKING}
    assert (stream.schedule_mode, batch.schedule_mode) == (ScheduleMode.EAGER, ScheduleMode.LAZY_FROM_SOURCES)
    facts = {kind.value: (kind.is_pipelined, kind.has_back_pressure, kind.is_bounded) for kind in ResultPartitionType}
    assert facts == {
        "BLOCKING": (False, False, False),
        "PIPELINED": (True, True, False),
        "PIPELINED_BOUNDED": (True, True, True),
    }


@pytest.mark.spec("J12", "I15", "slots")
def test_co_location_needs_one_slot_sharing_group() -> None:
    left = step(key_by(source()), "Left", co_location_group_key="k")
    right = step(key_by(left), "Right", co_location_group_key="k")
    assert [v.co_location_group_key for v in assemble(right).vertices] == [None, "k", "k"]
    right.slot_sharing_group = "other"
    with pytest.raises(PlanError, match="'Left' and 'Right' share the co-location group 'k'.*'default' and 'other'"):
        assemble(right)


@pytest.mark.spec("G27")
def test_max_parallelism_is_the_operators_else_the_jobs_else_by_parallelism() -> None:
    own = step(key_by(source()), max_parallelism=16)
    assert [v.max_parallelism for v in assemble(own).vertices] == [128, 16]
    assert [v.max_parallelism for v in assemble(own, settings=PlanSettings(max_parallelism=32)).vertices] == [32, 16]
    assert [v.max_parallelism for v in assemble(source(parallelism=200)).vertices] == [512]
    with pytest.raises(PlanError, match=r"'Map' has parallelism 17 above its max parallelism 16.*job\.py:2"):
        assemble(step(source(), parallelism=17, max_parallelism=16))


@pytest.mark.spec("I15", "artifacts", "configuration")
def test_configuration_and_cached_files_are_carried() -> None:
    settings = PlanSettings("named", configuration={"a": 1}, user_artifacts=(("dict", "/tmp/words"),))
    graph = assemble(source(), settings=settings)
    assert (graph.name, graph.configuration, graph.user_artifacts) == ("named", {"a": 1}, (("dict", "/tmp/words"),))


def test_a_job_graph_compares_by_what_it_says_and_survives_bytes_with_its_functions() -> None:
    graph = assemble(socket_window_count(3))
    assert graph == assemble(socket_window_count(3)) != assemble(socket_window_count(2))
    for copy in (JobGraph.from_bytes(graph.to_bytes()), pickle.loads(cloudpickle.dumps(graph))):
        assert copy == graph and copy.id == graph.id
        assert copy.vertices[0].head.factory is operator
        assert copy.consumer_of(graph.edges[0].dataset_id) == graph.edges[0]


def test_a_job_graph_of_another_format_version_is_refused_with_the_remedy() -> None:
    graph = assemble(source())
    data = graph.to_bytes()
    for wrong, found in [(data.replace(b"graph 1\n", b"graph 7\n"), "7"), (b"junk", "unknown")]:
        with pytest.raises(JobGraphVersionMismatch, match=f"format version {found}, .* reads version 1; submit"):
            JobGraph.from_bytes(wrong)
    object.__setattr__(graph, "version", 0)
    with pytest.raises(JobGraphVersionMismatch, match="format version 0"):
        pickle.loads(cloudpickle.dumps(graph))


def test_the_job_id_may_be_given() -> None:
    job_id = JobID("ab" * 16)
    assert job_graph(stream_graph([source()]), job_id).id == job_id


@pytest.mark.parametrize("length", [1100, 2000])
def test_a_chain_longer_than_the_interpreters_stack_is_assembled(length: int) -> None:
    end: Transformation = source()
    for _ in range(length):
        end = step(end)
    assert [len(vertex.operators) for vertex in assemble(end).vertices] == [length + 1]


@settings(max_examples=30)
@given(programs())
def test_every_operator_is_in_exactly_one_vertex_and_every_edge_in_exactly_one_place(program: Program) -> None:
    logical = stream_graph(build(program))
    graph = job_graph(logical)
    operators = [op for vertex in graph.vertices for op in vertex.operators]
    assert sorted(op.node_id for op in operators) == [node.id for node in logical.nodes]
    inside = sum(len(op.chained_outputs) for op in operators)
    outside = sum(len(op.network_outputs) for op in operators)
    assert inside + outside == len(logical.edges)
    assert outside == len(graph.edges) == len({edge.dataset_id for edge in graph.edges})
    place = {vertex.id: position for position, vertex in enumerate(graph.vertices)}
    assert all(place[edge.source] < place[edge.target] for edge in graph.edges)
    for vertex in graph.vertices:
        assert all(o.target > i for i, op in enumerate(vertex.operators) for o in op.chained_outputs)


def test_rebalance_supports_unaligned_barriers_and_forward_does_not() -> None:
    graph = assemble(sink(step(source(), parallelism=2), parallelism=2, chaining_strategy=ChainingStrategy.NEVER))
    assert [(edge.partitioner, edge.supports_unaligned) for edge in graph.edges] == [
        (Rebalance(), True),
        (Forward(), False),
    ]
