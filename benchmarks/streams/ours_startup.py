"""From `execute()` to the first record in the user's first function, with four subtasks: Ray to start, and Ray there.

Each measurement is a program of its own in a fresh process, as a user would start it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from operator import itemgetter
from statistics import median
from typing import Any

from benchmarks.runs.job_numbers import flat
from benchmarks.runs.ray_bounded import bounded_ray
from rayflink.common.functions.function_classes import MapFunction, RuntimeContext

TARGETS = {"ray_to_start": 6.0, "ray_runs": 2.0}
WARM_JOBS = 3
_PROGRAM = "from benchmarks.streams.ours_startup import program; program({parallelism}, {jobs})"
_LIMIT_SECONDS = 120


class NoteFirst(MapFunction):
    """Gives each record as it is; the accumulator "first" is the earliest epoch seconds at which one came."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register the accumulator."""
        from rayflink.common.functions.accumulators import Minimum

        self._first = Minimum()
        self._seen = False
        runtime_context.add_accumulator("first", self._first)

    def map(self, value: Any) -> Any:
        """The record."""
        if not self._seen:
            self._seen = True
            self._first.add(time.time())
        return value


def measure_job(parallelism: int, target: str = "ray") -> dict[str, float]:
    """Run one small job of two vertices; seconds from `execute()` to its first record, and to its end."""
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": target})
    env.set_parallelism(parallelism)
    pairs = env.from_sequence(0, 999).map(NoteFirst()).map(lambda number: (number % 10, 1))
    pairs.key_by(itemgetter(0)).sum(1).sink_to(DiscardingSink())
    asked = time.time()
    result = env.execute("Start-up")
    source = result.vertices[0]["subtasks"]
    return {
        "to_first_record": result.get_accumulator_result("first") - asked,
        "to_running": min(task["timestamps"]["RUNNING"] for task in source) / 1000 - asked,
        "to_slots": min(task["timestamps"]["SCHEDULED"] for task in source) / 1000 - asked,
        "to_end": time.time() - asked,
    }


def program(parallelism: int, jobs: int) -> None:
    """What each fresh process runs: prints the times of its jobs as one JSON line."""
    times = [measure_job(parallelism) for _ in range(jobs)]
    print("\n" + json.dumps(times), flush=True)


def _in_fresh_process(parallelism: int, jobs: int, address: str) -> list[dict[str, float]]:
    environment = {**os.environ, "RAY_ADDRESS": address}
    command = [sys.executable, "-c", _PROGRAM.format(parallelism=parallelism, jobs=jobs)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LIMIT_SECONDS)
    if done.returncode:
        raise RuntimeError(f"the program failed with exit {done.returncode}: {done.stderr.strip()[-1000:]}")
    result: list[dict[str, float]] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def run(data_path: str | None, parallelism: int = 2) -> dict[str, Any]:
    """First with Ray to start, then on one that runs: two vertices of `parallelism` subtasks each."""
    began = time.time()
    cold = _in_fresh_process(parallelism, 1, "local")[0]  # starts Ray even where one runs
    with bounded_ray(parallelism) as address:
        fresh = [_in_fresh_process(parallelism, 1, address)[0] for _ in range(WARM_JOBS)]
        again = _in_fresh_process(parallelism, 2, address)[1]
    cases = {
        "ray_to_start": {**cold, "target": TARGETS["ray_to_start"]},
        "ray_runs": {
            **{name: median(times[name] for times in fresh) for name in fresh[0]},
            "to_first_record_max": max(times["to_first_record"] for times in fresh),
            "target": TARGETS["ray_runs"],
        },
        "ray_runs_second_job": again,
    }
    return {
        "seconds_total": time.time() - began,
        "cases": {**cases, "ray_runs_each": fresh},
        **flat({f"seconds.{name}": numbers for name, numbers in cases.items()}),
    }
