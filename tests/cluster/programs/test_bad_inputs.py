"""Bad inputs that need Ray to be bad: objects too big for comfort, processes that end, what cannot travel, no Ray."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from rayflink.common.errors import JobFailed, NotSerializable, TaskLost
from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow]

BIG = 40_000_000
"""Bytes; less than half of what a node of these tests has for objects."""
LOCK = threading.Lock()


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment({"execution.target": "ray"})


@pytest.mark.usefixtures("cluster")
@pytest.mark.soak
def test_large_records_are_all_drawn_though_the_job_ends_while_they_travel():
    large = environment().from_sequence(1, 3).map(lambda number: bytes([number]) * BIG)
    assert [(record[0], len(record)) for record in large.execute_and_collect()] == [(n, BIG) for n in (1, 2, 3)]


@pytest.mark.usefixtures("cluster")
def test_large_records_and_large_values_of_a_function_travel_between_tasks():
    held = b"x" * BIG
    large = environment().from_collection([1]).map(lambda number: held).rebalance().map(len)
    assert large.execute_and_collect(limit=2) == [BIG]


@pytest.mark.usefixtures("cluster")
def test_a_function_that_ends_its_process_is_a_lost_task_that_is_named():
    env = environment()
    env.from_collection([1]).map(lambda number: os._exit(3)).name("ends").print()
    with pytest.raises(TaskLost, match=r"lost task .*ends.* its process \(pid: ") as caught:
        env.execute()
    assert caught.value.remedy in str(caught.value)


def guarded(number: int) -> int:
    with LOCK:
        return number


@pytest.mark.usefixtures("cluster")
def test_a_global_that_cannot_travel_is_named_before_anything_starts():
    guarded.__module__ = "__main__"  # as in a script of its own, which travels by value
    env = environment()
    env.from_collection([1]).map(guarded).name("guard").print()
    told = "step 'guard' .*guarded -> global LOCK, a lock.*create it in open"
    with pytest.raises(NotSerializable, match=told) as caught:
        env.execute()
    assert os.path.basename(__file__) in caught.value.line


class Unreadable:
    """Can be pickled, and not unpickled."""

    def __reduce__(self) -> Any:
        return int, ("x",)


@pytest.mark.usefixtures("cluster")
def test_a_record_that_cannot_be_read_names_the_cause_and_shows_no_frame_of_ours():
    env = environment()
    env.from_collection([1]).map(lambda number: Unreadable()).rebalance().map(str).print()
    with pytest.raises(JobFailed, match="a batch of 1 records cannot be read .ValueError: invalid literal") as caught:
        env.execute()
    assert "Traceback" not in str(caught.value)


@pytest.mark.usefixtures("cluster")
@pytest.mark.soak
def test_a_line_of_megabytes_is_printed_whole(capfd):
    env = environment()
    env.from_collection(["x" * 3_000_000]).print()
    env.execute()
    assert "x" * 3_000_000 + "\n" in capfd.readouterr().out


def test_a_ray_that_cannot_start_says_why_and_how_to_run_without(tmp_path: Path):
    script = tmp_path / "job.py"
    script.write_text(
        "from rayflink.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_sequence(1, 3).print()\n"
        "env.execute()\n",
        encoding="utf-8",
    )
    nowhere = tmp_path / "file"
    nowhere.touch()
    given = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
    ended = subprocess.run(
        [sys.executable, "-m", "rayflink", "run", str(script)],
        env={**given, "RAY_TMPDIR": str(nowhere / "below")}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 1 and not ended.stdout
    assert ended.stderr.startswith("rayflink: Ray could not be started on this machine: NotADirectoryError")
    assert "`rayflink run --local`, needs no Ray" in ended.stderr and "Traceback" not in ended.stderr
