"""The head node is lost and comes back, with Redis behind its control service: jobs go on, and output is exact."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.returning_head import ReturningCluster, returning_cluster
from tests.cluster.watching import eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.soak]

EXACTLY_ONCE = Path(__file__).resolve().parent.parent / "exactly_once"
SHAPE = ["--lanes", "4", "--keys", "10", "--records", "16000", "--window", "100"]
OPTIONS = {
    "parallelism.default": "2", "execution.checkpointing.interval": "300 ms", "slot.request.timeout": "2 min",
}  # fmt: skip
PROGRAM = """
import sys

from rayflink.datastream import StreamExecutionEnvironment
from tests.exactly_once.job import arguments, write

env = StreamExecutionEnvironment.get_execution_environment()
write(env, arguments(sys.argv[1:]))
env.execute("survivor")
"""
WITHIN_S = 90


class Survivor:
    """A job that was submitted and left, as its files show it, which need no control service."""

    def __init__(self, folder: Path, cluster: ReturningCluster) -> None:
        self._folder, self._cluster = folder, cluster

    def submit(self) -> subprocess.Popen[str]:
        """Submit it by a command of its own."""
        program = self._folder / "survivor.py"
        program.write_text(PROGRAM)
        options = {**OPTIONS, "execution.checkpointing.dir": str(self._folder / "checkpoints")}
        command = [sys.executable, "-m", "rayflink", "run", "-d", "--allow-waiting"]
        command += [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
        own = ["--out", str(self._folder / "out"), "--release", str(self._folder / "release"), "--rate", "200"]
        command += [str(program), "--", *SHAPE, *own]
        return subprocess.Popen(command, env=self._cluster.environment, stderr=subprocess.PIPE, text=True)

    def newest_checkpoint(self) -> int:
        """The number of the last complete checkpoint; each coordinator begins at the next hundred."""
        published = (self._folder / "checkpoints").glob("*/chk-*/_metadata")
        return max((int(path.parent.name.removeprefix("chk-")) for path in published), default=0)

    def await_checkpoints(self, more: int) -> None:
        """Wait until that many more checkpoints have been completed."""
        least = self.newest_checkpoint() + more
        assert eventually(lambda: self.newest_checkpoint() >= least, WITHIN_S), self._cluster.log("head")[-3_000:]

    def status(self) -> dict[str, Any]:
        """The job as `rayflink status --json` shows it."""
        status: dict[str, Any] = json.loads(self._cluster.rayflink("status", "survivor", "--json"))
        return status

    def finish(self) -> str:
        """Release its sources, wait for its end, and return the verifier's verdict on its output."""
        (self._folder / "release").touch()
        assert eventually(lambda: "FINISHED" in self._cluster.rayflink("list", "-a"), WITHIN_S)
        command = [sys.executable, str(EXACTLY_ONCE / "verifier.py"), *SHAPE, "--out", str(self._folder / "out")]
        return subprocess.run(command, capture_output=True, text=True).stdout


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="apt-get install redis-server")
@pytest.mark.timeout(390)
def test_jobs_outlive_the_head_node_and_then_every_node(tmp_path: Path) -> None:
    with returning_cluster() as cluster:
        cluster.start_head()
        job = Survivor(tmp_path, cluster)
        submission = job.submit()
        assert eventually(lambda: cluster.processes("head", "CoordinatorActor"), WITHIN_S)  # the only node there is
        cluster.start_worker()
        assert submission.wait(WITHIN_S) == 0, submission.communicate()
        job.await_checkpoints(2)

        cluster.lose("head")  # and the coordinator with it
        cluster.start_head()
        job.await_checkpoints(3)
        assert job.status()["failures"][0]["text"].startswith("the job's coordinator was lost (epoch 1)")

        is_on_worker = bool(cluster.processes("worker", "CoordinatorActor"))
        before = job.status()["restarts"]
        cluster.lose("head")
        if is_on_worker:
            job.await_checkpoints(2)  # tasks and coordinator need no control service
        cluster.start_head()
        job.await_checkpoints(3)
        assert job.status()["restarts"] == before + (not is_on_worker)

        cluster.lose("worker")
        cluster.lose("head")
        cluster.start_head()
        cluster.start_worker()
        job.await_checkpoints(3)
        assert job.finish().startswith("ALL-RECORDS-DELIVERED-ONCE")
