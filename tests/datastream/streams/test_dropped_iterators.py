"""Local jobs whose iterator is dropped before its end: their functions close, their files go."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from rayflink.datastream import MapFunction, RuntimeExecutionMode, StreamExecutionEnvironment

HELD_AT_EXIT = """
import sys

from tests.datastream.streams.test_dropped_iterators import Noted, drawn_from_a_file, files_below

class Said(Noted):
    def close(self):
        print("closed")

found = drawn_from_a_file(sys.argv[1], Said)
print(len(files_below(sys.argv[1])))
"""

DRAWN_BY_A_THREAD_AT_EXIT = """
import sys
import threading

from tests.datastream.streams.test_dropped_iterators import Noted, drawn_from_a_file

slow = threading.Event()
begun = threading.Event()

class Said(Noted):
    def map(self, value):
        if value[0] > 1:
            begun.set()
            slow.wait(0.001)  # twenty seconds for all records
        return value

    def close(self):
        print("closed")

found = drawn_from_a_file(sys.argv[1], Said)
threading.Thread(target=lambda: list(found), daemon=True).start()
print(begun.wait(30))
"""


class Noted(MapFunction):
    """Counts copies that have been opened and not closed."""

    running = 0

    def open(self, ctx):
        Noted.running += 1

    def map(self, value):
        return value

    def close(self):
        Noted.running -= 1


def files_below(folder):
    return [name for _, _, names in os.walk(folder) for name in names]


def drawn_from_a_file(folder, function):
    """An iterator of which one record has been drawn; the others wait in a spill file, and behind the function."""
    env = StreamExecutionEnvironment(
        {
            "execution.target": "local",
            "io.tmp.dirs": str(folder),
            "taskmanager.memory.managed.size": "0 b",
            "rayflink.blocking-partition.memory": "0 b",
            "execution.buffer-timeout.interval": "0 ms",
        }
    ).set_runtime_mode(RuntimeExecutionMode.BATCH)
    numbers = env.from_sequence(1, 20_000).map(lambda n: (n, "x" * 100)).rebalance().map(function())
    found = numbers.execute_and_collect()
    assert next(found)[0] == 1
    return found


def test_a_dropped_iterator_closes_the_functions_and_removes_the_files(tmp_path):
    found = drawn_from_a_file(tmp_path, Noted)
    assert Noted.running == 1
    assert files_below(tmp_path)
    del found
    gc.collect()
    assert Noted.running == 0
    assert files_below(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("program", "said"), [(HELD_AT_EXIT, "1"), (DRAWN_BY_A_THREAD_AT_EXIT, "True")])
def test_an_iterator_open_at_program_end_closes_functions_and_removes_files(tmp_path, program, said):
    script, folder = tmp_path / "program.py", tmp_path / "spills"
    script.write_text(program)
    folder.mkdir()
    there = {**os.environ, "PYTHONPATH": os.getcwd()}
    ended = subprocess.run([sys.executable, script, folder], capture_output=True, text=True, env=there, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "did not" not in ended.stderr
    assert ended.stdout.split() == [said, "closed"]
    assert files_below(folder) == []


def test_a_job_that_raises_while_it_is_ended_leaves_no_files(tmp_path, monkeypatch):
    found = drawn_from_a_file(tmp_path, Noted)
    assert files_below(tmp_path)

    def broken(self):
        raise RuntimeError("broken round")

    monkeypatch.setattr("rayflink.actors.local.in_process.InProcessCluster.round", broken)
    with pytest.raises(RuntimeError, match="broken round"):
        found._job.abandon()
    assert files_below(tmp_path) == []
    found._ended = True
    Noted.running = 0
