"""A Ray of two nodes of which one can be lost, and a program running on it as a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.servers.postgres_server import postgres_server
from tests.cluster import watching

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
NODE = {"num_cpus": 1, "object_store_memory": 100 << 20}
CHECKPOINT_MS = 1_000
LANES, KEYS, WINDOW = 4, 10, 100
STOPPED = "stopped with savepoint "
"""What `job.py` prints before the address."""


class RoundFailed(Exception):
    """A round did not go as it has to; says which and how."""


@dataclass
class TwoNodes:
    """A Ray whose head survives and whose worker node can be lost."""

    cluster: Any
    worker: Any = None

    def join_worker(self, within_s: float) -> None:
        """Give the cluster its second node once a job has its coordinator, which so is on the first.

        Raises:
            RoundFailed: the coordinator took too long.
        """
        if not watching.eventually(lambda: processes("coordinator"), within_s):
            raise RoundFailed(f"the job has no coordinator after {within_s:.0f} s")
        self.worker = self.cluster.add_node(**NODE)

    def kill_raylet(self) -> str:
        """End the worker node's raylet with signal 9, see that its workers go, and give the cluster a new node."""
        (process,) = self.worker.all_processes["raylet"]
        workers = [child for child in psutil.Process(process.process.pid).children(recursive=True)]
        os.kill(process.process.pid, signal.SIGKILL)
        self.cluster.remove_node(self.worker, allow_graceful=False)
        _, alive = psutil.wait_procs(workers, timeout=30)
        if alive:
            raise RoundFailed(f"{len(alive)} processes of the lost node are still there after 30 s: {alive}")
        self.worker = self.cluster.add_node(**NODE)
        return f"raylet of a node with {len(workers)} processes"


@contextmanager
def two_nodes() -> Iterator[TwoNodes]:
    """A Ray on loopback, which programs join by RAY_ADDRESS; a second node joins when it is told to."""
    import ray
    from ray.cluster_utils import Cluster

    os.environ["PYTHONPATH"] = str(ROOT)
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        os.environ["RAY_ADDRESS"] = cluster.address
        ray.init(address=cluster.address, namespace=watching.NAMESPACE, log_to_driver=False, logging_level="error")
        yield TwoNodes(cluster)
    finally:
        ray.shutdown()
        cluster.shutdown()
        os.environ.pop("RAY_ADDRESS", None)


@contextmanager
def database() -> Iterator[str]:
    """A PostgreSQL server with an empty table `lines`; its connection string."""
    import psycopg

    with postgres_server() as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("CREATE TABLE lines (line text NOT NULL)")
        yield dsn


