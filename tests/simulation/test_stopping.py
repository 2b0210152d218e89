"""Jobs that a savepoint stops in the middle of their data: between it and their end they give nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from rayflink.common.time import Duration
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import (
    CrashBeforeNotify,
    Pause,
    ScriptedSource,
    SimulatedDisk,
    SlowStorage,
    StopWithSavepoint,
    rec,
    simulate,
    wm,
)

KEYS = 30
given: list[int] = []


class _Later(KeyedProcessFunction):
    """Gives each key 150 ms after it came, by a timer."""

    def process_element(self, value: int, ctx: Any) -> Iterable[int]:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 150)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[int]:
        given.append(ctx.get_current_key())
        yield ctx.get_current_key()


def _job(start: str = "") -> JobGraph:
    options = {"execution.state-recovery.path": start} if start else {}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    script = [item for key in range(KEYS) for item in (rec(key), Pause(7))]
    source = ScriptedSource([*script, *[Pause(100)] * 40])
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    records.key_by(lambda key: key).process(_Later()).sink_to(CollectSink())
    return env.get_job_graph()


@pytest.mark.parametrize("seed", range(2))
def test_no_timer_fires_between_the_savepoint_and_the_end(seed: int) -> None:
    given.clear()
    disk = SimulatedDisk()
    stopped = simulate(_job(), seed, [StopWithSavepoint(move=40 + 20 * seed), SlowStorage(1.0, 400)], disk)
    assert stopped.stopped_with
    simulate(_job(stopped.stopped_with), seed, disk=disk)
    assert sorted(given) == list(range(KEYS))


def _windows(start: str = "") -> JobGraph:
    """Two records of a window of ten seconds; after a while the third, and then its end."""
    options = {"execution.state-recovery.path": start} if start else {}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    begin, end = [rec(("a", 1), 1_000), rec(("a", 1), 2_000), wm(2_000)], [rec(("a", 1), 3_000), wm(20_000)]
    source = ScriptedSource([*begin, *[Pause(100)] * 40, *end])
    records = env.from_source(source, WatermarkStrategy.no_watermarks(), "script")
    windows = records.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Duration.of_seconds(10)))
    windows.sum(1).sink_to(CollectSink())
    return env.get_job_graph()


@pytest.mark.spec("E33", "H31", "advance")
@pytest.mark.parametrize(("drain", "first", "then"), [(True, [("a", 2)], [("a", 1)]), (False, [], [("a", 3)])])
def test_open_windows_fire_on_drain_and_are_in_the_savepoint_on_suspend(
    drain: bool, first: list[Any], then: list[Any]
) -> None:
    disk = SimulatedDisk()
    stopped = simulate(_windows(), 3, [StopWithSavepoint(move=100, drain=drain)], disk)
    assert stopped.stopped_with and stopped.status.value == "FINISHED"
    assert stopped.collected() == first
    again = simulate(_windows(stopped.stopped_with), 3, disk=disk)
    assert again.collected() == first + then, "what the sink had gathered is in its state"


def _two_regions(start: str = "") -> JobGraph:
    options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "10 ms"}
    if start:
        options["execution.state-recovery.path"] = start
    env = StreamExecutionEnvironment.get_execution_environment(options)
    for name in ("one", "other"):
        script = [item for number in range(20) for item in (number, Pause(7))]
        source = env.from_source(ScriptedSource(script), WatermarkStrategy.no_watermarks(), name)
        source.sink_to(CollectSink(f"from {name}"))
    return env.get_job_graph()


@pytest.mark.parametrize("seed", range(3))
def test_a_region_that_dies_at_a_complete_savepoint_restarts_those_that_ended(seed: int) -> None:
    disk = SimulatedDisk()
    stopped = simulate(_two_regions(), seed, [StopWithSavepoint(move=60), CrashBeforeNotify(name="one")], disk)
    assert stopped.restarts == 1 and stopped.stopped_with
    ended = simulate(_two_regions(stopped.stopped_with), seed, disk=disk)
    assert ended.collected("from one") == ended.collected("from other") == list(range(20))
