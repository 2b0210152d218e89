"""A job without a sink: it runs, and what it computes reaches nobody."""

from __future__ import annotations

from rayflink.common.call_sites import warn_user

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


__all__ = ["warn_without_sink"]
