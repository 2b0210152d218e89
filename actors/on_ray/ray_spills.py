"""Removes the files that tasks left on their nodes when their processes are dead or dying."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.common.errors import described

from ..task.task_folders import remove_folders

REMOVAL_S = 5.0
"""The longest time that the end of a job waits for all nodes."""


def alive_nodes() -> set[str]:
    """Return the ids of live nodes, as Ray knows them."""
    return {node["NodeID"] for node in ray.nodes() if node["Alive"]}  # type: ignore[no-untyped-call]


def remove_folders_on(nodes: Iterable[str], job_id: str, config: Mapping[str, Any], copies: bool) -> list[str]:
    """Remove the folders of a job on these nodes; return what may be left.

    Args:
        nodes: ids of nodes; of one that is gone, what it has is left.
        config: of the job.
        copies: also those of its checkpoints.
    """
    here, there = ray.get_runtime_context().get_node_id(), set(nodes)
    alive, deadline = alive_nodes(), time.monotonic() + REMOVAL_S
    remover = ray.remote(num_cpus=0, max_retries=0)(_remove_there)
    calls = {}
    for node in (there & alive) - {here}:
        affinity = NodeAffinitySchedulingStrategy(node, soft=False)
        placed = remover.options(scheduling_strategy=affinity)
        calls[node] = placed.remote(job_id, config, copies)
    left = [f"those of node {node}, which is lost" for node in there - alive]
    if here in there:
        left += _remove_there(job_id, config, copies)
    for node, call in calls.items():
        try:
            left_there: list[str] = ray.get(call, timeout=max(0, deadline - time.monotonic()))
            left += left_there
        except Exception as error:  # the job has ended all the same, and a node that is gone took its files with it
            left.append(f"those of node {node} ({described(error)})")
    return left


def _remove_there(job_id: str, config: Mapping[str, Any], copies: bool) -> list[str]:
    return remove_folders(job_id, config, copies=copies, within_s=REMOVAL_S / 2)
