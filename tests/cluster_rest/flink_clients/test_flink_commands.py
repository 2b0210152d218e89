"""Flink's own command line asks our cluster; it needs a JDK, and skips without one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from benchmarks.runs.environments import Unavailable
from benchmarks.servers.bound_process import start_bound
from tests.cluster_rest.flink_clients.live_cluster import LiveCluster, flink_commands, live_cluster

LIMIT_S = 200


class Commands:
    """Flink's command line in one process, which takes one command after the other.

    Args:
        cluster: that it asks.
        command: of the process.
        headers: of its requests, as FLINK_REST_CLIENT_HEADERS has them.
    """

    def __init__(self, cluster: LiveCluster, command: list[str], headers: str) -> None:
        self._address, folder = cluster.address, str(cluster.folder)
        (cluster.folder / "config.yaml").touch()
        environment = {**os.environ, "FLINK_CONF_DIR": folder, "FLINK_REST_CLIENT_HEADERS": headers}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = start_bound([*command, folder], env=environment, **pipes)

    def run(self, action: str, *arguments: str) -> tuple[int, str]:
        """Return the exit code of a command, and what it prints."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{action} -m {self._address} {' '.join(arguments)}\n".encode())
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            text = line.decode()
            if (ended := re.fullmatch(r"exit (\d+)\n", text)) is not None:
                return int(ended[1]), "".join(lines)
            lines.append(text)
        raise AssertionError(f"the process has ended: {''.join(lines)}")


@contextmanager
def commands(cluster: LiveCluster, headers: str = "") -> Iterator[Commands]:
    try:
        command = [*flink_commands()]
    except Unavailable as error:
        pytest.skip(str(error))
    running = Commands(cluster, command, headers)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()


def saved(answer: tuple[int, str]) -> Path:
    """Return the metadata of the savepoint that a command has taken."""
    path = re.search(r"Savepoint completed. Path: (\S+)", answer[1])
    assert answer[0] == 0 and path is not None, answer[1]
    return Path(path[1], "_metadata")


@pytest.mark.soak  # processes of Java
@pytest.mark.timeout(LIMIT_S)
def test_flinks_commands_work_on_a_cluster_of_ours(tmp_path: Path) -> None:
    with live_cluster(tmp_path) as cluster:
        first, second, failed = (cluster.submit(kind) for kind in ("running", "running", "failed"))
        for job_id, state in ((first, "RUNNING"), (second, "RUNNING"), (failed, "FAILED")):
            cluster.wait_for(job_id, state)
        with commands(cluster, f"Authorization:Bearer {cluster.server.token}") as flink:
            listing = flink.run("list", "-a")[1]
            assert f"{first} : running job (RUNNING)" in listing and f"{failed} : failed job (FAILED)" in listing
            savepoint = saved(flink.run("savepoint", first, str(tmp_path / "savepoints")))
            assert savepoint.exists()
            assert re.search(r"Checkpoint \d+ for job \w+ completed", flink.run("checkpoint", first)[1])
            code, output = flink.run("savepoint", failed, str(tmp_path / "savepoints"))
            assert code == 1 and f"job {failed} has ended (FAILED)" in output, output
            assert saved(flink.run("stop", "-p", str(tmp_path / "savepoints"), first)).exists()
            assert flink.run("cancel", second)[0] == 0
            cluster.wait_for(first, "FINISHED")
            cluster.wait_for(second, "CANCELED")
            assert flink.run("savepoint", "-d", str(savepoint.parent))[0] == 0 and not savepoint.exists()
        with commands(cluster, "Authorization:Bearer wrong") as flink:
            code, output = flink.run("list")
            assert code == 1 and "the token is" in output, output
