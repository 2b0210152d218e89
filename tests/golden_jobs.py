"""Small jobs with known answers. Every runner must give them: the simulator from any seed, the in-process one, Ray.

A `GoldenJob` writes its program into an environment; its sinks are `CollectSink`s, and `check` compares what they
collected. A runner that can cancel looks at `cancelled_midway`: it cancels once records have arrived.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rayflink.actors.messages.commands import JobResult
from rayflink.actors.messages.states import JobStatus
from rayflink.common.output_tag import OutputTag
from rayflink.common.time import Duration, Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import (
    ActorPool,
    AsyncDataStream,
    AsyncFunction,
    AsyncRetryStrategy,
    CoMapFunction,
    DataStream,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    ProcessAllWindowFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from rayflink.datastream.async_retry_predicates import has_exception_predicate
from rayflink.datastream.state import MapStateDescriptor, ValueStateDescriptor
from rayflink.datastream.window import TumblingEventTimeWindows
from rayflink.testing import Pause, ScriptedSource, rec, wm

Environment = StreamExecutionEnvironment


@dataclass(frozen=True)
class GoldenJob:
    """A job and its answer.

    Args:
        write: puts the program into an environment.
        collected: accumulator of a sink -> its records, in any order.
        in_order: accumulators whose records come in exactly the order given.
        status: how it ends.
        failure: pattern of the failure's message, for a job that fails.
        in_batch: as `collected`, of the sinks that collect something else in batch mode: rolling aggregates give their
            last result a key, and nothing is late.
        streaming_only: whether it shows something that batch mode has not.
    """

    name: str
    write: Callable[[Environment], object]
    collected: Mapping[str, list[Any]] = field(default_factory=dict)
    in_order: tuple[str, ...] = ()
    status: JobStatus = JobStatus.FINISHED
    failure: str = ""
    in_batch: Mapping[str, list[Any]] = field(default_factory=dict)
    streaming_only: bool = False

    @property
    def cancelled_midway(self) -> bool:
        """Whether the runner has to cancel it; it never ends by itself."""
        return self.status is JobStatus.CANCELED

    def graph(self, configuration: Mapping[str, Any] | None = None) -> Any:
        """Its job graph, with options."""
        env = StreamExecutionEnvironment.get_execution_environment(dict(configuration or {}))
        self.write(env)
        return env.get_job_graph(self.name)

    def check(self, result: JobResult, batch: bool = False) -> None:
        """Compare with the answer, that of batch mode if asked.

        Raises:
            AssertionError: it is another one.
        """
        found = result.failure.message if result.failure is not None else ""
        assert result.status is self.status, f"{self.name} is {result.status.value}: {found}"
        assert re.search(self.failure, found), f"{self.name} failed with {found!r}, expected {self.failure!r}"
        for sink, records in {**self.collected, **(self.in_batch if batch else {})}.items():
            mine = list(result.accumulators.get(sink) or [])
            if sink not in self.in_order:
                mine, records = sorted(mine, key=repr), sorted(records, key=repr)
            assert mine == records, f"{self.name}: sink {sink!r} collected {mine}, expected {records}"


def out(name: str = "out") -> CollectSink:
    return CollectSink(name)


LINES = ["the cat and the dog", "the end", "", "and the cat"] * 5
WORDS = " ".join(LINES).split()


def word_count(env: Environment) -> None:
    env.set_parallelism(2)
    words = env.from_collection(LINES).flat_map(str.split).map(lambda word: (word, 1))
    words.key_by(lambda pair: pair[0]).sum(1).sink_to(out())


def rolling(words: Iterable[str]) -> list[tuple[str, int]]:
    words = list(words)
    return [(word, n) for word in dict.fromkeys(words) for n in range(1, words.count(word) + 1)]


def ordered_word_count(env: Environment) -> None:
    """One key, so that even the order is known."""
    env.set_parallelism(2)
    ones = env.from_collection(["a"] * 50).map(lambda word: (word, 1))
    ones.key_by(lambda pair: pair[0]).sum(1).sink_to(out()).set_parallelism(1)


CLICKS = [(f"u{n % 3}", 1_000 * (n ^ 1) + n) for n in range(40)]
"""(user, event time): neighbours have changed places, so times are out of order by about a second."""


def windowed_count(env: Environment) -> None:
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
        lambda click, _: click[1]
    )
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy)
    counts = clicks.map(lambda click: (click[0], 1)).key_by(lambda pair: pair[0])
    counts.window(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1).sink_to(out())


def counted_by_window() -> list[tuple[str, int]]:
    counts: dict[tuple[str, int], int] = {}
    for user, stamp in CLICKS:
        counts[user, stamp // 10_000] = counts.get((user, stamp // 10_000), 0) + 1
    return [(user, n) for (user, _), n in counts.items()]


def window_of_windows(env: Environment) -> None:
    """The second window gets the first one's results at their last moment: a watermark too early makes them late."""
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2)).with_timestamp_assigner(
        lambda click, _: click[1]
    )
    clicks = env.from_collection(CLICKS).assign_timestamps_and_watermarks(strategy)
    counts = clicks.map(lambda click: (click[0], 1)).key_by(lambda pair: pair[0])
    by_user = counts.window(TumblingEventTimeWindows.of(Time.seconds(10))).sum(1)
    totals = by_user.key_by(lambda pair: "all").window(TumblingEventTimeWindows.of(Time.seconds(10)))
    totals.reduce(lambda a, b: ("all", a[1] + b[1])).map(lambda pair: pair[1]).sink_to(out())


