"""The processes that coordinators of jobs with the same packages share, as a dispatcher finds and makes them."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import ray
from ray.exceptions import RayActorError

from rayflink.common.text_output.logs import get_logger

from ...job.submission import Stored
from ..ray_handles import RayActor
from .coordinator_host import host_class
from .hosted_coordinator import HostedCoordinator
from .job_places import JobPlace, JobPlaces

log = get_logger(__name__)
Packages: TypeAlias = "Sequence[str | bytes]"
Environment: TypeAlias = "Callable[[], Mapping[str, object]]"

MOST_JOBS = 64
"""Jobs of one process."""
EXPECT_WITHIN_S = 60.0
PREFIX = "coordinators"


class SharedHosts:
    """Finds a process for the coordinator of each job, and makes one where none has room.

    It takes only processes that it has made itself: another dispatcher may be of another version.

    Args:
        namespace: Ray namespace of the jobs.
    """

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._lock = threading.Lock()
        self._hosts: dict[str, dict[str, RayActor]] = {}

    def place(
        self, job_id: str, stored: Stored, packages: Packages, environment: Environment
    ) -> HostedCoordinator:
        """Return a coordinator, in which the job can start.

        Args:
            job_id: 32 hex digits.
            stored: where the job stores its checkpoints.
            packages: what its process must have; jobs with the same share one.
            environment: gives the runtime environment of a new process.

        Raises:
            ValueError: the job has a coordinator.
        """
        key = _digest(packages)
        with self._lock:  # jobs that come together share a new process
            name, host = self._with_room(key) or self._make(key, environment())
            places = JobPlaces.of_cluster(self._namespace)
            place = JobPlace(job_id, f"{job_id}/{os.urandom(8).hex()}", name, stored)
            if not places.claim(place):
                raise ValueError(f"job {job_id} has a coordinator")
        return HostedCoordinator(host, self._namespace, place.token)

    def _with_room(self, key: str) -> tuple[str, RayActor] | None:
        known = self._hosts.get(key, {})
        jobs = Counter(place.host for place in JobPlaces.of_cluster(self._namespace).all()) if known else Counter()
        for name, host in tuple(known.items()):
            if jobs[name] < MOST_JOBS:
                if _expects(host):
                    return name, host
                del known[name]
        return None

    def _make(self, key: str, runtime_env: Mapping[str, object]) -> tuple[str, RayActor]:
        name = f"{PREFIX}/{key}/{os.urandom(4).hex()}"
        blueprint = host_class().options(
            name=name, namespace=self._namespace, lifetime="detached", runtime_env=runtime_env
        )
        host = self._hosts.setdefault(key, {})[name] = blueprint.remote(name, self._namespace)
        return name, host


def _expects(host: RayActor) -> bool:
    """Return whether a process waits for another job, and has not ended."""
    try:
        ray.get(host.expect.remote(), timeout=EXPECT_WITHIN_S)
    except RayActorError as error:
        log.info("a process of coordinators has ended: %s", error)
        return False
    return True


def _digest(packages: Packages) -> str:
    parts = [part if isinstance(part, bytes) else part.encode() for part in packages]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).hexdigest()[:16]


__all__ = ["SharedHosts"]
