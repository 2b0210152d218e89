"""What killed tasks have spilled is removed at the job's end, on the nodes on which they ran."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.common.errors import described
from rayflink.graph.partitioners import Forward

from .exchange.spilled import remove_spills
from .messages import TaskDeployment
from .snapshot_storage import copies_folder, local_copies
from .wiring import spill_folder

REMOVAL_S = 5.0
"""How long the end of a job waits at most for all nodes."""


def may_spill(deployment: TaskDeployment) -> bool:
    """Whether a task may leave files behind when it is killed: of blocking partitions, sorts and keyed state."""
    keyed = any(selector is not None for node in deployment.operators for selector in node.key_selectors)
    return keyed or any(output.blocking for output in deployment.outputs)


def leaves_copies(deployment: TaskDeployment) -> bool:
    """Whether a task leaves copies of its checkpoints on its node, however it ends."""
    return local_copies(deployment) is not None


def remove_spills_of(spilling: Mapping[str, Sequence[TaskDeployment]]) -> list[str]:
    """Remove the spill folders of attempts whose processes are dead or dying; what may be left.

    Args:
        spilling: node id -> the attempts that ran there, bare.
    """
    here, deadline = ray.get_runtime_context().get_node_id(), time.monotonic() + REMOVAL_S
    remover = ray.remote(num_cpus=0, max_retries=0)(_remove_here)
    calls = {}
    for node, deployments in spilling.items():
        if node != here and deployments:
            affinity = NodeAffinitySchedulingStrategy(node, soft=False)
            calls[node] = remover.options(scheduling_strategy=affinity).remote(list(deployments))
    left = _remove_here(spilling.get(here, ()))
    for node, call in calls.items():
        try:
            there: list[str] = ray.get(call, timeout=max(0, deadline - time.monotonic()))
            left += there
        except Exception as error:  # the job has ended all the same, and a node that is gone took its files with it
            left.append(f"those of node {node} ({described(error)})")
    return left


def _remove_here(deployments: Sequence[TaskDeployment]) -> list[str]:
    folders = {*map(spill_folder, deployments), *map(copies_folder, deployments)}
    return [str(folder) for folder in folders if not remove_spills(folder, REMOVAL_S / 2)]


def bare(deployment: TaskDeployment) -> TaskDeployment:
    """What tells where it spills, without anything of the program."""
    outputs = tuple(replace(output, partitioner=Forward()) for output in deployment.outputs)
    return replace(deployment, operators=(), inputs=(), outputs=outputs, restore={})
