"""Two sinks of a job that write to one place, where one would replace what the other wrote."""

from __future__ import annotations

from collections.abc import Iterable

from rayflink.common.errors import PlanError

from .stream_graph import StreamNode


def ensure_apart(nodes: Iterable[StreamNode]) -> None:
    """Check that no two sinks claim one place.

    Raises:
        PlanError: two do.
    """
    claimed: dict[str, StreamNode] = {}
    for node in nodes:
        place = getattr(getattr(node.operator_factory, "sink", None), "writes_alone_to", "")
        other = claimed.setdefault(place, node)
        if place and other is not node:
            found = f"{node.name!r} writes to {place}, as does {other.label}: one would replace what the other wrote"
            raise PlanError(found, "give each a folder of its own", node.call_site)


__all__ = ["ensure_apart"]
