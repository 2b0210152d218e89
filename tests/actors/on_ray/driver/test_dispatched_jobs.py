"""A dispatcher reads jobs without asking their coordinators, or Ray where these are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.on_ray.driver import dispatched_jobs
from rayflink.actors.on_ray.driver.dispatched_jobs import DispatchedJobs
from rayflink.actors.on_ray.driver.ray_job_board import JobBoard
from tests.actors.on_ray.test_job_board import STATUS, Service

JOB = STATUS["jid"]
FAR_MS = 1 << 50
"""A time at which no entry is late yet."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A control service, the number of questions where a coordinator is, and the jobs of a dispatcher."""
    cluster = SimpleNamespace(service=Service(), looked=0, jobs=DispatchedJobs("rayflink"))

    def coordinator(job_id: str, namespace: str) -> Any:
        cluster.looked += 1
        return "the coordinator"

    context = SimpleNamespace(gcs_address="here")
    monkeypatch.setattr(dispatched_jobs.ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(JobBoard, "of_cluster", lambda namespace: JobBoard(cluster.service, namespace))
    monkeypatch.setattr(dispatched_jobs, "_coordinator", coordinator)
    return cluster


def test_a_job_that_was_found_once_is_read_from_what_it_publishes(cluster: SimpleNamespace) -> None:
    JobBoard(cluster.service, "rayflink").publish(STATUS, 0, FAR_MS, {"counts": {"completed": 3}})
    assert cluster.jobs.known(JOB) is None, "it is not known where it is"
    found = cluster.jobs.find(JOB)
    assert cluster.jobs.known(JOB) is found and cluster.looked == 1
    assert (found.status(), found.checkpoints()) == (STATUS, {"counts": {"completed": 3}})


def test_a_job_that_has_published_nothing_has_to_be_found(cluster: SimpleNamespace) -> None:
    cluster.jobs.find(JOB)
    assert cluster.jobs.known(JOB) is None


def test_the_entry_of_a_dead_coordinator_is_removed(cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    JobBoard(cluster.service, "rayflink").publish(STATUS, 0, 0)
    monkeypatch.setattr(dispatched_jobs, "_coordinator", lambda job_id, namespace: None)
    assert cluster.jobs.statuses() == [] and not cluster.service
