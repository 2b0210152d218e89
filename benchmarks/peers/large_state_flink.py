"""`recovery`, `rescale_pause` and `checkpoint_sync` on Flink: `flink/LargeState.java` on a cluster of processes.

A JobManager in application mode and TaskManagers of one slot, each a JVM on loopback. Its numbers come from Flink's
REST API, and from the same files of the sinks as ours.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from benchmarks.keyed_state.large_job import KEYED, VALUE_BYTES, LargeJob, Rescaled, Size, await_true, job_folder
from benchmarks.keyed_state.ours_checkpoint_sync import CHECKPOINTS, numbers_of
from benchmarks.keyed_state.ours_recovery import lost_process
from benchmarks.keyed_state.ours_rescale_pause import up_and_down
from benchmarks.runs.job_numbers import flat, medians

_HOST = "127.0.0.1"
_JOB_MANAGER = "org.apache.flink.container.entrypoint.StandaloneApplicationClusterEntryPoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
_JOB_MANAGER_HEAP_MB, _TASK_MANAGER_HEAP_MB = 1024, 512
_MEMORY = {
    "framework.heap.size": "128m",
    "framework.off-heap.size": "128m",
    "task.heap.size": "384m",
    "task.off-heap.size": "0",
    "network.min": "128m",
    "network.max": "128m",
    "jvm-metaspace.size": "256m",
    "jvm-overhead.min": "192m",
    "jvm-overhead.max": "192m",
}
"""Of a TaskManager: what Flink's scripts make of its default configuration, and give to its JVM."""
_TASK_MANAGERS = {"recovery": 3, "rescale_pause": 2, "checkpoint_sync": 1}
_START_S, _WITHIN_S = 120.0, 600.0


class NoAnswer(RuntimeError):
    """The JobManager does not answer, or answers with an error."""


