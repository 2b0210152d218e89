"""The conditions on which an edge fuses two operators into one task: nine conditions, as data.

Source: apache/flink StreamingJobGraphGenerator.isChainable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .attributes import ChainingStrategy, ExchangeMode
from .partitioners import Forward
from .stream_graph import StreamEdge, StreamGraph, StreamNode


@dataclass(frozen=True)
class ChainVerdict:
    """One condition on one edge.

    Args:
        condition: what must hold.
        reason: why it does not hold, "" where it does.
    """

    condition: str
    reason: str = ""

    @property
    def met(self) -> bool:
        """Return whether the condition holds."""
        return not self.reason


@dataclass(frozen=True)
class _Case:
    graph: StreamGraph
    edge: StreamEdge
    up: StreamNode
    down: StreamNode


def _single_input(case: _Case) -> str:
    count = len(case.graph.in_edges(case.down.id))
    return "" if count == 1 else f"{case.down.name} has {count} inputs"


def _downstream_operator(case: _Case) -> str:
    return "" if case.down.operator_factory is not None else f"{case.down.name} has no operator of its own"


def _upstream_operator(case: _Case) -> str:
    return "" if case.up.operator_factory is not None else f"{case.up.name} has no operator of its own"


def _slot_sharing(case: _Case) -> str:
    up, down = case.up.slot_sharing_group, case.down.slot_sharing_group
    return "" if up == down else f"slot sharing groups differ: {up} and {down}"


def _downstream_strategy(case: _Case) -> str:
    strategy = case.down.chaining_strategy
    if strategy is ChainingStrategy.ALWAYS:
        return ""
    if strategy is ChainingStrategy.HEAD_WITH_SOURCES:
        return "" if case.up.kind.is_source else f"{case.down.name} chains to sources only (HEAD_WITH_SOURCES)"
    return f"{case.down.name} does not chain to its input ({strategy.value})"


def _upstream_strategy(case: _Case) -> str:
    never = case.up.chaining_strategy is ChainingStrategy.NEVER
    return f"{case.up.name} does not chain to its consumers (NEVER)" if never else ""


def _forward(case: _Case) -> str:
    if not isinstance(case.edge.partitioner, Forward):
        return f"the edge is {case.edge.partitioner}, not FORWARD"
    return "the exchange is BATCH" if case.edge.exchange_mode is ExchangeMode.BATCH else ""


def _parallelism(case: _Case) -> str:
    up, down = case.up.parallelism, case.down.parallelism
    return "" if up == down else f"parallelism differs: {up} and {down}"


def _enabled(case: _Case) -> str:
    return "" if case.graph.chaining else "chaining is disabled for the job"


_CONDITIONS: tuple[tuple[str, Callable[[_Case], str]], ...] = (
    ("the consumer has one input", _single_input),
    ("the consumer has an operator", _downstream_operator),
    ("the producer has an operator", _upstream_operator),
    ("both are in one slot sharing group", _slot_sharing),
    ("the consumer's strategy allows it", _downstream_strategy),
    ("the producer's strategy allows it", _upstream_strategy),
    ("the edge is FORWARD", _forward),
    ("both have one parallelism", _parallelism),
    ("chaining is enabled", _enabled),
)


def chain_conditions(graph: StreamGraph, edge: StreamEdge) -> tuple[ChainVerdict, ...]:
    """Return all nine conditions on an edge, in Flink's order, each with its verdict."""
    case = _Case(graph, edge, graph.node(edge.source), graph.node(edge.target))
    return tuple(ChainVerdict(condition, test(case)) for condition, test in _CONDITIONS)


def why_not_chained(graph: StreamGraph, edge: StreamEdge) -> str | None:
    """Return the reason of the first condition that fails; None when the edge chains."""
    return next((verdict.reason for verdict in chain_conditions(graph, edge) if not verdict.met), None)
