"""Event time while sources are idle: it stands still, or goes on by the clock, also through several steps."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.errors import ConfigError
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import MAX_TIMESTAMP, MIN_TIMESTAMP, Watermark, WatermarkStatus
from rayflink.common.time import Time
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.operators.event_time.idle_advance import IdleAdvance
from rayflink.operators.event_time.watermark_valve import InputWatermarks
from rayflink.state.clock import ManualClock
from rayflink.testing import UNRELIABLE_NETWORK, Pause, ScriptedSource, SlowSink, active, idle, rec, simulate, wm

LATE = OutputTag("late")
OPTION = "rayflink.watermark.idle-advance-delay"
SILENCE = Pause(60_000)


def job(timeout: str | None) -> Any:
    """A source that is idle for a minute before it gives a record of the past; windows of windows of a second."""
    options = {"pipeline.auto-watermark-interval": "20 s", **({} if timeout is None else {OPTION: timeout})}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(2)
    script = [rec(("a", 1), 10), rec(("b", 2), 20), wm(30), idle(), SILENCE, active(), rec(("a", 7), 40)]
    counts = env.from_source(ScriptedSource(script)).key_by(lambda pair: pair[0])
    window = counts.window(TumblingEventTimeWindows.of(Time.seconds(1))).side_output_late_data(LATE).sum(1)
    totals = window.key_by(lambda pair: "all").window(TumblingEventTimeWindows.of(Time.seconds(1)))
    totals.reduce(lambda a, b: ("all", a[1] + b[1])).sink_to(CollectSink("out"))
    window.get_side_output(LATE).sink_to(CollectSink("late"))
    return env.get_job_graph("idle")


def collected(result: Any) -> tuple[Any, Any]:
    return result.accumulators["out"], result.accumulators["late"]


@pytest.mark.parametrize(
    "timeout, answer", [(None, ([("all", 10)], [])), ("10 s", ([("all", 3)], [("a", 7)]))], ids=["off", "on"]
)
@pytest.mark.slow
def test_open_windows_close_by_the_clock_only_where_it_is_chosen(timeout: str | None, answer: Any) -> None:
    graph = job(timeout)
    for seed in range(4):
        story = simulate(graph, seed, [*UNRELIABLE_NETWORK, SlowSink(ms=20)] if seed % 2 else [])
        assert collected(story.result) == answer, story.describe(f"seed {seed}")
    clock = ManualClock(1_000)
    cluster = InProcessCluster(graph, clock, lambda ms: clock.advance(max(round(ms), 1)))
    assert collected(cluster.run()) == answer


def test_event_time_goes_on_from_the_last_watermark_after_the_timeout() -> None:
    advance = IdleAdvance(1_000, 200)
    advance.seen(True, 50, now_ms=10_000)
    advance.seen(True, 50, now_ms=10_300)
    assert (advance.due(10_499), advance.due(10_500)) == (None, 50), "half way it takes part again"
    assert (advance.next_ms, advance.due(10_999), advance.due(11_000)) == (11_000, None, 1_050)
    assert (advance.due(11_199), advance.due(11_250)) == (None, 1_300)
    advance.seen(False, 1_300, now_ms=11_300)
    assert (advance.next_ms, advance.due(99_999)) == (None, None)


@pytest.mark.parametrize("mark", [MIN_TIMESTAMP, MAX_TIMESTAMP])
def test_without_a_watermark_and_at_the_end_there_is_nothing_to_go_on_from(mark: int) -> None:
    advance = IdleAdvance(1_000, 200)
    advance.seen(True, mark, now_ms=0)
    assert advance.next_ms is None
    off = IdleAdvance(None, 200)
    off.seen(True, 5, now_ms=0)
    assert off.next_ms is None


def test_only_a_task_whose_producers_make_the_watermarks_goes_on_by_itself() -> None:
    marks = InputWatermarks([0, 0])
    marks.watermark(0, 5), marks.watermark(1, 5)
    (status,) = [*marks.status(0, True), *marks.status(1, True)]
    assert marks.sources_are_idle and isinstance(status, WatermarkStatus) and status.relayed
    downstream = InputWatermarks([0, 0])
    downstream.status(0, True, relayed=True), downstream.status(1, True)
    assert not downstream.sources_are_idle


def test_the_last_watermark_waits_for_idle_channels_too() -> None:
    for inputs in ([0, 0], [0, 1]):
        marks = InputWatermarks(inputs)
        marks.watermark(0, 5), marks.watermark(1, 5)
        marks.status(1, True)
        assert marks.watermark(0, 50) == [Watermark(50)]
        assert marks.watermark(0, MAX_TIMESTAMP) == [], "channel 1 will come back"
        assert marks.sources_are_idle
        assert Watermark(MAX_TIMESTAMP) in marks.watermark(1, MAX_TIMESTAMP)


def test_who_comes_back_behind_takes_part_once_it_has_caught_up() -> None:
    for inputs in ([0, 0], [0, 1]):
        marks = InputWatermarks(inputs)
        marks.watermark(0, 5), marks.watermark(1, 5)
        marks.status(0, True), marks.status(1, True)
        assert marks.advance_to(5) == [WatermarkStatus(False)]
        assert marks.advance_to(900) == [Watermark(900)] and marks.current == 900
        assert WatermarkStatus(False) in marks.status(0, False) and not marks.sources_are_idle
        assert marks.watermark(0, 400) == []
        assert marks.watermark(0, 950) == [Watermark(950)]


def test_the_timeout_is_above_zero() -> None:
    with pytest.raises(ConfigError, match="idle-advance-delay"):
        simulate(job("0 ms"), 0)