LATE = OutputTag("late")


def late_records(env: Environment) -> None:
    """The script's watermark makes one record late, whatever the timing."""
    env.set_parallelism(2)
    script = [rec(("a", 1), 1_000), rec(("b", 1), 2_000), wm(10_000), rec(("a", 7), 3_000), rec(("a", 1), 12_000)]
    stream = env.from_source(ScriptedSource(script))
    window = stream.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.seconds(10)))
    counts = window.side_output_late_data(LATE).sum(1)
    counts.sink_to(out())
    counts.get_side_output(LATE).sink_to(out("late"))


ODD = OutputTag("odd")


def sort_odd(number: int, ctx: Any) -> Iterable[Any]:
    yield (ODD, number) if number % 2 else number


def side_outputs(env: Environment) -> None:
    env.set_parallelism(2)
    even = env.from_collection(range(30)).rebalance().process(sort_odd)
    even.sink_to(out())
    even.get_side_output(ODD).map(lambda n: -n).sink_to(out("odd"))


def split_and_select(env: Environment) -> None:
    """One output chains, one crosses the network, and who selects nothing gets all records."""
    env.set_parallelism(2)
    names = env.from_collection(range(12)).map(int).split(
        lambda n: ["even"] * (n % 2 == 0) + ["third"] * (n % 3 == 0)
    )  # fmt: skip
    names.select("even").map(lambda n: -n).sink_to(out("even"))
    names.select("even", "third").rebalance().sink_to(out("both")).set_parallelism(3)
    names.sink_to(out())


def union(env: Environment) -> None:
    env.set_parallelism(2)
    one, two = env.from_collection(range(20)), env.from_collection(range(100, 120))
    one.union(two, one.map(lambda n: n + 1000)).map(lambda n: n * 2).sink_to(out())


