"""Requests of commands to a dispatcher that was started here, or whose address they were given."""

from __future__ import annotations

from typing import Any

from rayflink.common.options.option_sources import given_options
from rayflink.launch.background_server import BackgroundServer
from rayflink.launch.cluster_address import ClusterAddress
from rayflink.launch.cluster_client import ANSWER_S, ClusterClient, ClusterRequest

__all__ = ["ask", "cluster_client"]


def cluster_client(server: BackgroundServer, answer_s: float = ANSWER_S) -> ClusterClient:
    """Return a client that asks a dispatcher once: a command repeats nothing, and says what went wrong.

    Args:
        server: the dispatcher.
        answer_s: seconds for an answer.

    Raises:
        ConfigError: a certificate cannot be read.
    """
    address = ClusterAddress.at(server.url, server.token, given_options())
    return ClusterClient(address, attempts=1, answer_s=answer_s)


def ask(server: BackgroundServer, method: str, path: str, answer_s: float = ANSWER_S) -> dict[str, Any]:
    """Return the answer of a dispatcher, over a connection of its own.

    Raises:
        ClusterUnreachable: it does not answer.
        RequestRefused: it refuses.
    """
    client = cluster_client(server, answer_s)
    try:
        return client.document(ClusterRequest(method, path))
    finally:
        client.close()
