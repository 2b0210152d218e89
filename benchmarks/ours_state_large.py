"""Updates of 50 M preloaded counts on RocksDB, drawn uniformly, in a fixed window behind a warm-up.

The keyed task's process is capped alike to Flink's: so much managed memory, and so many bytes of file pages.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

from rayflink.common.functions import KeyedProcessFunction, RuntimeContext
from rayflink.state.descriptors import ValueStateDescriptor

from .job_numbers import working_seconds
from .keyed_counts import Draw, DrawnKeys, add_numbers, check_backend, has_rocksdb, peak_memory_mb
from .page_cache import page_cache_cap
from .ray_bounded import bounded_ray
from .starting_gun import HeldBack, starting_gun
from .state_large import KEYS, MANAGED_MB, PAGE_CACHE_MB, WARM_SECONDS, WINDOW_SECONDS, Size

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
        size: of the measurement, which begins when each key has come once.
        backend: "hashmap" or "rocksdb", where the state must be.
        entrance: of a control group for the process; None for none.
    """

    def __init__(self, size: Size, backend: str, entrance: Path | None = None) -> None:
        self._size, self._backend, self._entrance = size, backend, entrance

    def open(self, runtime_context: RuntimeContext) -> None:
        """Enter the control group, register the state."""
        if self._entrance is not None:
            self._entrance.write_text(str(os.getpid()))
        self._runtime = runtime_context
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))
        check_backend(self._count, self._backend)
        self._new_keys = self._updates = 0
        self._began = 0.0
        self._marks: list[Mark] = []

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Count one more of the key."""
        count = self._count.value()
        if count is None:
            self._new_keys += 1
            count = -1
        else:
            self._updates += 1
            if not self._updates & _LOOKS_EVERY:
                self._look()
        self._count.update(count + 1)

    def _look(self) -> None:
        now = time.monotonic()
        if not self._began:
            self._began = now
        elif not self._marks:
            if now - self._began >= self._size.warm_seconds:
                self._marks.append(Mark.now(self._updates))
        elif len(self._marks) == 1 and now - self._marks[0].seconds >= self._size.window_seconds:
            self._marks.append(Mark.now(self._updates))

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
                "new_keys": self._new_keys,
            }
            add_numbers(self._runtime, numbers)


def disk_read_bytes() -> int:
    """What this process has had read from disks; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes:"))


def update(size: Size, backend: str, entrance: Path | None, options: Mapping[str, Any]) -> dict[str, float]:
    """Preload `size.keys` keys, one record each, then measure; its numbers.

    Raises:
        RuntimeError: the window did not end, or keys are missing.
    """
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment

    given = {**options, "state.backend.type": backend}
    env = StreamExecutionEnvironment.get_execution_environment(given).set_parallelism(1)
    drawn_for = size.warm_seconds + size.window_seconds + _DRAWS_LONGER_SECONDS
    with starting_gun() as gun:
        drawn = DrawnKeys(Draw("uniform", size.keys), fill=True, seconds=drawn_for)
        stream = env.from_source(HeldBack(drawn, gun.path), None, "Keys").slot_sharing_group("source")
        counted = stream.key_by(itemgetter(0)).process(TimedCount(size, backend, entrance))
        counted.slot_sharing_group("counted").sink_to(DiscardingSink())
        result = gun.run(env, f"State of {size.keys} keys")
    names = ("updates_per_second", "cores_busy", "disk_read_bytes_an_update", "memory_mb", "updates", "new_keys")
    numbers = {name: result.get_accumulator_result(name) for name in names}
    if numbers["updates"] is None:
        raise RuntimeError(f"the window of {size.window_seconds:g} s had not ended when the last record came")
    if numbers["new_keys"] != size.keys:
        raise RuntimeError(f"{numbers['new_keys']:.0f} keys came, wanted {size.keys}")
    return {**numbers, "seconds_of_job": working_seconds(result.vertices, gun.fired)}


def run(
    data_path: str | None,
    keys: int = KEYS,
    warm_seconds: float = WARM_SECONDS,
    window_seconds: float = WINDOW_SECONDS,
    backend: str = "rocksdb",
    **options: Any,
) -> dict[str, Any]:
    """One job, its keyed task capped.

    Raises:
        RuntimeError: this rayflink has no RocksDB.
    """
    began = time.time()
    if backend == "rocksdb" and not has_rocksdb():
        raise RuntimeError("rayflink does not heed state.backend.type yet")
    given = {"execution.target": "ray", "taskmanager.memory.managed.size": f"{MANAGED_MB}m", **options}
    size = Size(keys, warm_seconds, window_seconds)
    on_ray = given["execution.target"] == "ray"
    with page_cache_cap(PAGE_CACHE_MB << 20) as entrance, bounded_ray(2) if on_ray else nullcontext():
        numbers = update(size, backend, entrance if on_ray else None, given)
    return {"rows": numbers.pop("updates"), "seconds_total": time.time() - began, **numbers}
