from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions.function_classes import KeyedProcessFunction
from rayflink.common.time import Time
from rayflink.datastream.state import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateTtlConfig,
    ValueStateDescriptor,
)
from rayflink.operators.keyed.keyed_process import KeyedProcessOperator
from rayflink.testing import OperatorHarness, Place, at, rec, verify

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


def remembering(rate: int, config: StateTtlConfig) -> OperatorHarness:
    place = Place(config={"rayflink.state.ttl.sweep-rate": rate})
    return OperatorHarness(lambda: KeyedProcessOperator(first, Remember(config)), place=place)


def expired(harness: OperatorHarness) -> dict[str, int]:
    """State -> how many of its entries are counted as expired."""
    group = harness.operators[0].ctx.metrics
    counters = {
        name: group.add_group("state", name).counter("numStateEntriesExpired") for name in ("value", "list", "map")
    }
    return {name: counter.get_count() for name, counter in counters.items()}


def stored(harness: OperatorHarness) -> int:
    """Bytes of keyed state in a snapshot."""
    ((snapshot,),) = harness.snapshot().values()
    return sum(map(len, snapshot.keyed.values()))


def test_without_records_the_background_sweep_forgets_and_counts_what_expired() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(10)).build()
    with remembering(5_000, config) as harness:
        for key in range(600):
            harness.process((key, 1))
        before = stored(harness)
        for ms in range(1_000, 9_000, 1_000):
            harness.set_processing_time(ms)
        harness.process((0, 2))
        for ms in range(9_000, 18_000, 100):
            harness.set_processing_time(ms)
        assert expired(harness) == {"value": 599, "list": 600, "map": 600}
        assert stored(harness) < before / 100
        harness.take()
        harness.process((0, 0))
        assert harness.output_values() == [(0, 2, [2], [("at 2", 2)], 3)]
        for ms in (60_000, 60_100, 66_000):
            harness.set_processing_time(ms)
        assert stored(harness) == 0
        assert harness.operators[0].next_upkeep_ms() is None, "nothing is left, so nothing is due"


def test_the_sweep_keeps_to_its_rate_and_a_rate_of_nothing_sweeps_nothing() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).cleanup_in_rocksdb_compact_filter(1_000).build()
    for rate, most in ((0, 0), (100, 40)):
        with remembering(rate, config) as harness:
            for key in range(200):
                harness.process((key, 1))
            for ms in range(1_000, 1_400, 20):
                harness.set_processing_time(ms)
            assert expired(harness)["value"] == most


def test_without_clean_up_in_the_background_what_nobody_reads_stays() -> None:
    config = StateTtlConfig.new_builder(Time.seconds(1)).disable_cleanup_in_background().build()
    with remembering(5_000, config) as harness:
        harness.process(("a", 1))
        harness.set_processing_time(100_000)
        assert harness.operators[0].next_upkeep_ms() is None
        assert stored(harness) > 0 and expired(harness)["value"] == 0
