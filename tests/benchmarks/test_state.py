"""The benchmarks of keyed state count what they draw and measure what they say; each job runs in this process."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import benchmarks.__main__ as program
from benchmarks.keyed_state import ours_checkpoint_sync, ours_state_count, ours_state_large, state_preload
from benchmarks.keyed_state.keyed_counts import HOT_KEYS, Count, CountAndTell, Draw, DrawnKeys, Kind
from benchmarks.keyed_state.ours_state_count import CASES, Case, state_count
from benchmarks.keyed_state.ours_state_large import update
from benchmarks.keyed_state.state_large import Size
from benchmarks.keyed_state.state_preload import sst_folder
from benchmarks.runs.contestants import flink_state_large
from benchmarks.runs.environments import Unavailable, cache_directory
from benchmarks.runs.page_cache import page_cache_cap
from benchmarks.runs.rounds import run
from rayflink.common.errors import JobExecutionError
from rayflink.datastream.environment import StreamExecutionEnvironment

LOCAL = {"execution.target": "local"}


@given(st.sampled_from(("uniform", "zipf", "hot")), st.integers(1, 200_000))
def test_drawn_keys_are_among_those_there_are(kind: Kind, keys: int) -> None:
    drawn = Draw(kind, keys).sample(np.random.default_rng(3), 100)
    assert 0 <= drawn.min() and drawn.max() < keys


def test_hot_keys_are_few_and_uniform_ones_are_not() -> None:
    random = np.random.default_rng(3)
    hot, uniform = (len(np.unique(Draw(kind, 4 * HOT_KEYS).sample(random, 400_000))) for kind in ("hot", "uniform"))
    assert HOT_KEYS * 0.99 < hot <= HOT_KEYS < 3 * HOT_KEYS < uniform


def test_a_filled_source_gives_each_key_once_and_then_as_many_drawn_ones_as_asked() -> None:
    keys = np.concatenate(list(DrawnKeys(Draw("uniform", 10_000), fill=True, count=20_000).batches()))
    assert len(keys) == 30_000
    assert sorted(keys[:10_000]) == list(range(10_000)) != list(keys[:10_000])


def test_a_source_goes_on_where_it_was() -> None:
    source = DrawnKeys(Draw("uniform", 10_000), fill=True, count=20_000)
    one = source.create_reader(None).open_split(0)  # type: ignore[arg-type]  # it looks at nothing
    first = one.read(1)
    other = source.create_reader(None).open_split(one.position())  # type: ignore[arg-type]
    assert first != one.read(1) == other.read(1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_key_and_each_drawn_record_is_counted(case: Case) -> None:
    numbers, result = state_count(case, 300, 2_000, LOCAL)
    assert result.vertices[-1]["numRecordsIn"] == 2_300
    assert numbers["m_rows_per_cpu_second"] > 0 and numbers["memory_mb"] > 10


def test_the_counts_are_those_of_the_keys() -> None:
    def last_counts(function: Count) -> list[tuple[int, int]]:
        env = StreamExecutionEnvironment.get_execution_environment({**LOCAL, "state.backend.type": "hashmap"})
        drawn = env.from_source(DrawnKeys(Draw("uniform", 5), fill=True, count=400), None, "Keys")
        counts = drawn.key_by(lambda record: record[0]).process(function)
        return sorted(dict(counts.execute_and_collect()).items())

    keys = np.concatenate(list(DrawnKeys(Draw("uniform", 5), fill=True, count=400).batches())).tolist()
    assert last_counts(CountAndTell(5, "hashmap")) == [(key, keys.count(key) // 4 * 4) for key in range(5)]
    assert last_counts(Count(5, "hashmap")) == []


def test_a_backend_that_was_not_asked_for_is_refused() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({**LOCAL, "state.backend.type": "hashmap"})
    env.from_collection([1]).key_by(abs).process(Count(1, "rocksdb")).print()
    with pytest.raises(JobExecutionError, match=r"state.backend.type is rocksdb, but the state is in a HashMapTable"):
        env.execute()


@pytest.mark.slow
def test_a_run_of_state_count_reports_each_case() -> None:
    numbers = ours_state_count.run(None, keys=2_000, records=5_000, target="local")
    assert numbers["rows"] == len(numbers["cases"]) * 7_000
    assert {case.name for case in CASES} == set(numbers["cases"])
    assert numbers["rocksdb_hot_slower"] > 0


@pytest.mark.slow
def test_updates_are_those_between_the_ends_of_the_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours_state_large, "_DRAWS_LONGER_SECONDS", 0.5)
    numbers = update(Size(2_000, 0.1, 0.4), sst_folder(tmp_path, 2_000), tmp_path / "procs", LOCAL)
    assert 0.3 < numbers["updates"] / numbers["updates_per_second"] < 5  # a machine that does much else ends it late
    assert 0.02 < numbers["cores_busy"] < 4  # a machine that does much else gives it little
    assert (tmp_path / "procs").read_text() == str(os.getpid())


@pytest.mark.slow
def test_a_window_that_does_not_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours_state_large, "_DRAWS_LONGER_SECONDS", -100.0)
    with pytest.raises(RuntimeError, match=r"the window of 100 s had not ended"):
        update(Size(2_000, 0.1, 100.0), sst_folder(tmp_path, 2_000), None, LOCAL)


@pytest.mark.slow
def test_a_key_that_was_not_preloaded_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ours_state_large, "_DRAWS_LONGER_SECONDS", 0.5)
    with pytest.raises(RuntimeError, match=r"does not hold all of 2001 keys"):
        update(Size(2_001, 0.1, 0.2), sst_folder(tmp_path, 2_000), None, LOCAL)


def test_preloaded_keys_are_made_once_and_come_in_several_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_preload, "_FILE_ROWS", 300)
    folder = sst_folder(tmp_path, 1_000)
    files = {file: file.stat().st_ino for file in folder.iterdir()}
    assert len(files) == 4
    assert sst_folder(tmp_path, 1_000) == folder != sst_folder(tmp_path, 999)
    assert {file: file.stat().st_ino for file in folder.iterdir()} == files
    assert {path.name.count("partial") for path in tmp_path.iterdir()} == {0}


def test_small_gives_few_keys_and_a_short_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(state_preload, "sst_folder", lambda folder, keys: folder / str(keys))
    monkeypatch.setattr(program, "measure", lambda contestants, *rest: asked.extend(contestants))
    common = argparse.Namespace(small=True, peers=["flink"], runs=1)
    program._state_large(argparse.Namespace(name="state_large", **vars(common)))
    (ours, _, preloaded), (flink, _, _) = asked
    assert dict(ours.params)["keys"] == int(preloaded.name) == 1_000_000
    assert flink == flink_state_large(1_000_000, 2, 5)


@pytest.mark.slow
@pytest.mark.soak
def test_flink_updates_preloaded_keys_where_it_is_installed() -> None:
    cache = cache_directory()
    if not list(cache.glob("flink-py*/requirements.txt")) or not shutil.which("javac"):
        pytest.skip("needs a JDK, and the Flink that python -m benchmarks installs")
    folder = cache / "flink-state"
    before = set(folder.iterdir()) if folder.exists() else set()
    numbers = run(replace(flink_state_large(20_000, 0.5, 1), page_cache_bytes=None).command(cache, None), 120)
    assert numbers["rows"] / numbers["updates_per_second"] == pytest.approx(1, abs=0.3)
    assert set(folder.iterdir()) <= before


@pytest.mark.slow
def test_a_capped_process_keeps_no_more_file_pages_than_it_may() -> None:
    writes = "import sys; open(sys.argv[1], 'wb').write(bytes(64 << 20)); print(flush=True); input()"
    try:
        # tmp_path may lie in memory, where no page can be given back
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as data, page_cache_cap(8 << 20) as entrance:
            command = ["sh", "-c", 'echo $$ >"$0"; exec "$@"', str(entrance), sys.executable, "-S", "-c", writes]
            with subprocess.Popen(
                [*command, data.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            ) as writer:
                assert writer.stdout is not None and writer.stdin is not None
                writer.stdout.readline()
                stat = dict(line.split() for line in (entrance.parent / "memory.stat").read_text().splitlines())
                writer.stdin.write("\n")
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert 0 < int(stat["cache"]) <= 24 << 20
    assert not entrance.parent.exists()
    assert not [thread for thread in threading.enumerate() if thread.name == "page cache cap"]


@pytest.mark.slow
def test_a_run_of_checkpoint_sync_reports_both_ways_to_compact_and_a_job() -> None:
    numbers = ours_checkpoint_sync.run(None, state_mb=8, updates=1_000, checkpoints=2)
    assert set(numbers["cases"]) == {"level", "universal", "job"}
    job = numbers["cases"].pop("job")
    for case in numbers["cases"].values():
        assert case["stored_mb"] >= case["changed_mb"] > 0.1
        assert case["state_mb"] > 7 and case["restore_s"] > 0 and case["sync_ms_p99"] >= case["sync_ms_p50"] > 0
    assert job["state_mb"] > 7 and job["checkpoints"] > 0 and job["sync_ms_p99"] >= job["sync_ms_p50"] >= 0
