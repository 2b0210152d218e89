"""Checks of a job before it runs: sources without an end, sinks that overwrite each other, unread results."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rayflink.common.configuration import Configuration
from rayflink.common.connector_base.source import Boundedness
from rayflink.common.errors import PlanError
from rayflink.common.options import registry as options
from rayflink.common.user_code.call_sites import warn_user

from .job_graph import JobGraph
from .stream_graph import StreamNode
from .transformations import Transformation


def endless_source(steps: Iterable[Transformation], limits: Collection[int] = ()) -> Transformation | None:
    """Return an unbounded source upstream of the steps; None if all their sources are bounded.

    Args:
        steps: the transformations whose inputs are searched.
        limits: ids of transformations that end their input (such as LIMIT); nothing upstream of them is searched.
    """
    seen: set[int] = set()
    waiting = list(steps)
    while waiting:
        step = waiting.pop()
        if step.id in seen or step.id in limits:
            continue
        seen.add(step.id)
        source = getattr(getattr(step, "operator_factory", None), "source", None)
        if source is not None and source.boundedness is not Boundedness.BOUNDED:
            return step
        waiting.extend(step.inputs)
    return None


def ensure_distinct_destinations(nodes: Iterable[StreamNode]) -> None:
    """Check that no two sinks write to one destination, where one would replace the other's output.

    Raises:
        PlanError: two sinks have the same `writes_alone_to`.
    """
    claimed: dict[str, StreamNode] = {}
    for node in nodes:
        destination = getattr(getattr(node.operator_factory, "sink", None), "writes_alone_to", "")
        other = claimed.setdefault(destination, node)
        if destination and other is not node:
            problem = (
                f"{node.name!r} writes to {destination}, as does {other.label}: one would replace what the other wrote"
            )
            raise PlanError(problem, "give each a folder of its own", node.call_site)


def warn_without_sink(graph: JobGraph) -> None:
    """Warn of a job without any sink, naming its last steps: only the side effects of its functions are seen."""
    operators = [operator for vertex in graph.vertices for operator in vertex.operators]
    if any(operator.kind.is_sink for operator in operators):
        return
    last = [
        f"{operator.name!r}" + (f" (created at {operator.call_site})" if operator.call_site else "")
        for operator in operators
        if not operator.chained_outputs and not operator.network_outputs
    ]
    remedy = "end the stream with print(), sink_to() or execute_and_collect()"
    warn_user(f"job {graph.name!r} has no sink: nothing receives the results of {' and '.join(last)}; {remedy}")


def warn_without_checkpoints(graph: JobGraph) -> None:
    """Warn of sinks that publish records with checkpoints in an unbounded job that takes no checkpoints."""
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


__all__ = ["endless_source", "ensure_distinct_destinations", "warn_without_checkpoints", "warn_without_sink"]
