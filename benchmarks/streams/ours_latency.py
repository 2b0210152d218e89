"""Latency over one keyed shuffle at fixed rates, and of the control plane while a job runs as fast as it can."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil
from operator import itemgetter
from typing import Any

from benchmarks.runs.job_numbers import calls, flat, ready_ms, working_seconds
from benchmarks.runs.ray_bounded import bounded_ray
from benchmarks.streams.ours_w1 import split
from rayflink.common.connector_base.sink import Sink, SinkWriter, WriterContext
from rayflink.common.functions.accumulators import Histogram
from rayflink.common.records.batches import Batch, rows_of

RATES = (1_000, 10_000)
"""Events a second, of all source subtasks together."""
WARM_SECONDS = 2
"""Events of so long after the start are not measured: the sinks may not have been there yet."""
BUFFER_TIMEOUT_MS = 10
TARGET_P99_MS = 50.0
_KEYS = 1_000
_EXACT_BITS = 8


def bucket(value: int) -> int:
    """The lower end of a value's bucket: exact below 256, then within 1/128 of the value, as in an HDR histogram.

    >>> bucket(200), bucket(1_000_000)
    (200, 999424)
    """
    shift = max(value.bit_length() - _EXACT_BITS, 0)
    return value >> shift << shift


def quantile(counts: Mapping[int, int], share: float) -> int:
    """The smallest value that at least `share` of all counted values do not exceed.

    Raises:
        ValueError: nothing was counted.
    """
    wanted = ceil(sum(counts.values()) * share)
    passed = 0
    for value, count in sorted(counts.items()):
        passed += count
        if passed >= wanted:
            return value
    raise ValueError("no latency was recorded: the job gave no event after its warm-up")


class Stamp:
    """index -> (key, index, time.time_ns())."""

    def __call__(self, index: int) -> tuple[int, int, int]:
        return index % _KEYS, index, time.time_ns()


class LatencySink(Sink):
    """Counts microseconds from stamp to write in the accumulator "latency_us", by `bucket`; no event below `first`.

    Args:
        shares: [start, stop) of the indices each source subtask gives out; the first `skipped` of each do not count.
        skipped: events.
    """

    name = "Latency"

    def __init__(self, shares: Sequence[tuple[int, int]], skipped: int) -> None:
        self._shares, self._skipped = tuple(shares), skipped

    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        measured = [range(start + self._skipped, stop) for start, stop in self._shares]
        return _LatencyWriter(ctx, measured)


class _LatencyWriter(SinkWriter):
    def __init__(self, ctx: WriterContext, measured: Sequence[range]) -> None:
        self._measured = measured
        self._histogram = ctx.accumulators["latency_us"] = Histogram()

    def write(self, batch: Batch) -> None:
        now = time.time_ns()
        for _, index, stamp in rows_of(batch):
            if any(index in some for some in self._measured):
                self._histogram.add(bucket(max(now - stamp, 0) // 1000))

    def flush(self, end_of_input: bool) -> None:
        pass

    def close(self) -> None:
        pass


def shuffle_latency(
    rate: int, seconds: float, parallelism: int, options: Mapping[str, Any]
) -> tuple[dict[str, float], Any]:
    """Latency of events that come `rate` a second for `seconds` after the warm-up, and the job's result."""
    from rayflink.connectors.generator import DataGeneratorSource
    from rayflink.datastream.environment import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism).set_buffer_timeout(BUFFER_TIMEOUT_MS)
    count = int(rate * (WARM_SECONDS + seconds))
    bounds = [count * index // parallelism for index in range(parallelism + 1)]
    sink = LatencySink(list(zip(bounds, bounds[1:], strict=False)), rate * WARM_SECONDS // parallelism)
    events = env.from_source(DataGeneratorSource(Stamp(), count, rate), None, "Events")
    events.key_by(itemgetter(0)).sink_to(sink)
    result = env.execute(f"Latency at {rate} events/s")
    counts = result.get_accumulator_result("latency_us")
    source = result.vertices[0]
    took = working_seconds(result.vertices)
    numbers = {
        "events_measured": sum(counts.values()),
        "events_per_second": result.vertices[1]["numRecordsIn"] / took,
        **{f"p{name}_ms": quantile(counts, float(name) / 100) / 1000 for name in ("50", "99", "99.9")},
        "max_ms": max(counts) / 1000,
        "target_p99_ms": TARGET_P99_MS,
        "calls_per_second": sum(map(calls, result.vertices)) / took,
        "effective_buffer_timeout_ms": max(t["metrics"]["effectiveBufferTimeoutMs"] for t in source["subtasks"]),
    }
    return numbers, result


class Line:
    """index -> a line of eight words, of 5,000 different ones."""

    def __init__(self) -> None:
        self._lines = [" ".join(f"w{(8 * line + word) * 7919 % 5000}" for word in range(8)) for line in range(1024)]

    def __call__(self, index: int) -> str:
        return self._lines[index % 1024]


def control_latency(seconds: float, parallelism: int, options: Mapping[str, Any]) -> dict[str, float]:
    """Round trips of `status` under an endless word count without a rate limit, and the time `cancel` takes."""
    from rayflink.actors.messages.states import JobStatus
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.connectors.generator import DataGeneratorSource
    from rayflink.datastream.environment import StreamExecutionEnvironment

    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism)
    lines = env.from_source(DataGeneratorSource(Line()), None, "Lines")
    lines.flat_map(split).key_by(itemgetter(0)).sum(1).sink_to(DiscardingSink())
    client = env.execute_async("Full speed")
    _wait_for_rows(client)
    trips: Counter[int] = Counter()
    before, since = _rows(client), time.monotonic()
    while (started := time.monotonic()) - since < seconds:
        client.status()
        took = time.monotonic() - started
        trips[int(took * 1e6)] += 1
        time.sleep(max(0.0, 0.02 - took))  # fifty a second: enough to see a tail, too few to be a load
    rate = (_rows(client) - before) / (time.monotonic() - since)
    asked = time.monotonic()
    client.cancel()
    accepted = time.monotonic()
    ended = client.wait()
    if ended.status is not JobStatus.CANCELED:
        raise RuntimeError(f"the cancelled job ended {ended.status.value}: {ended.failure}")
    return {
        "status_calls": sum(trips.values()),
        **{f"status_p{name}_ms": quantile(trips, float(name) / 100) / 1000 for name in ("50", "99")},
        "status_max_ms": max(trips) / 1000,
        "cancel_call_ms": (accepted - asked) * 1000,
        "cancel_to_canceled_ms": (time.monotonic() - asked) * 1000,
        "target_p99_ms": TARGET_P99_MS,
        "m_rows_per_second": rate / 1e6,
    }


def _rows(client: Any) -> int:
    return int(client.status()["vertices"][1]["numRecordsIn"])


def _wait_for_rows(client: Any, limit_seconds: float = 60.0) -> None:
    since = time.monotonic()
    while not _rows(client):
        if time.monotonic() - since > limit_seconds:
            raise RuntimeError(f"no record reached the word count within {limit_seconds:g} s: {client.status()}")
        time.sleep(0.1)


def run(data_path: str | None, parallelism: int = 2, seconds: float = 10.0, **options: Any) -> dict[str, Any]:
    """A job a rate, then the control plane, each for `seconds`; all on one Ray."""
    began = time.time()
    given = {"execution.target": "ray", **options}
    cases: dict[str, dict[str, float]] = {}
    ready = 0.0
    with bounded_ray(parallelism):
        for rate in RATES:
            cases[f"rate_{rate}"], result = shuffle_latency(rate, seconds, parallelism, given)
            ready = ready or ready_ms(result.vertices) / 1000
        cases["control"] = control_latency(seconds, parallelism, given)
    return {
        "rows": sum(numbers.get("events_measured", 0) for numbers in cases.values()),
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
    }
