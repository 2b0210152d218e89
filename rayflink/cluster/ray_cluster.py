"""A session cluster whose jobs run on Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options

from .cluster_server import ClusterServer, registry_address
from .runners.ray_runner import RayRunner

__all__ = ["ray_cluster", "service"]


def ray_cluster(configuration: Configuration, registry: str) -> ClusterServer:
    """Return a cluster whose jobs run on Ray, which this process has joined.

    Args:
        configuration: addresses and bounds.
        registry: address of its registry, which every node reaches.
    """
    return ClusterServer(configuration, RayRunner(configuration.get(options.RAY_NAMESPACE)), registry)


def service(configuration: Mapping[str, Any]) -> ClusterServer:
    """Return the cluster as a service of the Ray cluster that this process belongs to.

    Args:
        configuration: option key -> value, with a place for the registry.
    """
    chosen = Configuration.from_dict(dict(configuration))
    return ray_cluster(chosen, str(registry_address(chosen)))
