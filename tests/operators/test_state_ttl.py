from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions import KeyedProcessFunction
from rayflink.common.time import Time
from rayflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rayflink.operators.keyed_process import KeyedProcessOperator
from rayflink.testing import at, rec, verify

first = itemgetter(0)


class Remember(KeyedProcessFunction):
    """Emits what each state of the key holds, and adds the record's number to it."""

    def __init__(self, config: StateTtlConfig) -> None:
        self._config = config

    def open(self, runtime_context: Any) -> None:
        described = (
            ValueStateDescriptor("value"), ListStateDescriptor("list"), MapStateDescriptor("map"),
            ReducingStateDescriptor("sum", lambda a, b: a + b),
        )  # fmt: skip
        for descriptor in described:
            descriptor.enable_time_to_live(self._config)
        value, listed, mapped, total = described
        self.value, self.listed = runtime_context.get_state(value), runtime_context.get_list_state(listed)
        self.mapped, self.total = runtime_context.get_map_state(mapped), runtime_context.get_reducing_state(total)

    def process_element(self, value: Any, ctx: Any) -> Any:
        key, number = value
        yield key, self.value.value(), list(self.listed), list(self.mapped.items()), self.total.get()
        if number:
            self.value.update(number)
            self.listed.add(number)
            self.mapped.put(f"at {number}", number)
            self.total.add(number)


@pytest.mark.spec("G10")
@pytest.mark.parametrize("full", [False, True])
def test_state_expires_alike_under_every_hardship(full: bool) -> None:
    builder = StateTtlConfig.new_builder(Time.milliseconds(10))
    config = (builder.cleanup_full_snapshot() if full else builder).build()
    given = [
        rec(("a", 1)), rec(("b", 7)), at(6), rec(("a", 2)), at(11), rec(("a", 0)), rec(("b", 0)), at(16), rec(("a", 0)),
    ]  # fmt: skip
    then = [
        rec(("a", None, [], [], None)), rec(("b", None, [], [], None)),
        rec(("a", 1, [1], [("at 1", 1)], 1)),
        rec(("a", 2, [2], [("at 2", 2)], 3)), rec(("b", None, [], [], None)),
        rec(("a", None, [], [], None)),
    ]  # fmt: skip
    verify(lambda: KeyedProcessOperator(first, Remember(config)), given, then)


@pytest.mark.spec("G10")
def test_reading_prolongs_and_what_expired_is_shown_once_alike_under_every_hardship() -> None:
    builder = StateTtlConfig.new_builder(Time.milliseconds(10)).disable_cleanup_in_background()
    prolonged = builder.update_ttl_on_read_and_write().return_expired_if_not_cleaned_up().build()
    given = [rec(("a", 1)), at(6), rec(("a", 0)), at(15), rec(("a", 0)), at(25), rec(("a", 0)), rec(("a", 0))]
    there, gone = rec(("a", 1, [1], [("at 1", 1)], 1)), rec(("a", None, [], [], None))
    verify(lambda: KeyedProcessOperator(first, Remember(prolonged)), given, [gone, there, there, there, gone])
