"""Subtasks to slots."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.messages.scheduling import Slot, required_slots, slot_of, slot_title, tenants
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.datastream import StreamExecutionEnvironment


def numbers(env: StreamExecutionEnvironment, name: str, parallelism: int):
    return env.from_source(NumberSequenceSource(0, 9), None, name).set_parallelism(parallelism)


def figure_3_2():
    """A and C are sources, E the sink; C and E run in two subtasks, the others in four."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.disable_operator_chaining()
    b = numbers(env, "A", 4).map(lambda n: n).name("B").set_parallelism(4)
    d = b.union(numbers(env, "C", 2)).map(lambda n: n).name("D").set_parallelism(4)
    d.sink_to(CollectSink()).name("E").set_parallelism(2)
    return env.get_job_graph()


@pytest.mark.spec("J09", "J10", "X44", "slots", "everywhere")
def test_the_slots_of_figure_3_2():
    graph = figure_3_2()
    assert required_slots(graph) == tuple(Slot("default", i) for i in range(4))
    tenants: dict[int, str] = {i: "" for i in range(4)}
    for vertex in graph.vertices:
        for subtask in range(vertex.parallelism):
            tenants[slot_of(vertex, subtask).index] += vertex.name.removeprefix("Source: ").removeprefix("Sink: ")[0]
    assert {slot: "".join(sorted(names)) for slot, names in tenants.items()} == {
        0: "ABCDE", 1: "ABCDE", 2: "ABD", 3: "ABD",
    }  # fmt: skip


@pytest.mark.spec("J11", "I23", "slots")
def test_each_slot_sharing_group_needs_its_own_slots():
    env = StreamExecutionEnvironment.get_execution_environment()
    apart = numbers(env, "A", 2).map(lambda n: n).set_parallelism(3).slot_sharing_group("heavy")
    apart.sink_to(CollectSink()).set_parallelism(1)
    graph = env.get_job_graph()
    assert required_slots(graph) == (
        Slot("default", 0), Slot("default", 1), Slot("heavy", 0), Slot("heavy", 1), Slot("heavy", 2),
    )  # fmt: skip
    found = tenants(graph)
    assert found[Slot("default", 1)] == 1
    assert found[Slot("heavy", 0)] == 2, "the map and the sink share it"
    assert found[Slot("heavy", 2)] == 1


def test_the_tenants_of_a_slot_share_it():
    found = tenants(figure_3_2())
    assert [found[Slot("default", i)] for i in range(4)] == [5, 5, 3, 3]


def test_the_title_of_a_slot_names_the_job_and_its_tasks_in_a_bounded_line():
    graph = figure_3_2()
    assert slot_title(graph, Slot("default", 2)) == f"{graph.name}: Source: A (3/4), B (3/4), D (3/4)"
    long = replace(graph, name="a\n" * 500, vertices=tuple(replace(v, name="v" * 300) for v in graph.vertices))
    title = slot_title(long, Slot("default", 0))
    assert len(title) < 310 and "\n" not in title
