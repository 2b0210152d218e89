"""The memory of a slot: its split, and what tasks of batch jobs take of the managed part and give back."""

from __future__ import annotations

import gc
import logging
import time
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rayflink.actors.exchange.spilled import SpilledSubpartition
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.messages import TaskDeployment
from rayflink.actors.messages.scheduling import Slot
from rayflink.actors.messages.settings import MemorySplit
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task import StreamTask
from rayflink.actors.task.task_folders import spill_folder
from rayflink.common.errors import ConfigError
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch import raise_if_failed
from rayflink.state.clock import ManualClock
from rayflink.testing import CancelJob, KillTask
from rayflink.testing.simulation import SimulatedCluster

ROWS = 3_000
KEYS = Counter(number % 7 for number in range(1, ROWS + 1))
Reserve = Callable[[str, int], bool]
TOTAL, USED = "Status.Flink.Memory.Managed.Total", "Status.Flink.Memory.Managed.Used"
MB = 1 << 20


def program(folder: Path, managed: str, mode: str = "BATCH", fails: bool = False) -> StreamExecutionEnvironment:
    """Two producers, each with about 20 kb for two consumers."""
    options = {
        "execution.target": "local",
        "execution.runtime-mode": mode,
        "parallelism.default": "2",
        "taskmanager.memory.managed.size": managed,
        "rayflink.blocking-partition.memory": "10 kb",
        "rayflink.batch.max-rows": "50",
        "rayflink.batch.max-bytes": "1 kb",
        "io.tmp.dirs": ";".join(str(folder / name) for name in ("one", "two")),
    }
    env = StreamExecutionEnvironment.get_execution_environment(options)
    pairs = env.from_sequence(1, ROWS).map(lambda number: (number % 7, f"text {number}")).key_by(itemgetter(0))
    pairs.map(lambda pair: 1 // 0 if fails else pair[0]).sink_to(CollectSink("keys"))
    return env


class Watched(InProcessCluster):
    """Writes down, after each step of a task, the managed memory its attempt has."""

    def __init__(self, env: StreamExecutionEnvironment) -> None:
        clock = ManualClock(1_000)
        super().__init__(env.get_job_graph(), clock, lambda ms: clock.advance(max(1, int(ms))))
        self.most: dict[Any, int] = {}
        self.most_together = 0

    def step(self, attempt: Any) -> bool:
        active = super().step(attempt)
        self.most[attempt] = max(self.most.get(attempt, 0), self.memory.manager.reserved(attempt))
        self.most_together = max(self.most_together, self.memory.manager.used)
        return active

    def run_until_sources_finished(self) -> list[Any]:
        """The sources' executions."""
        self.start()
        sources = [e for e in self.job.executions.values() if e.vertex.is_input]
        while any(e.state is not ExecutionState.FINISHED for e in sources):
            assert self.result is None, self.result
            self.round()
        return sources

    def run_to_the_end(self) -> Any:
        while self.result is None:
            self.round()
        return self.result


def files_in(folder: Path) -> Counter[str]:
    """Spill files of each of the folders."""
    return Counter(path.relative_to(folder).parts[0] for path in folder.rglob("*.spill"))


# the split


@pytest.mark.spec("M04", "M06", "fraction", "V03", "fraction")
def test_a_slot_is_split_into_managed_memory_network_buffers_and_the_rest() -> None:
    """Today's Flink gives managed memory 0.4 of all, where older ones gave it 0.7 of the heap."""
    split = MemorySplit.of({})
    assert split == MemorySplit(1280 * MB, 512 * MB, 2048, MB)
    assert split.managed_bytes + split.remaining_bytes == split.flink_bytes
    seventy = MemorySplit.of({"taskmanager.memory.flink.size": "100 mb", "taskmanager.memory.fraction": "0.7"})
    assert (seventy.managed_bytes, seventy.remaining_bytes) == (70 * MB, 30 * MB)
    stated = MemorySplit.of({"taskmanager.memory.managed.size": "3 mb", "taskmanager.memory.managed.fraction": "0.7"})
    assert stated.managed_bytes == 3 * MB


@pytest.mark.spec("M04")
def test_managed_memory_larger_than_the_slot_is_refused_with_the_remedy(tmp_path: Path) -> None:
    wanted = (
        "option 'taskmanager.memory.managed.size': found 2 gb, wanted at most 1280 mb, the memory of a slot; "
        "lower it or raise taskmanager.memory.flink.size"
    )
    with pytest.raises(ConfigError) as caught:
        program(tmp_path, "2 gb").execute()
    assert str(caught.value) == wanted


@pytest.mark.spec("M04")
def test_the_split_is_in_the_reports_of_tasks_and_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rayflink"):
        result = raise_if_failed(Watched(program(tmp_path, "1 mb")).run())
    said = (
        "Memory of the process: 1280 mb, of it 1 mb managed and 1279 mb for user code and the network buffers in use, "
        "at most 2048 of 1 kb each."
    )
    assert [record.getMessage() for record in caplog.records if "Memory of" in record.getMessage()] == [said]
    tasks = [task["metrics"] for vertex in result.vertices for task in vertex["subtasks"]]
    assert len(tasks) == 4
    for metrics in tasks:
        assert metrics[TOTAL] == MB
        assert metrics[TOTAL] + metrics["rayflink.Status.Memory.Remaining"] == 1280 * MB
        assert metrics["Status.Shuffle.Netty.TotalMemorySegments"] == 2048
        assert metrics["Status.Shuffle.Netty.TotalMemory"] == 2048 * 1024
    assert max(metrics[USED] for metrics in tasks[:2]) > 10_000, "the result of a source waits in memory"
    assert tasks[3][USED] < tasks[0][USED]


# taking and giving back


@pytest.mark.spec("L19", "memory", "M06", "pool")
@pytest.mark.parametrize("managed", ["0 bytes", "3 kb", "12 kb", "1 mb"])
def test_the_result_is_the_same_whatever_managed_memory_there_is(tmp_path: Path, managed: str) -> None:
    cluster = Watched(program(tmp_path, managed))
    result = raise_if_failed(cluster.run())
    assert Counter(result.accumulators["keys"]) == KEYS
    total = cluster.memory.manager.total
    assert cluster.most_together <= total
    assert (cluster.most_together > 0) is (total > 0)
    assert max(cluster.most.values()) <= 10 << 10, "each partition keeps to its option"
    assert cluster.memory.manager.used == 0
    assert files_in(tmp_path) == {}


@pytest.mark.spec("M06", "streaming")
def test_a_streaming_job_asks_for_no_managed_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, list[Any]] = {"STREAMING": [], "BATCH": []}
    for mode, owners in asked.items():
        cluster = Watched(program(tmp_path, "1 mb", mode))
        reserve = cluster.memory.manager.reserve

        def noted(owner: str, size: int, owners: list[Any] = owners, reserve: Reserve = reserve) -> bool:
            owners.append(owner)
            return reserve(owner, size)

        monkeypatch.setattr(cluster.memory.manager, "reserve", noted)
        assert Counter(raise_if_failed(cluster.run()).accumulators["keys"]) == KEYS
    assert asked["STREAMING"] == []
    assert len(set(asked["BATCH"])) == 2


