"""Whether a program's input ends."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rayflink.common.connector_base.source import Boundedness

from .transformations import Transformation


def endless_source(steps: Iterable[Transformation], limits: Collection[int] = ()) -> Transformation | None:
    """A source without an end that the steps get records from; None: all end.

    Args:
        limits: ids of steps that end what they get records from.
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


__all__ = ["endless_source"]
