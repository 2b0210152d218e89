"""Cached streams on Ray: what one job keeps, another reads."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
import ray

from rayflink.actors.on_ray.driver import ray_cache
from rayflink.common.errors import TaskLost
from rayflink.datastream import StreamExecutionEnvironment

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


def test_a_cached_stream_is_computed_once_and_again_once_it_is_invalidated(tmp_path):
    calls = tmp_path / "calls"
    calls.touch()

    def noted(number: int) -> int:
        with calls.open("a") as file:
            file.write("x")
        return number

    env = StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2})
    kept = env.from_sequence(1, 1_000).map(noted).cache()
    assert sorted(kept.execute_and_collect()) == list(range(1, 1_001))
    assert len(calls.read_text()) == 1_000
    assert sorted(kept.map(lambda n: n + 1).execute_and_collect()) == list(range(2, 1_002))
    assert len(calls.read_text()) == 1_000
    kept.invalidate()
    assert len(list(kept.execute_and_collect())) == 1_000
    assert len(calls.read_text()) == 2_000
    env.close()


SCRIPT = """
from dataclasses import dataclass

from rayflink.datastream import StreamExecutionEnvironment


@dataclass
class Reading:
    value: int


env = StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2})
kept = env.from_sequence(1, 100).map(Reading).cache()
for _ in range(2):
    assert sorted(kept.map(lambda reading: reading.value).execute_and_collect()) == list(range(1, 101))
found = list(kept.execute_and_collect())
assert all(isinstance(reading, Reading) for reading in found)
kept_again = kept.rebalance().filter(lambda reading: True).cache()
for _ in range(2):
    found = list(kept_again.execute_and_collect())
    assert all(isinstance(reading, Reading) for reading in found)
print(len(found))
env.close()
"""


@pytest.mark.soak
def test_records_of_a_class_of_the_script_are_read_where_the_program_omits_it(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(SCRIPT)
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=180)
    assert ended.returncode == 0, ended.stderr[-4_000:]
    assert ended.stdout.split()[-1] == "100"


def test_a_result_whose_actor_was_killed_is_computed_again_at_once():
    env = StreamExecutionEnvironment({"execution.target": "ray", "parallelism.default": 2})
    kept = env.from_sequence(1, 1_000).cache()
    for _ in range(2):
        assert sorted(kept.execute_and_collect()) == list(range(1, 1_001))
        store = kept._result.place.store
        actor = ray_cache._actors[store._name]
        os.kill(ray.get(actor.process.remote()), signal.SIGKILL)
    with pytest.raises(TaskLost, match="cached result .* has died"):
        store.read(0, 0)
    env.close()
