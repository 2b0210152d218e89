"""A session cluster under load: jobs come and end, some run all the time, and clients ask about them meanwhile.

The dispatcher is on a Ray on loopback. Jobs of one slot come until all were there; at most `running` of them
run at a time, and each that ends makes room for the next. Clients ask for what a dashboard shows, at a fixed rate.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count, cycle
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import ray

from benchmarks.runs.ray_bounded import bounded_ray
from rayflink.actors.on_ray.driver.ray_services import RayService
from rayflink.common.options import registry as options
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission

TOKEN = "load"
TARGET_P99_MS = 100.0
CLIENTS = 8
ANSWER_S = 120.0
"""A submission whose coordinator does not begin is answered after 60 seconds: it is accepted, and begins later."""
RUN_WITHIN_S = 300.0
SERVICE = "rayflink/dispatcher"
LONG_S = 36_000
"""Seconds of a job that runs until it is cancelled."""
_OVER = ("FINISHED", "CANCELED", "FAILED")


class Client:
    """One connection to the dispatcher."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ANSWER_S)

    def ask(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        """Send a request, and return the status and the JSON of its answer."""
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            self._connection.request(method, path, body, headers)
        except BrokenPipeError:  # the server has closed it, as it was not used for seconds
            self._connection.close()
            self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"{}")


