"""Files and sources in plain Python on Ray: the same jobs as in tests/connectors/test_jobs.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pytest

from rayflink.common import JobFailed
from rayflink.connectors.frames.frame_source import FrameFolder, FramePart, FrameSource
from rayflink.connectors.generator import NumberSequenceSource
from rayflink.connectors.hybrid_source import HybridSource
from rayflink.datastream import StreamExecutionEnvironment
from tests.cluster import watching
from tests.connectors import jobs
from tests.simulation.discovering_source import DiscoveringSource

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

ON_RAY: dict[str, Any] = {"parallelism.default": 2}


def test_rows_go_through_text_json_and_parquet_files(tmp_path: Path) -> None:
    assert jobs.through_files(ON_RAY, tmp_path) == jobs.ROWS


@pytest.mark.soak
def test_a_watched_folder_gives_each_file_once_while_the_job_runs(tmp_path: Path) -> None:
    assert jobs.watched(ON_RAY, tmp_path) == (["a1", "a2"], ["b1"])


def test_an_async_generator_and_a_hybrid_source() -> None:
    assert jobs.plain_python(ON_RAY) == ([0, 1, 2, 3, 4], list(range(1, 10)))


def test_splits_that_are_discovered_beside_the_decisions_are_read_once() -> None:
    env = StreamExecutionEnvironment({**ON_RAY, "execution.checkpointing.interval": "50 ms"})
    rows = env.from_source(DiscoveringSource(4, 10), source_name="found").execute_and_collect()
    assert sorted(rows) == list(range(40))


@pytest.mark.soak
def test_an_async_generator_that_raises_fails_the_job() -> None:
    with pytest.raises(JobFailed, match="LookupError: no more"):
        jobs.failing_midway(ON_RAY)


class Noted(FrameFolder):
    """Blocks in a folder, with a file beside it that says who holds them."""

    def hold(self) -> None:
        Path(f"{self._folder}.held").touch()


def test_blocks_that_are_read_later_are_held_when_the_job_has_been_submitted(tmp_path: Path) -> None:
    folder, gate = tmp_path / "blocks", tmp_path / "gate"
    folder.mkdir()
    store, block = Noted(str(folder)), pyarrow.record_batch({"n": pyarrow.array([3])})
    parts = [FramePart(0, 0, store.append(0, 0, 0, block), 1, 1, block.nbytes)]
    both = HybridSource.builder(NumberSequenceSource(1, 2)).add_source(FrameSource(store, parts, block.schema)).build()
    env = StreamExecutionEnvironment(ON_RAY)
    env.from_source(both).set_parallelism(1).map(watching.waiter(str(gate))).set_parallelism(1).print()
    job = env.execute_async()
    assert (tmp_path / "blocks.held").exists(), "the program may end now"
    gate.touch()
    job.get_job_execution_result().result()