@pytest.mark.spec("L19", "memory", "files", "M06", "pool")
def test_two_tasks_that_contend_share_what_there_is_and_spill_the_rest(tmp_path: Path) -> None:
    cluster = Watched(program(tmp_path, "8 kb"))
    sources = cluster.run_until_sources_finished()
    has = [cluster.memory.manager.reserved(source.attempt) for source in sources]
    assert all(has) and 7 << 10 < sum(has) <= 8 << 10
    assert files_in(tmp_path) == {"one": 2, "two": 2}
    assert Counter(raise_if_failed(cluster.run_to_the_end()).accumulators["keys"]) == KEYS
    assert cluster.memory.manager.used == 0


@pytest.mark.spec("M06", "pool")
def test_without_managed_memory_everything_is_spilled(tmp_path: Path) -> None:
    cluster = Watched(program(tmp_path, "0 bytes"))
    cluster.run_until_sources_finished()
    assert cluster.most_together == 0
    writers = [writer for task in cluster.tasks.values() for writer in task._writers if writer.partition.blocking]
    subs = [sub for writer in writers for sub in writer.partition.subpartitions]
    assert len(subs) == 4
    for sub in subs:
        assert isinstance(sub, SpilledSubpartition)
        assert (sub.memory_bytes, sub.spilled_bytes >= sub.queued_bytes > 5_000) == (0, True)


