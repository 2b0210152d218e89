"""Windows in records: how many may be in flight to a task, by its measured rate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.debloating import (
    FIRST_WINDOW,
    BatchCost,
    BufferDebloater,
    ConsumptionRate,
    DebloatSettings,
)
from rayflink.state.clock import ManualClock

SETTINGS = DebloatSettings(target_s=1.0, period_s=0.2, threshold=0.25)


class Consumer:
    """A task that works batches of its channels, each record at a cost in milliseconds."""

    def __init__(self, inputs: list[int], settings: DebloatSettings = SETTINGS) -> None:
        self.clock = ManualClock()
        self.debloater = BufferDebloater(inputs, settings, self.clock)
        self.announced = [FIRST_WINDOW] * len(inputs)

    def work(self, channel: int, rows: int, ms: float, blocked: bool = False) -> None:
        self.debloater.count_taken(channel, rows)
        self.clock.advance(round(ms))
        self.hear(self.debloater.step(idle=False, blocked=blocked))

    def work_together(self, channels: range, ms: float) -> int:
        """Work what a buffer of each of some channels holds as one batch."""
        rows = 0
        for channel in channels:
            rows += self.debloater.windows[channel].buffer_rows
            self.debloater.count_taken(channel, self.debloater.windows[channel].buffer_rows)
        self.clock.advance(round(ms + rows * 0.1))
        self.hear(self.debloater.step(idle=False))
        return rows

    def hear(self, channels: list[int]) -> None:
        for channel in channels:
            self.announced[channel] = self.debloater.windows[channel].announce()[1]

    def run(self, seconds: float, cost_ms: float, channels: tuple[int, ...] = (0,)) -> None:
        """Work whole buffers in turn, as large as the channel's window has them."""
        end = self.clock.monotonic() + seconds
        while self.clock.monotonic() < end:
            for channel in channels:
                rows = min(self.debloater.windows[channel].buffer_rows, self.announced[channel])
                self.work(channel, rows, max(1.0, rows * cost_ms))


def test_a_window_begins_with_two_records_so_that_the_first_cannot_stop_the_producer() -> None:
    consumer = Consumer([0, 0])
    assert [window.rows for window in consumer.debloater.windows] == [2, 2] == [FIRST_WINDOW] * 2


def test_the_window_of_a_cheap_function_reaches_millions_after_six_round_trips() -> None:
    consumer, windows = Consumer([0]), []
    for _ in range(7):
        rows = consumer.announced[0]
        consumer.work(0, rows, max(1.0, rows / 10_000))  # ten million a second
        windows.append(consumer.announced[0])
    assert windows[:5] == [9, 45, 225, 2_249, 108_791], "few records open it to few more, many to many more"
    assert windows[5] > 2_000_000 and windows[6] > 5_000_000


def test_time_in_which_input_waits_for_work_outside_counts() -> None:
    consumer = Consumer([0])
    for _ in range(30):
        consumer.debloater.count_taken(0, consumer.announced[0])
        consumer.clock.advance(1)
        consumer.hear(consumer.debloater.step(idle=True))
        for _ in range(consumer.announced[0]):  # ten answers a second, and the next records wait meanwhile
            consumer.clock.advance(100)
            consumer.hear(consumer.debloater.step(idle=False))
    assert consumer.announced[0] <= 20, "two seconds of work"


def test_a_long_firing_without_records_does_not_forget_the_rate() -> None:
    consumer = Consumer([0])
    consumer.run(3, 1)
    for _ in range(300):
        consumer.clock.advance(10)
        consumer.hear(consumer.debloater.step(idle=False))
    assert consumer.announced[0] >= 10


@pytest.mark.parametrize("cost_ms", [1, 5, 20, 100])
def test_the_windows_hold_what_is_worked_off_in_the_target_time(cost_ms: int) -> None:
    consumer = Consumer([0, 0])
    consumer.run(5, cost_ms, channels=(0, 1))
    in_flight_ms = sum(consumer.announced) * cost_ms
    assert 500 <= in_flight_ms <= 1300


def test_a_channel_always_has_room_for_a_record() -> None:
    consumer = Consumer([0] * 8)
    consumer.run(200, 3000, channels=tuple(range(8)))
    assert consumer.announced == [1] * 8


def test_windows_grow_to_thousands_within_a_few_round_trips() -> None:
    consumer = Consumer([0])
    trips = 0
    while consumer.announced[0] < 900:
        rows = consumer.announced[0]
        consumer.work(0, rows, rows)
        trips += 1
    assert trips <= 8


@pytest.mark.parametrize(("before", "after"), [(1, 50), (50, 1)])
def test_windows_follow_a_change_of_rate_within_two_targets(before: int, after: int) -> None:
    consumer = Consumer([0])
    consumer.run(5, before)
    consumer.run(2, after)
    assert 0.5 <= consumer.announced[0] * after / 1000 <= 1.5