def run(
    data_path: str | None, jobs: int = 200, running: int = 50, seconds: float = 300.0, rate: int = 100,
    dispatcher: str = "process", slots: int = 25,
) -> dict[str, Any]:  # fmt: skip
    """Submit jobs, keep some running, ask at a rate, and return times, counts and memory.

    Args:
        jobs: submitted in all.
        running: jobs at a time; the last ones run until the end.
        seconds: for which requests are sent while they run.
        rate: requests a second, of all clients together.
        dispatcher: "process", as a supervisor of the head node runs it, or "actor" of Ray, with the niceness of jobs.
        slots: that share a process and one CPU, on a Ray with as many CPUs as these jobs take; 1: each has both alone.
    """
    folders = tempfile.TemporaryDirectory(prefix="cluster-load-", ignore_cleanup_errors=True)  # processes may yet write
    with folders as folder, bounded_ray(running + 2 if slots == 1 else -(-running // slots)):
        chosen = {options.REST_PORT.key: 0, options.REST_TOKEN.key: TOKEN, options.HA_STORAGE_DIR.key: folder}
        began = time.monotonic()
        with _actor(chosen) if dispatcher == "actor" else _process(chosen, Path(folder)) as (url, process):
            startup_s = time.monotonic() - began
            submitted = _submit(url, jobs, running, Path(folder), slots)
            submitted["all_run_s"] = _await_checkpoints(url, running)
            asked = _ask_for(url, seconds, rate, process)
            states = Counter(job["state"] for job in Client(url).ask("GET", "/rayflink/jobs")[1]["jobs"])
    return {
        "seconds_startup": startup_s,
        **submitted,
        **asked,
        **{f"jobs_{state.lower()}": number for state, number in sorted(states.items())},
        "target_p99_ms_at_most": TARGET_P99_MS,
    }


@contextmanager
def _actor(chosen: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Run the dispatcher as an actor of Ray; gives its address and its process."""
    service = RayService(SERVICE, "rayflink")
    url = service.start("rayflink.cluster.ray_cluster:service", chosen)
    try:
        yield url, service.process()
    finally:
        service.stop()


@contextmanager
def _process(chosen: Mapping[str, Any], folder: Path) -> Iterator[tuple[str, int]]:
    """Run the dispatcher as a process of its own, which joins the Ray of this one; gives its address and its process.

    Raises:
        AssertionError: it does not listen in time.
    """
    state = folder / "cluster.json"
    settings = [f"-D{key}={value}" for key, value in chosen.items()]
    command = [sys.executable, "-m", "rayflink", "cluster", "run", "--state-file", str(state), *settings]
    address = ray.get_runtime_context().gcs_address
    process = subprocess.Popen(command, env={**os.environ, "RAY_ADDRESS": address}, stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + ANSWER_S
        while not state.exists():
            assert process.poll() is None and time.monotonic() < until, "the dispatcher does not listen"
            time.sleep(0.05)
        yield json.loads(state.read_text())["url"], process.pid
    finally:
        process.terminate()
        process.wait(ANSWER_S)


def _submit(url: str, jobs: int, running: int, folder: Path, slots: int) -> dict[str, float]:
    """Submit jobs, no more at a time than may run; all but the last `running` end after a second."""
    client, times = Client(url), []
    began = time.monotonic()
    for number in range(jobs):
        while sum(job["state"] not in _OVER for job in client.ask("GET", "/rayflink/jobs")[1]["jobs"]) >= running:
            time.sleep(0.1)
        body = _job(number, 1 if number < jobs - running else LONG_S, folder, slots)
        sent = time.monotonic()
        status, answer = client.ask("POST", "/rayflink/jobs?client=load", body)
        times.append(time.monotonic() - sent)
        assert status == 200, answer
    return {
        "jobs": jobs,
        "submit_p50_s": _percentile(times, 50),
        "submit_p99_s": _percentile(times, 99),
        "submit_all_s": time.monotonic() - began,
    }


def _await_checkpoints(url: str, running: int) -> float:
    """Wait until all jobs run, and have completed a checkpoint; return the seconds it took.

    Raises:
        AssertionError: it takes too long.
    """
    client, began, waiting = Client(url), time.monotonic(), {""}
    while waiting:
        assert time.monotonic() - began < RUN_WITHIN_S, waiting
        time.sleep(1)
        jobs = [job["jid"] for job in client.ask("GET", "/rayflink/jobs")[1]["jobs"] if job["state"] not in _OVER]
        counts = {job: client.ask("GET", f"/jobs/{job}/checkpoints")[1].get("counts", {}) for job in jobs}
        waiting = {job for job, each in counts.items() if not each.get("completed")}
        assert len(jobs) == running, jobs
    return time.monotonic() - began


def _job(number: int, seconds: int, folder: Path, slots: int) -> bytes:
    env = StreamExecutionEnvironment({
        "execution.checkpointing.interval": "10 s", "execution.checkpointing.dir": str(folder / "checkpoints"),
        "parallelism.default": 1, "rayflink.ray.slots-per-process": slots, "rayflink.ray.slot-cpus": 1 / slots,
    })  # fmt: skip

    def wait(value: int) -> int:
        time.sleep(0.5)
        return value

    numbers = env.from_sequence(1, 2 * seconds).map(wait)
    numbers.key_by(lambda value: value % 10).reduce(lambda left, right: left + right).add_sink(lambda value: None)
    graph = replace(env.get_job_graph(), name=f"load {number}")
    return RemoteSubmission.of(graph, (), None).encode()


def _ask_for(url: str, seconds: float, rate: int, process: int) -> dict[str, float]:
    """Ask at a rate, spread over some clients, each request at its time whether or not the one before was slow."""
    ids = [job["jid"] for job in Client(url).ask("GET", "/rayflink/jobs")[1]["jobs"] if job["state"] == "RUNNING"]
    times: list[tuple[float, str]] = []
    errors: Counter[int] = Counter()
    due = count()
    begin = time.monotonic()
    memory, coordinators = [_memory_mb(process)], [_coordinators_mb()]

    def ask(paths: Iterator[tuple[str, str]]) -> None:
        client = Client(url)
        while True:
            number = next(due)
            at_s = begin + number / rate
            if at_s > begin + seconds:
                return
            time.sleep(max(at_s - time.monotonic(), 0))
            kind, path = next(paths)
            status, _ = client.ask("GET", path)
            times.append((time.monotonic() - at_s, kind))
            if status != 200:
                errors[status] += 1

    threads = [threading.Thread(target=ask, args=(_paths(ids, start),)) for start in range(CLIENTS)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        time.sleep(min(10, seconds / 5))
        memory.append(_memory_mb(process))
        coordinators.append(_coordinators_mb())
    all_ms = [1000 * took for took, _ in times]
    kinds = sorted({kind for _, kind in times})
    slowest = {f"p99_ms {kind}": _percentile([1000 * took for took, own in times if own == kind], 99) for kind in kinds}
    late = memory[len(memory) // 3 :]
    return {
        "requests": len(times),
        "requests_a_second": len(times) / seconds,
        "p50_ms": _percentile(all_ms, 50),
        "p99_ms": _percentile(all_ms, 99),
        "most_ms": max(all_ms),
        **slowest,
        "errors": sum(errors.values()),
        "memory_mb_begin": memory[0],
        "memory_mb_end": memory[-1],
        "memory_mb_growth_of_last_two_thirds": late[-1] - late[0],
        "coordinators_mb_begin": coordinators[0],
        "coordinators_mb_end": coordinators[-1],
    }


def _paths(ids: list[str], start: int) -> Iterator[tuple[str, str]]:
    """Return what a dashboard asks for, again and again: the overview, then a job with its vertices and checkpoints."""
    for job_id in cycle(ids[start:] + ids[:start]):
        for kind in ("/jobs/overview", "/overview", "/jobs/{}", "/jobs/{}/checkpoints", "/jobs/{}/exceptions"):
            yield kind, kind.format(job_id)


def _coordinators_mb() -> float:
    """Return the memory of all processes of coordinators."""
    found = [each.info for each in psutil.process_iter(["name", "memory_info"])]
    return float(sum(each["memory_info"].rss >> 20 for each in found if each["name"].startswith("ray::Coord")))


def _memory_mb(process: int) -> float:
    return float(psutil.Process(process).memory_info().rss >> 20)


def _percentile(values: list[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(math.ceil(len(ordered) * percent / 100), len(ordered)) - 1] if ordered else math.nan
