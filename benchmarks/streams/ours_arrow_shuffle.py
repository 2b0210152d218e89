"""Arrow over a keyed shuffle: batches made beforehand, keyed by a column, counted by the sink."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from benchmarks.runs.job_numbers import flat, ready_ms, shuffle_numbers
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.runs.starting_gun import HeldBack, starting_gun
from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.connector_base.source import (
    Boundedness,
    EnumeratorContext,
    PendingSplits,
    Polled,
    ReaderContext,
    Source,
    SplitEnumerator,
)
from rayflink.common.connector_base.split_reader import OneByOneReader, SplitCursor
from rayflink.common.records.batches import ArrowBatch, Batch

BATCH_ROWS = 1 << 16
CASES = {"int64x4": 128_000_000, "string_int64": 64_000_000}
"""Kind of batch -> rows, rounded up to whole batches."""
_TARGETS = {"int64x4": 20.0, "string_int64": 8.0}
_STRINGS = 1_000_000
_VARIANTS = 16
"""Different batches a task: enough that nearly all strings occur."""


def make_batches(kind: str, seed: int, rows: int = BATCH_ROWS, count: int = _VARIANTS) -> list[ArrowBatch]:
    """Batches with a column `key`: four int64 columns, or a string of 8 characters (1 M distinct ones) and an int64."""
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(seed)
    batches = []
    for _ in range(count):
        numbers = [random.integers(0, 1 << 62, rows) for _ in range(4)]
        if kind == "int64x4":
            columns = dict(zip(("key", "a", "b", "c"), numbers, strict=True))
        else:
            keys = pa.array([f"k{number:07d}" for number in (numbers[0] % _STRINGS).tolist()])
            columns = {"key": keys, "a": numbers[1]}
        batches.append(ArrowBatch(pa.RecordBatch.from_pydict(columns)))
    return batches


class PreparedArrowSource(Source):
    """Gives out batches that each reader makes when it starts, again and again: generating costs nothing.

    Args:
        kind: of `make_batches`.
        batches: how many batches in all, shared out over the readers.
    """

    def __init__(self, kind: str, batches: int) -> None:
        self._kind, self._batches = kind, batches

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        readers = ctx.current_parallelism()
        bounds = [self._batches * index // readers for index in range(readers + 1)]
        return PendingSplits(ctx, [stop - start for start, stop in zip(bounds, bounds[1:], strict=False)])

    def restore_enumerator(self, ctx: EnumeratorContext, state: Any) -> SplitEnumerator:
        return PendingSplits(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> _PreparedReader:
        return _PreparedReader(make_batches(self._kind, ctx.subtask))


class _PreparedReader(OneByOneReader):
    def __init__(self, prepared: Sequence[ArrowBatch]) -> None:
        super().__init__()
        self._prepared = prepared

    def open_split(self, split: int) -> SplitCursor:
        return _PreparedCursor(self._prepared, split)


class _PreparedCursor:
    def __init__(self, prepared: Sequence[ArrowBatch], left: int) -> None:
        self._prepared, self._left = prepared, left

    def read(self, max_records: int) -> Polled | None:
        if not self._left:
            return None
        self._left -= 1
        return self._prepared[self._left % len(self._prepared)]

    def position(self) -> int:
        return self._left

    def close(self) -> None:
        pass


class CountingSink(Sink):
    """Looks at how many records a batch has and forgets it; their sum is the accumulator "counted"."""

    name = "Count"

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return _CountingWriter(ctx)


class _CountingWriter(SinkWriter):
    def __init__(self, ctx: WriterContext) -> None:
        from rayflink.common.functions.accumulators import LongCounter

        self._counted = ctx.accumulators["counted"] = LongCounter()

    def write(self, batch: Batch) -> None:
        self._counted.add(len(batch))

    def flush(self, end_of_input: bool) -> None:
        pass

    def close(self) -> None:
        pass


def shuffle(kind: str, batches: int, parallelism: int, options: dict[str, Any]) -> tuple[dict[str, float], Any]:
    """Run the job on the Ray that is there, or in this process; its numbers and its result.

    Raises:
        RuntimeError: the sinks counted another number of rows than the sources gave out.
    """
    from rayflink.datastream.environment import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism)
    with starting_gun() as gun:
        stream = env.from_source(HeldBack(PreparedArrowSource(kind, batches), gun.path), None, "Arrow")
        stream.key_by("key").sink_to(CountingSink())
        result = gun.run(env, f"Arrow shuffle, {kind}")
    counted = result.get_accumulator_result("counted")
    if counted != batches * BATCH_ROWS:
        raise RuntimeError(f"the sinks counted {counted} rows, the sources gave out {batches * BATCH_ROWS}")
    return shuffle_numbers(result.vertices, gun.fired), result


def run(data_path: str | None, parallelism: int = 2, share: float = 1.0, **options: Any) -> dict[str, Any]:
    """Both kinds of batches, one job each; `share` of the rows of `CASES`."""
    began = time.time()
    ready = 0.0
    cases: dict[str, dict[str, float]] = {}
    for kind, rows in CASES.items():
        batches = -int(-rows * share // BATCH_ROWS)
        with bounded_ray(parallelism):
            given = {"execution.target": "ray", **options}
            numbers, result = shuffle(kind, batches, parallelism, given)
        ready = ready or ready_ms(result.vertices) / 1000
        cases[kind] = {**numbers, "target_m_rows_per_second": _TARGETS[kind]}
    return {
        "rows": sum(numbers["rows"] for numbers in cases.values()),
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
    }
