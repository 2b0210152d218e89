"""A job that runs, and what it computes reaches nobody: it has no sink, or one that never shows what it wrote."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.source import Boundedness
from rayflink.common.options import registry as options
from rayflink.common.user_code.call_sites import warn_user

from .job_graph import JobGraph


def warn_without_sink(graph: JobGraph) -> None:
    """Warn of a job without any sink, naming its last steps: only what its functions do besides is seen of it."""
    operators = [operator for vertex in graph.vertices for operator in vertex.operators]
    if any(operator.kind.is_sink for operator in operators):
        return
    last = [
        f"{operator.name!r}" + (f" (created at {operator.call_site})" if operator.call_site else "")
        for operator in operators
        if not operator.chained_outputs and not operator.network_outputs
    ]
    remedy = "end the stream with print(), sink_to() or execute_and_collect()"
    warn_user(f"job {graph.name!r} has no sink: nobody gets the results of {' and '.join(last)}; {remedy}")


def warn_without_checkpoints(graph: JobGraph) -> None:
    """Warn of sinks that show records with checkpoints in a job without end that takes none."""
    config = Configuration.from_dict(graph.configuration)
    operators = [operator for vertex in graph.vertices for operator in vertex.operators]
    sources = [getattr(operator.factory, "source", None) for operator in operators]
    ends = all(source is None or source.boundedness is Boundedness.BOUNDED for source in sources)
    if ends or config.get(options.CHECKPOINT_INTERVAL) is not None:
        return
    for operator in operators:
        sink = getattr(operator.factory, "sink", None)
        if sink is not None and sink.shows_with_checkpoints:
            where = f" (created at {operator.call_site})" if operator.call_site else ""
            wait = f"what {operator.name!r}{where} writes is seen when a checkpoint is complete"
            remedy = f"set {options.CHECKPOINT_INTERVAL.key}"
            warn_user(f"job {graph.name!r} takes no checkpoints and has no end, and {wait}; {remedy}")


__all__ = ["warn_without_checkpoints", "warn_without_sink"]
