"""What a program carries to the processes that run it."""

from __future__ import annotations

import pickletools
from typing import Any

from rayflink.actors.user_code import pack
from rayflink.common import Duration, Types, WatermarkStrategy
from rayflink.common.functions import CoMapFunction
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows


def modules_named(data: bytes) -> set[str]:
    """The modules of rayflink that a pickle loads."""
    texts = [argument for _, argument, _ in pickletools.genops(data) if isinstance(argument, str)]
    return {text for text in texts if text.startswith("rayflink.")}


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


def test_a_process_that_runs_tasks_loads_nothing_of_the_api():
    env = StreamExecutionEnvironment({"execution.target": "local"})
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    numbers = env.from_sequence(0, 9).assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(int.__add__))
    pairs = numbers.map(lambda n: (n % 2, n), output_type=Types.TUPLE([Types.INT(), Types.INT()]))
    keyed = pairs.key_by(lambda pair: pair[0])
    keyed.map(tuple).sink_to(DiscardingSink())
    again = keyed.filter(bool).key_by(lambda pair: pair[0])
    again.connect(keyed).map(Both()).sink_to(DiscardingSink())
    keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).max(1).print()
    pairs.window_all(TumblingEventTimeWindows.of(Duration.of_seconds(1))).apply(lambda window, records: records).print()
    loaded = modules_named(pack(env.get_job_graph()))
    assert "rayflink.operators.factory" in loaded
    assert [name for name in loaded if name.startswith("rayflink.datastream")] == []
