"""A program whose functions say their types, for type checkers; it runs as well."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rayflink.datastream import CloseableIterator, DataStream, KeyedStream, StreamExecutionEnvironment
from rayflink.datastream.functions import (
    AggregateFunction,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    RuntimeContext,
)
from rayflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor


@dataclass(frozen=True)
class Click:
    user: str
    page: str


class UserOf(MapFunction[Click, str]):
    def map(self, value: Click) -> str:
        return value.user


class Untyped(MapFunction):
    def map(self, value: Click) -> int:
        return len(value.page)


class Home(FilterFunction[Click]):
    def filter(self, value: Click) -> bool:
        return value.page == "home"


class Count(KeyedProcessFunction[str, Click, tuple[str, int]]):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor[int]("count"))
        self.pages = runtime_context.get_list_state(ListStateDescriptor[str]("pages"))
        self.seen = runtime_context.get_map_state(MapStateDescriptor[str, int]("seen"))

    def process_element(self, value: Click, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        self.pages.add(value.page)
        self.seen.put(value.page, (self.seen.get(value.page) or 0) + 1)
        yield value.user, count


class Longest(AggregateFunction[Click, int, str]):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: Click, accumulator: int) -> int:
        return max(accumulator, len(value.page))

    def get_result(self, accumulator: int) -> str:
        return "-" * accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return max(acc_a, acc_b)


def counts() -> list[tuple[str, int]]:
    """How often each user had clicked, at each click."""
    clicks = clicks_of(StreamExecutionEnvironment.create_local_environment())
    keyed: KeyedStream[Click, str] = clicks.key_by(lambda c: c.user)
    counted: DataStream[tuple[str, int]] = keyed.process(Count())
    with counted.execute_and_collect() as drawn:
        return sorted(drawn)


def results() -> dict[str, list[str]]:
    """What each kind of step gives."""
    env = StreamExecutionEnvironment.create_local_environment()
    clicks = clicks_of(env)
    users: DataStream[str] = clicks.map(lambda c: c.user)
    pages: DataStream[str] = clicks.flat_map(lambda c: [c.page])
    homes: DataStream[Click] = clicks.filter(Home()).union(clicks.filter(lambda c: c.page == "home"))
    lasts: DataStream[Click] = clicks.key_by(lambda c: c.user).reduce(lambda one, other: other)
    longest: DataStream[str] = clicks.key_by("user").count_window(2).aggregate(Longest())
    lengths: DataStream[int] = clicks.map(Untyped())
    drawn: CloseableIterator[str] = users.execute_and_collect()
    first: list[str] = clicks.map(UserOf()).execute_and_collect(limit=1)
    return {
        "users": sorted(drawn),
        "pages": sorted(pages.execute_and_collect()),
        "homes": sorted(homes.map(lambda c: c.user).execute_and_collect()),
        "lasts": sorted(lasts.map(lambda c: c.page).execute_and_collect()),
        "longest": sorted(longest.execute_and_collect()),
        "lengths": sorted(lengths.map(str).execute_and_collect()),
        "first": first,
    }


def clicks_of(env: StreamExecutionEnvironment) -> DataStream[Click]:
    return env.from_collection([Click("ann", "home"), Click("bob", "cart"), Click("ann", "help")])
