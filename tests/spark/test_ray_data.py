"""Datasets of Ray Data as streams, and streams as Datasets."""

from __future__ import annotations

import datetime
import gc
import threading
from typing import Any

import pyarrow
import pytest

from rayflink.actors.on_ray.driver import ray_dataset
from rayflink.actors.on_ray.driver.ray_frames import FRAMES
from rayflink.common import WatermarkStrategy
from rayflink.common.errors import TypeMismatch
from rayflink.common.time import Time
from rayflink.connectors.frames.frame_source import FrameFolder, FrameLost, FramePart
from rayflink.connectors.frames.frame_writing import Frame
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.testing.sources import Pause, ScriptedSource
from tests.cluster import watching

# The first one starts Spark.
pytestmark = [pytest.mark.spark, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(200)]

RESTARTING = {
    "execution.runtime-mode": "STREAMING",
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "10",
    "restart-strategy.fixed-delay.delay": "0 s",
}
START = datetime.datetime(2013, 1, 1, tzinfo=datetime.timezone.utc)


@pytest.fixture
def data(spark) -> Any:
    """Ray Data on the Ray of the folder, without its bars."""
    import ray.data

    context = ray.data.DataContext.get_current()
    before, context.enable_progress_bars = context.enable_progress_bars, False
    yield ray.data
    context.enable_progress_bars = before


def environment(**options: Any) -> StreamExecutionEnvironment:
    given = {name.replace("__", "-").replace("_", "."): value for name, value in options.items()}
    return StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2, **given})


def keepers() -> list[Any]:
    import ray

    gc.collect()  # tables that nobody has any more
    named = ray.util.list_named_actors(all_namespaces=True)
    return [ray.get_actor(one["name"], one["namespace"]) for one in named if f"/{FRAMES}/" in one["name"]]


def test_a_dataset_is_a_stream_in_its_order_that_reads_on_after_a_failure(data, tmp_path):
    failed = tmp_path / "failed"

    def fails_once(row: Any) -> tuple[int, datetime.datetime, Any]:
        if row.id == 15_000 and not failed.exists():
            failed.touch()
            raise ValueError("once")
        return row.id, row.at, row.some

    ids = pyarrow.array(range(20_000))
    some = pyarrow.array([None if number % 3 else [number] for number in range(20_000)])
    at = pyarrow.array([START + datetime.timedelta(milliseconds=number) for number in range(20_000)])
    table = pyarrow.table({"id": ids, "at": at, "some": some})
    dataset = data.from_arrow([table.slice(first, 2_500) for first in range(0, 20_000, 2_500)])
    env = environment(execution_checkpointing_interval="50 ms")
    env.configure(RESTARTING)
    stream = env.from_ray_dataset(dataset).set_parallelism(1)
    rows = stream.map(fails_once).set_parallelism(1).execute_and_collect(limit=30_000)
    assert failed.exists() and [row[0] for row in rows] == list(range(20_000))
    assert all(row[1] == START + datetime.timedelta(milliseconds=row[0]) for row in rows)
    assert all(row[2] == (None if row[0] % 3 else [row[0]]) for row in rows)
    assert not data.DataContext.get_current().execution_options.preserve_order
    assert not dataset.context.execution_options.preserve_order


def test_event_time_of_a_column_no_row_and_what_is_no_dataset(data):
    table = pyarrow.table({"at": [START + datetime.timedelta(seconds=second) for second in range(60)]})
    stamped = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_column("at")
    counts = (
        environment().from_ray_dataset(data.from_arrow(table), stamped).map(lambda _: 1)
        .window_all(TumblingEventTimeWindows.of(Time.seconds(20))).reduce(lambda a, b: a + b)
        .execute_and_collect(limit=10)
    )  # fmt: skip
    assert counts == [20, 20, 20]
    assert (
        environment(execution_target="local")
        .from_ray_dataset(data.from_arrow(table.slice(0, 0)))
        .execute_and_collect(limit=10)
        == []
    )
    with pytest.raises(TypeMismatch, match=r"found list \[1\], wanted a ray.data.Dataset"):
        environment().from_ray_dataset([1])


@pytest.mark.soak
def test_a_stream_is_a_dataset_for_as_long_as_something_derived_of_it(data):
    records = environment().from_sequence(1, 10_000).map(lambda number: {"n": number, "text": None})
    dataset = records.to_ray_dataset(pyarrow.schema([("n", pyarrow.int64()), ("text", pyarrow.string())]))
    assert dataset.schema().types == [pyarrow.int64(), pyarrow.string()]
    even = dataset.filter(lambda row: row["n"] % 2 == 0)
    del dataset
    assert keepers() and even.sum("n") == sum(range(2, 10_001, 2))
    there = environment().from_ray_dataset(even).map_batches(lambda columns: columns)
    assert sorted(row.n for row in there.execute_and_collect(limit=10_000)) == list(range(2, 10_001, 2))
    nothing = (
        environment(execution_target="local")
        .from_collection([])
        .to_ray_dataset(pyarrow.schema([("n", pyarrow.int64())]))
    )
    assert nothing.count() == 0 and nothing.schema().names == ["n"]
    del there, even
    assert watching.eventually(lambda: not keepers(), within_s=30), "blocks of tables that nobody has"


@pytest.mark.soak
def test_blocks_of_unlike_sizes_are_counted_as_they_are(data, tmp_path):
    from rayflink.actors.on_ray.driver.ray_dataset import dataset

    store, blocks = FrameFolder(str(tmp_path)), [pyarrow.record_batch({"n": range(rows)}) for rows in (1, 2)]
    for number, block in enumerate(blocks):
        place = store.append(0, 0, number, block)
    frame = Frame(store, (FramePart(0, 0, place, 2, 3, 24),), blocks[0].schema)
    assert dataset(frame).count() == 3


@pytest.mark.soak
def test_a_block_that_is_lost_is_told(data):
    import ray

    dataset = environment(execution_target="local").from_sequence(1, 100).to_ray_dataset()
    for keeper in keepers():
        ray.kill(keeper)
    with pytest.raises(Exception, match="blocks of a DataFrame are gone: .*FileSink"):
        dataset.take_all()

    def kills(number: int) -> int:
        if number == 50:  # the first half is in the store
            for keeper in keepers():
                ray.kill(keeper)
        return number

    one = environment(execution_target="local", execution_checkpointing_interval="1 ms").configure(RESTARTING)
    with pytest.raises(FrameLost, match="blocks of a DataFrame are gone: the process on node"):
        one.from_source(ScriptedSource([*range(50), Pause(500), *range(50, 100)])).map(kills).to_ray_dataset()
    stream = environment(execution_target="local").from_ray_dataset(data.range(100))
    for keeper in keepers():
        ray.kill(keeper)
    with pytest.raises(Exception, match="blocks of a DataFrame are gone"):
        stream.execute_and_collect(limit=200)


@pytest.mark.soak
def test_a_dataset_that_waits_for_a_cpu_says_so(data, monkeypatch, caplog):
    import ray

    monkeypatch.setattr(ray_dataset, "WAITS_S", 0.2)
    free = int(ray.available_resources().get("CPU", 0))
    taken = ray.util.placement_group([{"CPU": 1}] * free, strategy="PACK")
    assert taken.wait(30)
    streams = []
    stream = threading.Thread(target=lambda: streams.append(environment().from_ray_dataset(data.range(10))))
    stream.start()
    try:
        assert watching.eventually(lambda: "Ray Data waits for a free CPU" in caplog.text, within_s=30)
    finally:
        ray.util.remove_placement_group(taken)
        stream.join()
    assert len(streams) == 1
