"""Whole jobs from a seed: the way in."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.graph.job_graph import JobGraph

from .faults import Fault
from .program import Program, graph_of
from .simulated_storage import SimulatedDisk
from .simulator.cluster import SimulatedCluster
from .story import Story


def simulate(
    program: JobGraph | Program, seed: int = 0, faults: Sequence[Fault] = (), disk: SimulatedDisk | None = None
) -> Story:
    """Run a job from a seed, with faults.

    >>> from rayflink.connectors.collection import CollectSink
    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> from rayflink.testing import DuplicateCalls, KillTask, simulate
    >>> env = StreamExecutionEnvironment()
    >>> counts = env.from_collection(["a", "b", "a"]).map(lambda word: (word, 1)).key_by(0).sum(1)
    >>> sink = counts.sink_to(CollectSink())
    >>> job = env.get_job_graph()
    >>> simulate(job, seed=7, faults=[DuplicateCalls()]).collected()
    [('a', 1), ('b', 1), ('a', 2)]
    >>> simulate(job, seed=7, faults=[KillTask("Map", move=10)]).status.value
    'FAILED'

    Args:
        program: a JobGraph, or an environment with a program written.
        seed: the same one gives the same story.
        faults: of `rayflink.testing.faults`.
        disk: where all checkpoint storages of the run are; one that another run left lets a job begin from its
            checkpoints and savepoints. None: one of its own, which is empty.
    Raises:
        TypeError: a fault is none.
        AssertionError: the run hangs, or breaks a rule of the runtime; shows the seed and the last moves.
    """
    for fault in faults:
        if not isinstance(fault, Fault):
            remedy = "give those of rayflink.testing, as KillTask('Map', move=10)"
            raise TypeError(f"found {fault!r} among the faults, wanted a Fault; {remedy}")
    graph = graph_of(program)
    cluster = SimulatedCluster(graph, seed, faults, disk)
    try:
        cluster.run()
    except AssertionError as error:
        if str(error).startswith("seed "):
            raise
        raise AssertionError(cluster.story.describe(f"AssertionError: {error}")) from error
    except Exception as error:
        raise AssertionError(cluster.story.describe(f"{type(error).__name__}: {error}")) from error
    return cluster.story


__all__ = ["SimulatedCluster", "simulate"]
