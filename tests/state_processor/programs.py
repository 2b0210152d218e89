"""A job with every kind of state, for tests that look into its savepoints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rayflink.common.time import Time
from rayflink.common.watermarks import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.functions import CheckpointedFunction, KeyedProcessFunction
from rayflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rayflink.datastream.window import TumblingEventTimeWindows
from tests.state_processor.savepoints import scripted


@dataclass
class Cart:
    total: int
    items: list[str]


class Point(NamedTuple):
    x: int
    y: int


@dataclass(frozen=True)
class Event:
    user: str
    at: int


class Carts(KeyedProcessFunction, CheckpointedFunction):
    """A function that has every kind of state."""

    def open(self, context: Any) -> None:
        self.cart = context.get_state(ValueStateDescriptor("cart"))
        self.log = context.get_list_state(ListStateDescriptor("log"))
        self.visits = context.get_map_state(MapStateDescriptor("visits"))
        self.sum = context.get_reducing_state(ReducingStateDescriptor("sum", lambda a, b: a + b))
        fresh = ValueStateDescriptor("fresh")
        fresh.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.fresh = context.get_state(fresh)

    def initialize_state(self, context: Any) -> None:
        self.seen = context.get_operator_state_store().get_list_state(ListStateDescriptor("seen"))

    def snapshot_state(self, context: Any) -> None:
        pass

    def process_element(self, event: Event, context: Any) -> Any:
        old = self.cart.value() or Cart(0, [])
        self.cart.update(Cart(old.total + event.at, [*old.items, f"item {event.at}"]))
        self.log.add(Point(event.at, -event.at))
        self.visits.put(event.at, event.user)
        self.sum.add(event.at)
        self.fresh.update(event.at)
        self.seen.add(event.at)
        context.timer_service().register_event_time_timer(1000 + event.at)
        context.timer_service().register_processing_time_timer(4_000_000_000_000)
        yield event.user, event.at


EVENTS = [Event(f"user {number % 3}", number) for number in range(10)]


def shop(env: StreamExecutionEnvironment, given: Sequence[Event] = EVENTS) -> None:
    """Return carts by user, and their sums by windows of 100 ms."""
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(lambda event, _: event.at)
    events = env.from_source(scripted(given), by_time, "events").uid("events")
    carts = events.key_by(lambda event: event.user).process(Carts()).uid("carts").name("carts of users")
    windows = carts.key_by(lambda pair: pair[0]).window(TumblingEventTimeWindows.of(Time.milliseconds(100)))
    windows.reduce(lambda a, b: (a[0], a[1] + b[1])).uid("sums").add_sink(lambda pair: None)


__all__ = ["Cart", "EVENTS", "Event", "Point", "shop"]
