"""Keyed, windowed and connected streams."""

from __future__ import annotations

from collections import namedtuple

import pytest

from rayflink.common import Duration, OutputTag, PlanError
from rayflink.datastream import (
    AggregateFunction,
    AllWindowFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    ReduceFunction,
    WindowFunction,
)
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.datastream.window import (
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TriggerResult,
    TumblingEventTimeWindows,
)
from tests.datastream.programs import environment, timed

Reading = namedtuple("Reading", "sensor value")
PAIRS = [("a", 1), ("b", 5), ("a", 2), ("b", 3)]
TIMED = [("a", 1, 0), ("b", 2, 3_000), ("a", 4, 4_999), ("a", 8, 5_000), ("b", 16, 9_000)]
FIVE_SECONDS = TumblingEventTimeWindows.of(Duration.of_seconds(5))


class First(KeySelector):
    def get_key(self, value):
        return value[0]


@pytest.mark.spec("C05")
@pytest.mark.parametrize("key", [0, First(), lambda record: record[0], (0,)])
def test_a_key_is_a_function_a_selector_an_index_or_a_tuple_of_them(key):
    found = list(environment(2).from_collection(PAIRS).key_by(key).sum(1).execute_and_collect())
    assert sorted(found) == [("a", 1), ("a", 3), ("b", 5), ("b", 8)]


@pytest.mark.spec("C05")
def test_a_key_is_a_name_of_a_dictionary_or_of_an_attribute():
    env = environment(2)
    dictionaries = env.from_collection([{"k": "a", "n": 1}, {"k": "b", "n": 5}, {"k": "a", "n": 2}])
    assert sorted(row["n"] for row in dictionaries.key_by("k").sum("n").execute_and_collect()) == [1, 3, 5]
    readings = env.from_collection([Reading("x", 1), Reading("y", 5), Reading("x", 2)])
    assert sorted(readings.key_by(("sensor",)).sum("value").execute_and_collect()) == [("x", 1), ("x", 3), ("y", 5)]
    pairs = readings.key_by(("sensor", "value")).process(lambda value, ctx: [ctx.get_current_key()])
    assert sorted(pairs.execute_and_collect()) == [("x", 1), ("x", 2), ("y", 5)]


@pytest.mark.parametrize("key", [True, (), (0, "name")])
def test_what_is_no_key_is_refused_in_the_users_line(key):
    with pytest.raises(TypeError, match="a key"):
        environment().from_collection(PAIRS).key_by(key)


@pytest.mark.spec("C19", "C21")
@pytest.mark.parametrize(
    ("kind", "totals"),
    [("sum", [("a", 3), ("b", 8)]), ("min", [("a", 1), ("b", 3)]), ("max", [("a", 2), ("b", 5)]),
     ("min_by", [("a", 1), ("b", 3)]), ("max_by", [("a", 2), ("b", 5)])],
)  # fmt: skip
def test_rolling_aggregates_give_a_result_for_each_record(kind, totals):
    found = list(getattr(environment(2).from_collection(PAIRS).key_by(0), kind)(1).execute_and_collect())
    assert len(found) == 4
    assert sorted(dict(found).items()) == totals


def test_reduce_takes_functions_and_reduce_functions():
    class Longest(ReduceFunction):
        def reduce(self, value1, value2):
            return max(value1, value2, key=len)

    words = environment().from_collection(["to", "take", "tea"]).key_by(lambda word: word[0])
    assert list(words.reduce(Longest()).execute_and_collect()) == ["to", "take", "take"]
    assert list(words.reduce(lambda a, b: a + b).execute_and_collect()) == ["to", "totake", "totaketea"]


class _Counts:
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def next(self):
        self.count.update((self.count.value() or 0) + 1)
        return self.count.value()


@pytest.mark.spec("G01")
def test_map_flat_map_and_filter_functions_use_the_state_of_the_key():
    class Numbered(_Counts, MapFunction):
        def map(self, value):
            return value[0], self.next()

    class Second(_Counts, FilterFunction):
        def filter(self, value):
            return self.next() == 2

    class Repeated(_Counts, FlatMapFunction):
        def flat_map(self, value):
            return [value[0]] * self.next()

    keyed = environment(2).from_collection(PAIRS).key_by(0)
    assert sorted(keyed.map(Numbered()).execute_and_collect()) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert sorted(keyed.filter(Second()).execute_and_collect()) == [("a", 2), ("b", 3)]
    assert sorted(keyed.flat_map(Repeated()).execute_and_collect()) == ["a", "a", "a", "b", "b", "b"]
    assert sorted(keyed.map(lambda pair: pair[1]).execute_and_collect()) == [1, 2, 3, 5]


@pytest.mark.spec("C22", "timers")
def test_a_keyed_process_function_has_timers():
    class AtTheEnd(_Counts, KeyedProcessFunction):
        def process_element(self, value, ctx):
            self.next()
            ctx.timer_service().register_event_time_timer(20_000)

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), self.count.value(), timestamp

    found = list(timed(environment(2), TIMED).key_by(0).process(AtTheEnd()).execute_and_collect())
    assert sorted(found) == [("a", 3, 20_000), ("b", 2, 20_000)]


