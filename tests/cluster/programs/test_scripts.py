"""Programs as people write them, run as scripts of their own on a running Ray."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]

RECORDS = """
import enum
import math
from dataclasses import dataclass
from typing import NamedTuple

from rayflink.datastream.environment import StreamExecutionEnvironment
import beside


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


@dataclass(frozen=True)
class Place:
    name: str
    colour: Colour


class Visit(NamedTuple):
    place: Place
    times: int


class Outer:
    class Inner:
        def __init__(self, visit):
            self.visit = visit


class OnlyInWorkers:
    def __init__(self, value):
        self.value = math.floor(value)


def visit(number):
    place = Place(beside.name(number), Colour.RED if number % 2 else Colour.BLUE)
    return Outer.Inner(Visit(place, OnlyInWorkers(1.5).value))


def of_worker(inner):
    return OnlyInWorkers(inner.visit.times)


env = StreamExecutionEnvironment({"parallelism.default": 2, "pipeline.max-parallelism": 128})
visits = env.from_sequence(1, 100).map(visit)
by_place = visits.map(lambda inner: inner.visit).key_by(lambda visit: visit.place)
sums = list(by_place.reduce(lambda a, b: Visit(a.place, a.times + b.times)).execute_and_collect())
assert all(type(one) is Visit and type(one.place) is Place and one.place.colour in Colour for one in sums)
totals = {}
for one in sums:
    totals[one.place] = max(one.times, totals.get(one.place, 0))
assert totals == {
    Place("even", Colour.BLUE): 50,
    Place("odd", Colour.RED): 50,
}, totals
by_colour = list(visits.key_by(lambda inner: inner.visit.place.colour).map(of_worker).execute_and_collect())
assert [type(one) for one in by_colour] == [OnlyInWorkers] * 100
assert {one.value for one in by_colour} == {1}
print("all is well")
"""

FROM_STANDARD_INPUT = """
from rayflink.datastream.environment import StreamExecutionEnvironment

class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right

env = StreamExecutionEnvironment({"parallelism.default": 2, "pipeline.max-parallelism": 128})
pairs = env.from_sequence(1, 10).map(lambda value: Pair(value, -value)).rebalance()
found = list(pairs.map(lambda pair: (pair.left, pair.right)).execute_and_collect())
assert sorted(found) == [(value, -value) for value in range(1, 11)], found
print("all is well")
"""

PRINTS = """
import sys
from rayflink.datastream.environment import StreamExecutionEnvironment

def loud(value):
    print("mapping", value)
    if value == 3:
        print("to stderr", file=sys.stderr)
    return value

env = StreamExecutionEnvironment({"parallelism.default": 2, "pipeline.max-parallelism": 128})
numbers = env.from_collection(range(20_000))
numbers.filter(lambda value: value < 5).map(loud).print("few")
numbers.rebalance().print("many")
env.execute_async("prints").get_job_execution_result().result()
"""


def run(script: Path | None, text: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-" if script is None else str(script)]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=90)


def test_classes_of_a_script_without_a_main_guard_are_records_and_keys(tmp_path):
    (tmp_path / "beside.py").write_text("def name(number):\n    return 'odd' if number % 2 else 'even'\n")
    script = tmp_path / "job.py"
    script.write_text(RECORDS)
    done = run(script)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr
    assert done.stderr == ""


def test_a_program_from_standard_input_runs_like_one_from_a_file():
    done = run(None, FROM_STANDARD_INPUT)
    assert (done.returncode, done.stdout) == (0, "all is well\n"), done.stderr


def test_what_tasks_print_comes_to_the_terminal_plain_complete_and_in_order(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(PRINTS)
    done = run(script)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "to stderr\n"
    lines = done.stdout.splitlines()
    assert sorted(line for line in lines if line.startswith("mapping")) == [f"mapping {value}" for value in range(5)]
    many = [line for line in lines if line.startswith("many")]
    for subtask in (1, 2):
        values = [int(line.split("> ")[1]) for line in many if line.startswith(f"many:{subtask}> ")]
        assert values == sorted(values) and len(values) == 10_000
    assert len(many) == 20_000 and len(lines) == 20_010
