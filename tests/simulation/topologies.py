"""Small jobs of every shape, whose committed output is known, for runs in which everything goes wrong.

A topology writes its program into an environment; its sink commits in two phases. What it gives depends on nothing but
its input: not on order, batches, parallelism or time.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from rayflink.common import Encoder
from rayflink.common.time import Duration, Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.datastream import (
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from rayflink.datastream.async_retry_predicates import has_exception_predicate
from rayflink.datastream.connectors.file_system import BucketAssigner, FileSink, RollingPolicy
from rayflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.graph.job_graph import JobGraph
from rayflink.testing import CommittedSink, Pause, ScriptedSource, rec

Environment = StreamExecutionEnvironment
OPTIONS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1000",
    "restart-strategy.fixed-delay.delay": "10 ms",
    "execution.checkpointing.interval": "3 ms",
    "execution.checkpointing.dir": "/checkpoints",
    "execution.checkpointing.num-retained": "2",
    "pipeline.max-parallelism": "12",
    "heartbeat.interval": "500 ms",
    "heartbeat.timeout": "2 s",
}
KEYS = 7


@dataclass(frozen=True)
class Topology:
    """A job that can be run at any parallelism.

    Args:
        write: puts the program into an environment; its sink is a `CommittedSink` of the topology's name.
        options: besides `OPTIONS`.
        folder: where its sink writes files instead; "": nowhere.
    """

    name: str
    write: Callable[[Environment], object]
    options: tuple[tuple[str, str], ...] = ()
    folder: str = ""

    def graph(self, parallelism: int, options: Mapping[str, str] | None = None) -> JobGraph:
        """The job graph, with options."""
        graph = _graph(self, parallelism)
        return replace(graph, configuration={**graph.configuration, **(options or {})})

    def committed(self) -> list[object]:
        """What its sink has committed."""
        if not self.folder:
            return CommittedSink.records(self.name)
        return [line for path in Path(self.folder).glob("[!.]*") for line in path.read_text().splitlines()]

    def forget(self) -> None:
        """Let nothing be committed."""
        CommittedSink.forget(self.name)
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


@cache
def _graph(topology: Topology, parallelism: int) -> JobGraph:
    options = {**OPTIONS, **dict(topology.options), "parallelism.default": str(parallelism)}
    env = StreamExecutionEnvironment.get_execution_environment(options)
    topology.write(env)
    return env.get_job_graph(topology.name)


def timed(env: Environment, name: str, records: Iterable[tuple[Any, int]]) -> DataStream:
    """Records with event times up to 3 ms out of order; a pause in the middle."""
    items: list[Any] = [rec(value, stamp) for value, stamp in records]
    items.insert(len(items) // 2, Pause(2))
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(3)).with_emit_every(1)
    return env.from_source(ScriptedSource(items), strategy, name).uid(name)


def plain(env: Environment, scripts: int, each: int) -> DataStream:
    """Numbers from several splits, which the readers share."""
    numbers = [list(range(each * script, each * (script + 1))) for script in range(scripts)]
    source = ScriptedSource(*numbers)
    return env.from_source(source, WatermarkStrategy.no_watermarks(), "numbers").uid("numbers")


def window(env: Environment) -> None:
    """Two sources, records out of order, counted by key and window."""
    one = timed(env, "one", [((n % KEYS, 1), n ^ 1) for n in range(36)])
    two = timed(env, "two", [((n % KEYS, 10), n ^ 1) for n in range(36)])
    keyed = one.union(two).rebalance().map(lambda pair: pair).uid("map").key_by(lambda pair: pair[0])
    counts = keyed.window(TumblingEventTimeWindows.of(Time.milliseconds(8))).sum(1).uid("window")
    counts.sink_to(CommittedSink("window")).uid("sink")


def interval_join(env: Environment) -> None:
    """Pairs of records of two streams, near each other in time."""
    left = timed(env, "left", [((n % 3, n), n ^ 1) for n in range(30)])
    right = timed(env, "right", [((n % 4, -n), n ^ 2) for n in range(30)])
    near = left.key_by(lambda pair: pair[0]).interval_join(right.key_by(lambda pair: pair[0]))
    pairs = near.between(Time.milliseconds(-4), Time.milliseconds(3)).process(lambda one, other: (one[1], other[1]))
    pairs.uid("join").sink_to(CommittedSink("interval join")).uid("sink")


class Matched(KeyedCoProcessFunction):
    """An order is given out with its payment, whichever comes first; half a pair stays in state."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_element1(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self.match(value[1], 0, value[1])

    def process_element2(self, value: Any, ctx: Any) -> Iterable[Any]:
        return self.match(value[1], 1, -value[1])

    def match(self, number: int, side: int, value: int) -> Iterable[Any]:
        found = self.waiting.get((number, 1 - side))
        if found is None:
            self.waiting.put((number, side), value)
            return ()
        self.waiting.remove((number, 1 - side))
        return [(number, value + found)]


def connect(env: Environment) -> None:
    """Two inputs of one keyed function."""
    orders = plain(env, 3, 12).map(lambda n: (n % KEYS, n)).uid("orders")
    payments = env.from_collection([(n % KEYS, n) for n in reversed(range(36))]).uid("payments").rebalance()
    payments = payments.map(lambda pair: pair).uid("spread")
    keyed = orders.key_by(lambda pair: pair[0]).connect(payments.key_by(lambda pair: pair[0]))
    keyed.process(Matched()).uid("match").sink_to(CommittedSink("connect")).uid("sink")


RULES = MapStateDescriptor("rules")


