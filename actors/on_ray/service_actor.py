"""A service of a cluster as a detached Ray actor, which Ray makes anew where its process or node is lost."""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Mapping
from typing import Any, Protocol

import ray

from rayflink.common.text_output.logs import keep_logs

from .process_session import begin_session
from .ray_handles import RayActor


class Service(Protocol):
    """Runs until it is stopped.

    `shut_down` is set when a client has asked for its end.
    """

    url: str
    shut_down: threading.Event

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
        begin_session()
        module, _, function = place.partition(":")
        self._service: Service = getattr(importlib.import_module(module), function)(dict(configuration))
        self._service.start()
        threading.Thread(target=self._end_when_asked, name="shut down", daemon=True).start()

    def _end_when_asked(self) -> None:
        """End the service and this process, for good, once a client has asked for that."""
        self._service.shut_down.wait()
        self._service.stop()
        end_own_actor()

    def url(self) -> str:
        """Return the address on which the service listens."""
        return self._service.url

    def process(self) -> int:
        """Return the id of its process."""
        return os.getpid()

    def stop(self) -> None:
        """End the service; the caller ends the process."""
        self._service.stop()


def end_own_actor() -> None:
    """End this process, in whose place Ray makes no other."""
    ray.kill(ray.get_runtime_context().current_actor)


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
