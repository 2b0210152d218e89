"""A slow sink holds its source back, and no process's memory grows beyond what its tasks' buffers allow.

RAYFLINK_FLAT_MEMORY_S sets how long the job is watched; the full proof takes 60 seconds.
"""

from __future__ import annotations

import os
import threading
from typing import Any

import psutil
import pytest

from rayflink.common.errors import JobCancelled
from rayflink.datastream.environment import StreamExecutionEnvironment
from tests.cluster import watching

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

SECONDS = float(os.environ.get("RAYFLINK_FLAT_MEMORY_S", "5"))
BATCH_BYTES = 1 << 20
CHANNELS = 2
BUFFERS_SENT = CHANNELS * 10
"""taskmanager.network.memory.max-buffers-per-channel, for each channel of a source."""
BUFFERS_RECEIVED = CHANNELS * 2 + 8
"""Exclusive buffers of each channel and the floating ones of the gate, of a sink."""
ALLOWED = (BUFFERS_SENT + BUFFERS_RECEIVED) * BATCH_BYTES
"""Of a process, which runs a source and a sink."""
SLACK = 1.2
SINK_TAKES_S = 0.0005
"""A record, in the sink: a hundred times what it costs the source, so that all buffers between the two are full."""
NEVER = threading.Event()
"""Nobody sets it: waiting for it takes a sink its time and none of the CPUs the sources need."""


def kilobyte(number: int) -> str:
    return f"{number:01000d}"


def slow(value: str) -> None:
    NEVER.wait(timeout=SINK_TAKES_S)


def test_memory_stays_within_the_buffers_and_the_source_is_held_back():
    env = StreamExecutionEnvironment({"parallelism.default": 2, "rayflink.batch.max-bytes": f"{BATCH_BYTES} bytes"})
    env.from_sequence(0, 10**12).map(kilobyte).rebalance().add_sink(slow)
    client = env.execute_async("flat memory")
    try:
        seen, status = watched(client)
    finally:
        client.cancel()
        with pytest.raises(JobCancelled):
            client.get_job_execution_result().result()
    judge(seen, status)


def watched(client: Any) -> tuple[dict[int, list[int]], dict]:
    """Bytes that each slot's process held over the time of the test, and the job's last status."""
    assert watching.eventually(lambda: consumed(client.status()), within_s=60)
    seen: dict[int, list[int]] = {}
    for _ in watching.moments(for_s=SECONDS, every_s=0.5):
        pids = {task["metrics"]["pid"] for vertex in client.status()["vertices"] for task in vertex["subtasks"]}
        for pid in pids:
            seen.setdefault(pid, []).append(private_bytes(pid))
    return seen, client.status()


def judge(seen: dict[int, list[int]], status: dict) -> None:
    source, sink = status["vertices"]
    growths = {pid: max(resident) - resident[0] for pid, resident in seen.items()}
    for pid, growth in growths.items():
        print(f"process {pid}: {seen[pid][0] >> 20} MB at first, growth {growth >> 20} MB")
    print(f"out {source['numRecordsOut']}, in {sink['numRecordsIn']}")
    assert len(seen) == 2
    assert max(growths.values()) <= SLACK * ALLOWED
    for subtask in source["subtasks"]:
        assert subtask["metrics"]["backPressuredTimeMsPerSecond"] > 500
    most_under_way = 2 * (BUFFERS_SENT + BUFFERS_RECEIVED) * BATCH_BYTES / 1000
    assert source["numRecordsOut"] - sink["numRecordsIn"] <= SLACK * most_under_way


def consumed(status: dict) -> bool:
    """Whether every task has reported, and the sinks have something."""
    reported = all("pid" in task["metrics"] for vertex in status["vertices"] for task in vertex["subtasks"])
    return reported and all(task["metrics"].get("numRecordsIn", 0) for task in status["vertices"][1]["subtasks"])


def private_bytes(pid: int) -> int:
    """Resident memory without the object store, which is shared and bounded by itself."""
    memory = psutil.Process(pid).memory_info()
    return int(memory.rss - memory.shared)
