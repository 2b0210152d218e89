"""The job whose recovery is measured goes on where it was, and what its output tells is right."""

from __future__ import annotations

import argparse
import json
import shutil
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

import benchmarks.__main__ as program
from benchmarks.keyed_state.large_job import VALUE_BYTES, Output, Size, await_true
from benchmarks.keyed_state.large_state import Updates
from benchmarks.peers import large_state_flink
from benchmarks.runs.contestants import PythonModule, flink_large_state
from benchmarks.runs.environments import cache_directory
from benchmarks.runs.report import cost_table
from benchmarks.runs.rounds import Record
from rayflink.common.connector_base.source import PENDING
from rayflink.common.records.batches import RowBatch

MEGABYTE = Size(state_mb=1, updates=1_000)


def test_the_state_has_the_size_that_was_asked_for() -> None:
    assert MEGABYTE.keys * VALUE_BYTES == pytest.approx(1 << 20, abs=VALUE_BYTES)


def test_each_key_comes_once_and_a_source_that_was_lost_goes_on_where_it_was() -> None:
    source, records, position = Updates(MEGABYTE), [], None
    while not records or records[-1][1] < MEGABYTE.keys - 1:
        cursor = source.cursor(position)
        batch = cursor.read(1_000)
        assert isinstance(batch, RowBatch)
        records += batch.values
        position = cursor.position()
    assert records == [(key, key) for key in range(MEGABYTE.keys)]


def test_drawn_records_come_by_the_clock_and_what_was_lost_comes_at_once() -> None:
    began = time.time()
    cursor = Updates(MEGABYTE).cursor((MEGABYTE.keys, began - 2))
    late = cursor.read(10_000)
    assert isinstance(late, RowBatch)
    assert 2_000 <= len(late.values) <= (time.time() - began + 2) * 1_000 + 1
    assert [number for _, number in late.values] == list(range(MEGABYTE.keys, MEGABYTE.keys + len(late.values)))
    assert Updates(MEGABYTE).cursor((MEGABYTE.keys, time.time() + 60)).read(10) is PENDING


def test_a_bounded_source_ends_behind_the_last_drawn_record() -> None:
    cursor = Updates(MEGABYTE, count=5).cursor((MEGABYTE.keys, time.time() - 60))
    assert isinstance(batch := cursor.read(10), RowBatch) and len(batch.values) == 5
    assert cursor.read(10) is None


def test_output_is_new_when_it_is_beyond_what_any_sink_had_reached(tmp_path: Path) -> None:
    output = Output(tmp_path)
    try:
        (tmp_path / "a").write_bytes(struct.pack("<q", 7))
        first = output.await_beyond(-1, 10)
        (tmp_path / "b").write_bytes(struct.pack("<q", 6))
        (tmp_path / "c").write_bytes(struct.pack("<q", 9))
        assert output.await_beyond(7, 10) >= first
        assert output.reached == 9 and output.longest_silence(first - 5) >= 5
        with pytest.raises(RuntimeError, match="no output beyond record 9 within 0 s"):
            output.await_beyond(9, 0.05)
    finally:
        output.close()


def test_the_cost_of_checkpoints_is_taken_round_by_round() -> None:
    def record(name: str, *seconds: float) -> Record:
        runs = [{"rows": 100, "seconds_total": s, "seconds_startup": 0.0, "checkpoints": 3} for s in seconds]
        return Record(PythonModule(name, name, "nowhere"), 100, runs)

    lines = cost_table([record("plain", 1.0, 2.0), record("taking", 1.25, 4.0)]).splitlines()
    assert "| -" in lines[2] and "35.0 (20.0 to 50.0)" in lines[3]


def test_what_does_not_come_true_is_named() -> None:
    with pytest.raises(RuntimeError, match="no miracle within 0 s"):
        await_true(lambda: False, 0.01, "miracle")


