"""Bounded jobs with blocking partitions on Ray: the rows of streaming, spilled on the way, and no file afterwards."""

from __future__ import annotations

import os
import signal
from collections import Counter
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from rayflink.common.errors import TaskLost
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

ROWS = 40_000


def environment(
    folder: Path, mode: RuntimeExecutionMode, more: dict[str, str] | None = None
) -> StreamExecutionEnvironment:
    options = {
        "parallelism.default": 2,
        "rayflink.blocking-partition.memory": "1 kb",
        "rayflink.batch.max-bytes": "4 kb",
        "io.tmp.dirs": str(folder),
        **(more or {}),
    }
    return StreamExecutionEnvironment(options).set_runtime_mode(mode)


def files_in(folder: str) -> int:
    """How many spill files there are; folders that go while one looks are passed over."""
    return sum(len(names) for path, _, names in os.walk(folder) if path != folder)


def counted(
    folder: Path, mode: RuntimeExecutionMode, more: dict[str, str] | None = None
) -> tuple[Counter[int], int, Any]:
    """How often each key came, the most spill files the consumers saw, and the job's vertices."""
    env, place = environment(folder, mode, more), str(folder)
    pairs = env.from_sequence(1, ROWS).map(lambda number: (number % 7, "x" * 10))
    keyed = pairs.key_by(itemgetter(0)).map(lambda pair: (pair[0], files_in(place) if pair[0] == 0 else 0))
    keyed.sink_to(CollectSink("keys"))
    result = env.execute(mode.name)
    rows = result.get_accumulator_result("keys")
    return Counter(key for key, _ in rows), max(files for _, files in rows), result.vertices


def test_batch_gives_what_streaming_gives_from_files_that_are_gone_afterwards(tmp_path):
    streamed, seen_while_streaming, _ = counted(tmp_path, RuntimeExecutionMode.STREAMING)
    batched, seen, (producer, consumer) = counted(tmp_path, RuntimeExecutionMode.BATCH)
    assert batched == streamed == Counter(number % 7 for number in range(1, ROWS + 1))
    assert seen_while_streaming == 0 and seen >= 1
    complete = max(task["timestamps"]["FINISHED"] for task in producer["subtasks"])
    assert all(task["timestamps"]["SCHEDULED"] >= complete for task in consumer["subtasks"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("L19", "memory", "files", "M04", "M06", "pool")
@pytest.mark.parametrize("size", ["16 kb", *(pytest.param(n, marks=pytest.mark.soak) for n in ("0 bytes", "8 mb"))])
def test_the_tasks_of_a_slot_share_its_managed_memory_and_spill_what_has_no_room(tmp_path, size):
    total = {"0 bytes": 0, "16 kb": 16 << 10, "8 mb": 8 << 20}[size]
    sizes = {"taskmanager.memory.managed.size": size, "rayflink.blocking-partition.memory": "8 mb"}
    batched, seen, vertices = counted(tmp_path, RuntimeExecutionMode.BATCH, sizes)
    assert batched == Counter(number % 7 for number in range(1, ROWS + 1))
    assert (seen == 0) is (size == "8 mb")
    tasks = [task["metrics"] for vertex in vertices for task in vertex["subtasks"]]
    assert {task["Status.Flink.Memory.Managed.Total"] for task in tasks} == {total}
    assert {task["rayflink.Status.Memory.Remaining"] for task in tasks} == {(1280 << 20) - total}
    used = [task["Status.Flink.Memory.Managed.Used"] for task in tasks[:2]]  # of the producers, when they had finished
    assert all(0 < taken <= total for taken in used) if total else used == [0, 0]
    assert list(tmp_path.iterdir()) == []


def test_spill_files_of_killed_tasks_are_removed_on_their_nodes_at_the_end(tmp_path):
    spills, gate = tmp_path / "spills", tmp_path / "gate"
    spills.mkdir()
    env = environment(spills, RuntimeExecutionMode.BATCH)
    texts = env.from_collection(range(ROWS // 2)).rebalance().map(str).key_by(lambda text: text)
    texts.map(watching.waiter(str(gate))).add_sink(lambda text: None)
    client = env.execute_async("killed")
    try:
        assert watching.eventually(lambda: client.status()["vertices"][2]["states"] == {"RUNNING": 2}, within_s=40)
        folders = len(list(spills.iterdir()))
        tasks = [task["metrics"] for task in client.status()["vertices"][1]["subtasks"]]
        for task in tasks:
            os.kill(task["pid"], signal.SIGKILL)
    finally:
        gate.touch()
    with pytest.raises(TaskLost, match="lost (task|the result of) .*"):
        client.get_job_execution_result().result()
    assert folders == 2 == len({task["node"] for task in tasks})
    assert list(spills.iterdir()) == []
