"""Windows: tumbling counts by a Python AggregateFunction, sliding sums at several ratios, a million open sessions.

All in this process, one task after the other, so that the busy time of the window's two subtasks is their processor
time: decoding their input, its keys, its windows, and the sink that discards. Who makes the records is another task.
"""

from __future__ import annotations

import gc
import time
from operator import itemgetter
from typing import Any

from benchmarks.inputs.one_split import OneSplitSource
from benchmarks.runs.job_numbers import flat, ready_ms
from rayflink.common.connector_base.source import Polled
from rayflink.common.functions.function_classes import AggregateFunction
from rayflink.common.records.batches import RowBatch, Watermark

RECORDS = 1_000_000
SESSIONS = 1_000_000
BATCH_ROWS = 4096
BACKENDS = ("hashmap", "rocksdb")
RATIOS = (1, 6, 60, 600)
"""Size over slide of the sliding windows; the slide is a second."""


class Count(AggregateFunction):
    """The user's function: how many."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Any, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


class StampedSource(OneSplitSource):
    """Pairs (key, number) with timestamps, and a watermark behind each batch, in one split.

    Args:
        rows: how many records.
        keys: how many keys; record i has key i mod that, so that each key comes equally often.
        rate: records a second of event time.
    """

    def __init__(self, rows: int, keys: int, rate: int) -> None:
        self.rows, self.keys, self.rate = rows, keys, rate

    def cursor(self, given: int) -> _StampedCursor:
        return _StampedCursor(self, given)


class _StampedCursor:
    def __init__(self, source: StampedSource, start: int) -> None:
        self._source, self._next, self._mark = source, start, False

    def read(self, max_records: int) -> Polled | None:
        source, start = self._source, self._next
        if self._mark:
            self._mark = False
            return Watermark((start - 1) * 1000 // source.rate - 1)
        if start >= source.rows:
            return None
        self._next = stop = min(start + BATCH_ROWS, source.rows)
        self._mark = True
        numbers = range(start, stop)
        return RowBatch(
            [(f"key-{number % source.keys}", number & 1023) for number in numbers],
            [number * 1000 // source.rate for number in numbers],
        )

    def position(self) -> int:
        return self._next

    def close(self) -> None:
        pass


def windowed(kind: str, source: StampedSource, options: dict[str, Any], seconds: tuple[int, ...]) -> dict[str, float]:
    """Run one job; its numbers.

    Args:
        kind: tumbling or sliding.
        seconds: size, or size and slide.

    Raises:
        RuntimeError: not all records reached the window.
    """
    from rayflink.common.time import Time
    from rayflink.connectors.discard import DiscardingSink
    from rayflink.datastream.environment import StreamExecutionEnvironment
    from rayflink.datastream.window import SlidingEventTimeWindows, TumblingEventTimeWindows

    env = StreamExecutionEnvironment.get_execution_environment({"execution.target": "local", **options})
    env.set_parallelism(2)
    stream = env.from_source(source, None, "Stamped").set_parallelism(1).key_by(itemgetter(0))
    if kind == "tumbling":
        results = stream.window(TumblingEventTimeWindows.of(Time.seconds(seconds[0]))).aggregate(Count())
    else:
        results = stream.window(SlidingEventTimeWindows.of(*map(Time.seconds, seconds))).sum(1)
    results.sink_to(DiscardingSink())
    result = env.execute(f"{kind} windows of {seconds} s")
    _, window = result.vertices
    if window["numRecordsIn"] != source.rows:
        raise RuntimeError(f"{window['numRecordsIn']} records reached the window, {source.rows} were made")
    busy = window["busyTimeMs"] / 1000
    lasts, slide = source.rows // source.rate, seconds[-1]
    return {
        "rows": source.rows,
        "seconds_busy": busy,
        "m_rows_per_cpu_second": source.rows / busy / 1e6,
        "results_a_record": source.keys * (lasts + seconds[0] - slide) / slide / source.rows,
        "plain_loop": plain_loop(),
        "ready_ms": ready_ms(result.vertices),
    }


def plain_loop(rows: int = 500_000) -> float:
    """Millions of records a second of the least that Python can do: count by key in a dict; to compare machines by."""
    keys = [f"key-{number % 1000}" for number in range(rows)]
    counts: dict[str, int] = {}
    began = time.process_time()
    for key in keys:
        counts[key] = counts.get(key, 0) + 1
    return rows / (time.process_time() - began) / 1e6


def open_sessions(sessions: int, backend: str, per_session: int = 2) -> dict[str, float]:
    """As many sessions open at once, of keys that come `per_session` times: bytes each, and records a second.

    Args:
        backend: hashmap or rocksdb.
    """
    import resource

    from rayflink.operators.windows.session_windows import EventTimeSessionWindows
    from rayflink.operators.windows.window_factory import window_operator
    from rayflink.operators.windows.window_functions import aggregating
    from rayflink.testing import OperatorHarness, Place

    batches = []
    for start in range(0, sessions, BATCH_ROWS):
        numbers = range(start, min(start + BATCH_ROWS, sessions))
        batches.append(RowBatch([(f"key-{n}", n) for n in numbers], [n * 600_000 // sessions for n in numbers]))
    windows = EventTimeSessionWindows.with_gap(1_800_000)
    gc.collect()
    before = resident_bytes()
    place = Place(config={"state.backend.type": backend})
    with OperatorHarness(lambda: window_operator(itemgetter(0), windows, aggregating(Count())), place=place) as harness:
        began = time.process_time()
        for _ in range(per_session):
            for batch in batches:
                for _ in harness.operators[0].process(batch, 0):
                    pass
        filled = time.process_time() - began
        gc.collect()
        grown = resident_bytes() - before
        began = time.process_time()
        answers = harness.operators[0].process_watermark(Watermark(10_000_000))
        count = sum(len(answer) for answer in answers if isinstance(answer, RowBatch))
        fired = time.process_time() - began
    if count != sessions:
        raise RuntimeError(f"{count} sessions fired, {sessions} were open")
    return {
        "sessions": sessions,
        "bytes_a_session": grown / sessions,
        "m_rows_per_cpu_second": per_session * sessions / filled / 1e6,
        "m_sessions_fired_per_cpu_second": sessions / fired / 1e6,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def run(data_path: str | None, records: int = RECORDS, sessions: int = SESSIONS, **options: Any) -> dict[str, Any]:
    """Each case in turn."""
    began = time.time()
    cases = {"tumbling": windowed("tumbling", StampedSource(records, 1000, 10_000), options, (10,))}
    for ratio in RATIOS:
        source = StampedSource(records, 1000, 10_000)
        cases[f"sliding_{ratio}"] = windowed("sliding", source, options, (ratio, 1))
    for backend in BACKENDS:
        cases[f"sessions_{backend}"] = open_sessions(sessions, backend)
    ready = cases["tumbling"]["ready_ms"] / 1000
    for numbers in cases.values():
        numbers.pop("ready_ms", None)
    return {
        "rows": sum(int(numbers.get("rows", 0)) for numbers in cases.values()),
        "seconds_total": time.time() - began,
        "seconds_startup": ready - began,
        "cases": cases,
        **flat(cases),
    }
