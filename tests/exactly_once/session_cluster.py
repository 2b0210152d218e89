"""A session cluster whose every part can be killed: head node, worker node, dispatcher; and jobs on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psutil

from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from tests.cluster.head import free_ports
from tests.exactly_once import job as program
from tests.exactly_once.running import ROOT, RoundFailed
from tests.exactly_once.verifier import Expectation, Verdict, lines_of_files, verify

MARK = "RAYFLINK_TEST_NODE"
"""The variable by which the processes of a node are found."""
CHECKPOINT_MS = 500
OVER = ("FINISHED", "CANCELED", "FAILED")


@dataclass
class SessionCluster:
    """A Ray of a head and a worker node on loopback, started by `ray start`, with a dispatcher.

    Args:
        folder: for state, registry and logs.
    """

    folder: Path
    cpus: int = 8
    _nodes: int = 0
    _head: str = ""
    _worker: str = ""

    def __post_init__(self) -> None:
        self._gcs, self._rest = free_ports(2)

    # the cluster

    def start(self) -> None:
        """Start a head node."""
        self._head = self._start_node("--head", f"--port={self._gcs}", "--include-dashboard=false")

    def join_worker(self) -> None:
        """Give the cluster another node."""
        self._worker = self._start_node(f"--address=127.0.0.1:{self._gcs}")

    def kill_all(self) -> str:
        """End every process of every node with signal 9, as when the power is lost."""
        killed = self._kill(self._worker) + self._kill(self._head)
        return f"the whole cluster of {killed} processes"

    def kill_worker(self) -> str:
        """End every process of the worker node with signal 9, and give the cluster another one."""
        killed = self._kill(self._worker)
        self.join_worker()
        return f"a node of {killed} processes"

    def kill(self, kind: str, choose: Any) -> str:
        """End one process of a kind of actor with signal 9.

        Raises:
            RoundFailed: there is none.
        """
        pids = self.pids(kind)
        if not pids:
            raise RoundFailed(f"there is no {kind} to kill")
        pid = choose(sorted(pids))
        os.kill(pid, signal.SIGKILL)
        return f"{kind} {pid}"

    def pids(self, kind: str) -> set[int]:
        """Return the processes of a kind of actor."""
        return {process.pid for process in self._processes("") if f"ray::{kind}" in " ".join(_command(process))}

    def rayflink(self, *arguments: str) -> str:
        """Run a command of rayflink, and return what it printed.

        Raises:
            RoundFailed: it failed.
        """
        command = self.begin(*arguments)
        try:
            output, errors = command.communicate(timeout=400)
        finally:
            command.kill()
        if command.returncode:
            raise RoundFailed(f"rayflink {' '.join(arguments)} failed: {output}{errors}")
        return output

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Begin a command of rayflink, and return its process."""
        environment = {**self._environment("client"), "RAY_ADDRESS": f"127.0.0.1:{self._gcs}"}
        command = [sys.executable, "-m", "rayflink", *arguments, f"-Drest.port={self._rest}"]
        command += [f"-Dhigh-availability.storageDir={self.folder / 'ha'}"]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def forget_dispatcher(self) -> None:
        """Remove the file by which a dispatcher of this machine is found."""
        (self.folder / "xdg" / "rayflink" / "cluster.json").unlink(missing_ok=True)

    # the dispatcher

    def ask(self, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
        """Return the answer of the dispatcher.

        Raises:
            OSError: it does not answer, or refuses.
        """
        state = json.loads((self.folder / "xdg" / "rayflink" / "cluster.json").read_text())
        headers = {"Authorization": f"Bearer {state['token']}"}
        request = urllib.request.Request(f"{state['url']}{path}", body, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            document: dict[str, Any] = json.loads(answer.read())
            return document

    def states(self) -> dict[str, str] | None:
        """Return job id -> state, as the dispatcher says; None where it does not answer now."""
        with suppress(OSError, ValueError):
            return {str(job["jid"]): str(job["state"]) for job in self.ask("GET", "/rayflink/jobs")["jobs"]}
        return None

    def close(self) -> None:
        """End everything."""
        for name in (self._worker, self._head, "client"):
            self._kill(name)

    def _start_node(self, *options: str) -> str:
        self._nodes += 1
        name = f"node-{self._nodes}"
        (own,) = free_ports(1)
        command = [
            sys.executable, "-m", "ray.scripts.scripts", "start", "--disable-usage-stats",
            "--node-ip-address=127.0.0.1", f"--num-cpus={self.cpus}", f"--object-store-memory={100 << 20}",
            f"--dashboard-agent-listen-port={own}", *options,
        ]  # fmt: skip
        if "--head" in options:
            command.append(f"--temp-dir={os.environ['RAY_TMPDIR']}/{self.folder.name[-8:]}-{self._nodes}")
        ended = subprocess.run(command, env=self._environment(name), capture_output=True, text=True, timeout=120)
        if ended.returncode:
            raise RoundFailed(f"Ray does not start: {ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return name

    def _environment(self, name: str) -> dict[str, str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(self.folder / "xdg"), MARK: name}
        environment.update(RAY_AUTH_MODE="disabled", RAY_DISABLE_IMPORT_WARNING="1")
        environment.pop("RAY_ADDRESS", None)
        return environment

    def _processes(self, name: str) -> Iterator[psutil.Process]:
        """Return the processes of a node; of all nodes, where no name is given."""
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                environment = process.environ()
                is_here = environment.get("XDG_STATE_HOME") == str(self.folder / "xdg")
                if is_here and process.status() != psutil.STATUS_ZOMBIE and (not name or environment.get(MARK) == name):
                    yield process

    def _kill(self, name: str) -> int:
        killed = 0
        while name and (processes := list(self._processes(name))):
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
                    killed += 1
            psutil.wait_procs(processes, timeout=10)
        return killed


@dataclass
class SubmittedLines:
    """A job of `job.py` on the cluster, by its id.

    Args:
        folder: of its output and its files.
        records: of each lane.
        slots: that share a process.
    """

    folder: Path
    records: int
    lanes: int = 2
    keys: int = 5
    window: int = 50
    rate: int = 200
    slots: int = 1
    job_id: str = ""
    newest: int = field(default=0)

    def body(self, name: str, checkpoints: bool = True) -> bytes:
        """Return the job as it is submitted."""
        asked = program.arguments([
            "--out", str(self.folder / "out"), "--release", str(self.folder / "release"), "--lanes", str(self.lanes),
            "--keys", str(self.keys), "--records", str(self.records), "--window", str(self.window),
            "--rate", str(self.rate),
        ])  # fmt: skip
        options = {"parallelism.default": "1", "execution.checkpointing.dir": str(self.folder / "checkpoints")}
        if checkpoints:
            options["execution.checkpointing.interval"] = f"{CHECKPOINT_MS} ms"
        options["rayflink.ray.slots-per-process"] = str(self.slots)
        options["restart-strategy.type"] = "fixed-delay"
        options["restart-strategy.fixed-delay.attempts"] = "1000000"
        options["restart-strategy.fixed-delay.delay"] = "200 ms"
        env = StreamExecutionEnvironment(options)
        program.write(env, asked)
        graph = replace(env.get_job_graph(), name=name)
        self.job_id = str(graph.id)
        return RemoteSubmission.of(graph, (), None).encode()

    def newest_checkpoint(self) -> int:
        """Return the number of the last complete checkpoint, 0 where there was none."""
        published = (self.folder / "checkpoints").glob("*/chk-*/_metadata")
        self.newest = max([self.newest, *(int(path.parent.name.removeprefix("chk-")) for path in published)])
        return self.newest

    def release(self) -> None:
        """Let the rest of the input come as fast as it is taken."""
        (self.folder / "release").touch()

    def verdict(self) -> Verdict:
        """Return what the verifier found."""
        expected = Expectation(self.lanes, self.keys, self.records, self.window)
        return verify(expected, lines_of_files(self.folder / "out"))


@contextmanager
def session_cluster(folder: Path) -> Iterator[SessionCluster]:
    """Start a cluster of two nodes with a dispatcher; everything ends with the block."""
    cluster = SessionCluster(folder)
    try:
        cluster.start()
        cluster.join_worker()
        cluster.rayflink("cluster", "start")
        yield cluster
    finally:
        cluster.close()


def _command(process: psutil.Process) -> list[str]:
    with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
        return list(process.cmdline())
    return []


__all__ = ["SessionCluster", "SubmittedLines", "session_cluster"]