class FlinkJob(LargeJob):
    """The job on a cluster of its own; nothing runs before `start`.

    Args:
        size: of it.
        folder: for all files.
        java: with Flink's jars and the program; a class is to follow.
        options: of Flink, as text.
    """

    asks_every_s = 0.2

    def __init__(self, size: Size, folder: Path, java: list[str], options: Mapping[str, str]) -> None:
        out = folder / "out"
        out.mkdir()
        super().__init__(size, out)
        self._folder, self._java = folder, java
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._jobs: list[str] = []
        rpc_port, self._port = _free_ports()
        given = _configuration(size, folder) | {"jobmanager.rpc.port": str(rpc_port), "rest.port": str(self._port)}
        (folder / "config.yaml").write_text(json.dumps(given | dict(options)))  # JSON is YAML

    def start(self, parallelism: int, task_managers: int) -> None:
        """Start the processes, and wait until the job is there.

        Args:
            parallelism: of the operator with the state, at first.
            task_managers: slots, that is.
        """
        out = self._folder / "out"
        job = ["--job-classname", "LargeState", self.size.keys, self.size.updates, VALUE_BYTES, parallelism, out]
        self._spawn("jobmanager", _JOB_MANAGER_HEAP_MB, _JOB_MANAGER, *map(str, job))
        await_true(self._answers, _START_S, "job on the JobManager")
        for _ in range(task_managers):
            self.add_task_manager()

    def add_task_manager(self) -> None:
        """One more, which is there when this returns."""
        name = f"taskmanager-{len(self._processes)}"
        self._spawn(name, _TASK_MANAGER_HEAP_MB, _TASK_MANAGER, "-D", f"taskmanager.resource-id={name}")
        self.await_true(lambda: self._registered(name), _START_S, f"registration of {name}")

    def _spawn(self, name: str, heap_mb: int, main_class: str, *arguments: str) -> None:
        dies_with_us = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
        of_jvm = (f"-Xmx{heap_mb}m", f"-Djava.io.tmpdir={self._folder}")  # else web files stay in the system's folder
        command = [*dies_with_us, *self._java, *of_jvm, main_class, "--configDir", str(self._folder)]
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes[name] = subprocess.Popen(
                [*command, *arguments], cwd=self._folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _answers(self) -> bool:
        self._must_live("jobmanager")
        with suppress(NoAnswer):
            self._jobs = [job["id"] for job in self._ask("/jobs")["jobs"]]
        return bool(self._jobs)

    def _registered(self, name: str) -> bool:
        self._must_live(name)
        return any(one["id"] == name for one in self._ask("/taskmanagers")["taskmanagers"])

    def _must_live(self, name: str) -> None:
        if self._processes[name].poll() is not None:
            log = (self._folder / f"{name}.log").read_text(errors="replace").strip()
            cause = log.rpartition("Caused by: ")[2][:300]
            raise RuntimeError(f"the {name} ended: {cause or 'it has said nothing'}")

    def _ask(self, path: str, wanted: Mapping[str, Any] | None = None) -> Any:
        """What GET answers, or PUT where something is wanted.

        Raises:
            NoAnswer: there is none, or an error.
        """
        connection = HTTPConnection(_HOST, self._port, timeout=_WITHIN_S)
        try:
            connection.request("GET" if wanted is None else "PUT", path, wanted and json.dumps(wanted))
            answer = connection.getresponse()
            body = answer.read().decode()
        except OSError as refused:
            raise NoAnswer(f"{path}: {refused}") from refused
        finally:
            connection.close()
        if answer.status >= 300:
            raise NoAnswer(f"{path}: {answer.status} {body[:300]}")
        return json.loads(body or "{}")

    def _of_job(self, path: str = "", wanted: Mapping[str, Any] | None = None) -> Any:
        (job,) = self._jobs
        return self._ask(f"/jobs/{job}{path}", wanted)

    def _keyed_id(self) -> str:
        return next(str(vertex["id"]) for vertex in self._of_job()["vertices"] if KEYED in vertex["name"])

    def status(self) -> Mapping[str, Any]:
        job = self._of_job()
        failures = self._of_job("/exceptions")["exceptionHistory"]["entries"]
        vertices = [{"name": vertex["name"], "subtasks": self._subtasks(vertex["id"])} for vertex in job["vertices"]]
        return {"timestamps": job["timestamps"], "exceptions": failures, "vertices": vertices}

    def _subtasks(self, vertex: str) -> list[dict[str, Any]]:
        subtasks = self._of_job(f"/vertices/{vertex}")["subtasks"]
        times = self._of_job(f"/vertices/{vertex}/subtasktimes")["subtasks"]
        return [
            {
                "state": subtask["status"],
                "attempt": subtask["attempt"],
                "timestamps": {state: ms for state, ms in time["timestamps"].items() if ms > 0},
                "metrics": {"pid": self._pid(subtask["taskmanager-id"])},
            }
            for subtask, time in zip(subtasks, times, strict=False)  # which may be rescaled between the two
        ]

    def _pid(self, name: str) -> int | None:
        return self._processes[name].pid if name in self._processes else None

    def checkpoints(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._of_job("/checkpoints")
        return found

    def newest_checkpoints(self, count: int) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
        """The newest complete ones, and of each what is told of the vertex with the state."""
        complete = [one for one in self.checkpoints()["history"] if one["status"] == "COMPLETED"][:count]
        keyed = self._keyed_id()
        return complete, [self._of_job(f"/checkpoints/details/{one['id']}/subtasks/{keyed}") for one in complete]

    def rescale(self, parallelism: int) -> Rescaled:
        source, keyed = (vertex["id"] for vertex in self._of_job()["vertices"])
        wanted = {source: 1, keyed: parallelism}
        bounds = {vertex: {"parallelism": {"lowerBound": 1, "upperBound": most}} for vertex, most in wanted.items()}
        asked_ms = time.time() * 1000
        self._of_job("/resource-requirements", bounds)

        def new_ones_run() -> bool:
            tasks = self.tasks()
            run = all(task["state"] == "RUNNING" and task["timestamps"].get("RUNNING", 0) > asked_ms for task in tasks)
            return run and len(tasks) == 1 + parallelism

        self.await_true(new_ones_run, _WITHIN_S, f"tasks of parallelism {parallelism} that run")
        return Rescaled(self.await_running(0, _WITHIN_S))

    def close(self) -> None:
        super().close()
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait()


def _configuration(size: Size, folder: Path) -> dict[str, str]:
    """Flink's defaults but for loopback, memory, checkpoints, and how fresh REST's answers are."""
    return {
        "jobmanager.rpc.address": _HOST,
        "jobmanager.bind-host": _HOST,
        "taskmanager.host": _HOST,
        "taskmanager.bind-host": _HOST,
        "rest.address": _HOST,
        "rest.bind-address": _HOST,
        "taskmanager.cpu.cores": "1",
        **{f"taskmanager.memory.{part}": amount for part, amount in _MEMORY.items()},
        "taskmanager.memory.managed.size": f"{size.memory_mb}m",
        "io.tmp.dirs": str(folder / "state"),
        "state.backend.type": "rocksdb",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.interval": f"{size.checkpoint_ms} ms",
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "web.checkpoints.history": "10000",
        "web.refresh-interval": "100",
    }


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((_HOST, 0))
        other.bind((_HOST, 0))
        return one.getsockname()[1], other.getsockname()[1]


def run(
    data_path: str | None,
    benchmark: str,
    java: list[str],
    options: dict[str, str],
    rounds: int = 3,
    checkpoints: int = CHECKPOINTS,
    **size: int,
) -> dict[str, Any]:
    """One job on a new cluster.

    Args:
        benchmark: the one of ours beside which it runs; numbers of equal meaning have equal names.
        java: see `FlinkJob`, as `options`.
        rounds: of recovery and rescale_pause: whose medians are given.
        checkpoints: of checkpoint_sync.
        size: see `Size`.
    """
    began = time.time()
    given = Size(**size)
    scheduler = {"jobmanager.scheduler": "adaptive"} if benchmark == "rescale_pause" else {}
    with job_folder() as folder:
        job = FlinkJob(given, folder, java, scheduler | options)
        try:
            job.start(2 if benchmark == "recovery" else 1, _TASK_MANAGERS[benchmark])
            job.await_filled(_WITHIN_S)
            ready = time.time()
            numbers = _measured(job, benchmark, rounds, checkpoints)
            rows = job.output.reached
        finally:
            job.close()
    return {"rows": rows, "seconds_total": time.time() - began, "seconds_startup": ready - began, **numbers}


def _measured(job: FlinkJob, benchmark: str, rounds: int, checkpoints: int) -> dict[str, float]:
    if benchmark == "checkpoint_sync":
        job.await_checkpoints(checkpoints, _WITHIN_S)
        return flat({"job": numbers_of(job.size, *job.newest_checkpoints(checkpoints))})
    if benchmark == "rescale_pause":
        numbers = up_and_down(job, rounds)
    else:
        losses = []
        for _ in range(rounds):
            losses.append(lost_process(job))
            job.add_task_manager()
        numbers = flat({"process": medians(losses)})
    return {"rounds": rounds, "state_mb": job.state_mb(), **numbers}