@pytest.mark.spec("L19", "files", "C35", "io-manager")
def test_spill_files_are_spread_over_the_folders_and_gone_afterwards(tmp_path: Path) -> None:
    """Flink's IOManager: subtask i writes into folder i modulo their number, synchronously, a block at a time."""
    cluster = Watched(program(tmp_path, "3 kb"))
    sources = cluster.run_until_sources_finished()
    folders = {e.subtask: spill_folder(cluster.tasks[e.attempt].deployment) for e in sources}
    assert {folder.parent for folder in folders.values()} == {tmp_path / "one", tmp_path / "two"}
    assert all(folder.is_dir() for folder in folders.values())
    assert files_in(tmp_path) == {"one": 2, "two": 2}
    raise_if_failed(cluster.run_to_the_end())
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    assert not any(folder.exists() for folder in folders.values())


# ends of every kind


@pytest.mark.spec("L19", "memory", "M06", "returned")
def test_a_killed_task_gives_its_memory_back_at_once_and_others_keep_theirs(tmp_path: Path) -> None:
    cluster = Watched(program(tmp_path, "1 mb"))
    victim, other = cluster.run_until_sources_finished()
    memory = cluster.memory.manager
    before = memory.reserved(victim.attempt), memory.reserved(other.attempt)
    assert all(before) and memory.used == sum(before)
    cluster.kill(victim.attempt, "the process died")
    assert (memory.reserved(victim.attempt), memory.used) == (0, before[1])
    result = cluster.run_to_the_end()
    assert result.status is JobStatus.FAILED
    assert memory.used == 0


