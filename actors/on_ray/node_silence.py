"""Decides when a node counts as lost: several calls in a row were not accepted there. Pure."""

from __future__ import annotations

MOST_FAILURES = 3
"""The consecutive failures that count: a single one may be a slow moment of the network."""


class NodeSilence:
    """Counts how often in a row a node could not be reached.

    >>> silence = NodeSilence()
    >>> [silence.probed("n1", False) for _ in range(4)]
    [False, False, True, False]
    """

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}

    def probed(self, node: str, was_reached: bool) -> bool:
        """Count one more attempt to reach a node; return whether this one shows it lost, which is reported once."""
        if was_reached:
            self._failures.pop(node, None)
            return False
        self._failures[node] = self._failures.get(node, 0) + 1
        return self._failures[node] == MOST_FAILURES

    def forget(self, but: frozenset[str]) -> None:
        """Keep the counts of these nodes only."""
        for node in self._failures.keys() - but:
            del self._failures[node]


__all__ = ["MOST_FAILURES", "NodeSilence"]
