"""Simulated jobs that a savepoint stops, in real files, so that another job may begin from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rayflink.actors.commands import SavepointRequested
from rayflink.common.stop_mode import StopMode
from rayflink.graph.job_graph import JobGraph
from rayflink.state.storages import open_storage
from rayflink.testing.simulation import SimulatedCluster
from rayflink.testing.story import Story


def run(graph: JobGraph, seed: int) -> Story:
    """A run whose storages are those of the machine."""
    cluster = _cluster(graph, seed)
    cluster.run()
    return cluster.story


def stopped(graph: JobGraph, seed: int, at: int, stop: StopMode, folder: Path) -> tuple[Story, str]:
    """A run that is stopped with a savepoint at move `at`, and where that is; "": there is none."""
    cluster = _cluster(graph, seed)
    moves = 0

    def ask() -> None:
        nonlocal moves
        moves += 1
        if moves >= at:
            if "stop" not in cluster.answers:
                cluster.request_savepoint(SavepointRequested("stop", str(folder), stop))
            elif cluster.answers["stop"].failure and cluster.result is None:  # it came too early: ask again
                del cluster.answers["stop"]
                cluster._savepoints.clear()

    cluster.run(ask)
    return cluster.story, cluster.answers["stop"].location if "stop" in cluster.answers else ""


def _cluster(graph: JobGraph, seed: int) -> Any:
    cluster = SimulatedCluster(graph, seed)
    cluster.open_storage = open_storage
    return cluster
