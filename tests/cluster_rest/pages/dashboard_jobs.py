"""The jobs that the dashboard shows in tests and pictures: one with windows, one held up, and one that fails."""

from __future__ import annotations

import time
from typing import Any

from rayflink.common import Duration, WatermarkStrategy
from rayflink.common.functions.accumulators import IntCounter
from rayflink.common.functions.function_classes import MapFunction
from rayflink.connectors.discard import DiscardingSink
from rayflink.connectors.generator import DataGeneratorSource
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.job_graph import JobGraph

HOSTILE = "<img src=x onerror=alert(1)>\u202e'\"&amp;</script>"
"""A name that would do harm where it is taken for markup."""


def environment(directory: str, **options: str) -> StreamExecutionEnvironment:
    """Return an environment for jobs with two subtasks a vertex, which take a checkpoint every second."""
    chosen = {
        "parallelism.default": "2",
        "execution.checkpointing.interval": "1 s",
        "execution.checkpointing.dir": f"{directory}/checkpoints",
        "execution.checkpointing.savepoint-dir": f"{directory}/savepoints",
        **{name.replace("_", "-"): value for name, value in options.items()},
    }
    return StreamExecutionEnvironment(chosen)


class Valid(MapFunction):
    """Counts the orders."""

    def open(self, runtime_context: Any) -> None:
        self.orders = IntCounter()
        runtime_context.add_accumulator("orders", self.orders)

    def map(self, order: Any) -> Any:
        self.orders.add(1)
        return order


def revenue(directory: str) -> JobGraph:
    """Return a job with windows by key: most orders are of one customer, some come late."""
    env = environment(directory)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(500)).with_timestamp_assigner(
        lambda order, timestamp: order[1]
    )

    def order(number: int) -> tuple[int, int, int]:
        customer = 0 if number % 5 < 3 else number % 50
        return customer, int(time.time() * 1000) - (9_000 if number % 100 == 99 else 0), number % 97

    def refund(number: int) -> tuple[int, int, int]:
        return number % 50, int(time.time() * 1000), -1

    orders = env.from_source(DataGeneratorSource(order, None, 100), strategy, "orders").uid("orders").map(Valid())
    refunds = env.from_source(DataGeneratorSource(refund, None, 40), strategy, "refunds").uid("refunds")
    windows = orders.name("valid").union(refunds).key_by(lambda order: order[0])
    sums = windows.window(TumblingEventTimeWindows.of(Duration.of_seconds(1))).reduce(
        lambda left, right: (left[0], max(left[1], right[1]), left[2] + right[2])
    )
    enriched = sums.name("revenue by customer").uid("revenue").rebalance().map(lambda total: total).name("enrich")
    enriched.sink_to(DiscardingSink()).name("warehouse").disable_chaining()
    return env.get_job_graph("revenue")


def scores(directory: str) -> JobGraph:
    """Return a job whose second vertex is too slow for its source."""

    def score(click: int) -> int:
        time.sleep(0.004)
        return click

    env = environment(directory, **{"execution.checkpointing.interval": "5 s"})
    clicks = env.from_source(DataGeneratorSource(None, None, 5000), WatermarkStrategy.no_watermarks(), "clicks")
    scored = clicks.key_by(lambda click: click % 7).map(score).name("score with the model")
    scored.sink_to(DiscardingSink()).name("alerts").disable_chaining()
    return env.get_job_graph("click scores")


def broken(directory: str) -> JobGraph:
    """Return a job with hostile names that fails at record 20, again and again."""

    def parse(number: int) -> int:
        if number == 20:
            raise ValueError(f"order {number} has no price {HOSTILE}")
        return number

    options = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "100 ms"}
    env = environment(directory, **options)
    numbers = env.from_source(DataGeneratorSource(None, None, 200), WatermarkStrategy.no_watermarks(), HOSTILE)
    numbers.map(parse).name(f"parse {HOSTILE}").sink_to(DiscardingSink())
    return env.get_job_graph(f"broken {HOSTILE}")
