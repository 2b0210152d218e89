"""deploy/compose.yaml and deploy/Dockerfile with Docker: jobs in containers, and what they outlive.

It needs a running Docker with Compose. RAYFLINK_IMAGE names an image that is there; without it the test builds one, for
the Python that runs the test. RAYFLINK_COMPOSE is the command of Compose, `docker compose` unless set.
"""

from __future__ import annotations

import json
import os
import secrets
import shlex
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.watching import eventually
from tests.deploy.cloud_files import ROOT
from tests.deploy.dockerfile import FILE

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]

COMPOSE = shlex.split(os.environ.get("RAYFLINK_COMPOSE", "docker compose"))
HOST, PORT = "127.0.0.1", 8081
UP_S, JOB_S = 300, 150
COUNT = 30_000
PROGRAM = f"""
import sys

from rayflink.common.serialization import Encoder
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import DataGeneratorSource
from rayflink.datastream.connectors.file_system import FileSink

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(500)
source = DataGeneratorSource(count={COUNT}, records_per_second=int(sys.argv[1]))
numbers = env.from_source(source, None, "Numbers").uid("numbers")
counted = numbers.map(lambda n: (n % 10, n, 1)).key_by(lambda each: each[0])
totals = counted.reduce(lambda one, other: (other[0], other[1], one[2] + other[2])).uid("totals")
lines = totals.map(lambda total: f"{{total[0]}} {{total[1]}} {{total[2]}}")
lines.sink_to(FileSink.for_row_format("/data/out", Encoder.simple_string_encoder()).build()).uid("lines")
env.execute("totals")
"""
ALONE = """
from rayflink.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1, 2, 3]).map(lambda number: number * 14).print()
env.execute("alone")
"""


def missing() -> str:
    """What is missing here: "" if containers can be run."""
    if os.geteuid() != 0:
        return "root, which may kill what runs in a container"
    if shutil.which("docker") is None or shutil.which(COMPOSE[0]) is None:
        return "Docker with Compose"
    running = subprocess.run(["docker", "info"], capture_output=True).returncode == 0
    composes = running and subprocess.run([*COMPOSE, "version"], capture_output=True).returncode == 0
    return "" if composes else "a running Docker with Compose"


