"""A coordinator probes the nodes of its tasks, but not its own: it would end with that."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from rayflink.actors.on_ray import ray_nodes
from rayflink.actors.on_ray.ray_nodes import NodeWatch


def test_only_other_nodes_are_probed(monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[str] = []
    twice = threading.Semaphore(0)

    def reaches(watch: NodeWatch, node: str) -> bool:
        probed.append(node)
        twice.release()
        return True

    monkeypatch.setattr(ray_nodes, "PROBE_EVERY_S", 0.001)
    monkeypatch.setattr(ray_nodes.ray, "get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: "own"))
    monkeypatch.setattr(NodeWatch, "_reaches", reaches)
    watch = NodeWatch(lambda: {"own", "other", ""}, lambda node, reason: None)
    assert twice.acquire(timeout=10) and twice.acquire(timeout=10)
    watch.end()
    assert set(probed) == {"other"}
