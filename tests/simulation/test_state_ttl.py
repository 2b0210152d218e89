"""State with a time to live in whole jobs."""

from __future__ import annotations

from typing import Any

import pytest

from rayflink.common.functions.function_classes import KeyedProcessFunction
from rayflink.common.time import Time
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.state import StateTtlConfig, ValueStateDescriptor
from rayflink.testing import Pause, ScriptedSource, rec, simulate


class Last(KeyedProcessFunction):
    """Gives the number that the key had before, also one that expired and is still there."""

    def open(self, runtime_context: Any) -> None:
        descriptor = ValueStateDescriptor("last")
        config = StateTtlConfig.new_builder(Time.seconds(2)).return_expired_if_not_cleaned_up().build()
        descriptor.enable_time_to_live(config)
        self.last = runtime_context.get_state(descriptor)

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value[0], self.last.value()
        self.last.update(value[1])


@pytest.mark.parametrize(("rate", "left"), [(5_000, None), (0, 1)])
def test_the_sweep_goes_on_while_no_record_comes(rate: int, left: int | None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"rayflink.state.ttl.sweep-rate": rate})
    script = [rec(("a", 1)), Pause(1_000), rec(("b", 2)), Pause(9_000), rec(("a", 3))]
    keyed = env.from_source(ScriptedSource(script)).key_by(lambda pair: pair[0])
    keyed.process(Last()).sink_to(CollectSink("out"))
    story = simulate(env.get_job_graph(), seed=2)
    assert story.collected("out") == [("a", None), ("b", None), ("a", left)]
