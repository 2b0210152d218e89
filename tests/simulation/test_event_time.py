"""What event time promises of whole jobs: the same results at any speed, a bounded wait, the slower of two inputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.local.in_process import InProcessCluster
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.common.time import Duration, Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment, TimeCharacteristic
from rayflink.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from rayflink.operators.event_time.watermark_operator import TimestampsAndWatermarksOperator
from rayflink.state.clock import ManualClock
from rayflink.testing import UNRELIABLE_NETWORK, Pause, ScriptedSource, rec, simulate, wm
from tests.operators.laws import answers, context, started

LATE = OutputTag("late")


def strategy_of(bound_ms: int) -> WatermarkStrategy:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(bound_ms))
    return strategy.with_timestamp_assigner(lambda value, _: value[1])


def sums(graph: Any, seed: int = 0) -> list[Any]:
    result = simulate(graph, seed, UNRELIABLE_NETWORK).result
    assert result is not None and result.failure is None
    return sorted(result.accumulators["out"])


def windowed(pause_ms: int, window: Any, **characteristic: Any) -> Any:
    """Sums per second of eight records that come with a pause after each."""
    env = StreamExecutionEnvironment.get_execution_environment({})
    if characteristic:
        env.set_stream_time_characteristic(characteristic["characteristic"])
    items = [item for n in range(8) for item in (("k", n * 250, 1), Pause(pause_ms))]
    stream = env.from_source(ScriptedSource(items), None if characteristic else strategy_of(0))
    stream.key_by(lambda value: value[0]).window(window.of(Time.seconds(1))).sum(2).map(lambda value: value[2]).sink_to(
        CollectSink("out")
    )
    return env.get_job_graph()


@pytest.mark.slow
@pytest.mark.spec("E01", "E02")
def test_event_time_gives_one_result_at_any_speed_and_the_clock_another_at_each() -> None:
    paces = (1, 400, 3_000)
    assert [sums(windowed(pace, TumblingEventTimeWindows), seed) for seed, pace in enumerate(paces)] == [[4, 4]] * 3
    by_clock = [sums(windowed(pace, TumblingProcessingTimeWindows)) for pace in paces]
    assert by_clock[2] == [1] * 8 and len(by_clock[1]) in (3, 4, 5) and by_clock[1] != by_clock[2]
    ingested = TimeCharacteristic.IngestionTime
    assert sums(windowed(3_000, TumblingEventTimeWindows, characteristic=ingested)) == [1] * 8, "by when they are read"


@pytest.mark.spec("E07")
@given(st.lists(st.integers(0, 60), min_size=1), st.integers(1, 4))
def test_every_record_behind_a_watermark_is_later_where_the_bound_holds(disorder: list[int], every: int) -> None:
    records = [20 * place - shift for place, shift in enumerate(disorder)]
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(60)).with_emit_every(every)
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy, 0), context())
    watermark = -(2**63)
    for element in answers(operator, RowBatch(records, records)):
        if isinstance(element, Watermark):
            watermark = element.timestamp
        else:
            assert min(element.timestamps) > watermark


def late_and_waits(bound_ms: int) -> tuple[int, int]:
    """How many records are late, and how far the greatest time had gone when the first window fired."""
    env = StreamExecutionEnvironment.get_execution_environment({})
    records = [("k", 100 * (n - 5 * (n % 3 == 2))) for n in range(60)]
    stream = env.from_collection(records).assign_timestamps_and_watermarks(strategy_of(bound_ms).with_emit_every(1))
    window = stream.map(lambda value: (value[0], value[1], 1)).key_by(lambda value: value[0])
    counted = window.window(TumblingEventTimeWindows.of(Time.seconds(1))).side_output_late_data(LATE).sum(2)
    counted.sink_to(CollectSink("out"))
    counted.get_side_output(LATE).sink_to(CollectSink("late"))
    result: Any = simulate(env.get_job_graph(), 1).result
    operator = started(lambda: TimestampsAndWatermarksOperator(strategy_of(bound_ms).with_emit_every(1), 0), context())
    reached = 0
    for element in answers(operator, RowBatch(records)):
        if isinstance(element, Watermark) and element.timestamp >= 999:
            break
        if isinstance(element, RowBatch):
            reached = max(reached, *element.timestamps)  # type: ignore[misc]
    return len(result.accumulators["late"]), reached


@pytest.mark.spec("E09", "E10")
def test_a_larger_bound_makes_fewer_records_late_and_windows_wait_longer() -> None:
    late, waits = zip(*[late_and_waits(bound_ms) for bound_ms in (0, 200, 500)], strict=True)
    assert late[0] > late[1] > late[2] == 0
    assert waits == (1_000, 1_200, 1_500), "a window waits for its end and the bound, not for ever"


@pytest.mark.spec("E16", "E15")
def test_the_clock_follows_the_slower_of_two_inputs_and_faster_records_wait_in_state() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({})
    fast = env.from_source(ScriptedSource([*(rec(("k", 1), 1_000 * n) for n in range(5)), wm(4_999), Pause(60_000)]))
    slow = env.from_source(ScriptedSource([rec(("k", 10), 1), wm(100), Pause(30_000), wm(2_999), Pause(30_000)]))
    sums_ = fast.union(slow).key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(1))).sum(1)
    sums_.sink_to(CollectSink("out"))
    clock = ManualClock(0)
    cluster = InProcessCluster(env.get_job_graph(), clock, lambda ms: clock.advance(max(1, int(ms))))
    given_out: dict[int, int] = {}

    def look() -> None:
        for vertex in cluster.job.report.describe()["vertices"]:
            for subtask in vertex["subtasks"]:
                for operator in subtask["metrics"].get("operators", ()):
                    if operator["name"].startswith("Window"):
                        given_out[clock.now_ms() // 10_000] = operator["numRecordsOut"]

    result = cluster.run(look)
    assert given_out[2] == 0, "the fast input is five windows ahead"
    assert given_out[5] == 3, "those that the slow one has passed"
    assert sorted(pair[1] for pair in result.accumulators["out"]) == [1, 1, 1, 1, 11]
