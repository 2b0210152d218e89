"""W1 on rayflink: word count of one text file on Ray, every update to a sink that discards."""

from __future__ import annotations

import time
from operator import itemgetter
from tempfile import TemporaryDirectory
from typing import Any


def split(line: str) -> list[tuple[str, int]]:
    """The user's function."""
    return [(word, 1) for word in line.split()]


def run(
    data_path: str, parallelism: int = 2, target: str = "ray", checkpoint_ms: int = 0, **options: Any
) -> dict[str, Any]:
    """One job in a fresh process, Ray started for it.

    Args:
        checkpoint_ms: between two checkpoints, which go into a folder; 0: none are taken.
    """
    began = time.time()
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    taken: list[dict[str, Any]] = [{}]
    with TemporaryDirectory(prefix="rayflink-bench-") as folder:
        given: dict[str, Any] = {"execution.target": target, **options}
        if checkpoint_ms:
            given |= {"execution.checkpointing.interval": f"{checkpoint_ms} ms", "execution.checkpointing.dir": folder}
        env = StreamExecutionEnvironment.get_execution_environment(given)
        env.set_parallelism(parallelism)
        lines = env.read_text_file(data_path)
        lines.flat_map(split).key_by(itemgetter(0)).sum(1).sink_to(DiscardingSink())
        client = env.execute_async("W1 word count")
        ended = client.get_job_execution_result(lambda _: taken.append(client.checkpoints()) if checkpoint_ms else None)
        result = ended.result()
    source, count = result.vertices
    ready = min(task["timestamps"]["RUNNING"] for task in source["subtasks"]) / 1000
    calls = sum(task["metrics"]["calls"] for vertex in result.vertices for task in vertex["subtasks"])
    return {
        "rows": count["numRecordsIn"],
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "calls_per_second": calls / (result.get_net_runtime() / 1000),
        "bytes_per_row": count["numBytesIn"] / max(count["numRecordsIn"], 1),
        "seconds_busy_source": source["busyTimeMs"] / 1000,
        "seconds_busy_count": count["busyTimeMs"] / 1000,
        "checkpoints": taken[-1].get("counts", {}).get("completed", 0),
    }