class Label(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return "number", value

    def map2(self, value: Any) -> Any:
        return "word", value


def connect(env: Environment) -> None:
    env.set_parallelism(2)
    env.from_collection(range(20)).connect(env.from_collection(list("abcdef"))).map(Label()).sink_to(out())


def rebalance_two_to_three(env: Environment) -> None:
    numbers = env.from_sequence(1, 60).set_parallelism(2)
    numbers.rebalance().map(lambda n: n * n).set_parallelism(3).sink_to(out()).set_parallelism(1)


def broadcast(env: Environment) -> None:
    numbers = env.from_collection(range(10))
    numbers.broadcast().map(lambda n: n).set_parallelism(3).sink_to(out()).set_parallelism(1)


RATES = [(n % 3, 1_000 * n, n * n) for n in range(12)]
"""(currency, event time, rate from then on)"""
AMOUNTS = [(n % 3, 1_000 * (3 + (n ^ 1)), 10 + n) for n in range(16)]
"""(currency, event time, amount)"""
VERSIONS = MapStateDescriptor("versions")


class AsOfItsTime(KeyedBroadcastProcessFunction):
    """(event time, amount by the rate of that time); waits until the watermark passes it."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.waiting = runtime_context.get_map_state(MapStateDescriptor("waiting"))

    def process_broadcast_element(self, value: Any, ctx: Any) -> None:
        versions = ctx.get_broadcast_state(VERSIONS)
        versions[value[0]] = sorted([*(versions[value[0]] or ()), value[1:]])

    def process_element(self, value: Any, ctx: Any) -> None:
        self.waiting[value[1]] = value[2]
        ctx.timer_service().register_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        versions = ctx.get_broadcast_state(VERSIONS)[ctx.get_current_key()]
        yield timestamp, self.waiting[timestamp] * max(version for version in versions if version[0] <= timestamp)[1]


def say_what_is_known(value: Any, ctx: Any) -> Iterable[Any]:
    """The broadcast side of a stream without keys: how many rates this subtask knows by now."""
    state = ctx.get_broadcast_state(VERSIONS)
    state[value[1]] = value
    yield len(list(state))


def broadcast_state(env: Environment) -> None:
    env.set_parallelism(3)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    timed = strategy.with_timestamp_assigner(lambda entry, _: entry[1])
    rates = env.from_collection(RATES).assign_timestamps_and_watermarks(timed).broadcast(VERSIONS)
    amounts = env.from_collection(AMOUNTS).assign_timestamps_and_watermarks(timed)
    amounts.key_by(lambda amount: amount[0]).connect(rates).process(AsOfItsTime()).sink_to(out())
    known = amounts.connect(rates).process((lambda value, ctx: None, say_what_is_known))
    known.sink_to(out("known"))


def amounts_by_their_rates() -> list[tuple[int, int]]:
    def rate(currency: int, at: int) -> int:
        return max((since, rate) for of, since, rate in RATES if of == currency and since <= at)[1]

    return [(at, amount * rate(currency, at)) for currency, at, amount in AMOUNTS]


def skew(env: Environment) -> None:
    """Nearly all records have one key."""
    env.set_parallelism(3)
    pairs = env.from_collection([("hot", 1)] * 200 + [("cold", 1)]).rebalance().map(lambda pair: pair)
    pairs.key_by(lambda pair: pair[0]).sum(1).filter(lambda pair: pair[1] in (1, 200)).sink_to(out())


ORDERS = [(f"u{n % 3}", n, 700 * (n ^ 1)) for n in range(24)]
"""(user, order, event time)"""
VISITS = [(900 * (n ^ 1), f"page{n}", f"u{n % 4}") for n in range(16)]
"""(event time, page, user)"""


def orders_and_visits(env: Environment) -> tuple[DataStream, DataStream]:
    env.set_parallelism(2)
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    orders = env.from_collection(ORDERS)
    visits = env.from_collection(VISITS)
    return (
        orders.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda order, _: order[2])),
        visits.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(lambda visit, _: visit[0])),
    )


def order_and_page(order: Any, visit: Any) -> tuple[int, str]:
    return order[1], visit[1]


def window_join(env: Environment) -> None:
    orders, visits = orders_and_visits(env)
    joined = orders.join(visits).where(lambda order: order[0]).equal_to(lambda visit: visit[2])
    joined.window(TumblingEventTimeWindows.of(Time.seconds(3))).apply(order_and_page).sink_to(out())


def interval_join(env: Environment) -> None:
    orders, visits = orders_and_visits(env)
    near = orders.key_by(lambda order: order[0]).interval_join(visits.key_by(lambda visit: visit[2]))
    near.between(Time.seconds(-2), Time.seconds(1)).upper_bound_exclusive().process(order_and_page).sink_to(out())


def pairs_where(match: Callable[[int, int], bool]) -> list[tuple[int, str]]:
    """The pairs of orders and visits of one user whose times match, by a nested loop."""
    return [
        order_and_page(order, visit)
        for order in ORDERS
        for visit in VISITS
        if order[0] == visit[2] and match(order[2], visit[0])
    ]


def collatz(env: Environment) -> None:
    """Each number goes round until it is one; how often is its answer."""
    env.set_parallelism(2)
    start = env.from_collection([(n, n, 0) for n in range(1, 12)]).rebalance().map(lambda state: state)
    loop = start.iterate()
    stepped = loop.key_by(lambda state: state[0] % 5).map(collatz_step)
    loop.close_with(stepped.filter(lambda state: state[1] != 1))
    stepped.filter(lambda state: state[1] == 1).map(lambda state: (state[0], state[2])).sink_to(out())


def collatz_step(state: tuple[int, int, int]) -> tuple[int, int, int]:
    number, at, steps = state
    return state if at == 1 else (number, 3 * at + 1 if at % 2 else at // 2, steps + 1)


def collatz_lengths() -> list[tuple[int, int]]:
    lengths = []
    for number in range(1, 12):
        state = (number, number, 0)
        while state[1] != 1:
            state = collatz_step(state)
        lengths.append((number, state[2]))
    return lengths


class Spread(KeyedCoProcessFunction):
    """A vertex (id, neighbours), and the labels that come to it: it tells its neighbours of each smaller one."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.neighbours = runtime_context.get_state(ValueStateDescriptor("neighbours"))
        self.label = runtime_context.get_state(ValueStateDescriptor("label"))

    def process_element1(self, vertex: Any, ctx: Any) -> Iterable[Any]:
        self.neighbours.update(vertex[1])
        return self._take(min(vertex[0], self.label.value() if self.label.value() is not None else vertex[0]), ctx)

    def process_element2(self, told: Any, ctx: Any) -> Iterable[Any]:
        known = self.label.value()
        return self._take(told[1], ctx) if known is None or told[1] < known else ()

    def _take(self, label: int, ctx: Any) -> Iterable[Any]:
        self.label.update(label)
        yield OutputTag("component"), (ctx.get_current_key(), label)
        for neighbour in self.neighbours.value() or ():
            yield neighbour, label


EDGES = [(1, 2), (2, 3), (3, 4), (7, 8), (8, 9), (12, 12)]


def connected_components(env: Environment) -> None:
    """What is fed back is of another type than what comes in."""
    env.set_parallelism(2)
    neighbours = {n: [b if a == n else a for a, b in EDGES if n in (a, b)] for edge in EDGES for n in edge}
    vertices = env.from_collection(sorted(neighbours.items()))
    loop = vertices.iterate().with_feedback_type()
    told = loop.key_by(lambda vertex: vertex[0], lambda told: told[0]).process(Spread())
    loop.close_with(told)
    labels = told.get_side_output(OutputTag("component")).key_by(lambda pair: pair[0])
    labels.min(1).filter(lambda pair: pair[1] in (1, 7, 12)).key_by(lambda pair: pair).process(Once()).sink_to(out())


class Once(KeyedProcessFunction):
    """Lets the first record of each key pass."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.seen = runtime_context.get_state(ValueStateDescriptor("seen"))

    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        if not self.seen.value():
            self.seen.update(True)
            yield value


def empty_source(env: Environment) -> None:
    env.set_parallelism(2)
    env.from_collection([]).key_by(lambda word: word).reduce(lambda a, b: a).sink_to(out())


def one_record(env: Environment) -> None:
    env.set_parallelism(3)
    env.from_collection([("a", 1)]).rebalance().key_by(lambda pair: pair[0]).sum(1).sink_to(out())


def pauses(env: Environment) -> None:
    """Sources that give nothing for a while hold nobody up for good."""
    env.set_parallelism(2)
    scripts = [[1, Pause(50), 2], [3], []]
    env.from_source(ScriptedSource(*scripts)).map(lambda n: n * 10).rebalance().sink_to(out())


def diamond(env: Environment) -> None:
    """One stream read twice and joined again."""
    env.set_parallelism(2)
    numbers = env.from_sequence(1, 20)
    numbers.map(lambda n: n).union(numbers.rebalance().map(lambda n: -n)).sink_to(out())


ALIGNED_STEP_MS, ALIGNED_DRIFT_MS = 10, 30


class WorstLead(ProcessAllWindowFunction):
    """How many records of each source came, and whether one of "fast" was read too far ahead of "slow"."""

    def process(self, context: Any, elements: Iterable[Any]) -> Iterable[Any]:
        records = sorted(elements, key=lambda record: record[2])
        counts = {name: sum(1 for record in records if record[0] == name) for name in ("fast", "slow")}
        slowest, is_ahead = -ALIGNED_DRIFT_MS - 1, False
        for name, stamp, _ in records:
            if name == "slow":
                slowest = stamp
            elif stamp > max(0, slowest + ALIGNED_DRIFT_MS + ALIGNED_STEP_MS):
                is_ahead = True
        yield counts["fast"], counts["slow"], "ahead" if is_ahead else "together"


def aligned_sources(env: Environment) -> None:
    """One source pauses five times as long as the other, which must wait for it."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_emit_every(1)
    strategy = strategy.with_watermark_alignment(
        "both", Duration.of_millis(ALIGNED_DRIFT_MS), update_interval=Duration.of_millis(1)
    )
    streams = []
    for name, pause in (("fast", Pause(1)), ("slow", Pause(5))):
        items = [(rec((name, n * ALIGNED_STEP_MS), n * ALIGNED_STEP_MS), pause) for n in range(30)]
        source = ScriptedSource([item for pair in items for item in pair])
        read = env.from_source(source, strategy, name).map(lambda record: (*record, time.monotonic_ns()))
        streams.append(read)
    together = streams[0].union(streams[1])
    together.window_all(TumblingEventTimeWindows.of(Time.days(1))).process(WorstLead()).sink_to(out())


class Lookup(AsyncFunction):
    """Fails for every third number at first, and never answers for 13."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.failed: set[int] = set()

    async def async_invoke(self, value: int) -> list[tuple[int, str]]:
        await asyncio.sleep(1000 if value == 13 else 0.001 * (7 * value % 5))
        if value % 3 == 0 and value not in self.failed:
            self.failed.add(value)
            raise ConnectionError("away")
        return [(value, f"item {value}")]

    def timeout(self, value: int) -> list[tuple[int, str]]:
        return [(value, "unknown")]


def async_lookups(env: Environment) -> None:
    """Calls of a service that is slow, fails and falls silent, in order and as they come."""
    again = AsyncRetryStrategy.fixed_delay(3, 2, None, has_exception_predicate)
    numbers = env.from_sequence(1, 40)
    ordered = AsyncDataStream.ordered_wait_with_retry(numbers, Lookup(), Time.milliseconds(500), again, 8)
    ordered.sink_to(out("ordered"))
    spread = numbers.rebalance()
    lookups = AsyncDataStream.unordered_wait_with_retry(spread, Lookup(), Time.milliseconds(500), again, 3)
    lookups.set_parallelism(2).sink_to(out("unordered")).set_parallelism(1)


class Scores:
    """Stands for a model; fails at its first batch."""

    def __init__(self) -> None:
        self.has_failed = False

    def __call__(self, numbers: list[int]) -> list[tuple[int, int]]:
        if not self.has_failed:
            self.has_failed = True
            raise ConnectionError("not warm yet")
        return [(n, n * n) for n in numbers]


def pooled_model(env: Environment) -> None:
    """Batches worked by processes of their own, in order."""
    pool = ActorPool(2, num_cpus=0.1, batch_size=4, retry_delay_ms=5)
    env.from_sequence(1, 40).map_batches(Scores, "rows", concurrency=pool).sink_to(out())


LOOKED_UP = [(n, "unknown" if n == 13 else f"item {n}") for n in range(1, 41)]


def divide(number: int) -> float:
    return 1 / number


def user_exception(env: Environment) -> None:
    env.set_parallelism(2)
    env.from_collection([2, 1, 0, 4]).rebalance().map(divide).name("divide").sink_to(out())


def endless(env: Environment) -> None:
    env.set_parallelism(2)
    env.from_sequence(0, 2**62).rebalance().map(lambda n: n).sink_to(out())


SQUARES = [n * n for n in range(1, 61)]
GOLDEN_JOBS: tuple[GoldenJob, ...] = (
    GoldenJob("word count", word_count, {"out": rolling(WORDS)}, in_batch={"out": [*Counter(WORDS).items()]}),
    GoldenJob(
        "ordered word count",
        ordered_word_count,
        {"out": [("a", n) for n in range(1, 51)]},
        in_order=("out",),
        in_batch={"out": [("a", 50)]},
    ),
    GoldenJob("windowed count", windowed_count, {"out": counted_by_window()}),
    GoldenJob("window of windows", window_of_windows, {"out": [10, 10, 10, 10]}),
    GoldenJob(
        "late records",
        late_records,
        {"out": [("a", 1), ("b", 1), ("a", 1)], "late": [("a", 7)]},
        in_batch={"out": [("a", 8), ("b", 1), ("a", 1)], "late": []},
    ),
    GoldenJob(
        "split and select",
        split_and_select,
        {
            "even": [0, -2, -4, -6, -8, -10],
            "both": [0, 2, 3, 4, 6, 8, 9, 10],
            "out": list(range(12)),
        },
    ),
    GoldenJob("side outputs", side_outputs, {"out": list(range(0, 30, 2)), "odd": [-n for n in range(1, 30, 2)]}),
    GoldenJob("union", union, {"out": [2 * n for n in (*range(20), *range(100, 120), *range(1000, 1020))]}),
    GoldenJob("connect", connect, {"out": [("number", n) for n in range(20)] + [("word", word) for word in "abcdef"]}),
    GoldenJob("rebalance 2 to 3", rebalance_two_to_three, {"out": SQUARES}),
    GoldenJob("broadcast", broadcast, {"out": [n for n in range(10) for _ in range(3)]}),
    GoldenJob(
        "skew",
        skew,
        {"out": [("hot", 1), ("hot", 200), ("cold", 1)]},
        in_batch={"out": [("hot", 200), ("cold", 1)]},
    ),
    GoldenJob(
        "broadcast state",
        broadcast_state,
        {"out": amounts_by_their_rates(), "known": [n for n in range(1, len(RATES) + 1) for _ in range(3)]},
    ),
    GoldenJob("window join", window_join, {"out": pairs_where(lambda one, other: one // 3_000 == other // 3_000)}),
    GoldenJob("interval join", interval_join, {"out": pairs_where(lambda one, other: -2_000 <= other - one < 1_000)}),
    GoldenJob("collatz", collatz, {"out": collatz_lengths()}),
    GoldenJob(
        "connected components",
        connected_components,
        {"out": [*((n, 1) for n in (1, 2, 3, 4)), *((n, 7) for n in (7, 8, 9)), (12, 12)]},
    ),
    GoldenJob("empty source", empty_source, {"out": []}),
    GoldenJob("one record", one_record, {"out": [("a", 1)]}),
    GoldenJob("pauses", pauses, {"out": [10, 20, 30]}),
    GoldenJob("async lookups", async_lookups, {"ordered": LOOKED_UP, "unordered": LOOKED_UP}, in_order=("ordered",)),
    GoldenJob("pooled model", pooled_model, {"out": [(n, n * n) for n in range(1, 41)]}, in_order=("out",)),
    GoldenJob("diamond", diamond, {"out": [*range(1, 21), *range(-20, 0)]}),
    GoldenJob("aligned sources", aligned_sources, {"out": [(30, 30, "together")]}, streaming_only=True),
    GoldenJob(
        "user exception",
        user_exception,
        status=JobStatus.FAILED,
        failure=r"'divide'.*failed in map on record 0: ZeroDivisionError: division by zero",
    ),
    GoldenJob("cancelled midway", endless, status=JobStatus.CANCELED),
)