def test_a_few_cheap_records_open_the_window_for_a_few_more_only() -> None:
    consumer = Consumer([0])
    consumer.debloater.count_taken(0, 3)
    consumer.hear(consumer.debloater.step(idle=False))  # no time has passed: the rate is infinite
    assert consumer.announced[0] <= 4 * 3 + 1


@pytest.mark.spec("O31", "fair")
def test_a_busy_channel_among_idle_ones_has_half_of_what_may_be_in_flight() -> None:
    consumer = Consumer([0] * 10)
    consumer.run(3, 1, channels=(4,))
    assert 400 <= consumer.announced[4] <= 700
    assert all(1 <= rows <= 100 for channel, rows in enumerate(consumer.announced) if channel != 4)
    assert sum(consumer.announced) <= 1300


def test_each_input_of_an_operator_has_windows_by_its_own_rate() -> None:
    consumer = Consumer([0, 1])
    for _ in range(200):
        consumer.work(0, 10, 10)
        consumer.work(1, 1, 100)
    assert 300 <= consumer.announced[0] <= 600, "half a second of records of 1 ms"
    assert 3 <= consumer.announced[1] <= 7, "half a second of records of 100 ms"


def test_time_without_input_does_not_count() -> None:
    consumer = Consumer([0])
    for _ in range(30):
        consumer.debloater.count_taken(0, 10)
        consumer.clock.advance(10)
        consumer.hear(consumer.debloater.step(idle=True))
        consumer.clock.advance(1000)
    assert consumer.announced[0] >= 700


def test_time_that_a_task_waits_for_its_own_consumers_counts() -> None:
    consumer = Consumer([0])
    for _ in range(100):
        consumer.work(0, 10, 1, blocked=True)
        consumer.clock.advance(99)
    assert 50 <= consumer.announced[0] <= 150, "ten records in a tenth of a second"


@pytest.mark.parametrize(("fixed_ms", "channels"), [(100, 4), (300, 2), (20, 16)])
def test_a_batch_that_costs_the_same_whatever_its_size_does_not_make_windows_small(
    fixed_ms: int, channels: int
) -> None:
    consumer = Consumer([0] * channels)
    rows = 0
    for number in range(200):
        first = number % 2 * (channels // 2)
        rows = consumer.work_together(range(first, channels), fixed_ms)
    assert rows * 0.1 >= fixed_ms / 4, "records cost a good part of the batch"


def test_producers_hear_of_a_quarter_of_the_window_at_a_time() -> None:
    window = Consumer([0]).debloater.windows[0]
    window.rows = 100
    window.announce()
    window.worked = 24
    assert not window.is_due
    window.worked = 25
    assert window.is_due
    assert window.announce() == (25, 100, window.buffer_rows)
    assert not window.is_due


def test_small_changes_are_not_announced() -> None:
    consumer = Consumer([0])
    consumer.run(5, 10)
    steady = consumer.announced[0]
    consumer.clock.advance(1000)
    assert consumer.debloater.step(idle=False) == [] or consumer.debloater.windows[0].rows < 0.75 * steady


def slow_then_fast(rate: ConsumptionRate) -> None:
    rate.add(1, 2.0)
    rate.add(1000, 1.0)


def fast_then_slow(rate: ConsumptionRate) -> None:
    rate.add(1000, 1.0)
    rate.add(1, 2.0)


@pytest.mark.parametrize(("history", "found"), [(slow_then_fast, 1000), (fast_then_slow, 0)])
def test_a_rate_forgets_what_is_older_than_its_horizon(history: Callable[[ConsumptionRate], None], found: int) -> None:
    rate = ConsumptionRate(1.0)
    history(rate)
    assert rate.rows_within(1.0) == found


def test_no_time_is_an_endless_rate() -> None:
    rate = ConsumptionRate(1.0)
    rate.add(5, 0.0)
    assert rate.rows_within(1.0) > 1 << 40


@given(st.lists(st.tuples(st.integers(0, 1000), st.floats(0, 0.5)), max_size=60))
def test_a_rate_remembers_at_least_its_horizon_and_little_more(samples: list[tuple[int, float]]) -> None:
    rate = ConsumptionRate(1.0)
    for rows, seconds in samples:
        rate.add(rows, seconds)
    longest = max((seconds for _, seconds in samples), default=0.0)
    assert rate.seconds <= 1.0 + longest + 0.1
    assert rate.seconds >= min(1.0, sum(seconds for _, seconds in samples)) - 1e-6
    assert 0 <= rate.rows <= sum(rows for rows, _ in samples)


def test_batches_of_two_sizes_show_what_a_batch_costs_by_itself() -> None:
    cost = BatchCost()
    assert cost.amortizing_rows() == 0
    for rows in (10, 20, 15, 12, 18) * 5:
        cost.add(rows, 0.010 + rows * 0.001)
    assert cost.amortizing_rows() in (9, 10, 11)
    free = BatchCost()
    for rows in (10, 20, 15, 12, 18) * 5:
        free.add(rows, rows * 0.001)
    assert free.amortizing_rows() <= 1
    alike = BatchCost()
    for _ in range(10):
        alike.add(7, 0.1)
    assert alike.amortizing_rows() == 0
