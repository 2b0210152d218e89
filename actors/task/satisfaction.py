"""Finds the operators of a task that use no further record, as a LIMIT that has emitted all its rows."""

from __future__ import annotations

from collections.abc import Iterator

from rayflink.operators.chain import OperatorChain

from ..messages.messages import OperatorsSatisfied, TaskDeployment
from .polled_source import PolledSource


class Satisfaction:
    """Reports satisfied operators; the task's own source ends where it gives records to them alone."""

    def __init__(self, deployment: TaskDeployment, chain: OperatorChain, source: PolledSource | None) -> None:
        self._deployment, self._chain, self._source = deployment, chain, source

    def news(self) -> Iterator[OperatorsSatisfied]:
        """Return a report of those that are satisfied since the last call, if any."""
        indices = self._chain.newly_satisfied()
        if indices:
            operators = self._deployment.operators
            yield OperatorsSatisfied(self._deployment.attempt, tuple(operators[index].operator_id for index in indices))
            if self._source is not None and self._chain.is_satisfied():
                self._source.stop()


__all__ = ["Satisfaction"]
