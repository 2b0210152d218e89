"""Streams whose result is kept: computed once, read by later jobs, given up on demand."""

from __future__ import annotations

import gc
import glob
import os
import threading
import time
from pathlib import Path

import pytest

from rayflink.common import Duration, JobFailed, PlanError, WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.connectors.frames.cached import FileBlocks
from rayflink.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.datastream.programs import environment


class Calls:
    """A function that notes in a file that it was called, as its copies do."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "calls"
        self.file.touch()

    def __call__(self, value):
        with self.file.open("a") as file:
            file.write("x")
        return value

    @property
    def count(self) -> int:
        return len(self.file.read_text())


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_cached_stream_is_computed_once(tmp_path, mode, parallelism):
    env = environment(parallelism).set_runtime_mode(mode)
    calls = Calls(tmp_path)
    kept = env.from_sequence(1, 100).map(calls).cache()
    first = sorted(kept.map(str).execute_and_collect())
    assert calls.count == 100
    assert sorted(kept.map(str).execute_and_collect()) == first == sorted(map(str, range(1, 101)))
    assert sorted(kept.filter(lambda n: n > 98).execute_and_collect()) == [99, 100]
    assert calls.count == 100
    env.close()


def test_steps_that_were_written_before_the_first_job_read_what_it_kept(tmp_path):
    env = environment()
    calls = Calls(tmp_path)
    kept = env.from_collection([1, 2, 3]).map(calls).cache()
    doubled = kept.map(lambda n: 2 * n)
    env.execute()
    assert calls.count == 3
    assert list(doubled.execute_and_collect()) == [2, 4, 6]
    assert calls.count == 3
    env.close()


def test_an_invalidated_cache_is_computed_and_kept_again(tmp_path):
    env = environment()
    calls = Calls(tmp_path)
    kept = env.from_collection([1, 2]).map(calls).cache()
    for expected in (2, 2):
        assert list(kept.execute_and_collect()) == [1, 2]
        assert calls.count == expected
    kept.invalidate()
    for expected in (4, 4):
        assert list(kept.execute_and_collect()) == [1, 2]
        assert calls.count == expected
    env.close()


def test_closing_the_environment_removes_the_files(tmp_path):
    env = StreamExecutionEnvironment({"execution.target": "local", "io.tmp.dirs": str(tmp_path)})
    kept = env.from_collection([1, 2]).cache()
    assert list(kept.execute_and_collect()) == [1, 2]
    assert len(glob.glob(f"{tmp_path}/rayflink-cache-*/*.blocks")) == 1
    env.close()
    assert list(tmp_path.iterdir()) == []


def test_what_a_failed_job_has_kept_is_not_read(tmp_path):
    env = environment()
    broken = tmp_path / "broken"
    broken.touch()

    def fragile(number):
        if number == 3 and broken.exists():
            raise ValueError("three")
        return number

    kept = env.from_collection([1, 2, 3]).map(fragile).cache()
    with pytest.raises(JobFailed, match="three"):
        list(kept.execute_and_collect())
    broken.unlink()
    assert list(kept.execute_and_collect()) == [1, 2, 3]
    assert list(kept.execute_and_collect()) == [1, 2, 3]
    env.close()


def test_timestamps_are_kept():
    env = environment()
    in_order = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda pair, _: pair[1])
    kept = env.from_collection([("a", 1), ("b", 1_500), ("a", 7)]).assign_timestamps_and_watermarks(in_order).cache()
    windows = kept.window_all(TumblingEventTimeWindows.of(Duration.of_seconds(1)))
    names = windows.apply(lambda window, pairs: ["".join(sorted(name for name, _ in pairs))])
    env.execute()
    assert list(names.execute_and_collect()) == ["aa", "b"]
    env.close()


def test_what_cannot_be_cached_is_refused_in_its_line():
    env = environment()
    with pytest.raises(PlanError, match="cache.. was called on a keyed stream.*before key_by.*test_cached"):
        env.from_collection([1]).key_by(lambda n: n).cache()
    with pytest.raises(PlanError, match="cache.. needs a stream that ends.*test_cached"):
        env.socket_text_stream("localhost", 1).cache() if hasattr(env, "socket_text_stream") else _endless(env).cache()
    with pytest.raises(PlanError, match="a parallelism does not belong to a cached stream"):
        env.from_collection([1]).cache().set_parallelism(2)
    with pytest.raises(PlanError, match="a name does not belong to a cached stream"):
        env.from_collection([1]).cache().get_name()


def _endless(env):
    from rayflink.datastream.connectors import SocketTextSource

    return env.from_source(SocketTextSource("localhost", 1))


@pytest.mark.slow
def test_a_local_job_that_could_not_be_deployed_is_left_at_once(tmp_path):
    taken = tmp_path / "taken"
    taken.touch()
    env = StreamExecutionEnvironment(
        {"execution.target": "local", "execution.runtime-mode": "BATCH", "io.tmp.dirs": str(taken)}
    )
    env.from_collection([1]).key_by(lambda n: n).sum().print()
    job = env.execute_async("undeployed")
    with pytest.raises(Exception, match="io.tmp.dirs"):
        job.get_job_execution_result().result()
    began = time.monotonic()
    del job
    gc.collect()
    assert time.monotonic() - began < 5


def test_giving_up_a_result_leaves_the_job_that_writes_it_alone():
    env = environment()
    kept = env.from_collection([1, 2, 3]).map(lambda n: n * n).cache()
    kept.map(str).sink_to(CollectSink("texts"))
    job = env.execute_async("writes")
    kept.invalidate()
    result = job.get_job_execution_result().result()
    assert sorted(result.get_accumulator_result("texts")) == ["1", "4", "9"]
    assert sorted(kept.execute_and_collect()) == [1, 4, 9]
    folders = [store._folder for _, store in kept._result._given_up]
    env.close()
    assert not any(map(os.path.exists, folders))


def test_records_of_a_class_within_a_function_are_kept():
    class Reading:
        def __init__(self, value):
            self.value = value

    env = environment()
    kept = env.from_collection([1, 2]).map(Reading).cache()
    for _ in range(2):
        found = list(kept.execute_and_collect())
        assert [type(reading) for reading in found] == [Reading, Reading]
        assert [reading.value for reading in found] == [1, 2]
    env.close()


class Locked:
    """Can be copied, and cannot be pickled."""

    def __init__(self):
        self.lock = threading.Lock()

    def __deepcopy__(self, memo):
        return Locked()

    def __repr__(self):
        return "Locked()"


def test_a_record_that_cannot_be_kept_is_named():
    env = environment()
    kept = env.from_collection([1, 2]).map(lambda n: (n, Locked()) if n == 2 else (n, None)).cache()
    said = r"serialize a record of a cached stream, \(2, Locked\(\)\): Locked.lock, a lock: .*cannot pickle"
    with pytest.raises(JobFailed, match=said):
        list(kept.execute_and_collect())
    env.close()


def test_a_full_disk_is_named_with_the_remedy(tmp_path):
    os.symlink("/dev/full", tmp_path / "0.blocks")
    said = r"cached result .*0\.blocks cannot be written \(.*No space left on device\); free space there, or set io.tmp"
    with pytest.raises(OSError, match=said):
        FileBlocks(str(tmp_path)).append(0, b"x")
