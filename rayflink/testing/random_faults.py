"""A plan of faults drawn from a seed: all that a job with checkpoints has to survive."""

from __future__ import annotations

import random
from contextlib import suppress

from rayflink.actors.job.rescaled_graph import rescaled_graph
from rayflink.common.configuration import reading
from rayflink.common.errors import PlanError
from rayflink.common.options import registry as options
from rayflink.graph.job_graph import JobGraph

from .faults import (
    UNRELIABLE_NETWORK,
    CrashBeforeNotify,
    DelayCommands,
    Fault,
    FreezeTask,
    FullStorage,
    KillCoordinator,
    KillSlot,
    KillTask,
    LoseCommand,
    Rescale,
    SlowStorage,
    SlowTask,
    TakeSavepoint,
    UnheardStorage,
)
from .program import Program, graph_of

_COMMANDS = ("", "TriggerCheckpoint", "CheckpointComplete", "CheckpointAborted", "AssignSplits", "CancelTask")
_FILES = ("", "_metadata", "/shared/")


def random_faults(seed: int, program: JobGraph | Program, moves: int = 1_000) -> tuple[Fault, ...]:
    """Return random faults for one run of a job; they act within its first `moves` moves.

    Tasks, slots and the coordinator are killed, tasks freeze, commands are lost, the storage is full or slow or its
    answers are lost, calls are delayed, repeated and reordered, and the parallelism changes while the job runs. The
    job has to restart without end, as with `restart-strategy.type: fixed-delay` and many attempts, and to take
    checkpoints in `execution.checkpointing.dir`, without which the coordinator and the parallelism are left alone.

    >>> from rayflink.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> _ = env.from_collection([1, 2]).print()
    >>> random_faults(7, env) == random_faults(7, env)
    True

    Args:
        seed: the same one gives the same faults.
        program: a JobGraph, or an environment with a program written.
        moves: about as many as the job makes without faults; `simulate(job, 0).happenings[-1].move` says it.
    """
    graph = graph_of(program)
    draw = random.Random(f"faults {seed}")
    config = reading(graph.configuration)
    silence = 2 * config.get(options.HEARTBEAT_TIMEOUT).to_millis()
    names = [
        f"{vertex.name} ({subtask + 1}/{vertex.parallelism})"
        for vertex in graph.vertices
        for subtask in range(vertex.parallelism)
    ]
    faults: list[Fault] = list(UNRELIABLE_NETWORK) if draw.random() < 0.5 else []
    faults += [KillTask(draw.choice(names), draw.randrange(moves)) for _ in range(draw.choice((0, 0, 1, 1, 2, 3)))]
    maybe: list[tuple[float, Fault]] = [
        (0.25, KillSlot(draw.randrange(4), draw.randrange(moves))),
        (0.1, FreezeTask(draw.choice(names), draw.randrange(moves), draw.choice((20, 200, silence)))),
        (0.2, LoseCommand(draw.randrange(6), draw.choice(_COMMANDS), obeyed=draw.random() < 0.5)),
        (0.2, DelayCommands(draw.random(), draw.choice((2, 20)))),
        (0.4, SlowStorage(draw.random(), draw.choice((2, 20, 200)))),
        (0.15, FullStorage(draw.randrange(10), draw.choice((1, 1, 5)), part=draw.choice(_FILES))),
        (0.15, UnheardStorage(draw.randrange(10), draw.choice((1, 1, 5)), part=draw.choice(_FILES))),
        (0.2, SlowTask(draw.choice(names), draw.choice((1, 5)))),
        (0.25, CrashBeforeNotify(draw.randrange(5), draw.choice(names))),
    ]
    if config.get(options.CHECKPOINT_DIRECTORY):
        maybe += [
            (0.5, KillCoordinator(min(draw.randrange(moves), draw.randrange(moves)), draw.choice((0, 100, 1_000)))),
            (0.15, CrashBeforeNotify(draw.randrange(5))),
            (0.1, TakeSavepoint("/savepoints", draw.randrange(moves))),
            (0.3, _rescale(graph, draw, draw.randrange(moves))),
            (0.1, _rescale(graph, draw, draw.randrange(moves))),
        ]
    return (*faults, *(fault for chance, fault in maybe if draw.random() < chance))


def _rescale(graph: JobGraph, draw: random.Random, move: int) -> Fault:
    """Return a change of one vertex and those joined with it; where none can change, nothing."""
    for vertex in draw.sample(graph.vertices, len(graph.vertices)):
        widths = [width for width in range(1, 5) if width != vertex.parallelism]
        wanted = {vertex.operators[-1].uid or vertex.id: draw.choice(widths)}
        with suppress(PlanError):
            rescaled_graph(graph, wanted)
            return Rescale(tuple(wanted.items()), move)
    return Fault()


__all__ = ["random_faults"]
