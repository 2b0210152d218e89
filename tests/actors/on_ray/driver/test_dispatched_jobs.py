"""A dispatcher reads jobs without asking their coordinators, or Ray where these are."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from ray.exceptions import RpcError, RuntimeEnvSetupError

from rayflink.actors.job.submission import Submission
from rayflink.actors.on_ray.driver import dispatched_jobs
from rayflink.actors.on_ray.driver.dispatched_jobs import Dispatched, DispatchedJob, DispatchedJobs
from rayflink.actors.on_ray.driver.ray_job_board import JobBoard
from rayflink.common.errors import ControlPlaneTimeout
from tests.actors.on_ray.test_job_board import STATUS, Service

JOB = STATUS["jid"]
FAR_MS = 1 << 50
"""A time at which no entry is late yet."""


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """A control service, the number of questions where a coordinator is, and the jobs of a dispatcher."""
    cluster = SimpleNamespace(service=Service(), looked=0, jobs=DispatchedJobs("rayflink"))

    def coordinator(job_id: str, namespace: str) -> Any:
        cluster.looked += 1
        return "the coordinator"

    context = SimpleNamespace(gcs_address="here")
    monkeypatch.setattr(ray, "get_runtime_context", lambda: context)
    monkeypatch.setattr(JobBoard, "of_cluster", lambda namespace: JobBoard(cluster.service, namespace))
    monkeypatch.setattr(dispatched_jobs, "find_coordinator", coordinator)
    yield cluster
    cluster.jobs.close()


def test_a_job_that_was_found_once_is_read_from_what_it_publishes(cluster: SimpleNamespace) -> None:
    JobBoard(cluster.service, "rayflink").publish(STATUS, 0, FAR_MS, {"counts": {"completed": 3}})
    assert cluster.jobs.known(JOB) is None, "it is not known where it is"
    found = cluster.jobs.find(JOB)
    assert cluster.jobs.known(JOB) is found and cluster.looked == 1
    assert (found.status(), found.checkpoints()) == (STATUS, {"counts": {"completed": 3}})


def test_nothing_asks_the_control_service_after_the_end_of_the_dispatcher(cluster: SimpleNamespace) -> None:
    """Ray ends a process that goes on calling a control service which is gone, with status 1 and without a word."""
    JobBoard(cluster.service, "rayflink").publish(STATUS, 0, FAR_MS)
    assert cluster.jobs.statuses() == [STATUS]
    assert [thread for thread in threading.enumerate() if thread.name == "statuses"]
    cluster.jobs.close()
    assert not [thread for thread in threading.enumerate() if thread.name == "statuses"]


def test_a_job_that_has_published_nothing_has_to_be_found(cluster: SimpleNamespace) -> None:
    cluster.jobs.find(JOB)
    assert cluster.jobs.known(JOB) is None


def test_the_entry_of_a_dead_coordinator_is_removed(cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    JobBoard(cluster.service, "rayflink").publish(STATUS, 0, 0)
    monkeypatch.setattr(dispatched_jobs, "find_coordinator", lambda job_id, namespace: None)
    assert cluster.jobs.statuses() == [] and not cluster.service


@pytest.mark.parametrize("lost_at", ["making the coordinator", "ending a coordinator that does not answer"])
def test_a_start_without_the_control_service_of_ray_is_no_refusal(
    cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, lost_at: str
) -> None:
    """A dispatcher tries such a start again; it would list a job whose start is refused as failed."""

    def lose(*_: object, **__: object) -> Any:
        raise RpcError("the control service is gone")

    def time_out(*_: object) -> None:
        raise ControlPlaneTimeout("start", "the coordinator", 1000)

    make = lose if lost_at.startswith("making") else lambda *_: "the coordinator"
    blueprint = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=make))
    monkeypatch.setattr(dispatched_jobs, "coordinator_class", lambda: blueprint)
    monkeypatch.setattr(dispatched_jobs, "_runtime_env", lambda job: {})
    monkeypatch.setattr(DispatchedJob, "begin", time_out)
    monkeypatch.setattr(dispatched_jobs, "end_coordinator", lose)
    with pytest.raises(ControlPlaneTimeout, match=r"the start of a job: no answer from the control service"):
        cluster.jobs.start(Dispatched(JOB, "words", Submission(b""), None))


def test_an_environment_that_cannot_be_set_up_is_a_refusal(
    cluster: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeEnvSetupError("pip failed")

    blueprint = SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: "the coordinator"))
    monkeypatch.setattr(dispatched_jobs, "coordinator_class", lambda: blueprint)
    monkeypatch.setattr(dispatched_jobs, "_runtime_env", lambda job: {})
    monkeypatch.setattr(DispatchedJob, "begin", fail)
    monkeypatch.setattr(dispatched_jobs, "end_coordinator", lambda coordinator, with_process: None)
    with pytest.raises(RuntimeEnvSetupError):  # no other try would go better
        cluster.jobs.start(Dispatched(JOB, "words", Submission(b""), None))
