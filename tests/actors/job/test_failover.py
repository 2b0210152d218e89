"""Pipelined regions, and which of them restart with a subtask that failed."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.job.failures.failover import Failover, Place
from rayflink.graph.attributes import ExchangeMode, ResultPartitionType
from rayflink.graph.execution_graph import execution_graph
from rayflink.graph.job_graph import JobGraph, JobVertex
from rayflink.graph.job_graph_builder import job_graph
from rayflink.graph.partitioners import Broadcast, Partitioner, Rebalance, Rescale
from rayflink.graph.transformations import Feedback, Partition, Transformation, TwoInput
from rayflink.graph.translation import stream_graph
from tests.graph.programs import sink, source, step
from tests.graph.random_graphs import Program, build, programs


def job(*ends: Transformation) -> JobGraph:
    return job_graph(stream_graph(ends))


def over(after: Transformation, partitioner: Partitioner, blocking: bool = False) -> Partition:
    return Partition(after, partitioner, ExchangeMode.BATCH if blocking else ExchangeMode.PIPELINED)


def available(dataset: str, producer: int) -> bool:
    return False


def name(vertex: JobVertex) -> str:
    return vertex.name.removeprefix("Source: ")


def shown(graph: JobGraph, places: Any) -> str:
    """Subtasks by the names of their vertices: "A0 A1 B0"."""
    return " ".join(f"{name(graph.vertex(vertex))}{subtask}" for vertex, subtask in places)


def regions(graph: JobGraph) -> list[str]:
    return [shown(graph, region) for region in Failover(graph).regions]


def place(graph: JobGraph, written: str) -> Place:
    """The subtask written as "A0"."""
    return next(v.id for v in graph.vertices if name(v) == written[:-1]), int(written[-1])


def restarting(graph: JobGraph, failed: str, *lost: str) -> str:
    """What restarts with a subtask, where the blocking results of the subtasks `lost` are lost."""
    gone = {(dataset.id, place(graph, result)[1]) for result in lost
            for dataset in graph.vertex(place(graph, result)[0]).outputs}  # fmt: skip
    found = Failover(graph).restarting(place(graph, failed), lambda *result: result in gone)
    return shown(graph, found)


def a_to_b_to_c(first: Partition | None = None) -> JobGraph:
    """A (2) blocking all-to-all to B (2), which goes blocking one to one to C (2)."""
    b = step(first or over(source("A", parallelism=2), Rebalance(), blocking=True), "B", parallelism=2)
    return job(step(over(b, Rescale(), blocking=True), "C", parallelism=2))


def test_all_to_all_edges_that_are_pipelined_make_one_region():
    words = step(over(source("A", parallelism=2), Rebalance()), "B", parallelism=3)
    assert regions(job(step(over(words, Broadcast()), "C"))) == ["A0 A1 B0 B1 B2 C0"]


def test_pointwise_edges_make_a_region_of_each_chain_of_subtasks():
    unchained = step(over(source("A", parallelism=4), Rescale()), "B", parallelism=4)
    graph = job(step(over(unchained, Rescale()), "C", parallelism=2))
    assert regions(graph) == ["A0 A1 B0 B1 C0", "A2 A3 B2 B3 C1"]
    assert restarting(graph, "B2") == "A2 A3 B2 B3 C1"


@pytest.mark.spec("I32", "failover")
def test_two_pipelines_of_one_program_fail_apart():
    graph = job(
        step(over(source("A"), Rebalance()), "B", parallelism=2), step(over(source("C"), Rebalance()), "D")
    )  # fmt: skip
    assert regions(graph) == ["A0 B0 B1", "C0 D0"]
    assert restarting(graph, "B1") == "A0 B0 B1"


def test_blocking_edges_part_regions_and_a_failure_takes_what_reads_the_failed_one():
    graph = a_to_b_to_c()
    assert regions(graph) == ["A0", "A1", "B0", "B1", "C0", "C1"]
    assert restarting(graph, "C1") == "C1"
    assert restarting(graph, "B1") == "B1 C1"
    assert restarting(graph, "A0") == "A0 B0 B1 C0 C1"


def test_who_made_a_lost_input_restarts_with_all_its_readers():
    graph = a_to_b_to_c()
    assert restarting(graph, "C1", "B1") == "B1 C1"
    assert restarting(graph, "C1", "B0") == "C1", "it does not read what B0 gave"
    assert restarting(graph, "B1", "A0") == "A0 B0 B1 C0 C1", "B0 reads what A0 gives again"
    assert restarting(graph, "C1", "A0", "B1") == "A0 B0 B1 C0 C1", "what C1 needs of B1 needs what A0 gave"


def test_a_loss_that_nobody_who_restarts_reads_is_left_alone():
    assert restarting(a_to_b_to_c(), "C0", "A0", "A1") == "C0"


def test_regions_on_a_cycle_of_blocking_edges_restart_together():
    origin = source("A", parallelism=2)
    straight, across = over(origin, Rescale()), over(origin, Rebalance(), blocking=True)
    graph = job(TwoInput(straight, across, object, name="B", parallelism=2))
    assert regions(graph) == ["A0 B0", "A1 B1"]
    assert restarting(graph, "A0") == "A0 A1 B0 B1"


@pytest.mark.spec("J12")
def test_co_located_subtasks_of_one_index_are_one_region():
    left = step(over(source("A", parallelism=2), Rescale(), blocking=True), "B", parallelism=2,
                co_location_group_key="k")  # fmt: skip
    graph = job(step(over(left, Rescale(), blocking=True), "C", parallelism=3, co_location_group_key="k"))
    assert regions(graph) == ["A0", "A1", "B0 C0", "B1 C1", "C2"]


def loop(parallelism: int) -> JobGraph:
    head = Feedback(step(over(source("A", parallelism=2), Rebalance(), blocking=True), "B", parallelism=parallelism))
    body = step(head, "Body", parallelism=parallelism)
    head.add_feedback_edge(body)
    return job(sink(over(body, Rebalance(), blocking=True), "C"))


def test_head_and_tail_of_a_loop_are_one_region_whatever_the_edges_between_them_are():
    graph = with_blocking(loop(2), frozenset(range(12)))
    ends = [v.id for v in graph.vertices if any(operator.iteration for operator in v.operators)]
    assert len(ends) == 2, "head and tail are tasks of their own"
    wide = [region for region in Failover(graph).regions if len(region) > 1]
    assert wide == [((ends[0], subtask), (ends[1], subtask)) for subtask in range(2)]


def test_full_failover_restarts_everything():
    graph = a_to_b_to_c()
    full = replace(graph, configuration={"jobmanager.execution.failover-strategy": "full"})
    everything = "A0 A1 B0 B1 C0 C1"
    assert shown(full, Failover.of(full).restarting(place(full, "C1"), available)) == everything
    assert shown(graph, Failover.of(graph).restarting(place(graph, "C1"), available)) == "C1"


def test_a_rescaled_job_has_the_regions_of_what_runs():
    graph = a_to_b_to_c()
    wider = replace(graph, vertices=tuple(replace(v, parallelism=3) for v in graph.vertices))
    assert regions(wider)[-3:] == ["C0", "C1", "C2"]
    assert restarting(wider, "B2") == "B2 C2"


@pytest.mark.parametrize("blocking", [False, True])
def test_a_thousand_by_a_thousand_take_well_under_a_second(blocking):
    graph = job(step(over(source("A", parallelism=1000), Rebalance(), blocking), "B", parallelism=1000))
    began = time.process_time()
    failover = Failover(graph)
    assert len(failover.restarting((graph.vertices[0].id, 7), available)) == (1001 if blocking else 2000)
    assert len(failover.restarting((graph.vertices[1].id, 7), lambda dataset, producer: True)) == (2000)
    assert time.process_time() - began < 0.5


def with_blocking(graph: JobGraph, blocking: frozenset[int]) -> JobGraph:
    """The same job, with those of its edges blocking (by number, any that there is)."""
    numbered = {edge.dataset_id: number for number, edge in enumerate(graph.edges)}
    return replace(graph, vertices=tuple(
        replace(v, inputs=tuple(
            replace(e, partition_type=ResultPartitionType.BLOCKING) if numbered[e.dataset_id] in blocking else e
            for e in v.inputs)) for v in graph.vertices))  # fmt: skip


def restarting_by_edges(graph: JobGraph, failed: Place, lost: set[tuple[str, int]]) -> set[Place]:
    """The same, by trying every channel again until nothing changes."""
    parallel = execution_graph(graph)
    kinds = {edge.dataset_id: edge.partition_type for edge in graph.edges}
    channels = [
        (edge.source, (edge.source.producer.vertex_id, edge.source.number), place)
        for place in ((vertex.id, task.subtask) for vertex in parallel.vertices for task in vertex.tasks)
        for edge in parallel.edges_into(*place)
    ]  # fmt: skip
    found: set[Place] = {failed}
    while True:
        more = set(found)
        for partition, producer, consumer in channels:
            pipelined = kinds[partition.dataset_id].is_pipelined
            if producer in found:
                more.add(consumer)
            if consumer in found and (pipelined or (partition.dataset_id, partition.number) in lost):
                more.add(producer)
        if more == found:
            return found
        found = more


@given(programs(), st.frozensets(st.integers(0, 12)), st.data())
def test_what_restarts_is_what_the_channels_say(program: Program, blocking: frozenset[int], data: st.DataObject):
    graph = with_blocking(job(*build(program)), blocking)
    places = [(v.id, subtask) for v in graph.vertices for subtask in range(v.parallelism)]
    results = [(e.dataset_id, p) for e in graph.edges for p in range(graph.vertex(e.source).parallelism)]
    failed = data.draw(st.sampled_from(places))
    lost = set(data.draw(st.lists(st.sampled_from(results)))) if results else set()
    found = Failover(graph).restarting(failed, lambda *result: result in lost)
    assert sorted(found, key=places.index) == list(found)
    assert set(found) == restarting_by_edges(graph, failed, lost)
