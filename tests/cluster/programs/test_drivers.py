"""What the end of a driver means for its job, and how others find the job."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.common.errors import JobCancelled, JobExecutionError
from rayflink.launch import attach, list_jobs
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

OWNER_MS = 3_000
"""The product's is longer; a test need not wait for it."""
ENDS_WITH_DRIVER = {"execution.shutdown-on-attached-exit": True}
PROGRAM = """
import json
import sys
from rayflink.actors.on_ray.driver import ray_cluster
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream.environment import StreamExecutionEnvironment
from tests.cluster.watching import eventually

ray_cluster.OWNER_TIMEOUT_MS = OWNER_MS
options = {"parallelism.default": 1, "pipeline.max-parallelism": 128, **json.loads(sys.argv[1])}
env = StreamExecutionEnvironment(options)
numbers = env.from_source(DataGeneratorSource(records_per_second=1_000), None, "Numbers")
numbers.add_sink(lambda value: None)
client = env.execute_async("endless")
assert eventually(lambda: client.status()["vertices"][0]["states"] == {"RUNNING": 1}, within_s=40), client.status()
said = []

def say(status):
    if not said:
        said.append(print(client.get_job_id(), flush=True))

if sys.argv[2] == "wait":
    client.get_job_execution_result(say).result()
else:
    say(None)
""".replace("OWNER_MS\n", f"{OWNER_MS}\n")


@contextmanager
def driver(then: str = "wait", options: dict[str, Any] | None = None, **environment: str) -> Iterator[tuple[Any, str]]:
    """A driver process whose job runs, and the job's id."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(options or {}), then]
    env = {key: value for key, value in {**os.environ, **environment}.items() if value}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env) as process:
        try:
            job_id = process.stdout.readline().strip()  # type: ignore[union-attr]
            assert job_id, process.communicate(timeout=60)[1]
            yield process, job_id
        finally:
            process.kill()


def laptop() -> dict[str, str]:
    """The environment of a driver that finds no cluster."""
    folder = os.environ["RAY_TMPDIR"] + "-laptop"  # Ray notes there which cluster was started last
    os.makedirs(folder, exist_ok=True)
    return {"RAY_ADDRESS": "", "RAY_AUTH_MODE": "", "RAY_TMPDIR": folder}


def is_gone(job_id: str) -> bool:
    of_job = {actor["Name"] for actor in watching.actors() if actor["Name"].startswith(job_id)}
    return of_job <= {f"{job_id}/coordinator"}


def end(job_id: str) -> None:
    """Cancel a job from outside, and see it end."""
    client = attach(job_id)
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert [job["state"] for job in list_jobs() if job["jid"] == job_id] == ["RUNNING"]
    client.cancel()
    with pytest.raises(JobCancelled):
        client.get_job_execution_result().result()
    os.kill(watching.pid_of(f"{job_id}/coordinator"), signal.SIGKILL)  # it would keep the result for a minute


def test_a_killed_driver_takes_its_job_with_it_where_that_is_configured():
    with driver(options=ENDS_WITH_DRIVER) as (process, job_id):
        process.kill()
        assert watching.eventually(lambda: is_gone(job_id), within_s=OWNER_MS / 1000 + 30)
        assert attach(job_id).get_job_status().result() is JobStatus.CANCELED
        os.kill(watching.pid_of(f"{job_id}/coordinator"), signal.SIGKILL)


def test_a_job_outlives_its_killed_driver_and_is_found_again():
    with driver() as (process, job_id):
        process.kill()
        process.wait()
        end(job_id)


@pytest.mark.soak
def test_a_job_outlives_a_driver_that_submits_and_leaves():
    with driver(then="leave") as (process, job_id):
        assert process.wait(timeout=60) == 0
        end(job_id)


@pytest.mark.parametrize("by", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM])
def test_a_signal_cancels_the_job_where_that_is_configured(by):
    with driver(options=ENDS_WITH_DRIVER) as (process, job_id):
        process.send_signal(by)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1 and "JobCancelled" in stderr
        assert watching.eventually(lambda: is_gone(job_id), within_s=30)


def test_a_signal_leaves_the_job_running_otherwise():
    with driver() as (process, job_id):
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
        assert process.returncode == 1 and "goes on without its driver, which was ended by SIGTERM" in stderr
        end(job_id)


def test_interrupting_a_program_on_a_laptop_ends_its_job_and_its_ray():
    with driver(**laptop()) as (process, _):
        started = psutil.Process(process.pid).children(recursive=True)
        assert len(started) > 3
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
        assert "JobCancelled" in stderr
        assert psutil.wait_procs(started, timeout=30)[1] == []


def test_the_loss_of_the_control_service_is_an_error_before_ray_ends_the_process():
    with driver(**laptop(), RAY_gcs_rpc_server_reconnect_timeout_s="8") as (process, _):
        started = psutil.Process(process.pid).children(recursive=True)
        actors = [child for child in started if child.name().startswith(("ray::Coordinato", "ray::SlotActor"))]
        (service,) = [child for child in started if child.name() == "gcs_server"]
        try:
            service.kill()
            _, stderr = process.communicate(timeout=60)
            assert "JobExecutionError" in stderr and "control service (GCS) at" in stderr and process.returncode == 1
            assert len(actors) == 2 and psutil.wait_procs(actors, timeout=30)[1] == []
        finally:
            for child in psutil.wait_procs(started, timeout=0)[1]:  # agents of Ray, which look for it a while
                child.kill()


def test_an_unknown_job_is_a_clear_error():
    with pytest.raises(JobExecutionError, match="is not on this cluster"):
        attach("0" * 32)
