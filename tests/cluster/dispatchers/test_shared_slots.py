"""Jobs on Ray whose slots share processes: several jobs of a dispatcher, and the slots of one job of a program."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from rayflink.actors.on_ray.coordinators.find_coordinator import job_names
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.cluster.runners.ray_runner import RayRunner
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster import watching
from tests.cluster_rest.restarts.lines_jobs import LinesJob

pytestmark = [pytest.mark.ray, pytest.mark.slow]
WITHIN_S = 60
SLOTS = {"rayflink.ray.slots-per-process": "4", "parallelism.default": "2", "rayflink.ray.slot-cpus": "0.25"}
"""A process has room for the two slots of two jobs, which reserve a CPU together."""
RESTARTS = {
    "restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "100 ms",
}  # fmt: skip


@pytest.fixture
def runner(cluster: str) -> Iterator[RayRunner]:
    runner = RayRunner(watching.NAMESPACE)
    yield runner
    runner.close()


@pytest.fixture
def dispatcher(runner: RayRunner, tmp_path: Path) -> Iterator[Dispatcher]:
    dispatcher = Dispatcher(LocalStorage(tmp_path / "registry"), runner)
    dispatcher.start("http://here")
    yield dispatcher
    dispatcher.close()
    for job_id in job_names(watching.NAMESPACE):  # those that have ended keep their results for a minute
        runner.suspend(job_id)


def reached(dispatcher: Dispatcher, job_id: str, *states: str) -> bool:
    return bool(watching.eventually(lambda: dispatcher.view(job_id).status()["state"] in states, within_s=WITHIN_S))


def goes_on(lines: LinesJob) -> bool:
    """Whether a job completes another two checkpoints."""
    least = lines.newest_checkpoint() + 2
    return bool(watching.eventually(lambda: lines.newest_checkpoint() >= least, WITHIN_S))


def processes_of(runner: RayRunner, job_id: str) -> set[int]:
    """The processes in which the tasks of a job run."""
    status = runner.status(job_id) or {"vertices": []}
    subtasks = [subtask for vertex in status["vertices"] for subtask in vertex["subtasks"]]
    return {int(subtask["metrics"]["pid"]) for subtask in subtasks if "pid" in subtask["metrics"]}


def shared_process(runner: RayRunner, jobs: Iterable[str]) -> tuple[str, str, int] | None:
    """Two jobs whose tasks all run in the same process, and that process. Each job has one; there are two nodes."""
    having: dict[int, str] = {}
    for job_id in jobs:
        pids = processes_of(runner, job_id)
        if len(pids) != 1:
            return None
        (pid,) = pids
        if pid in having:
            return having[pid], job_id, pid
        having[pid] = job_id
    return None


def failures(runner: RayRunner, job_id: str) -> list[object]:
    return list((runner.status(job_id) or {})["exceptions"])


def test_jobs_share_a_process_survive_its_loss_and_end_one_by_one(
    dispatcher: Dispatcher, runner: RayRunner, tmp_path: Path
) -> None:
    jobs: dict[str, LinesJob] = {}
    for name in ("one", "two", "three"):
        folder = tmp_path / name
        folder.mkdir()
        lines = LinesJob(folder, records=20_000, options=SLOTS | RESTARTS)
        jobs[dispatcher.submit(lines.scored(0.0, name).encode(), "me")] = lines
    assert all(reached(dispatcher, job_id, "RUNNING") and goes_on(lines) for job_id, lines in jobs.items())

    first, second, pid = watching.eventually(lambda: shared_process(runner, jobs), WITHIN_S)
    (third,) = jobs.keys() - {first, second}
    at_first = processes_of(runner, third)
    (process,) = [each for each in runner.processes.list() if each.pid == pid]
    assert process.slots == 4 and process.job_id == ""
    names = [file.name for file in runner.processes.log_files(process.process_id)]
    assert all(any(name.startswith(job_id) for name in names) for job_id in (first, second)), names

    os.kill(pid, signal.SIGKILL)
    assert all(goes_on(jobs[job_id]) and reached(dispatcher, job_id, "RUNNING") for job_id in (first, second))
    assert failures(runner, first) and failures(runner, second)
    if pid not in at_first:
        assert not failures(runner, third), "its process lives"

    jobs[first].release()
    assert reached(dispatcher, first, "FINISHED", "FAILED")
    assert jobs[first].verdict().is_exact, jobs[first].verdict().report()
    runner.suspend(second)
    assert goes_on(jobs[third])
    assert watching.eventually(lambda: runner.find(second), WITHIN_S), "it is brought back"
    assert goes_on(jobs[second])
    for job_id in (second, third):
        jobs[job_id].release()
        assert reached(dispatcher, job_id, "FINISHED", "FAILED")
        assert jobs[job_id].verdict().is_exact, jobs[job_id].verdict().report()


def test_the_slots_of_a_job_of_a_program_share_a_process(cluster: str) -> None:
    env = StreamExecutionEnvironment({**SLOTS, "parallelism.default": "3"})
    numbers = env.from_sequence(1, 400).map(lambda value: (value % 10, os.getpid()))
    pairs = numbers.key_by(lambda pair: pair[0]).map(lambda pair: (*pair, os.getpid()))
    with pairs.execute_and_collect("shares") as rows:
        found = [tuple(row) for row in rows]
    assert len(found) == 400 and len({pid for _, *both in found for pid in both}) == 1
