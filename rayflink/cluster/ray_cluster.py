"""A session cluster whose jobs run on Ray."""

from __future__ import annotations

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from .cluster_server import ClusterServer
from .runners.ray_runner import RayRunner

__all__ = ["ray_cluster"]


def ray_cluster(configuration: Configuration, registry: str) -> ClusterServer:
    """Return a cluster whose jobs run on Ray, which this process has joined.

    Args:
        configuration: addresses and bounds.
        registry: address of its registry, which every node reaches.
    """
    return ClusterServer(configuration, RayRunner(configuration.get(options.RAY_NAMESPACE)), registry)
