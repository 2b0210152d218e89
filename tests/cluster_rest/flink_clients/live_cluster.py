"""A local cluster with live jobs, on which Flink's own clients are let loose."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.runs.environments import Environment, Unavailable, cache_directory
from rayflink.cluster.cluster_server import ClusterServer, local_cluster
from rayflink.cluster.jobs.cluster_process import ClusterProcesses
from rayflink.common.configuration import Configuration
from rayflink.common.options import registry as options
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster.watching import eventually
from tests.cluster_rest.flink_cluster import VERSION
from tests.cluster_rest.jobs_of_tests import job_graph

LIMIT_S = 60
_PYPI = Environment("flink", (f"apache-flink-libraries=={VERSION}",), dependencies=False)


@dataclass(frozen=True)
class LiveCluster:
    """A cluster.

    Args:
        server: of the cluster.
        folder: for checkpoints and savepoints.
    """

    server: ClusterServer
    folder: Path

    @property
    def processes(self) -> ClusterProcesses:
        """Return the processes that run its tasks."""
        return self.server.processes

    def get(self, path: str) -> Any:
        """Return the JSON at a path."""
        with urllib.request.urlopen(self.server.url + path, timeout=LIMIT_S) as answer:
            return json.load(answer)

    def names(self) -> dict[str, str]:
        """Return ids for parameters of paths."""
        (process,) = self.processes.list()
        return {"taskmanagerid": process.process_id, "filename": "taskmanager.log", "subtaskindex": "0"}

    @property
    def address(self) -> str:
        """Return host:port of its interface."""
        return self.server.url.partition("//")[2]

    def submit(self, kind: str) -> str:
        """Start one of the jobs of the tests, and return its id."""
        graph = job_graph(kind, str(self.folder / "checkpoints") if kind == "running" else "")
        return self.server.dispatcher.submit(RemoteSubmission.of(graph, (), None).encode(), "a test")

    def state(self, job_id: str) -> str:
        """Return the state of a job."""
        return str(self.server.dispatcher.view(job_id).status()["state"])

    def wait_for(self, job_id: str, state: str) -> None:
        """Wait until a job is in a state.

        Raises:
            AssertionError: it is not in time.
        """
        if not eventually(lambda: self.state(job_id) == state, LIMIT_S):
            raise AssertionError(f"job {job_id} is {self.state(job_id)}, not {state}")


@contextmanager
def live_cluster(folder: Path) -> Iterator[LiveCluster]:
    """Run a cluster without jobs."""
    cluster = LiveCluster(local_cluster(Configuration().set(options.REST_PORT, 0)), folder)
    cluster.server.start()
    try:
        yield cluster
    finally:
        cluster.server.stop()


def flink_libraries() -> Path:
    """Return the folder with Flink's jars, which the first call on a machine downloads.

    Raises:
        Unavailable: it cannot be had.
    """
    return _PYPI.site_packages(cache_directory()) / "pyflink" / "lib"


def flink_commands() -> Sequence[str]:
    """Return the command that runs those of Flink's command line; the folder of its configuration follows.

    Raises:
        Unavailable: there is no JDK, or the jars cannot be had.
    """
    java = shutil.which("java")
    if java is None or shutil.which("javac") is None:
        raise Unavailable("no java and javac on PATH: install a JDK 17 (openjdk-17-jdk-headless)")
    source = Path(__file__).with_name("FlinkCommands.java")
    jvm = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-Dlog4j2.level=OFF", "-cp", f"{flink_libraries()}/*"]
    return [java, *jvm, str(source)]
