"""A node with blocks of a DataFrame is lost while a job reads them."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pyarrow
import pytest
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from rayflink.actors.on_ray.driver.ray_frames import RayFrames
from rayflink.common.errors import JobFailed
from rayflink.connectors.frames.frame_source import FramePart, FrameSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching
from tests.exactly_once.running import NODE, two_nodes

pytestmark = [pytest.mark.ray, pytest.mark.slow]
ROWS, BLOCKS = 20_000, 3


def put(store: RayFrames, partition: int) -> FramePart:
    """Blocks too large to travel with their references."""
    for number in range(BLOCKS):
        first = (partition * BLOCKS + number) * ROWS
        ids = pyarrow.array(range(first, first + ROWS))
        block = pyarrow.record_batch({"id": ids, "text": pyarrow.array(["x" * 20] * ROWS)})
        place = store.append(partition, 0, number, block)
    return FramePart(partition, 0, place, BLOCKS, BLOCKS * ROWS, BLOCKS * block.nbytes)


@pytest.mark.soak
def test_a_job_whose_blocks_are_lost_with_a_node_ends_and_does_not_restart_for_ever(tmp_path: Path):
    started, gate = tmp_path / "started", tmp_path / "gate"
    wait = watching.waiter(str(gate))

    def begins(row: object) -> int:
        started.touch()
        wait(row)
        return row.id  # type: ignore[attr-defined, no-any-return]

    with two_nodes() as nodes:
        nodes.worker = nodes.cluster.add_node(**NODE)
        nodes.cluster.wait_for_nodes()
        store = RayFrames(watching.NAMESPACE).open()
        parts = []
        for number, node in enumerate(ray.nodes()):
            there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            task = ray.remote(num_cpus=0)(put).options(scheduling_strategy=there)
            parts.append(ray.get(task.remote(store, number)))
        assert len({part.place for part in parts}) == 2
        store.keep(parts)

        env = StreamExecutionEnvironment({"execution.target": "ray", "execution.checkpointing.interval": "100 ms"})
        env.get_configuration().set_string("execution.checkpointing.dir", str(tmp_path / "checkpoints"))
        schema = store.read(parts[0], 0).schema
        job = env.from_source(FrameSource(store, parts, schema)).map(begins)

        def lose() -> None:
            assert watching.eventually(started.exists, within_s=60)
            (raylet,) = nodes.worker.all_processes["raylet"]
            os.kill(raylet.process.pid, signal.SIGKILL)
            nodes.cluster.remove_node(nodes.worker, allow_graceful=False)
            gate.touch()

        losing = threading.Thread(target=lose)
        losing.start()
        try:
            with pytest.raises(JobFailed, match="blocks of a DataFrame are gone: the process on node .*FileSink"):
                job.execute_and_collect(limit=10 * ROWS)
        finally:
            losing.join()
            store.leave()
