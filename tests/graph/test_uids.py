"""Operator ids stay with their operators."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.graph.errors import DuplicateUidError
from rayflink.graph.partitioners import Rebalance
from rayflink.graph.transformations import Partition, SideOutput, Transformation
from rayflink.graph.translation import PlanSettings, stream_graph
from rayflink.graph.uids import operator_ids, uid_to_operator_id

from .programs import key_by, sink, socket_window_count, source, step
from .random_graphs import Program, build, programs


def by_name(*ends: Transformation, settings: PlanSettings | None = None) -> dict[str, str]:
    graph = stream_graph(ends, settings)
    ids = operator_ids(graph)
    return {node.name: ids[node.id] for node in graph.nodes}


@pytest.mark.spec("I16", "same", "I15", "hashes")
def test_the_same_program_has_the_same_ids_of_32_hex_digits() -> None:
    ids = by_name(socket_window_count())
    assert ids == by_name(socket_window_count())
    assert len(set(ids.values())) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", identity) for identity in ids.values())


@pytest.mark.spec("I16", "changed")
def test_parallelism_partitioning_chaining_and_names_do_not_change_ids() -> None:
    def ids(**attributes: object) -> list[str]:
        mapped = step(source(), **attributes)
        return list(by_name(sink(mapped)).values())

    before = ids()
    assert ids(parallelism=7) == ids(name="Other") == ids(description="x") == before
    assert list(by_name(sink(step(Partition(source(), Rebalance())))).values()) == before
    assert list(by_name(sink(step(source())), settings=PlanSettings(chaining=False)).values()) == before


@pytest.mark.spec("I16", "same")
def test_the_ids_are_pinned_so_that_old_state_is_found() -> None:
    assert uid_to_operator_id("counts") == "66063ac889c0a036ea96034ade5a0b5f"
    assert by_name(sink(source())) == {
        "Source: Socket Stream": "da0c26658ef2ba6932a89b45b1f4681a",
        "Sink: Print to Std. Out": by_name(sink(source("Other")))["Sink: Print to Std. Out"],
    }


@pytest.mark.spec("I16", "changed", "legacy", "C33")
def test_a_uid_decides_the_id_wherever_the_operator_stands() -> None:
    near = by_name(step(source(), "Count", uid="count"))
    far = by_name(step(step(step(source())), "Count", uid="count"))
    assert near["Count"] == far["Count"] == uid_to_operator_id("count")


@pytest.mark.spec("H62", "I16", "changed")
def test_an_id_is_made_of_those_of_the_operators_before() -> None:
    def behind(uid: str) -> str:
        return by_name(step(step(source(), "Before", uid=uid), "Behind"))["Behind"]

    assert behind("one") == behind("one") != behind("two")


@pytest.mark.spec("C33", "I15", "legacy", "I16", "legacy")
def test_a_uid_hash_is_the_id() -> None:
    assert by_name(step(source(), "Count", uid="count", uid_hash="ab" * 16))["Count"] == "ab" * 16


@pytest.mark.parametrize("claim", [{"uid": "count"}, {"uid_hash": "ab" * 16}])
def test_a_uid_given_twice_is_refused_with_both_program_lines(claim: dict[str, str]) -> None:
    with pytest.raises(DuplicateUidError, match=r"'Map' \(created at job\.py:2.*Print.*job\.py:9.*another uid"):
        operator_ids(stream_graph([sink(step(source(), **claim), **claim)]))


def test_siblings_and_side_outputs_have_ids_of_their_own() -> None:
    main = step(source())
    ids = by_name(sink(main, "A"), sink(main, "B"), sink(SideOutput(main, "x"), "C"), sink(SideOutput(main, "y"), "D"))
    assert len(set(ids.values())) == len(ids) == 6


@pytest.mark.spec("I16", "changed")
@settings(max_examples=25)
@given(programs(), st.integers(0, 100))
def test_ids_hold_when_an_unrelated_branch_or_program_is_appended(program: Program, where: int) -> None:
    def ids(extended: bool) -> dict[str, str]:
        steps = build(program)
        ends: list[Transformation] = list(steps)
        if extended:
            ends.append(sink(key_by(step(steps[where % len(steps)], "New")), "New"))
            ends.append(sink(step(source("Apart"), "Apart"), "Apart"))
        graph = stream_graph(ends)
        by_node = operator_ids(graph)
        return {node.name: by_node[node.id] for node in graph.nodes}

    before, after = ids(False), ids(True)
    assert {name: after[name] for name in before} == before
    assert len(set(after.values())) == len(after)
