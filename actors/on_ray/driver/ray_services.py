"""Services of a Ray cluster, as commands start, find and stop them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError

from rayflink.common.errors import ConfigError, JobExecutionError

from ..service_actor import find_service, start_service
from .ray_connection import join

START_S = 120.0
"""Time for the process of a service to start."""
STOP_S = 30.0


class RayService:
    """A service on the running Ray cluster.

    Args:
        name: of its actor.
        namespace: of Ray.
    """

    def __init__(self, name: str, namespace: str) -> None:
        self._name, self._namespace = name, namespace

    def join(self) -> None:
        """Join the cluster.

        Raises:
            ConfigError: there is none.
        """
        if not join(self._namespace):
            remedy = "run `ray start --head`, or set RAY_ADDRESS; or give --local"
            raise ConfigError("RAY_ADDRESS", "no cluster of Ray", "one that runs", remedy)

    def start(self, place: str, configuration: Mapping[str, Any]) -> str:
        """Start the service, and return the address on which it listens.

        Args:
            place: "module:function" that makes it from the options.
            configuration: option key -> value.

        Raises:
            ConfigError: there is no cluster.
            JobExecutionError: it does not start.
        """
        self.join()
        actor = start_service(self._name, self._namespace, place, configuration)
        try:
            return str(ray.get(actor.url.remote(), timeout=START_S))
        except (RayActorError, RayTaskError, GetTimeoutError) as error:
            ray.kill(actor)
            raise JobExecutionError(self._name, f"does not start: {error}", "see the logs of Ray's workers") from error

    def url(self) -> str | None:
        """Return the address on which the service listens; None: it does not run."""
        self.join()
        actor = find_service(self._name, self._namespace)
        return None if actor is None else str(ray.get(actor.url.remote(), timeout=START_S))

    def process(self) -> int:
        """Return the id of the service's process.

        Raises:
            JobExecutionError: it does not run.
        """
        actor = find_service(self._name, self._namespace)
        if actor is None:
            raise JobExecutionError(self._name, "does not run", "start it first")
        return int(ray.get(actor.process.remote(), timeout=START_S))

    def stop(self) -> bool:
        """Stop the service, for good; return whether there was one."""
        self.join()
        actor = find_service(self._name, self._namespace)
        if actor is None:
            return False
        try:
            ray.get(actor.stop.remote(), timeout=STOP_S)
        except (RayActorError, RayTaskError, GetTimeoutError):
            pass  # it has ended, or hangs: it is killed anyway
        ray.kill(actor, no_restart=True)
        return True


__all__ = ["RayService"]
