"""Checks that fail a new job before it has slots, so that the driver gets the error at once."""

from __future__ import annotations

from collections.abc import Sequence

from rayflink.common.configuration import Configuration
from rayflink.common.errors import PlanError, described
from rayflink.common.options import registry as options
from rayflink.graph.job_graph import JobGraph

from ..checkpoints.completed import CompletedCheckpoint
from .adopted_key_groups import with_key_groups_of
from .job_checkpoints import JobStart
from .restoring import Restoring


def ensure_can_start(graph: JobGraph, named: Sequence[CompletedCheckpoint]) -> None:
    """Check the start of a job: the checkpoint it names, or else the inputs of its sources.

    Args:
        named: the checkpoint or savepoint of `execution.state-recovery.path`; () for none.

    Raises:
        RestoreError: state in it has no place in the job.
        PlanError: a source cannot be read where the coordinator is, as a folder is missing there.
    """
    if named:
        start = JobStart(completed=tuple(named))
        left_behind = Configuration.from_dict(graph.configuration).get(options.IGNORE_UNCLAIMED_STATE)
        Restoring(named[-1].manifest, named[-1].base, with_key_groups_of(start, graph), left_behind)
        return
    for operator in (operator for vertex in graph.vertices for operator in vertex.operators):
        source = getattr(operator.factory, "source", None)
        if source is not None and hasattr(source, "check"):
            try:
                source.configured(graph.configuration).check()
            except Exception as error:  # whatever a source of the program raises
                problem = f"source {operator.name!r} cannot be read: {described(error)}"
                raise PlanError(problem, "then submit the job again", operator.call_site) from error


__all__ = ["ensure_can_start"]
