"""Slot sharing groups that say what a slot has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.messages.scheduling import Slot, bundle_of, cpus_of, describe_bundles, more_bundles, slots_asked
from rayflink.common import PlanError
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import ActorPool, MemorySize, SlotSharingGroup, StreamExecutionEnvironment
from rayflink.graph.attributes import ResourceSpec

HEAVY = (
    SlotSharingGroup.builder("heavy").set_cpu_cores(1.5).set_task_heap_memory(MemorySize(3 << 20))
    .set_task_off_heap_memory_mb(2).set_managed_memory_mb(1).set_external_resource("gpu", 1)
    .set_external_resource("disk", 0.5).build()
)  # fmt: skip


def graph_of(env, group):
    numbers = env.from_sequence(1, 9).set_parallelism(2).map(lambda n: n).set_parallelism(3).slot_sharing_group(group)
    numbers.sink_to(CollectSink()).set_parallelism(1)
    return env.get_job_graph()


@pytest.mark.spec("J11", "I34", "resources")
def test_the_resources_of_a_group_reach_the_bundles_of_its_slots():
    graph = graph_of(StreamExecutionEnvironment(), HEAVY)
    assert graph.slot_resources == (("heavy", ResourceSpec(1.5, 6, (("disk", 0.5), ("gpu", 1.0)))),)
    assert {vertex.slot_sharing_group for vertex in graph.vertices} == {"default", "heavy"}
    assert bundle_of(graph, Slot("default", 0), 1) == {"CPU": 1}
    wanted = {"CPU": 1.5, "memory": 6 << 20, "disk": 0.5, "GPU": 1.0}
    assert bundle_of(graph, Slot("heavy", 2), 1) == wanted
    assert cpus_of(graph, 1) == 7, "two slots of one, three of one and a half, rounded up"
    assert slots_asked(graph, 1) == "2 slots of 1 CPU, 3 slots of 1.5 CPU and 6 mb of memory and 0.5 disk and 1 GPU"


def test_slots_that_another_layout_adds_are_those_that_no_slot_of_the_job_is_like():
    graph = graph_of(StreamExecutionEnvironment(), HEAVY)
    source, heavy = graph.vertices[0], graph.vertices[1]
    assert (source.slot_sharing_group, heavy.slot_sharing_group) == ("default", "heavy")
    assert more_bundles(graph, graph, 1) == []
    wider = replace(graph, vertices=(replace(source, parallelism=4), replace(heavy, parallelism=1), graph.vertices[2]))
    assert more_bundles(graph, wider, 1) == [{"CPU": 1}, {"CPU": 1}]
    assert describe_bundles(more_bundles(graph, wider, 1)) == "2 slots of 1 CPU"
    assert more_bundles(wider, graph, 1) == [bundle_of(graph, Slot("heavy", 0), 1)] * 2


def test_a_ray_that_is_started_for_a_job_has_cpus_for_its_pools_too():
    env = StreamExecutionEnvironment()
    numbers = env.from_sequence(1, 9).map_batches(lambda rows: rows, "rows", concurrency=2)
    numbers.map_batches(lambda rows: rows, "rows", concurrency=ActorPool(3, num_cpus=0.5)).sink_to(CollectSink())
    assert cpus_of(env.get_job_graph(), 1) == 5, "one slot of one, two processes of one, three of a half, rounded up"


def test_a_group_is_named_once_it_is_registered_and_has_one_set_of_resources():
    env = StreamExecutionEnvironment()
    assert env.register_slot_sharing_group(HEAVY) is env
    assert graph_of(env, "heavy").slot_resources[0][0] == "heavy"
    env.register_slot_sharing_group(SlotSharingGroup.builder("heavy").build())
    other = SlotSharingGroup.builder("heavy").set_cpu_cores(1).set_task_heap_memory_mb(1).build()
    with pytest.raises(PlanError, match=r"(?s)'heavy' has .* already, found .*test_slot_sharing_group\.py"):
        env.register_slot_sharing_group(other)
    with pytest.raises(TypeError, match=r"found 'heavy'; use SlotSharingGroup\.builder"):
        env.register_slot_sharing_group("heavy")


def test_a_group_without_resources_is_only_a_name_and_a_local_job_runs_with_any():
    plain = SlotSharingGroup.builder("plain").build()
    assert plain.resources is None and graph_of(StreamExecutionEnvironment(), plain).slot_resources == ()
    env = StreamExecutionEnvironment({"execution.target": "local"})
    stream = env.from_collection([1, 2]).map(lambda n: n + 1).slot_sharing_group(HEAVY)
    assert list(stream.execute_and_collect()) == [2, 3]


def test_a_group_says_what_it_was_built_from():
    assert (HEAVY.get_name(), HEAVY.get_cpu_cores()) == ("heavy", 1.5)
    assert HEAVY.get_task_heap_memory() == MemorySize(3 << 20)
    assert HEAVY.get_task_off_heap_memory() == MemorySize.of_mebi_bytes(2)
    assert HEAVY.get_managed_memory() == MemorySize.of_mebi_bytes(1)
    assert HEAVY.get_external_resources() == {"gpu": 1.0, "disk": 0.5}
    plain = SlotSharingGroup.builder("heavy").build()
    assert plain != HEAVY and plain == SlotSharingGroup("heavy") and hash(plain) == hash(SlotSharingGroup("heavy"))
    assert plain.get_cpu_cores() is plain.get_task_heap_memory() is plain.get_managed_memory() is None
    assert "'heavy'" in repr(HEAVY)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda builder: builder.set_cpu_cores(0), "cpu cores of a slot must be above 0, found 0"),
        (lambda builder: builder.set_task_heap_memory_mb(0), "task heap memory of a slot must be above 0"),
        (lambda builder: builder.set_external_resource("gpu", -1), "'gpu' of a slot must be above 0, found -1"),
        (lambda builder: builder.set_cpu_cores(1).build(), "not both cpu cores and task heap memory"),
        (lambda builder: builder.set_managed_memory_mb(1).build(), "not both cpu cores and task heap memory"),
        (lambda builder: SlotSharingGroup.builder("").build(), "needs a name, found ''"),
    ],
)
def test_impossible_groups_are_refused(make, said):
    with pytest.raises(ValueError, match=said):
        make(SlotSharingGroup.builder("g"))


def test_sizes_of_memory_in_pyflinks_units():
    size = MemorySize.of_mebi_bytes(3 << 20)
    assert (size.get_bytes(), size.get_kibi_bytes(), size.get_mebi_bytes()) == (3 << 40, 3 << 30, 3 << 20)
    assert (size.get_gibi_bytes(), size.get_tebi_bytes()) == (3 << 10, 3)
    assert MemorySize(1) < MemorySize(2) <= MemorySize(2) and str(MemorySize.of_mebi_bytes(2)) == "2 mb"
