"""A function is tested by itself, without an operator that the test would have to know."""

from __future__ import annotations

import pytest

from rayflink.datastream.functions import (
    FilterFunction,
    FlatMapFunction,
    KeyedProcessFunction,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
)
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.testing import OperatorHarness, operator_of, rec, verify, wm


class Upper(MapFunction):
    def map(self, value):
        return value.upper()


class Twice(FlatMapFunction):
    def flat_map(self, value):
        return [value, value]


class Short(FilterFunction):
    def filter(self, value):
        return len(value) < 2


class Stamped(ProcessFunction):
    def process_element(self, value, ctx):
        yield f"{value}@{ctx.timestamp()}"


class Join(ReduceFunction):
    def reduce(self, value1, value2):
        return value1 + value2


class Number(MapFunction):
    """Numbers the records of each key."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def map(self, value):
        self.count.update((self.count.value() or 0) + 1)
        return value, self.count.value()


class Later(KeyedProcessFunction):
    """Gives each key 10 ms after its records."""

    def process_element(self, value, ctx):
        ctx.timer_service().register_event_time_timer(ctx.timestamp() + 10)

    def on_timer(self, timestamp, ctx):
        yield ctx.get_current_key()


@pytest.mark.parametrize(
    ("function", "result"),
    [(Upper, ["A", "BC"]), (Twice, ["a", "a", "bc", "bc"]), (Short, ["a"]), (Stamped, ["a@1", "bc@2"])],
)
def test_functions_of_streams_without_keys(function, result):
    with OperatorHarness(operator_of(function)) as harness:
        harness.process("a", 1)
        harness.process("bc", 2)
        assert harness.output_values() == result


@pytest.mark.parametrize(
    ("function", "result"),
    [(Number, [("a", 1), ("b", 1), ("a", 2)]), (Join, ["a", "b", "aa"]), (Upper, ["A", "B", "A"]), (Short, [*"aba"])],
)
def test_functions_of_keyed_streams_have_the_state_of_the_key(function, result):
    with OperatorHarness(operator_of(function, key=lambda word: word[0])) as harness:
        for word in "aba":
            harness.process(word, 1)
        assert harness.output_values() == result


def test_timers_fire_at_the_watermark():
    with OperatorHarness(operator_of(Later, key=lambda word: word)) as harness:
        harness.process("a", 1)
        harness.advance_watermark(10)
        assert harness.output_values() == []
        harness.advance_watermark(11)
        assert harness.output == [wm(10), rec("a", 11), wm(11)]


@pytest.mark.slow
def test_a_function_goes_through_every_hardship():
    given = [rec("a", 1), rec("a", 2), wm(2), rec("a", 3)]
    then = [rec(("a", 1), 1), rec(("a", 2), 2), wm(2), rec(("a", 3), 3)]
    verify(operator_of(Number, key=lambda word: word), elements=given, then=then)


@pytest.mark.parametrize(("function", "message"), [(Later, "without keys .*; give a key"), (object, "found object")])
def test_a_function_that_no_such_stream_takes_is_refused(function, message):
    with pytest.raises(TypeError, match=message):
        OperatorHarness(operator_of(function))