@pytest.mark.spec("L19", "memory", "M06", "returned", "L08", "memory")
def test_what_a_task_forgets_to_give_back_is_free_when_it_has_finished(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = Watched(program(tmp_path, "1 mb", "STREAMING"))
    cluster.start()
    cluster.round()
    attempts = list(cluster.tasks)
    assert len(attempts) == 4 and all(cluster.memory.manager.reserve(attempt, 7) for attempt in attempts)
    with caplog.at_level(logging.INFO, logger="rayflink"):
        raise_if_failed(cluster.run_to_the_end())
    assert cluster.memory.manager.used == 0
    assert caplog.text.count("ended with 7 bytes of managed memory, which are free again") == 4


@pytest.mark.spec("M06", "returned", "L08", "memory")
def test_a_job_that_fails_or_is_cancelled_leaves_no_memory_taken(tmp_path: Path) -> None:
    failing = Watched(program(tmp_path, "1 mb", fails=True))
    assert failing.run().status is JobStatus.FAILED
    assert failing.most_together > 0
    cancelled = Watched(program(tmp_path, "1 mb"))
    cancelled.run_until_sources_finished()
    assert cancelled.memory.manager.used > 0
    cancelled.cancel()
    assert cancelled.run_to_the_end().status is JobStatus.CANCELED
    assert (failing.memory.manager.used, cancelled.memory.manager.used) == (0, 0)


@pytest.mark.slow
@pytest.mark.spec("L19", "memory", "M06", "returned")
@pytest.mark.parametrize("managed", ["0 bytes", "2 kb", "1 mb"])
def test_in_whatever_order_and_however_it_ends_all_memory_comes_back(tmp_path: Path, managed: str) -> None:
    graph = program(tmp_path, managed).get_job_graph()
    for seed in range(4):
        for faults in ([], [KillTask("Map", move=20 + 40 * seed)], [CancelJob(move=30 + 50 * seed)]):
            cluster = SimulatedCluster(graph, seed, faults)
            result = cluster.run()
            assert cluster.memory.manager.used == 0, cluster.story
            assert faults or Counter(raise_if_failed(result).accumulators["keys"]) == KEYS
    assert files_in(tmp_path) == {}


# the process of a slot on Ray, without a cluster

SLOT = Slot("default", 0)


def process_and_deployments(folder: Path) -> tuple[Any, list[TaskDeployment]]:
    """A job in a process, and the deployments of two tasks."""
    from rayflink.actors.on_ray.driver.terminal import Printed
    from rayflink.actors.on_ray.slots.process_job import ProcessJob

    cluster = Watched(program(folder, "1 mb"))
    cluster.start()
    cluster.round()
    process = ProcessJob({"host": "here", "node": "here"}, Printed(lambda chunks: lambda timeout_s: True))
    return process, [task.deployment for task in cluster.tasks.values()]


@pytest.mark.slow  # imports Ray
@pytest.mark.spec("L19", "memory", "M04", "C35", "memory-manager")
def test_tasks_of_one_slot_have_one_memory(tmp_path: Path) -> None:
    process, (one, two) = process_and_deployments(tmp_path)
    memory = process.memory_of(one, SLOT)
    assert process.memory_of(two, SLOT) is memory
    assert memory.manager.total == MB
    another = process.memory_of(two, Slot("default", 1))
    assert another is not memory and another.manager.total == MB


@pytest.mark.slow  # imports Ray
@pytest.mark.spec("M06", "returned")
@pytest.mark.parametrize("ending", [KeyboardInterrupt("stop"), SystemExit(3), None], ids=repr)
def test_a_thread_that_ends_leaves_no_memory_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: BaseException | None
) -> None:
    from rayflink.actors.on_ray.slots.ray_task import PeerDirectory, RayTask

    process, (one, two) = process_and_deployments(tmp_path)
    memory, left_while_running = process.memory_of(one, SLOT).manager, []
    assert memory.reserve(two.attempt, 50)

    class Taker(StreamTask):
        def step(self) -> Progress:
            assert memory.reserve(one.attempt, 100)
            left_while_running.append(memory.used)
            if ending is not None:
                raise ending
            return Progress.DONE

    answered: Future[None] = Future()
    answered.set_result(None)
    report = SimpleNamespace(remote=lambda reports: SimpleNamespace(future=lambda: answered))
    around = PeerDirectory({}, {}, SimpleNamespace(report=report), "leader", 60_000)
    shell = RayTask(b"", one, SLOT, around, process)
    monkeypatch.setattr(process.garbage, "settle", lambda: None)
    monkeypatch.setattr(shell, "_load", lambda program, deployment: Taker(deployment, ManualClock(1_000)))
    shell.run()
    assert left_while_running == [150]
    assert (memory.reserved(one.attempt), memory.reserved(two.attempt)) == (0, 50)


class Knot:
    """One of two objects that hold each other."""

    other: Knot


@pytest.mark.slow  # imports Ray
def test_garbage_in_circles_goes_before_its_time_when_there_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rayflink.actors.on_ray.slots import process_garbage

    monkeypatch.setattr(process_garbage, "YOUNG_OBJECTS", 1_000)
    process, _ = process_and_deployments(tmp_path)
    now = time.monotonic()
    gc.collect()
    gc.disable()
    try:
        left, right = Knot(), Knot()
        left.other, right.other = right, left
        gone = weakref.ref(left)
        del left, right
        process.garbage.collect(now)
        assert gone() is not None, "a look costs too much for so few"
        held = [[] for _ in range(2_000)]
        process.garbage.collect(now)
        assert gone() is None and len(held) == 2_000
    finally:
        gc.enable()
