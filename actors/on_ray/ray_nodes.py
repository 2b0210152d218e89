"""Finds lost nodes sooner than Ray does, which waits for missed health checks of about 15 seconds.

A node is there while something accepts connections where its raylet listens. The kernel does that, however busy the
machine is; where the raylet is gone, it refuses, and where the machine is gone, there is no answer. So a task that is
only slow, or a process that the machine has no time for, is no lost node.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Collection

import ray

from .node_silence import MOST_FAILURES, NodeSilence

PROBE_EVERY_S = 0.5
ANSWER_WITHIN_S = 1.0


class NodeWatch:
    """A thread that looks after the nodes on which tasks run, but for its own, with which this process ends.

    Args:
        in_use: ids of these nodes.
        lost: called with the id of a node that is lost, and the evidence.
    """

    def __init__(self, in_use: Callable[[], Collection[str]], lost: Callable[[str, str], None]) -> None:
        self._in_use, self._lost = in_use, lost
        self._silence = NodeSilence()
        self._address: dict[str, tuple[str, int]] = {}
        self._own = ray.get_runtime_context().get_node_id()
        self._ended = threading.Event()
        threading.Thread(target=self._watch, name="nodes", daemon=True).start()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(PROBE_EVERY_S):
            nodes = frozenset(self._in_use()) - {"", self._own}
            self._silence.forget(nodes)
            for node in sorted(nodes):
                if self._silence.probed(node, self._reaches(node)):
                    host, port = self._address[node]
                    reason = (
                        f"its node {host} is lost: no process answered at port {port} {MOST_FAILURES} times in a row"
                    )
                    self._lost(node, reason)

    def _reaches(self, node: str) -> bool:
        if node not in self._address:
            for known in ray.nodes():  # type: ignore[no-untyped-call]
                self._address[known["NodeID"]] = (known["NodeManagerAddress"], known["NodeManagerPort"])
        address = self._address.get(node)
        if address is None:
            return True  # Ray will tell of it
        try:
            socket.create_connection(address, ANSWER_WITHIN_S).close()
        except OSError:
            return False
        return True


def elsewhere(lost: Collection[str]) -> dict[str, str]:
    """Return the label selector of a bundle that must not be placed on these nodes.

    >>> elsewhere({"b", "a"})
    {'ray.io/node-id': '!in(a,b)'}
    """
    return {"ray.io/node-id": f"!in({','.join(sorted(lost))})"}


__all__ = ["NodeWatch", "elsewhere"]
