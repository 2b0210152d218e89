"""Slices: how many records a task works before it looks up, and what is served in between."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from rayflink.actors.messages.messages import CancelTask, CheckpointAcknowledged, TriggerCheckpoint
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.slicing import Slicer
from rayflink.common.records.batches import Batch, CheckpointBarrier, Element, RowBatch
from rayflink.operators.base import Operator
from rayflink.operators.capabilities import ProcessingTimers
from rayflink.operators.stateless import FlatMapOperator, MapOperator
from rayflink.state.clock import ManualClock
from tests.actors.task.task_bench import ListSource, TaskBench


def costs(clock: ManualClock, ms: int) -> Callable[[int], int]:
    """A function that takes `ms` of virtual time a record."""

    def work(n: int) -> int:
        clock.advance(ms)
        return n

    return work


def worked(slicer: Slicer, clock: ManualClock, rows: int, ms: int) -> None:
    slicer.expect(rows)
    slicer.begin()
    clock.advance(ms)
    slicer.end()


def test_slices_take_about_the_target_whatever_a_record_costs():
    for cost, fitting in ((1, 10), (2, 5), (5, 2), (10, 1), (500, 1)):
        clock = ManualClock()
        slicer = Slicer(clock, target_ms=10)
        for _ in range(20):
            rows = slicer.rows(1_000)
            worked(slicer, clock, rows, rows * cost)
        slicer.expect(1)
        assert fitting - 1 <= slicer.rows(1_000) <= fitting


def test_slices_grow_twofold_at_most():
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10, first=4)
    sizes = []
    for _ in range(5):
        sizes.append(slicer.rows(10**6))
        worked(slicer, clock, sizes[-1], 0)
    assert sizes == [4, 4, 8, 16, 32]


def test_a_slice_is_no_more_than_there_is_and_at_least_one():
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10, first=64)
    assert slicer.rows(3) == 3
    worked(slicer, clock, 64, 10_000)
    slicer.expect(1)
    assert slicer.rows(3) == 1


@pytest.mark.parametrize("cost_ms", [1, 20])
def test_a_cancel_is_served_within_a_slice(cost_ms):
    clock = ManualClock(1_000)
    bench = TaskBench([MapOperator(costs(clock, cost_ms))], clock=clock).start()
    bench.feed(0, RowBatch(list(range(5_000))))
    for _ in range(20):
        bench.step()
    before = clock.now_ms()
    bench.task.mail(CancelTask())
    bench.step()
    assert clock.now_ms() == before
    assert bench.states[-1] == "CANCELED"
    assert bench.task._slicer.longest_ms <= max(2 * cost_ms, 12), "no slice is longer than it must"


def test_a_barrier_of_the_coordinator_waits_for_one_slice_at_most():
    clock = ManualClock(1_000)
    source = ListSource([RowBatch([n]) for n in range(1_000)], ends=False)
    bench = TaskBench([source, MapOperator(costs(clock, 5))], (), clock=clock).start()
    for _ in range(50):
        bench.step()
    before = clock.now_ms()
    bench.task.mail(TriggerCheckpoint(CheckpointBarrier(1, before)))
    while not bench.reported(CheckpointAcknowledged):
        bench.step()
    assert clock.now_ms() - before <= 10


@pytest.mark.spec("A10", "latency")
def test_records_of_a_half_worked_batch_leave_at_the_buffer_timeout():
    """A batch of 10,000 records at 1 ms each: the first are sent on long before the last is worked."""
    clock = ManualClock(1_000)
    bench = TaskBench([MapOperator(costs(clock, 1))], clock=clock).start()
    bench.feed(0, RowBatch(list(range(10_000))))
    while not bench.output:
        bench.step()
    assert clock.now_ms() - 1_000 < 200
    assert bench.output[0] == 0


class Timer(Operator, ProcessingTimers):
    """Passes records on; has a timer at `due`."""

    def __init__(self, due: int) -> None:
        self.due: int | None = due

    def process(self, batch: Batch, input_index: int) -> Iterable[Element]:
        return (batch,)

    def next_processing_time(self) -> int | None:
        return self.due

    def on_processing_time(self, now_ms: int) -> Iterable[Element]:
        late, self.due = now_ms - (self.due or 0), None
        return (RowBatch([f"timer, {late} ms late"]),)


def test_a_timer_fires_between_two_slices_of_one_batch():
    clock = ManualClock(0)
    bench = TaskBench([MapOperator(costs(clock, 1)), Timer(due=500)], clock=clock).start()
    bench.feed(0, RowBatch(list(range(2_000))))
    bench.work()
    (fired,) = [value for value in bench.output if isinstance(value, str)]
    assert int(fired.split()[1]) <= 10
    assert 490 <= bench.output.index(fired) <= 520


@pytest.mark.spec("P02", "blocks")
def test_a_huge_flat_map_stops_when_its_outputs_are_full_and_goes_on_later():
    drawn = 0

    def explode(count: int) -> Iterable[int]:
        nonlocal drawn
        for n in range(count):
            drawn += 1
            yield n

    config = {
        "taskmanager.network.memory.buffers-per-channel": "2",
        "taskmanager.network.memory.floating-buffers-per-gate": "1",
    }
    bench = TaskBench([FlatMapOperator(explode, chunk_records=10)], config=config).start(credit=0)
    bench.feed(0, 1_000_000)
    assert bench.work() is Progress.BACK_PRESSURED
    assert drawn <= 50, "3 buffers of 10 records and what is under way"
    bench.give_credit(2)
    assert bench.work() is Progress.BACK_PRESSURED
    assert bench.output == list(range(20))
    assert drawn <= 70
    assert bench.task.buffers_held <= 4


@pytest.mark.spec("P01", "P03")
def test_a_task_without_credit_takes_no_input_and_gives_its_producer_none():
    config = {
        "taskmanager.network.memory.buffers-per-channel": "1",
        "taskmanager.network.memory.floating-buffers-per-gate": "0",
    }
    bench = TaskBench([MapOperator(lambda n: n)], config=config).start(credit=0)
    bench.feed(0, 1)
    bench.work()
    assert bench.task._room.is_full()
    before = bench.task.work_done
    bench.feed(0, 2)
    assert bench.work() is Progress.BACK_PRESSURED
    assert bench.task._gate.queued == 1
    bench.give_credit(1)
    bench.work()
    assert bench.output == [1]
    assert bench.task.work_done > before


def test_a_task_that_can_not_write_does_not_poll_its_source():
    source = ListSource([RowBatch([n]) for n in range(100)])
    bench = TaskBench([source], ()).start(credit=0)
    assert bench.work() is Progress.BACK_PRESSURED
    left = len(source.batches)
    assert left >= 100 - 12
    for _ in range(5):
        assert bench.step() is Progress.BACK_PRESSURED
    assert len(source.batches) == left


@pytest.mark.parametrize(("fixed_ms", "most_rows"), [(12, 1 << 20), (40, 1 << 20), (3, 1 << 20)])
def test_work_that_costs_the_same_for_any_number_of_records_keeps_slices_large(fixed_ms, most_rows):
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10, first=1_000)
    for _ in range(30):
        rows = slicer.rows(most_rows)
        worked(slicer, clock, rows, fixed_ms)
    assert slicer.rows(most_rows) > 100_000


@pytest.mark.parametrize(("fixed_ms", "longest_ms"), [(2, 10), (30, 60)])
def test_a_slice_of_dear_work_takes_twice_as_long_as_that_at_most(fixed_ms, longest_ms):
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10, first=64)
    sizes = []
    for _ in range(60):
        sizes.append(slicer.rows(10**6))
        worked(slicer, clock, sizes[-1], fixed_ms + sizes[-1])  # a millisecond a record besides
    assert max(sizes[30:]) + fixed_ms <= longest_ms + 1
    assert min(sizes[30:]) >= 7


def test_where_slices_are_of_one_record_a_larger_one_shows_that_the_batch_costs():
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10)
    for _ in range(60):
        rows = slicer.rows(1_000)
        worked(slicer, clock, rows, 50 + rows // 10)  # a model that takes 50 ms a call
    assert slicer.rows(1_000) > 100


def test_where_records_cost_the_time_nearly_all_slices_are_of_one():
    clock = ManualClock()
    slicer = Slicer(clock, target_ms=10)
    sizes = []
    for _ in range(160):
        sizes.append(slicer.rows(1_000))
        worked(slicer, clock, sizes[-1], 50 * sizes[-1])
    assert max(sizes) == 2 and sizes.count(2) <= 12