def test_a_keyed_stream_can_be_keyed_again_but_not_dealt_otherwise():
    keyed = environment(2).from_collection(PAIRS).key_by(0)
    assert sorted(keyed.key_by(lambda _: "all").sum(1).execute_and_collect())[-1] == ("a", 11)
    with pytest.raises(PlanError, match="Cannot override partitioning for KeyedStream, found rebalance"):
        keyed.rebalance()


class Total(AggregateFunction):
    def create_accumulator(self):
        return 0

    def add(self, value, accumulator):
        return accumulator + value[1]

    def get_result(self, accumulator):
        return accumulator

    def merge(self, acc_a, acc_b):
        return acc_a + acc_b


class InWindow(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, list(elements)


class Applied(WindowFunction):
    def apply(self, key, window, inputs):
        return [(key, window.end, sum(value[1] for value in inputs))]


def test_windows_reduce_aggregate_apply_and_process():
    windows = timed(environment(2), TIMED).key_by(0).window(FIVE_SECONDS)
    summed = list(windows.reduce(lambda x, y: (x[0], x[1] + y[1], y[2])).execute_and_collect())
    assert sorted(summed) == [("a", 5, 4_999), ("a", 8, 5_000), ("b", 2, 3_000), ("b", 16, 9_000)]
    assert sorted(windows.aggregate(Total()).execute_and_collect()) == [2, 5, 8, 16]
    assert sorted(windows.aggregate(Total(), window_function=InWindow()).execute_and_collect()) == [
        ("a", 0, [5]), ("a", 5_000, [8]), ("b", 0, [2]), ("b", 5_000, [16])
    ]  # fmt: skip
    assert sorted(windows.apply(Applied()).execute_and_collect()) == [
        ("a", 5_000, 5), ("a", 10_000, 8), ("b", 5_000, 2), ("b", 10_000, 16)
    ]  # fmt: skip
    assert sorted(windows.process(InWindow()).execute_and_collect())[0] == ("a", 0, [TIMED[0], TIMED[2]])
    assert sorted(value for _, value, _ in windows.sum(1).execute_and_collect()) == [2, 5, 8, 16]
    assert sorted(value for _, value, _ in windows.max_by(1).execute_and_collect()) == [2, 4, 8, 16]


def test_a_window_operator_is_named_by_its_parts_and_can_be_renamed():
    env = environment()
    stream = timed(env, TIMED).key_by(0).window(FIVE_SECONDS).aggregate(Total())
    parts = "TumblingEventTimeWindows(5000), EventTimeTrigger, Total, PassThroughWindowFunction"
    assert stream.get_name() == f"Window({parts})"
    assert stream.name("totals").get_name() == "totals"


def test_a_trigger_of_the_users_own_decides():
    class EachRecord(EventTimeTrigger):
        def on_element(self, element, timestamp, window, ctx):
            return TriggerResult.FIRE_AND_PURGE

    windows = timed(environment(), TIMED[:3]).key_by(0).window(FIVE_SECONDS).trigger(EachRecord())
    assert list(windows.aggregate(Total()).execute_and_collect()) == [1, 2, 4]


def test_late_records_go_to_their_side_output():
    from rayflink.common import WatermarkStrategy
    from rayflink.common.watermarks import Watermark, WatermarkGenerator

    class AtOnce(WatermarkGenerator):
        def on_event(self, event, event_timestamp, output):
            output.emit_watermark(Watermark(event_timestamp))

        def on_periodic_emit(self, output):
            pass

    late = OutputTag("late")
    env = environment()
    strategy = WatermarkStrategy.for_generator(AtOnce).with_timestamp_assigner(lambda record, _: record[1])
    records = [("a", 1_000), ("a", 7_000), ("a", 2_000), ("a", 12_000), ("a", 3_000)]
    windows = env.from_collection(records).assign_timestamps_and_watermarks(strategy).key_by(0).window(FIVE_SECONDS)
    counted = windows.allowed_lateness(Duration.of_seconds(5)).side_output_late_data(late).process(InWindow())
    everything = counted.map(lambda r: ("window", r[1], len(r[2]))).union(
        counted.get_side_output(late).map(lambda r: ("late", r[1], 1))
    )
    assert sorted(everything.execute_and_collect()) == [
        ("late", 3_000, 1), ("window", 0, 1), ("window", 0, 2), ("window", 5_000, 1), ("window", 10_000, 1)
    ]  # fmt: skip


def test_windows_refuse_what_makes_no_sense():
    keyed = timed(environment(), TIMED).key_by(0)
    with pytest.raises(TypeError, match="a window assigner is wanted, found 5"):
        keyed.window(5)
    with pytest.raises(TypeError, match="a Trigger is wanted"):
        keyed.window(FIVE_SECONDS).trigger("count")
    with pytest.raises(PlanError, match="The allowed lateness cannot be negative"):
        keyed.window(FIVE_SECONDS).allowed_lateness(-1)


@pytest.mark.spec("C08")
def test_windows_over_all_records_are_worked_by_one_subtask():
    class AllOf(ProcessAllWindowFunction):
        def process(self, context, elements):
            yield context.window().start, len(list(elements))

    class Sums(AllWindowFunction):
        def apply(self, window, inputs):
            return [sum(value[1] for value in inputs)]

    env = environment(2)
    windows = timed(env, TIMED).window_all(FIVE_SECONDS)
    counts = windows.process(AllOf())
    assert counts._transformation.parallelism == 1
    assert list(counts.execute_and_collect()) == [(0, 3), (5_000, 2)]
    assert list(windows.apply(Sums()).execute_and_collect()) == [7, 24]
    assert list(windows.apply(lambda window, inputs: [len(inputs)]).execute_and_collect()) == [3, 2]
    assert list(windows.aggregate(Total()).execute_and_collect()) == [7, 24]
    with pytest.raises(TypeError, match="a ProcessAllWindowFunction"):
        windows.process(3)


def test_sliding_windows_hold_a_record_several_times():
    sliding = SlidingEventTimeWindows.of(Duration.of_seconds(10), Duration.of_seconds(5))
    windows = timed(environment(), [("a", 1, 7_000)]).key_by(0).window(sliding)
    found = list(windows.process(InWindow()).execute_and_collect())
    assert [start for _, start, _ in found] == [0, 5_000]


class Both(CoMapFunction):
    def map1(self, value):
        return "first", value

    def map2(self, value):
        return None if value == "skip" else ("second", value)


def test_connected_streams_are_worked_by_one_function():
    env = environment()
    numbers, words = env.from_collection([1, 2]), env.from_collection(["a", "skip"])
    found = list(numbers.connect(words).map(Both()).execute_and_collect())
    assert sorted(found) == [("first", 1), ("first", 2), ("second", "a")]

    class Spread(CoFlatMapFunction):
        def flat_map1(self, value):
            yield from range(value)

        def flat_map2(self, value):
            yield value

    assert sorted(map(str, numbers.connect(words).flat_map(Spread()).execute_and_collect())) == [
        "0", "0", "1", "a", "skip"
    ]  # fmt: skip

    class Labelled(CoProcessFunction):
        def process_element1(self, value, ctx):
            yield "number"

        def process_element2(self, value, ctx):
            yield "word"

    assert sorted(numbers.connect(words).process(Labelled()).execute_and_collect()) == ["number"] * 2 + ["word"] * 2


def test_connected_keyed_streams_share_the_state_of_the_key():
    class Joined(KeyedCoProcessFunction):
        def open(self, runtime_context):
            self.left = runtime_context.get_state(ValueStateDescriptor("left"))
            self.right = runtime_context.get_state(ValueStateDescriptor("right"))

        def process_element1(self, value, ctx):
            self.left.update(value[1])
            ctx.timer_service().register_event_time_timer(9_000)

        def process_element2(self, value, ctx):
            self.right.update(value[1])

        def on_timer(self, timestamp, ctx):
            yield ctx.get_current_key(), self.left.value(), self.right.value()

    env = environment(2)
    left, right = timed(env, [("a", 1, 0), ("b", 2, 0)]), timed(env, [("x", "a", 0)])
    joined = left.connect(right).key_by(0, 1).process(Joined())
    assert sorted(joined.execute_and_collect()) == [("a", 1, "a"), ("b", 2, None)]


def test_connected_keyed_map_functions_use_the_state_of_the_key():
    class Counted(_Counts, CoMapFunction):
        def map1(self, value):
            return value[0], self.next()

        def map2(self, value):
            return value[0], self.next()

    class Repeated(_Counts, CoFlatMapFunction):
        def flat_map1(self, value):
            return [value[0]] * self.next()

        def flat_map2(self, value):
            return None

    env = environment(2)
    first, second = env.from_collection(PAIRS).key_by(0), env.from_collection([("a", 0)]).key_by(0)
    assert sorted(first.connect(second).map(Counted()).execute_and_collect()) == [
        ("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2)
    ]  # fmt: skip
    assert sorted(first.connect(second).flat_map(Repeated()).execute_and_collect()) == list("aaabbb")


def test_a_keyed_stream_connected_with_one_that_is_not_is_only_dealt_by_key():
    class Dealt(CoMapFunction):
        def open(self, runtime_context):
            self.subtask = runtime_context.get_index_of_this_subtask()

        def map1(self, value):
            return value[0], self.subtask

        def map2(self, value):
            return "other", -1

    stream = environment(2).from_collection(PAIRS * 3)
    connected = stream.key_by(0).connect(stream)
    found = list(connected.map(Dealt()).execute_and_collect())
    assert len({pair for pair in found if pair[0] == "a"}) == 1 and found.count(("other", -1)) == 3 * len(PAIRS)
    with pytest.raises(PlanError, match=r"KeyedCoProcessFunction Never on streams without keys; call key_by"):
        connected.process(Never())


class Never(KeyedCoProcessFunction):
    def process_element1(self, value, ctx):
        raise AssertionError("it is refused")

    process_element2 = process_element1
