"""Event time of a step with several inputs is that of the slowest of them."""

from __future__ import annotations

from itertools import chain

import pytest

from rayflink.datastream import KeyedCoProcessFunction, KeyedProcessFunction
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.testing import Pause, ScriptedSource, rec, wm
from tests.datastream.programs import environment

FAST = [rec(("fast", 0), 1), wm(1_000)]
SLOW = [*chain.from_iterable([Pause(10), rec(("slow", n), n), wm(n)] for n in range(10, 60, 10)), Pause(10)]


class AtForty(KeyedProcessFunction, KeyedCoProcessFunction):
    """At event time 40 says how many records have come."""

    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value, ctx):
        self.count.update((self.count.value() or 0) + 1)
        if self.count.value() == 1:
            ctx.timer_service().register_event_time_timer(40)

    process_element1 = process_element2 = process_element

    def on_timer(self, timestamp, ctx):
        yield timestamp, self.count.value()


def sources(env):
    return [env.from_source(ScriptedSource(script), None, name) for name, script in (("fast", FAST), ("slow", SLOW))]


@pytest.mark.spec("E14", "two-inputs")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("chained", ["true", "false"])
def test_a_timer_on_two_inputs_waits_for_the_slower_one(turned, chained):
    env = environment(**{"pipeline.operator-chaining.enabled": chained})
    first, second = (stream.key_by(lambda value: 0) for stream in sources(env)[:: -1 if turned else 1])
    assert list(first.connect(second).process(AtForty()).execute_and_collect()) == [(40, 5)]


@pytest.mark.spec("E14", "union", "E13", "timers")
def test_a_timer_behind_a_union_waits_for_the_slower_stream():
    fast, slow = sources(environment())
    assert list(fast.union(slow).key_by(lambda value: 0).process(AtForty()).execute_and_collect()) == [(40, 5)]
