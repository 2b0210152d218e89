"""The nine conditions, one broken at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rayflink.graph.attributes import ChainingStrategy, ExchangeMode
from rayflink.graph.chaining import chain_conditions, why_not_chained
from rayflink.graph.partitioners import Forward, Rebalance
from rayflink.graph.stream_graph import StreamGraph
from rayflink.graph.transformations import Partition, Union
from rayflink.graph.translation import PlanSettings, stream_graph

from .programs import source, step

NEVER, HEAD = ChainingStrategy.NEVER, ChainingStrategy.HEAD
WITH_SOURCES = ChainingStrategy.HEAD_WITH_SOURCES


def two_steps(up: dict[str, object], down: dict[str, object]) -> StreamGraph:
    up_step = step(source(chaining_strategy=NEVER), "Up", **up)
    down_step = step(up_step, "Down")
    for name, value in down.items():
        setattr(down_step, name, value)
    return stream_graph([down_step])


def no_upstream_operator() -> StreamGraph:
    up = step(source(), "Up")
    up.operator_factory = None
    return stream_graph([step(up, "Down")])


def two_inputs() -> StreamGraph:
    up = step(source(), "Up")
    return stream_graph([step(Union((up, source("Other"))), "Down")])


BROKEN: list[tuple[int, Callable[[], StreamGraph], str]] = [
    (0, two_inputs, "Down has 2 inputs"),
    (1, lambda: two_steps({}, {"operator_factory": None}), "Down has no operator of its own"),
    (2, no_upstream_operator, "Up has no operator of its own"),
    (3, lambda: two_steps({}, {"slot_sharing_group": "g"}), "slot sharing groups differ: default and g"),
    (4, lambda: two_steps({}, {"chaining_strategy": NEVER}), "Down does not chain to its input (NEVER)"),
    (4, lambda: two_steps({}, {"chaining_strategy": HEAD}), "Down does not chain to its input (HEAD)"),
    (4, lambda: two_steps({}, {"chaining_strategy": WITH_SOURCES}), "Down chains to sources only (HEAD_WITH_SOURCES)"),
    (5, lambda: two_steps({"chaining_strategy": NEVER}, {}), "Up does not chain to its consumers (NEVER)"),
    (6, lambda: stream_graph([step(Partition(step(source(), "Up"), Rebalance()), "Down")]),
     "the edge is REBALANCE, not FORWARD"),
    (6, lambda: stream_graph([step(Partition(step(source(), "Up"), Forward(), ExchangeMode.BATCH), "Down")]),
     "the exchange is BATCH"),
    (8, lambda: stream_graph([step(step(source(), "Up"), "Down")], PlanSettings(chaining=False)),
     "chaining is disabled for the job"),
]  # fmt: skip


@pytest.mark.spec("I20", "I21", "X40", "J11")
@pytest.mark.parametrize(("position", "program", "reason"), BROKEN, ids=[reason for _, _, reason in BROKEN])
def test_one_broken_condition_keeps_an_edge_unchained(
    position: int, program: Callable[[], StreamGraph], reason: str
) -> None:
    graph = program()
    names = {node.id: node.name for node in graph.nodes}
    edge = next(e for e in graph.edges if (names[e.source], names[e.target]) == ("Up", "Down"))
    verdicts = chain_conditions(graph, edge)
    assert len(verdicts) == 9
    assert [index for index, verdict in enumerate(verdicts) if not verdict.met] == [position]
    assert why_not_chained(graph, edge) == reason


@pytest.mark.spec("I20", "X40")
def test_different_parallelism_is_named_beside_the_partitioner_it_brings() -> None:
    graph = stream_graph([step(step(source(), "Up", parallelism=1), "Down", parallelism=2)])
    broken = [verdict.reason for verdict in chain_conditions(graph, graph.edges[1]) if not verdict.met]
    assert broken == ["the edge is REBALANCE, not FORWARD", "parallelism differs: 1 and 2"]


@pytest.mark.spec("I20", "X40", "X39")
def test_an_edge_that_meets_all_nine_chains() -> None:
    graph = stream_graph([step(step(source()))])
    assert [why_not_chained(graph, edge) for edge in graph.edges] == [None, None]


@pytest.mark.spec("I21")
@pytest.mark.parametrize("strategy", [ChainingStrategy.ALWAYS, WITH_SOURCES])
def test_a_source_which_is_a_head_chains_to_its_consumer(strategy: ChainingStrategy) -> None:
    graph = stream_graph([step(source(), chaining_strategy=strategy)])
    assert graph.node(1).chaining_strategy is HEAD
    assert why_not_chained(graph, graph.edges[0]) is None