class AsOfItsTime(KeyedBroadcastProcessFunction):
    """Values each with the rule that held at its time, answered by timers."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        ctx.get_broadcast_state(RULES).put(value, value * value)

    def process_element(self, value: Any, ctx: Any) -> None:
        self.waiting.put(ctx.timestamp(), value[1])
        ctx.timer_service().register_event_time_timer(ctx.timestamp())

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        rules = ctx.get_broadcast_state(RULES)
        at = max(since for since, _ in rules.items() if since <= timestamp)
        yield self.waiting.get(timestamp), rules.get(at)
        self.waiting.remove(timestamp)


def broadcast(env: Environment) -> None:
    """Rules that reach every subtask, and records that wait for their time."""
    rules = timed(env, "rules", [(n, n) for n in range(0, 40, 5)])
    values = timed(env, "values", [((n % KEYS, n), 5 + (n ^ 1)) for n in range(40)])
    joined = values.key_by(lambda pair: pair[0]).connect(rules.broadcast(RULES))
    joined.process(AsOfItsTime()).uid("rules of the time").sink_to(CommittedSink("broadcast")).uid("sink")


class Lookup(AsyncFunction):
    """Answers late, and fails for every fifth number at first."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.failed: set[int] = set()

    async def async_invoke(self, value: int) -> list[tuple[int, int]]:
        await asyncio.sleep(0.001 * (5 * value % 7))
        if value % 5 == 0 and value not in self.failed:
            self.failed.add(value)
            raise ConnectionError("away")
        return [(value % KEYS, value)]


class Numbered(KeyedProcessFunction):
    """How many records of its key came with each, and before it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield "number", value[0], count
        yield "value", value[1]


def asynchronous(env: Environment) -> None:
    """Calls under way while barriers pass, in order and as they come."""
    again = AsyncRetryStrategy.fixed_delay(3, 2, None, has_exception_predicate)
    numbers = plain(env, 3, 12)
    unordered = AsyncDataStream.unordered_wait_with_retry(numbers, Lookup(), Time.seconds(100), again, 5)
    ordered = AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), Time.seconds(100), again, 3)
    both = unordered.uid("unordered").union(ordered.uid("ordered")).key_by(lambda pair: pair[0])
    both.process(Numbered()).uid("number").sink_to(CommittedSink("asynchronous")).uid("sink")


class Delayed(KeyedProcessFunction):
    """Keeps records in a list until a timer of processing time gives them out."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_list_state(ListStateDescriptor("kept"))
        self.given = runtime_context.get_state(ValueStateDescriptor("given"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        self.kept.add(value[1])
        if value[2]:
            return list(self.flush())
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 3)
        return ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield from self.flush()

    def flush(self) -> Iterable[Any]:
        for value in list(self.kept.get()):
            self.given.update((self.given.value() or 0) + value)
            yield value
        self.kept.clear()


def timers(env: Environment) -> None:
    """Timers of processing time, which fire when they will; the last record of each key comes after all others."""
    numbers = env.from_collection([(n % KEYS, n, n >= 63 - KEYS) for n in range(63)]).uid("numbers")
    delayed = numbers.key_by(lambda entry: entry[0]).process(Delayed()).uid("delay")
    delayed.sink_to(CommittedSink("timers")).uid("sink")


def countdown(entry: tuple[int, int, int]) -> tuple[int, int, int]:
    number, left, rounds = entry
    return number, left - 1, rounds + 1


def feedback(env: Environment) -> None:
    """Each number goes round as often as it says, through an exchange by key."""
    start = plain(env, 2, 18).map(lambda n: (n, n % 5 + 1, 0)).uid("start").rebalance()
    loop = start.map(lambda entry: entry).uid("spread").iterate()
    stepped = loop.key_by(lambda entry: entry[1]).map(countdown).uid("step")
    loop.close_with(stepped.filter(lambda entry: entry[1] > 0).uid("again"))
    done = stepped.filter(lambda entry: entry[1] == 0).uid("done")
    done.map(lambda entry: (entry[0] % KEYS, 1)).uid("count").key_by(lambda pair: pair[0]).sum(1).uid("sum").sink_to(
        CommittedSink("feedback")
    ).uid("sink")


def two_phases(env: Environment) -> None:
    """Rolling sums into a sink that commits, behind several exchanges."""
    pairs = plain(env, 4, 16).map(lambda n: (n % KEYS, 1)).uid("pairs").rebalance().map(lambda pair: pair).uid("spread")
    pairs.key_by(lambda pair: pair[0]).sum(1).uid("sum").rebalance().sink_to(CommittedSink("two phases")).uid("sink")


PARTS = f"{tempfile.gettempdir()}/rayflink-seeds-{os.getpid()}"
"""A folder of this process: others run other seeds."""


def files(env: Environment) -> None:
    """Rolling sums into files, which end by their size or go on over checkpoints."""
    pairs = plain(env, 3, 16).map(lambda n: (n % KEYS, 1)).uid("pairs").key_by(lambda pair: pair[0]).sum(1).uid("sum")
    sink = FileSink.for_row_format(PARTS, Encoder.simple_string_encoder())
    sink = sink.with_bucket_assigner(BucketAssigner.base_path_bucket_assigner())
    sink = sink.with_rolling_policy(RollingPolicy.default_rolling_policy(part_size=40))
    pairs.rebalance().map(str).uid("text").sink_to(sink.build()).uid("sink")


TOPOLOGIES = (
    Topology("window", window),
    Topology("interval join", interval_join),
    Topology("connect", connect),
    Topology("broadcast", broadcast),
    Topology("feedback", feedback),
    Topology("asynchronous", asynchronous),
    Topology("timers", timers),
    Topology("two phases", two_phases),
    Topology("files", files, folder=PARTS),
)
BY_NAME = {topology.name: topology for topology in TOPOLOGIES}
