"""Keys drawn at random, and the function that counts each of them in a ValueState."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from benchmarks.inputs.one_split import OneSplitSource
from rayflink.common.connector_base.source import Polled
from rayflink.common.functions.function_classes import KeyedProcessFunction, RuntimeContext
from rayflink.common.records.batches import RowBatch
from rayflink.state.descriptors import ValueStateDescriptor

HOT_KEYS = 50_000
"""Different keys of the draw "hot", spread over all."""
_EXPONENT = 1.2
_BATCH_ROWS = 8192

Kind = Literal["uniform", "zipf", "hot"]


@dataclass(frozen=True)
class Draw:
    """Draws numbers in [0, keys): all alike often, as zipf(1.2) mod keys, or alike often of `HOT_KEYS` of them.

    >>> Draw("hot", 200_000).sample(np.random.default_rng(1), 3) % 4
    array([0, 0, 0])
    """

    kind: Kind
    keys: int

    def sample(self, random: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
        """The next `count` keys."""
        match self.kind:
            case "uniform":
                return random.integers(0, self.keys, count)
            case "zipf":
                return random.zipf(_EXPONENT, count) % self.keys
            case "hot":
                hot = min(HOT_KEYS, self.keys)
                return random.integers(0, hot, count) * (self.keys // hot)


class DrawnKeys(OneSplitSource):
    """Gives (key, 1): with `fill` each key once in random order, then drawn ones; one reader.

    Args:
        draw: of which keys.
        fill: whether each key comes once before the drawn ones.
        count: how many are drawn; None: no bound.
        seconds: time from the first drawn one after which no more are drawn; None: no bound.
    """

    def __init__(self, draw: Draw, fill: bool, count: int | None = None, seconds: float | None = None) -> None:
        self._draw, self._fill, self._count, self._seconds = draw, fill, count, seconds

    def cursor(self, given: int) -> _Cursor:
        return _Cursor(self, given)

    def batches(self) -> Iterator[npt.NDArray[np.int64]]:
        """All keys in order, a batch at a time."""
        random = np.random.default_rng(20260101)
        if self._fill:
            each = random.permutation(self._draw.keys)
            yield from (each[at : at + _BATCH_ROWS] for at in range(0, len(each), _BATCH_ROWS))
        began, given = time.monotonic(), 0
        while self._seconds is None or time.monotonic() - began < self._seconds:
            rows = _BATCH_ROWS if self._count is None else min(_BATCH_ROWS, self._count - given)
            if not rows:
                return
            yield self._draw.sample(random, rows)
            given += rows


class _Cursor:
    def __init__(self, source: DrawnKeys, given: int) -> None:
        self._batches, self._given = source.batches(), given
        for _ in range(given):
            next(self._batches)

    def read(self, max_records: int) -> Polled | None:
        keys = next(self._batches, None)
        if keys is None:
            return None
        self._given += 1
        return RowBatch([(key, 1) for key in keys.tolist()])

    def position(self) -> int:
        return self._given

    def close(self) -> None:
        self._batches = iter(())


class Count(KeyedProcessFunction):
    """Counts the records of each key and gives nothing.

    The accumulators are sums over the drawn records, from when `keys` keys have come once to the end: "process_cpu" and
    "thread_cpu" are CPU seconds of the task's process and of its thread; "new_keys" is how many keys came; "memory_mb"
    is the most that the process has had in memory.

    Args:
        keys: how many keys there are.
        backend: "hashmap" or "rocksdb", where the state must be.
    """

    def __init__(self, keys: int, backend: str) -> None:
        self._keys, self._backend = keys, backend

    def open(self, runtime_context: RuntimeContext) -> None:
        """Register state and accumulators.

        Raises:
            RuntimeError: the state is in another backend.
        """
        self._count = runtime_context.get_state(ValueStateDescriptor("count"))
        check_backend(self._count, self._backend)
        self._runtime = runtime_context
        self._new_keys, self._before = 0, (0.0, 0.0)

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Count one more of the key."""
        count = self._count.value()
        if count is None:
            self.came_first()
            count = 0
        self._count.update(count + 1)

    def came_first(self) -> None:
        """A key has come for the first time; behind the last of them the measurement begins."""
        self._new_keys += 1
        if self._new_keys == self._keys:
            self._before = time.process_time(), time.thread_time()

    def close(self) -> None:
        """Give the accumulators."""
        numbers = {
            "process_cpu": time.process_time() - self._before[0],
            "thread_cpu": time.thread_time() - self._before[1],
            "new_keys": self._new_keys,
            "memory_mb": peak_memory_mb(),
        }
        add_numbers(self._runtime, numbers)


class CountAndTell(Count):
    """Counts like `Count` and gives (key, count) at each fourth record of a key."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> Any:
        """Count one more of the key."""
        count = self._count.value()
        if count is None:
            self.came_first()
            count = 0
        count += 1
        self._count.update(count)
        if not count & 3:
            yield value[0], count


def check_backend(state: Any, wanted: str) -> None:
    """Look into a handle for where its entries are.

    Raises:
        RuntimeError: that is another backend.
    """
    table = type(state._table).__name__
    found = "hashmap" if "HashMap" in table else "rocksdb"
    if found != wanted:
        raise RuntimeError(f"state.backend.type is {wanted}, but the state is in a {table}")


def add_numbers(runtime_context: RuntimeContext, numbers: dict[str, float]) -> None:
    """Register an accumulator a number, with its value."""
    from rayflink.common.functions.accumulators import DoubleCounter

    for name, value in numbers.items():
        sums = DoubleCounter()
        sums.add(value)
        runtime_context.add_accumulator(name, sums)


def peak_memory_mb() -> float:
    """The most memory that this process has had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
