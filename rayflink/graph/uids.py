"""Operator ids: the same for the same operator in every version of a program, since state is found by them.

An operator with a uid has the hash of it, one with an identity that of its identity, and of its rank among those
that have the same. Any other has the hash of where it stands: its kind, the ids of its
producers and by which input and side output it hangs on them, and its rank among those that stand in the same place.
Names, parallelism, partitioners, chaining and whatever else the program contains do not take part, so renaming,
rescaling, or adding an operator after the others keeps every id.
Source: the idea is apache/flink's StreamGraphHasherV2, which numbers nodes in breadth-first order and hashes what is
chained; there, a new source or a broken chain changes the ids of operators that did not change.
"""

from __future__ import annotations

import hashlib
from heapq import heapify, heappop, heappush

from rayflink.common.ids import OperatorID

from .errors import DuplicateUidError, PlanError
from .stream_graph import StreamGraph, StreamNode


def uid_to_operator_id(uid: str) -> OperatorID:
    """Return the id of the operator that a program calls `uid`.

    >>> uid_to_operator_id("counts")
    OperatorID('66063ac889c0a036ea96034ade5a0b5f')
    """
    return digest("uid", uid)


def digest(*parts: str) -> OperatorID:
    """Return the BLAKE2b hash of the parts, 16 bytes; different sequences of parts never form the same hash input."""
    text = "".join(f"{len(part)}:{part}" for part in parts)
    return OperatorID.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest())


def operator_ids(graph: StreamGraph) -> dict[int, OperatorID]:
    """Return a mapping of node id to operator id, for the whole graph.

    Raises:
        DuplicateUidError: two operators have one uid, or one uid hash.
    """
    _refuse_duplicates(graph)
    ids: dict[int, OperatorID] = {}
    ranks: dict[tuple[str, ...], int] = {}
    for node in _inputs_first(graph):
        if node.uid_hash is not None:
            ids[node.id] = OperatorID(node.uid_hash)
        elif node.uid is not None:
            ids[node.id] = uid_to_operator_id(node.uid)
        else:
            place = _place(graph, node, ids)
            rank = ranks[place] = ranks.get(place, -1) + 1
            ids[node.id] = digest("place", str(rank), *place)
    return ids


def _place(graph: StreamGraph, node: StreamNode, ids: dict[int, OperatorID]) -> tuple[str, ...]:
    if node.identity is not None:
        return node.kind.value, "identity", node.identity
    place = [node.kind.value]
    for edge in graph.in_edges(node.id):
        tag = "" if edge.tag_id is None else f"tag {edge.tag_id}"
        place += [ids[edge.source], str(edge.input_index), tag, *edge.selected_names]
    return tuple(place)


def _inputs_first(graph: StreamGraph) -> list[StreamNode]:
    """Return nodes with every producer before its consumers; of those that could come next, the first created."""
    missing = {node.id: len(graph.in_edges(node.id)) for node in graph.nodes}
    ready = [node_id for node_id, count in missing.items() if count == 0]
    heapify(ready)
    ordered = []
    while ready:
        node_id = heappop(ready)
        ordered.append(graph.node(node_id))
        for edge in graph.out_edges(node_id):
            missing[edge.target] -= 1
            if missing[edge.target] == 0:
                heappush(ready, edge.target)
    assert len(ordered) == len(graph.nodes), "a stream graph has no cycle"
    return ordered


def refuse_missing_uids(graph: StreamGraph) -> None:
    """Refuse operators without a uid or a uid hash in programs that require one for every operator.

    Raises:
        PlanError: one has neither.
    """
    for node in graph.nodes:
        if node.uid is None and node.uid_hash is None:
            problem = f"{node.label} has no uid, and pipeline.auto-generate-uids is false"
            raise PlanError(problem, "call uid('...') on it, or enable_auto_generated_uids()", node.call_site)


def _refuse_duplicates(graph: StreamGraph) -> None:
    for what in ("uid", "uid_hash"):
        seen: dict[str, StreamNode] = {}
        for node in graph.nodes:
            value = getattr(node, what)
            if value is None:
                continue
            if value in seen:
                raise DuplicateUidError(what.replace("_", " "), value, seen[value].label, node.label)
            seen[value] = node