@dataclass
class RunningJob:
    """The job as a process that drives it, with its folders.

    Args:
        folder: empty; holds output, checkpoints and log.
        records: of each lane.
        options: more of the configuration, KEY=VALUE.
        postgres: connection string of the database in whose table `lines` the output goes, and not into files.
        streams: arguments of `stream_job.py`, which runs in place of `job.py`.
    """

    folder: Path
    records: int
    options: list[str] = field(default_factory=list)
    postgres: str = ""
    rate: int = 200
    """Records a second of each subtask of the source."""
    streams: list[str] = field(default_factory=list)
    parallelism: int = 0
    newest: int = 0
    """The highest number of a complete checkpoint that was seen; those of a job that finished are deleted."""
    _starts: int = 0

    @property
    def shape(self) -> list[str]:
        """What job and verifier agree on."""
        numbers = {"lanes": LANES, "keys": KEYS, "records": self.records, "window": WINDOW}
        return [part for name, number in numbers.items() for part in (f"--{name}", str(number))]

    def start(self, parallelism: int = 2, savepoint: str = "") -> None:
        """Submit it, from the beginning or from a savepoint."""
        self._spills.mkdir(parents=True, exist_ok=True)
        self.parallelism, self.newest, self._starts = parallelism, 0, self._starts + 1
        options = {
            "parallelism.default": parallelism,
            "execution.checkpointing.interval": f"{CHECKPOINT_MS} ms",
            "execution.checkpointing.dir": str(self._checkpoints),
            "io.tmp.dirs": self._spills,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1_000_000,
            "restart-strategy.fixed-delay.delay": "200 ms",
        }
        if savepoint:
            options["execution.state-recovery.path"] = savepoint
        given = [f"{key}={value}" for key, value in options.items()] + self.options
        command = [sys.executable, *self._program]
        for name in ("crash", "stop", "savepoints"):
            command += [f"--{name}", str(self.folder / name)]
        command += [part for option in given for part in ("--option", option)]
        with (self.folder / "job.log").open("ab") as log:
            self._driver = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)

    @property
    def _program(self) -> list[str]:
        if self.streams:
            return [str(HERE / "stream_job.py"), *self.streams]
        own = [part for name in ("out", "release") for part in (f"--{name}", str(self.folder / name))]
        return [str(HERE / "job.py"), *self.shape, "--rate", str(self.rate), *own, *self._sink]

    @property
    def _sink(self) -> list[str]:
        return ["--postgres", self.postgres] if self.postgres else []

    @property
    def _spills(self) -> Path:
        return self.folder / "spills"

    @property
    def _checkpoints(self) -> Path:
        return self.folder / f"checkpoints-{self._starts}"

    def rescale(self, within_s: float) -> str:
        """Stop it with a savepoint and start it from there, with one subtask where it had two; what was done.

        Raises:
            RoundFailed: it took too long, or the job gave no savepoint.
        """
        self._must_run()
        (self.folder / "stop").touch()
        self._end(within_s, "stopped")
        (self.folder / "stop").unlink()
        addresses = [line.removeprefix(STOPPED) for line in self._lines() if line.startswith(STOPPED)]
        if len(addresses) != self._starts:
            raise RoundFailed(f"the job was stopped and gave no savepoint\n{self._log()}")
        before = self.parallelism
        self.start(3 - before, addresses[-1])
        return f"a job of parallelism {before}, which goes on with {self.parallelism}"

    def newest_checkpoint(self) -> int:
        """The number of the last complete checkpoint, 0 where there was none."""
        published = self._checkpoints.glob("*/chk-*/_metadata")
        self.newest = max([self.newest, *(int(path.parent.name.removeprefix("chk-")) for path in published)])
        return self.newest

    def await_checkpoint(self, number: int, within_s: float) -> None:
        """Wait until that checkpoint or a later one is complete.

        Raises:
            RoundFailed: the job ended first, or it took too long.
        """

        def there() -> bool:
            self._must_run()
            return self.newest_checkpoint() >= number

        if not watching.eventually(there, within_s):
            newest = self.newest_checkpoint()
            raise RoundFailed(f"checkpoint {number} was not complete within {within_s:.0f} s, the newest is {newest}")

    def await_tasks(self, within_s: float) -> None:
        """Wait until coordinator and slots have a process each."""

        def there() -> bool:
            return len(processes("task")) == self.parallelism and len(processes("coordinator")) > 0

        if not watching.eventually(there, within_s):
            found = [(actor["Name"], actor["State"]) for actor in watching.actors()]
            raise RoundFailed(f"no {self.parallelism} slots and a coordinator within {within_s:.0f} s: {found}")

    def crash(self) -> None:
        """Make a function of it raise.

        Raises:
            RoundFailed: none did within half a minute.
        """
        asked = self.folder / "crash"
        asked.touch()
        if not watching.eventually(lambda: not asked.exists(), within_s=30):
            raise RoundFailed("no function has raised within 30 s")

    def finish(self, within_s: float) -> None:
        """Release the source and wait for the end.

        Raises:
            RoundFailed: it took too long, or the job failed, or left something on its disk.
        """
        self._must_run()
        (self.folder / "release").touch()
        self.wait(within_s)

    def wait(self, within_s: float) -> None:
        """Wait until it ends by itself.

        Raises:
            RoundFailed: it took too long, or the job failed, or left something on its disk.
        """
        self._end(within_s, "brought to the end of its input")

    def _end(self, within_s: float, why: str) -> None:
        try:
            code = self._driver.wait(timeout=within_s)
        except subprocess.TimeoutExpired:
            raise RoundFailed(f"the job was {why} and did not end within {within_s:.0f} s\n{self._log()}") from None
        if code != 0:
            raise RoundFailed(f"the job was {why} and failed\n{self._log()}")
        left = sorted(path.name for path in self._spills.iterdir())
        if left:
            raise RoundFailed(f"the job was {why} and left behind on its disk: {left}")

    def verdict(self) -> tuple[bool, str]:
        """Whether the output is exact, and what the verifier says."""
        command = [
            sys.executable,
            str(HERE / "verifier.py"),
            *self.shape,
            "--out",
            str(self.folder / "out"),
            *self._sink,
        ]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.returncode == 0, (ended.stdout + ended.stderr).strip()

    def kill(self) -> None:
        """End the driver, if it is there."""
        self._driver.kill()
        self._driver.wait()

    def _must_run(self) -> None:
        code = self._driver.poll()
        if code is not None:
            early = "the job ended before its rounds did: it lost input, or needs more --records"
            said = early if code == 0 else "the job failed"
            raise RoundFailed(f"{said}\n{self._log()}")

    def _lines(self) -> list[str]:
        """What the job printed, without what Ray says of its raylets."""
        lines = (self.folder / "job.log").read_text(errors="replace").splitlines()
        return [line for line in lines if "(raylet)" not in line and "[state-dump]" not in line]

    def _log(self) -> str:
        return "\n".join(self._lines()[-30:])


def processes(victim: str) -> list[tuple[str, int]]:
    """Name and process of the live actors of that kind, by name."""
    kind = {"task": "SlotActor", "coordinator": "CoordinatorActor"}[victim]
    live = [actor for actor in watching.actors() if actor["ActorClassName"] == kind and actor["State"] == "ALIVE"]
    return sorted((actor["Name"], int(actor["Pid"])) for actor in live)
