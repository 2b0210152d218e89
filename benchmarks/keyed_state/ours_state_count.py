"""Keyed ValueState counts by a Python KeyedProcessFunction: records per CPU second of the keyed task.

Source and keyed task are in two slot sharing groups, so that they are two processes: the CPU time of the second is that
of the keyed task, with all that receives and decodes its records, and with RocksDB's own threads.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from benchmarks.keyed_state.keyed_counts import Count, CountAndTell, Draw, DrawnKeys, Kind
from benchmarks.runs.job_numbers import flat, ready_ms, working_seconds
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.runs.starting_gun import HeldBack, starting_gun

KEYS = 1_000_000
RECORDS = 4_000_000
TARGET_M_ROWS_PER_CPU_SECOND = 0.5
TARGET_ROCKSDB_SLOWER = 2.0


@dataclass(frozen=True)
class Case:
    """Keys drawn in one way, counted in one backend; one that `tells` gives each fourth count of a key."""

    backend: str
    kind: Kind
    tells: bool = False

    @property
    def name(self) -> str:
        """As in a table: "hashmap_hot"."""
        return f"{self.backend}_{self.kind}{'_tells' if self.tells else ''}"


CASES = (
    Case("hashmap", "uniform"),
    Case("hashmap", "zipf"),
    Case("hashmap", "hot"),
    Case("hashmap", "uniform", True),
    Case("rocksdb", "uniform"),
    Case("rocksdb", "zipf"),
    Case("rocksdb", "hot"),
)


def state_count(case: Case, keys: int, records: int, options: Mapping[str, Any]) -> tuple[dict[str, float], Any]:
    """Each key once, then `records` drawn ones, which are measured; the numbers, and the job's result.

    Raises:
        RuntimeError: not each key or not each record was counted.
    """
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    given = {**options, "state.backend.type": case.backend}
    env = StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(1)
    function = (CountAndTell if case.tells else Count)(keys, case.backend)
    with starting_gun() as gun:
        drawn = DrawnKeys(Draw(case.kind, keys), fill=True, count=records)
        stream = env.from_source(HeldBack(drawn, gun.path), None, "Keys").slot_sharing_group("source")
        counted = stream.key_by(itemgetter(0)).process(function).slot_sharing_group("counted")
        counted.sink_to(DiscardingSink())
        result = gun.run(env, f"State count, {case.name}")
    task, found = result.vertices[-1], result.get_accumulator_result
    if (found("new_keys"), task["numRecordsIn"]) != (keys, keys + records):
        raise RuntimeError(
            f"{case.name}: {found('new_keys'):.0f} keys of {task['numRecordsIn']} records were counted; there were "
            f"{keys} and {keys + records}"
        )
    seconds = working_seconds(result.vertices, gun.fired)
    return {
        "m_rows_per_cpu_second": records / found("process_cpu") / 1e6,
        "m_rows_per_cpu_second_of_thread": records / found("thread_cpu") / 1e6,
        "m_rows_per_second_with_fill": (keys + records) / seconds / 1e6,
        "memory_mb": found("memory_mb"),
    }, result


def run(
    data_path: str | None, keys: int = KEYS, records: int = RECORDS, target: str = "ray", **options: Any
) -> dict[str, Any]:
    """Each case a job, on one Ray."""
    began = time.time()
    given = {"execution.target": target, **options}
    cases: dict[str, dict[str, float]] = {}
    ready = 0.0
    with bounded_ray(2) if target == "ray" else nullcontext():
        for case in CASES:
            cases[case.name], result = state_count(case, keys, records, given)
            ready = ready or ready_ms(result.vertices) / 1000
    return {
        "rows": len(cases) * (keys + records),
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
        **slower(cases),
        "target_m_rows_per_cpu_second": TARGET_M_ROWS_PER_CPU_SECOND,
        "target_rocksdb_hot_slower_at_most": TARGET_ROCKSDB_SLOWER,
    }


def slower(cases: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Of each draw that both backends ran, how many times as much CPU RocksDB took.

    >>> rate = "m_rows_per_cpu_second"
    >>> slower({"hashmap_hot": {rate: 3}, "rocksdb_hot": {rate: 2}, "hashmap_zipf": {rate: 1}})
    {'rocksdb_hot_slower': 1.5}
    """
    rates = {name: numbers["m_rows_per_cpu_second"] for name, numbers in cases.items()}
    pairs = {name: name.replace("rocksdb_", "hashmap_") for name in rates if name.startswith("rocksdb_")}
    return {f"{name}_slower": rates[hashmap] / rates[name] for name, hashmap in pairs.items()}
