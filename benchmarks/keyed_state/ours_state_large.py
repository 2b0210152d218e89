"""Updates of 50 M preloaded counts on RocksDB, drawn uniformly, in a fixed window behind a warm-up.

The keyed task ingests the preloaded keys when it is opened. Its process is capped alike to Flink's: so much managed
memory, and so many bytes of file pages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks.keyed_state.keyed_counts import Draw, DrawnKeys, add_numbers, check_backend, peak_memory_mb
from benchmarks.keyed_state.state_large import KEYS, MANAGED_MB, PAGE_CACHE_MB, WARM_SECONDS, WINDOW_SECONDS, Size
from benchmarks.keyed_state.state_preload import MAX_PARALLELISM, ingest
from benchmarks.runs.page_cache import page_cache_cap
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.runs.starting_gun import HeldBack, starting_gun
from rayflink.common.functions.function_classes import KeyedProcessFunction, RuntimeContext
from rayflink.state.descriptors import ValueStateDescriptor

_DRAWS_LONGER_SECONDS = 5.0
"""So much longer than warm-up and window keys are drawn, so that none of them runs dry."""
_LOOKS_EVERY = 255


@dataclass(frozen=True)
class Mark:
    """What the task's process had done at one moment."""

    updates: int
    seconds: float
    cpu: float
    disk_read_bytes: int

    @classmethod
    def now(cls, updates: int) -> Mark:
        return cls(updates, time.monotonic(), time.process_time(), disk_read_bytes())


class TimedCount(KeyedProcessFunction):
    """Counts the records of each key, and the updates between two moments.

    Args:
        size: of the measurement.
        preloaded: a folder of `state_preload`, with all keys.
        entrance: of a control group for the process; None for none.
    """

    def __init__(self, size: Size, preloaded: Path, entrance: Path | None = None) -> None:
        self._size, self._preloaded, self._entrance = size, preloaded, entrance

    def open(self, runtime_context: RuntimeContext) -> None:
        """Enter the control group, register the state, preload it."""
        if self._entrance is not None:
            self._entrance.write_text(str(os.getpid()))
        self._runtime = runtime_context
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))
        check_backend(self._count, "rocksdb")
        ingest(self._count, self._preloaded)
        self._missing = self._updates = 0
        self._began, self._ended = 0.0, False
        self._marks: list[Mark] = []

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Count one more of the key, until the window has ended."""
        if self._ended:
            return
        count = self._count.value()
        if count is None:
            self._missing += 1
            count = 0
        self._count.update(count + 1)
        self._updates += 1
        if not self._updates & _LOOKS_EVERY:
            self._look()

    def _look(self) -> None:
        now = time.monotonic()
        if not self._began:
            self._began = now
        elif not self._marks:
            if now - self._began >= self._size.warm_seconds:
                self._marks.append(Mark.now(self._updates))
        elif len(self._marks) == 1 and now - self._marks[0].seconds >= self._size.window_seconds:
            self._marks.append(Mark.now(self._updates))
            self._ended = True  # what still waits in buffers need not be worked

    def close(self) -> None:
        """Give what was measured as accumulators, nothing where the window did not end."""
        if len(self._marks) == 2:
            first, last = self._marks
            seconds, updates = last.seconds - first.seconds, last.updates - first.updates
            numbers = {
                "updates": updates,
                "updates_per_second": updates / seconds,
                "cores_busy": (last.cpu - first.cpu) / seconds,
                "disk_read_bytes_an_update": (last.disk_read_bytes - first.disk_read_bytes) / updates,
                "memory_mb": peak_memory_mb(),
                "missing": self._missing,
            }
            add_numbers(self._runtime, numbers)


def disk_read_bytes() -> int:
    """What this process has had read from disks; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))


def update(size: Size, preloaded: Path, entrance: Path | None, options: Mapping[str, Any]) -> dict[str, float]:
    """Run the job on the Ray that is there, or in this process; its numbers.

    Raises:
        RuntimeError: the window did not end, or keys were missing.
    """
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    given = {**options, "state.backend.type": "rocksdb"}
    env = StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(1)
    env.set_max_parallelism(MAX_PARALLELISM)
    drawn_for = size.warm_seconds + size.window_seconds + _DRAWS_LONGER_SECONDS
    with starting_gun() as gun:
        drawn = DrawnKeys(Draw("uniform", size.keys), fill=False, seconds=drawn_for)
        stream = env.from_source(HeldBack(drawn, gun.path), None, "Keys").slot_sharing_group("source")
        counted = stream.key_by(itemgetter(0)).process(TimedCount(size, preloaded, entrance))
        counted.slot_sharing_group("counted").sink_to(DiscardingSink())
        result = gun.run(env, f"State of {size.keys} keys")
    names = ("updates_per_second", "cores_busy", "disk_read_bytes_an_update", "memory_mb", "updates", "missing")
    numbers = {name: result.get_accumulator_result(name) for name in names}
    if numbers["updates"] is None:
        raise RuntimeError(f"the window of {size.window_seconds:g} s had not ended when the last record came")
    if numbers.pop("missing"):
        raise RuntimeError(f"{preloaded} does not hold all of {size.keys} keys, or RocksDB lost some")
    return numbers


def run(
    data_path: str,
    keys: int = KEYS,
    warm_seconds: float = WARM_SECONDS,
    window_seconds: float = WINDOW_SECONDS,
    **options: Any,
) -> dict[str, Any]:
    """One job, its keyed task capped; `data_path` is the folder of the preloaded keys."""
    began = time.time()
    given = {"execution.target": "ray", "taskmanager.memory.managed.size": f"{MANAGED_MB}m", **options}
    size = Size(keys, warm_seconds, window_seconds)
    with page_cache_cap(PAGE_CACHE_MB << 20) as entrance, bounded_ray(2):
        numbers = update(size, Path(data_path), entrance, given)
    return {"rows": numbers.pop("updates"), "seconds_total": time.time() - began, **numbers}
