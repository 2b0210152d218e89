"""A program with a function of each kind that says its types, for type checkers; it runs as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rayflink.common.records.batches import Batch, rows_of
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.connectors.collection import CollectionSource
from rayflink.datastream import (
    AsyncDataStream,
    CachedDataStream,
    ConnectedStreams,
    DataStream,
    KeyedStream,
    OutputTag,
    StreamExecutionEnvironment,
)
from rayflink.datastream.connectors.base import Sink, SinkWriter, WriterContext
from rayflink.datastream.functions import (
    AggregateFunction,
    AsyncFunction,
    BroadcastProcessFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeySelector,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    WindowFunction,
)
from rayflink.datastream.state import (
    AggregatingStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from rayflink.datastream.window import CountWindow, TimeWindow, TumblingEventTimeWindows

if TYPE_CHECKING:
    from rayflink.table import StreamTableEnvironment, Table


@dataclass(frozen=True)
class Click:
    user: str
    page: str
    at: int = 0


@dataclass(frozen=True)
class Price:
    page: str
    cents: int
    at: int = 0


CLICKS = [Click("ann", "home", 1), Click("bob", "cart", 2), Click("ann", "cart", 3)]
PRICES = [Price("home", 5, 1), Price("cart", 7, 3)]
LATE = OutputTag[int]("late")
RATES = MapStateDescriptor[str, int]("rates")


class PageOf(KeySelector[Click, str]):
    def get_key(self, value: Click) -> str:
        return value.page


class Label(CoMapFunction[Click, Price, str]):
    def map1(self, value: Click) -> str:
        return value.user

    def map2(self, value: Price) -> str | None:
        return str(value.cents)


class Labels(CoFlatMapFunction[Click, Price, str]):
    def flat_map1(self, value: Click) -> list[str]:
        return [value.user]

    def flat_map2(self, value: Price) -> Iterator[str]:
        yield str(value.cents)


class Noted(CoProcessFunction[Click, Price, str]):
    def process_element1(
        self, value: Click, ctx: CoProcessFunction.Context
    ) -> Iterator[str | tuple[OutputTag[int], int]]:
        yield value.user
        yield LATE, value.at

    def process_element2(self, value: Price, ctx: CoProcessFunction.Context) -> None:
        return None


class Costs(KeyedCoProcessFunction[str, Click, Price, tuple[str, int]]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.cents = runtime_context.get_state(ValueStateDescriptor[int]("cents"))
        self.most = runtime_context.get_reducing_state(ReducingStateDescriptor[int]("most", max))
        self.mean = runtime_context.get_aggregating_state(AggregatingStateDescriptor("mean", Mean()))

    def process_element1(self, value: Click, ctx: KeyedCoProcessFunction.Context[str]) -> Iterator[tuple[str, int]]:
        yield ctx.get_current_key(), self.cents.value() or 0

    def process_element2(self, value: Price, ctx: KeyedCoProcessFunction.Context[str]) -> None:
        self.cents.update(value.cents)
        self.most.add(value.cents)
        self.mean.add(value.cents)
        mean = self.mean.get()
        assert mean is None or mean.is_integer()


class Mean(AggregateFunction[int, tuple[int, int], float]):
    def create_accumulator(self) -> tuple[int, int]:
        return 0, 0

    def add(self, value: int, accumulator: tuple[int, int]) -> tuple[int, int]:
        return accumulator[0] + value, accumulator[1] + 1

    def get_result(self, accumulator: tuple[int, int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: tuple[int, int], acc_b: tuple[int, int]) -> tuple[int, int]:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


class Rated(BroadcastProcessFunction[Click, Price, str]):
    def process_element(self, value: Click, ctx: BroadcastProcessFunction.ReadOnlyContext) -> Iterator[str]:
        rate = ctx.get_broadcast_state(RATES).get(value.page)
        yield f"{value.user} {0 if rate is None else rate}"

    def process_broadcast_element(self, value: Price, ctx: BroadcastProcessFunction.Context) -> None:
        ctx.get_broadcast_state(RATES).put(value.page, value.cents)


class KeyedRated(KeyedBroadcastProcessFunction[str, Click, Price, int]):
    def process_element(self, value: Click, ctx: KeyedBroadcastProcessFunction.ReadOnlyContext[str]) -> Iterator[int]:
        yield len(ctx.get_current_key())

    def process_broadcast_element(self, value: Price, ctx: KeyedBroadcastProcessFunction.Context[str]) -> None:
        ctx.get_broadcast_state(RATES).put(value.page, value.cents)


class InWindow(ProcessWindowFunction[Click, tuple[str, int], str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[Click]
    ) -> Iterator[tuple[str, int]]:
        yield key, context.window().end + sum(click.at for click in elements)


class Untyped(ProcessWindowFunction):
    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Click]) -> list[int]:
        return [context.window().start]


class OfCount(WindowFunction[Click, str, str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[Click]) -> list[str]:
        return [f"{key} {sum(1 for _ in inputs)}"]


class OfAll(ProcessAllWindowFunction[Click, int, TimeWindow]):
    def process(self, context: ProcessAllWindowFunction.Context[TimeWindow], elements: Iterable[Click]) -> list[int]:
        return [sum(click.at for click in elements)]


class Ends(AggregateFunction[Click, int, float]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Click, accumulator: int) -> int:
        return max(accumulator, value.at)

    def get_result(self, accumulator: int) -> float:
        return accumulator / 2

    def merge(self, acc_a: int, acc_b: int) -> int:
        return max(acc_a, acc_b)


class OfAggregate(ProcessWindowFunction[float, str, str, TimeWindow]):
    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[float]
    ) -> list[str]:
        return [f"{key} {element.hex()}" for element in elements]


class Last(ReduceFunction[Click]):
    def reduce(self, value1: Click, value2: Click) -> Click:
        return value2


class Priced(JoinFunction[Click, Price, str]):
    def join(self, first: Click, second: Price) -> str:
        return f"{first.user} {second.cents}"


class Sizes(CoGroupFunction[Click, Price, int]):
    def co_group(self, first: list[Click], second: list[Price]) -> list[int]:
        return [len(first) + len(second)]


class Near(ProcessJoinFunction[Click, Price, str]):
    def process_element(self, left: Click, right: Price, ctx: ProcessJoinFunction.Context) -> Iterator[str]:
        yield f"{left.user} {right.cents} {ctx.get_timestamp()}"


class Asked(AsyncFunction[Click, str]):
    async def async_invoke(self, value: Click) -> list[str]:
        return [value.page]


class Tagger(ProcessFunction[Click, str]):
    def process_element(self, value: Click, ctx: ProcessFunction.Context) -> Iterator[str | tuple[OutputTag[int], int]]:
        yield value.user
        yield LATE, value.at


class Generated(SourceFunction[Price]):
    def run(self) -> Iterator[Price]:
        yield from PRICES


class ByLength(Partitioner[str]):
    def partition(self, key: str, num_partitions: int) -> int:
        return len(key) % num_partitions


class Kept(SinkFunction[Click]):
    def invoke(self, value: Click) -> None:
        assert value.user


class Kinds(Sink[Click]):
    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return Checked()


class Checked(SinkWriter):
    def write(self, batch: Batch) -> None:
        assert all(click.user for click in rows_of(batch))

    def flush(self, end_of_input: bool) -> None:
        pass

    def close(self) -> None:
        pass


def is_later(click: Click) -> bool:
    return click.at > 0


def names_of(tables: StreamTableEnvironment, table: Table) -> DataStream[str]:
    return tables.to_data_stream(table).map(lambda row: str(row[0]))


def streams() -> dict[str, DataStream[Any]]:
    """A stream for each kind of function."""
    env = StreamExecutionEnvironment.create_local_environment(1, {"execution.runtime-mode": "BATCH"})
    timed = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda value, _: value.at)
    clicks = env.from_source(CollectionSource(CLICKS), timed)
    prices = env.add_source(Generated()).assign_timestamps_and_watermarks(timed)
    read: DataStream[Click] = env.from_source(CollectionSource(CLICKS))
    drawn: DataStream[Price] = env.add_source(Generated())
    both: ConnectedStreams[Click, Price, Any] = clicks.connect(prices)
    by_page: KeyedStream[Click, str] = clicks.key_by(PageOf())
    priced: KeyedStream[Price, str] = prices.key_by(lambda p: p.page)
    tens = TumblingEventTimeWindows.of(10)

    labels: DataStream[str] = both.map(Label())
    pairs: DataStream[str] = both.map((lambda c: c.user, lambda p: p.page))
    flat: DataStream[str] = both.flat_map(Labels())
    noted: DataStream[str] = both.process(Noted())
    notes: DataStream[int] = noted.get_side_output(LATE)
    costs: DataStream[tuple[str, int]] = by_page.connect(priced).process(Costs())
    keyed_later: DataStream[tuple[str, int]] = both.key_by(PageOf(), lambda p: p.page).process(Costs())

    rules = prices.broadcast(RATES)
    rated: DataStream[str] = clicks.connect(rules).process(Rated())
    keyed_rated: DataStream[int] = by_page.connect(rules).process(KeyedRated())

    ends: DataStream[tuple[str, int]] = by_page.window(tens).process(InWindow())
    starts: DataStream[int] = by_page.window(tens).process(Untyped())
    counts: DataStream[str] = by_page.count_window(1).apply(OfCount())
    called: DataStream[int] = by_page.window(tens).apply(lambda key, window, inputs: [window.end, inputs[0].at])
    halves: DataStream[str] = by_page.window(tens).aggregate(Ends(), OfAggregate())
    lasts: DataStream[tuple[str, int]] = by_page.window(tens).reduce(Last(), InWindow())
    alls: DataStream[int] = clicks.window_all(tens).process(OfAll())
    sums: DataStream[int] = by_page.fold(0, lambda total, c: total + c.at)

    joined: DataStream[str] = (
        clicks.join(prices).where(lambda c: c.page).equal_to(lambda p: p.page).window(tens).apply(Priced())
    )
    grouped: DataStream[int] = (
        clicks.co_group(prices).where(PageOf()).equal_to(lambda p: p.page).window(tens).apply(Sizes())
    )
    near: DataStream[str] = by_page.interval_join(priced).between(-1, 1).process(Near())
    lambdas: DataStream[int] = by_page.interval_join(priced).between(-1, 1).process(lambda c, p: p.cents - c.at)

    asked: DataStream[str] = AsyncDataStream.ordered_wait(clicks, Asked(), 1000)
    tagged: DataStream[str] = clicks.process(Tagger())
    cached: CachedDataStream[Click] = clicks.cache()
    rounds = clicks.iterate()
    back: DataStream[Click] = rounds.close_with(rounds.map(lambda c: Click(c.user, c.page, c.at - 2)).filter(is_later))
    custom: DataStream[Click] = clicks.partition_custom(ByLength(), PageOf())
    chosen: DataStream[Click] = clicks.split(lambda c: [c.page]).select("home")
    clicks.sink_to(Kinds())
    clicks.add_sink(Kept())
    clicks.add_sink(lambda c: print(end=c.user[:0]))
    return {
        "read": read, "drawn": drawn, "labels": labels, "pairs": pairs, "flat": flat, "noted": noted, "notes": notes,
        "costs": costs, "keyed_later": keyed_later, "rated": rated, "keyed_rated": keyed_rated, "ends": ends,
        "starts": starts, "counts": counts, "called": called, "halves": halves, "lasts": lasts, "alls": alls,
        "sums": sums, "joined": joined, "grouped": grouped, "near": near, "lambdas": lambdas, "asked": asked,
        "tagged": tagged, "cached": cached, "back": back, "custom": custom, "chosen": chosen,
    }  # fmt: skip
