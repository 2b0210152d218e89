"""The execution plan in Flink's JSON form, which its plan visualizer reads."""

from __future__ import annotations

import json
from typing import Any

from .stream_graph import StreamGraph, StreamNode


def plan_json(graph: StreamGraph) -> str:
    """Return `{"nodes": [...]}`: operators by id, sinks last, each with its predecessors and how they ship to it.

    Source: apache/flink JSONGenerator, which writes side "second" for every predecessor; so does this.
    """
    nodes = sorted(graph.nodes, key=lambda node: (node.kind.is_sink, node.id))
    return json.dumps({"nodes": [_node(graph, node) for node in nodes]}, indent=2, ensure_ascii=False)


def _node(graph: StreamGraph, node: StreamNode) -> dict[str, Any]:
    pact = "Data Source" if node.kind.is_source else "Data Sink" if node.kind.is_sink else "Operator"
    shown: dict[str, Any] = {
        "id": node.id,
        "type": node.name,
        "pact": pact,
        "contents": node.description or node.name,
        "parallelism": node.parallelism,
    }
    if not node.kind.is_source:
        shown["predecessors"] = [
            {"id": edge.source, "ship_strategy": str(edge.partitioner), "side": "second"}
            for edge in graph.in_edges(node.id)
        ]
    return shown
