"""Finds the coordinator of a job on a Ray cluster, in a process of its own or in one that it shares, and ends it."""

from __future__ import annotations

import time

import ray
from ray.exceptions import ActorUnavailableError, GetTimeoutError, RayError

from rayflink.common.text_output.logs import get_logger

from ..ray_handles import RayActor
from ..ray_remains import end_named, named
from .hosted_coordinator import HostedCoordinator
from .job_places import JobPlace, JobPlaces

log = get_logger(__name__)

COORDINATOR = "coordinator"
END_WITHIN_S = 45.0
ASK_AGAIN_S = 0.2


def find_coordinator(job_id: str, namespace: str) -> RayActor | None:
    """Return the coordinator of a job; None: there is none."""
    place = JobPlaces.of_cluster(namespace).find(job_id)
    if place is not None:
        return _hosted(place, namespace)
    return _actor(f"{job_id}/{COORDINATOR}", namespace)


def _hosted(place: JobPlace, namespace: str) -> HostedCoordinator | None:
    host = _actor(place.host, namespace)
    if host is None:  # it is lost for good
        JobPlaces.of_cluster(namespace).free(place.token)
        return None
    return HostedCoordinator(host, namespace, place.token)


def _actor(name: str, namespace: str) -> RayActor | None:
    try:
        return ray.get_actor(name, namespace=namespace)
    except ValueError:
        return None


def end_coordinator(coordinator: RayActor, with_process: bool = True) -> None:
    """End a coordinator for good, whose job is not over: its process, or its part of one that it shares.

    Args:
        coordinator: of the job.
        with_process: end a shared process in which it does not end, which comes back for its other jobs. False: of a
            start that takes too long; the coordinator keeps its place until it has begun, and ends then.
    """
    if not isinstance(coordinator, HostedCoordinator):
        ray.kill(coordinator, no_restart=True)
    elif not _has_ended(coordinator) and with_process:
        place = JobPlaces.of_cluster(coordinator.namespace).find(coordinator.token.partition("/")[0])
        shared = () if place is None else named(f"{place.host}/", coordinator.namespace)
        coordinator.free()
        ray.kill(coordinator.host, no_restart=False)
        end_named(shared, coordinator.namespace)  # those of its next life have other names


def _has_ended(coordinator: HostedCoordinator) -> bool:
    until = time.monotonic() + END_WITHIN_S
    while (left := until - time.monotonic()) > 0:
        try:
            return bool(ray.get(coordinator.host.end.remote(coordinator.token), timeout=left))
        except ActorUnavailableError:  # it comes back, with this job
            time.sleep(ASK_AGAIN_S)
        except GetTimeoutError:
            break
        except RayError as error:  # it is dead, or never began
            log.info("a process of coordinators is gone: %s", error)
            coordinator.free()
            return True
    return False


def job_names(namespace: str) -> list[str]:
    """Return the ids of all jobs that have a coordinator, in order."""
    named = ray.util.list_named_actors(all_namespaces=True)
    ending = f"/{COORDINATOR}"
    own = {a["name"][: -len(ending)] for a in named if a["namespace"] == namespace and a["name"].endswith(ending)}
    return sorted(own | {place.job_id for place in JobPlaces.of_cluster(namespace).all()})


__all__ = ["COORDINATOR", "end_coordinator", "find_coordinator", "job_names"]