def test_flink_takes_part_with_its_defaults_and_where_they_decide_with_less_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(program, "measure", lambda contestants, *rest: asked.extend(contestants))
    common = {"peers": ["flink"], "runs": 1, "small": True, "state_mb": 5, "rounds": None}
    program._large_state(argparse.Namespace(name="recovery", **common))
    (ours, _, _), *peers = asked
    assert ours.params == {"state_mb": 5, "updates": 2_000, "rounds": 1}
    assert [peer for peer, _, _ in peers] == flink_large_state("recovery", ours.params)
    assert [bool(peer.options) for peer, _, _ in peers] == [False, True]


def test_a_cluster_that_does_not_start_says_why_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    java = [sys.executable, "-S", "-c", "import sys; sys.exit('It failed.\\nCaused by: bad luck')"]
    with pytest.raises(RuntimeError, match=r"^the jobmanager ended: bad luck$"):
        large_state_flink.run(None, "checkpoint_sync", java, {})
    assert not list(tmp_path.iterdir()) and not _javas(java)


def test_flink_is_rescaled_when_as_many_new_tasks_as_wanted_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def running(*milliseconds: int) -> dict[str, Any]:
        return {"state": "RUNNING", "attempt": 1, "timestamps": dict(zip(["RUNNING"], milliseconds, strict=False))}

    job, asked = large_state_flink.FlinkJob(Size(), tmp_path, [], {}), []
    new = int((time.time() + 60) * 1000)
    monkeypatch.setattr(job, "asks_every_s", 0.001)
    old, told_twice, too_few, done = [running(5)] * 3, [running()] * 3, [running(new)] * 2, [running(new)] * 3
    answers = iter([old, told_twice, too_few, done, done, done])
    monkeypatch.setattr(job, "tasks", lambda: next(answers))

    def of_job(path: str = "", wanted: object = None) -> Any:
        asked.append((path, wanted))
        return {"vertices": [{"id": "source"}, {"id": "keyed"}]}

    monkeypatch.setattr(job, "_of_job", of_job)
    try:
        assert job.rescale(2).at == new / 1000
    finally:
        job.close()
    bounds = {"source": {"parallelism": {"lowerBound": 1, "upperBound": 1}}}
    bounds["keyed"] = {"parallelism": {"lowerBound": 1, "upperBound": 2}}
    assert asked[1:] == [("/resource-requirements", bounds)]


def _javas(java: list[str]) -> list[psutil.Process]:
    return [child for child in psutil.Process().children(recursive=True) if child.name() == Path(java[0]).name]


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("benchmark", ["recovery", "rescale_pause", "checkpoint_sync"])
def test_flink_goes_through_the_same_where_it_is_installed(benchmark: str) -> None:
    cache = cache_directory()
    if not list(cache.glob("flink-py*/requirements.txt")) or not shutil.which("javac"):
        pytest.skip("needs a JDK, and the Flink that python -m benchmarks installs")
    count = {"checkpoints": 3} if benchmark == "checkpoint_sync" else {"rounds": 1}
    way = flink_large_state(benchmark, {"state_mb": 2, "updates": 500, **count})[-1]
    params = json.loads(way.command(cache, None)[-1])
    numbers = large_state_flink.run(None, **params)
    assert not _javas(params["java"])
    assert numbers["rows"] > Size(state_mb=2).keys
    match benchmark:
        case "recovery":
            lost = {name.removeprefix("process."): value for name, value in numbers.items()}
            assert 0 < lost["detected_s"] <= lost["restarted_s"] <= lost["last_running_s"]
            assert lost["restarts"] >= 1 and lost["new_output_s"] >= lost["restarted_s"]
            assert numbers["state_mb"] > 2
        case "rescale_pause":
            for change in ("up_1_to_2", "down_2_to_1"):
                assert numbers[f"{change}.output_silent_s"] > 0 < numbers[f"{change}.first_output_s"]
            assert numbers["state_mb"] > 2
        case _:
            assert numbers["job.checkpoints"] == 3 and numbers["job.state_mb"] > 2
            assert numbers["job.stored_mb"] > 0 and numbers["job.sync_ms_p99"] >= numbers["job.sync_ms_p50"] >= 0