@dataclass
class Project:
    """The containers of a project of Compose."""

    name: str
    variables: dict[str, str]

    def compose(self, *arguments: str, within_s: float = UP_S) -> str:
        """Run a command of Compose, and return what it prints."""
        command = [*COMPOSE, "-p", self.name, "-f", str(ROOT / "deploy" / "compose.yaml"), *arguments]
        ended = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=within_s)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def environment(self) -> dict[str, str]:
        """The variables of this process and those of deploy/.env."""
        return {**os.environ, **self.variables}

    def crash(self, service: str) -> None:
        """Kill the first process of a container from outside: Docker takes it for a crash, and starts it again."""
        container = self.compose("ps", "-q", service).strip()
        command = ["docker", "inspect", "--format", "{{.State.Pid}}", container]
        process = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run(["kill", "-KILL", process], check=True)

    def rayflink(self, *arguments: str) -> str:
        """Run a command of rayflink outside of the containers, for their dispatcher."""
        token = self.variables["REST_TOKEN"]
        options = f"execution.target=remote rest.address={HOST} rest.port={PORT} rest.token={token}"
        command = [sys.executable, "-m", "rayflink", *arguments]
        variables = {**os.environ, "RAYFLINK_OPTIONS": options}
        ended = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=JOB_S)
        assert ended.returncode == 0, f"{command}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def answer(self, path: str, token: str | None = None) -> Any:
        """What the dispatcher answers; the status of a refusal; None: nobody answers."""
        headers = {"Authorization": f"Bearer {self.variables['REST_TOKEN'] if token is None else token}"}
        request = urllib.request.Request(f"http://{HOST}:{PORT}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def states(self) -> dict[str, str] | None:
        """Job id -> state; None: the dispatcher does not answer."""
        answer = self.answer("/jobs/overview")
        return {job["jid"]: job["state"] for job in answer["jobs"]} if isinstance(answer, dict) else None

    def checkpoint(self, job: str) -> int:
        """The number of a job's newest checkpoint; 0: none."""
        checkpoints = self.answer(f"/jobs/{job}/checkpoints")
        newest = checkpoints["latest"]["completed"] if isinstance(checkpoints, dict) else None
        return int(newest["id"]) if newest else 0

    def goes_on(self, job: str) -> None:
        """Wait until a job runs and completes checkpoints after those of now."""
        before = self.checkpoint(job)

        def went_on() -> bool:
            states = self.states() or {}
            return states.get(job) == "RUNNING" and self.checkpoint(job) > before + 1

        assert eventually(went_on, UP_S), self.log()

    def log(self) -> str:
        """The last lines of all containers."""
        return self.compose("ps") + self.compose("logs", "--tail", "30")


@pytest.fixture(scope="module")
def image() -> str:
    """An image of this checkout."""
    if "RAYFLINK_IMAGE" in os.environ:
        return os.environ["RAYFLINK_IMAGE"]
    python = f"PYTHON={sys.version_info.major}.{sys.version_info.minor}"
    command = ["docker", "build", "-f", str(FILE), "-t", "rayflink-test", "--build-arg", python, str(ROOT)]
    subprocess.run(command, env={**os.environ, "DOCKER_BUILDKIT": "1"}, check=True)
    return "rayflink-test"


@pytest.fixture
def project(image: str) -> Iterator[Project]:
    """The cluster of deploy/compose.yaml with one worker; it and its volumes go with the test."""
    tokens = {name: secrets.token_hex(32) for name in ("RAY_AUTH_TOKEN", "REST_TOKEN", "REDIS_PASSWORD")}
    project = Project(f"rayflink-{secrets.token_hex(3)}", {**tokens, "RAYFLINK_IMAGE": image})
    try:
        project.compose("up", "-d")
        yield project
    finally:
        project.compose("down", "--volumes", "--timeout", "5")


@pytest.mark.skipif(missing() != "", reason=f"needs {missing()}")
@pytest.mark.spec("S07", "image")
@pytest.mark.timeout(JOB_S)
def test_a_container_of_an_application_starts_its_cluster_and_ends_with_its_job(image: str, tmp_path: Path) -> None:
    program = tmp_path / "alone.py"
    program.write_text(ALONE)
    build = f"FROM {image}\nCOPY alone.py /home/rayflink/alone.py\n"
    (tmp_path / "Dockerfile").write_text(build)
    application = f"rayflink-application-{secrets.token_hex(3)}"
    made = subprocess.run(["docker", "build", "-t", application, str(tmp_path)], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    try:
        command = ["docker", "run", "--rm", "--network=none", "--shm-size=1g", application]
        command += ["rayflink", "run", "alone.py"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=JOB_S - 20)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        assert sorted(ended.stdout.split()) == ["14", "28", "42"], ended.stdout
    finally:
        subprocess.run(["docker", "rmi", "--force", application], capture_output=True)


@pytest.mark.skipif(missing() != "", reason=f"needs {missing()}")
@pytest.mark.spec("S07", "workers")
@pytest.mark.timeout(1_200)
def test_a_job_from_outside_outlives_the_containers_of_its_cluster(project: Project, tmp_path: Path) -> None:
    assert eventually(lambda: project.states() == {}, UP_S), project.log()
    assert project.answer("/jobs/overview", token="wrong") == 401
    program = tmp_path / "totals.py"
    program.write_text(PROGRAM)
    project.rayflink("run", "-d", "--wait", "-p", "2", str(program), "50")
    [job] = project.states() or {}
    project.goes_on(job)

    project.compose("kill", "worker")  # with its slots and their disks
    project.compose("up", "-d")
    project.goes_on(job)
    for service in ("dispatcher", "head", "worker"):
        project.crash(service)
        project.goes_on(job)
    project.compose("down")  # volumes stay, with the registry of jobs and what Ray has in Redis
    project.compose("up", "-d")
    project.goes_on(job)

    project.rayflink("stop", job)  # into the folder for savepoints of deploy/compose.yaml
    [savepoint] = project.compose("exec", "-T", "head", "bash", "-c", "ls -d /data/savepoints/*").split()
    project.rayflink("run", "-d", "--wait", "-p", "1", "-s", savepoint, str(program), "5000")
    assert eventually(lambda: set((project.states() or {}).values()) == {"FINISHED"}, UP_S), project.log()
    read = "find /data/out -type f -name 'part-*' -not -name '.*' | xargs cat"
    lines = project.compose("exec", "-T", "head", "bash", "-c", read).splitlines()
    rows = [tuple(map(int, line.split())) for line in lines]
    assert sorted(number for _, number, _ in rows) == list(range(COUNT))
    assert sorted((key, count) for key, _, count in rows) == [
        (key, count) for key in range(10) for count in range(1, COUNT // 10 + 1)
    ]
