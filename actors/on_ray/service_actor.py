"""A service of a cluster as a detached Ray actor, which Ray makes anew where its process or node is lost."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from typing import Any, Protocol

import ray

from rayflink.common.text_output.logs import keep_logs

from .ray_handles import RayActor


class Service(Protocol):
    """Runs until it is stopped."""

    url: str

    def start(self) -> None:
        """Begin, and return."""

    def stop(self) -> None:
        """End, and return."""


class ServiceActor:
    """Makes a service and runs it.

    Args:
        place: "module:function" that makes the service from the options.
        configuration: option key -> value.
    """

    def __init__(self, place: str, configuration: Mapping[str, Any]) -> None:
        keep_logs(sys.stderr, warn=False)
        module, _, function = place.partition(":")
        self._service: Service = getattr(importlib.import_module(module), function)(dict(configuration))
        self._service.start()

    def url(self) -> str:
        """Return the address on which the service listens."""
        return self._service.url

    def process(self) -> int:
        """Return the id of its process."""
        return os.getpid()

    def stop(self) -> None:
        """End the service; the caller ends the process."""
        self._service.stop()


def start_service(name: str, namespace: str, place: str, configuration: Mapping[str, Any]) -> RayActor:
    """Start a service, or return the one that runs already.

    Args:
        name: of the actor.
        namespace: of Ray.
        place: "module:function" that makes it from the options.
        configuration: option key -> value.
    """
    return ray.remote(ServiceActor).options(
        name=name, namespace=namespace, lifetime="detached", max_restarts=-1, max_task_retries=3, num_cpus=0,
        get_if_exists=True, max_concurrency=8,
    ).remote(place, dict(configuration))  # fmt: skip


def find_service(name: str, namespace: str) -> RayActor | None:
    """Return a service; None: there is none of this name."""
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:
        return None


__all__ = ["Service", "ServiceActor", "find_service", "start_service"]
