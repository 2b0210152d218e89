"""Programs that fold records, and windows of time that go by the program's characteristic, as in Flink 1.x."""

from __future__ import annotations

from operator import itemgetter

import pytest

from rayflink.common import Duration, PlanError
from rayflink.common.errors import InvalidFunction
from rayflink.common.records.batches import RowBatch
from rayflink.datastream import FoldFunction, ProcessWindowFunction, TimeCharacteristic
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.datastream.window import (
    CountEvictor,
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from rayflink.operators.windows.folding import KeyedFoldOperator
from tests.datastream.programs import environment, timed
from tests.operators.laws import verify

RECORDS = [("a", 1, 0), ("b", 2, 1_000), ("a", 4, 4_000), ("b", 8, 12_000), ("a", 16, 13_000)]


def listed(so_far, record):
    so_far.append(record[1])
    return so_far


class Numbered(FoldFunction):
    def open(self, runtime_context):
        self.count = runtime_context.get_state(ValueStateDescriptor("count"))

    def fold(self, accumulator, value):
        self.count.update((self.count.value() or 0) + 1)
        return f"{accumulator}{self.count.value()}{value[1]}"


def test_each_record_gives_the_fold_of_its_key_so_far():
    given = [RowBatch([("a", 1), ("b", 2), ("a", 3)], [5, 6, 7]), RowBatch([("a", 4)], [8])]
    verify(
        lambda: KeyedFoldOperator(itemgetter(0), [], listed), given,
        [(None, [1], 5), (None, [2], 6), (None, [1, 3], 7), (None, [1, 3, 4], 8)],
    )  # fmt: skip
    verify(
        lambda: KeyedFoldOperator(itemgetter(0), "-", Numbered()), given,
        [(None, "-11", 5), (None, "-12", 6), (None, "-1123", 7), (None, "-112334", 8)],
    )  # fmt: skip


@pytest.mark.spec("C20", "apply", "reduce", "fold", "F27", "reduce", "fold")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_windows_are_folded_applied_or_reduced(parallelism):
    class Started(ProcessWindowFunction):
        def process(self, key, context, elements):
            yield key, context.window().start, next(iter(elements))

    keyed = timed(environment(parallelism), RECORDS).key_by(0)
    windows = keyed.window(TumblingEventTimeWindows.of(Duration.of_seconds(10)))
    assert ", listed, " in windows.fold([], listed).get_name()
    assert sorted(windows.fold([], listed).execute_and_collect()) == [[1, 4], [2], [8], [16]]
    assert sorted(windows.fold([], listed, Started()).execute_and_collect()) == [
        ("a", 0, [1, 4]), ("a", 10_000, [16]), ("b", 0, [2]), ("b", 10_000, [8]),
    ]  # fmt: skip
    assert sorted(windows.reduce(lambda x, y: (*x, y[1])).execute_and_collect())[0] == ("a", 1, 0, 4)
    applied = windows.apply(lambda key, window, records: [(key, len(list(records)))])
    assert sorted(applied.execute_and_collect()) == [("a", 1), ("a", 2), ("b", 1), ("b", 1)]
    sliding = keyed.window(SlidingEventTimeWindows.of(10_000, 5_000)).evictor(CountEvictor.of(1))
    assert sorted(sliding.fold([], listed).execute_and_collect()) == [[2], [2], [4], [4], [8], [8], [16], [16]]
    assert list(keyed.fold(0, lambda total, record: total + record[1], int).execute_and_collect()) != []


def test_what_cannot_be_folded_is_refused_in_its_line():
    keyed = timed(environment(), RECORDS).key_by(0)
    with pytest.raises(PlanError, match=r"Fold cannot be used with a merging WindowAssigner.*aggregate.*test_fold\.py"):
        keyed.window(EventTimeSessionWindows.with_gap(5)).fold(0, lambda a, b: a)
    with pytest.raises(InvalidFunction, match=r"fold wants a function of 2 arguments.*test_fold\.py"):
        keyed.fold(0, lambda a: a)


@pytest.mark.spec("E03")
@pytest.mark.spec("F16")
@pytest.mark.parametrize("characteristic", list(TimeCharacteristic))
def test_the_characteristic_chooses_the_clock_of_time_windows(characteristic):
    env = environment()
    env.set_stream_time_characteristic(characteristic)
    stream, ten, five = env.from_collection(RECORDS), Duration.of_seconds(10), Duration.of_seconds(5)
    by_clock = characteristic is TimeCharacteristic.ProcessingTime
    tumbling = (TumblingProcessingTimeWindows if by_clock else TumblingEventTimeWindows).of(ten)
    sliding = (SlidingProcessingTimeWindows if by_clock else SlidingEventTimeWindows).of(ten, five)
    for windows in (stream.key_by(0).time_window, stream.time_window_all):
        assert [repr(windows(ten)._assigner), repr(windows(ten, five)._assigner)] == [repr(tumbling), repr(sliding)]


@pytest.mark.spec("F16")
def test_time_windows_hold_the_records_of_their_time():
    stream = timed(environment(2), RECORDS)
    assert sorted(stream.key_by(0).time_window(Duration.of_seconds(10)).sum(1).execute_and_collect()) == [
        ("a", 5, 0), ("a", 16, 13_000), ("b", 2, 1_000), ("b", 8, 12_000),
    ]  # fmt: skip
    sums = stream.time_window_all(10_000, 5_000).fold(0, lambda total, record: total + record[1])
    assert sorted(sums.execute_and_collect()) == [7, 7, 24, 24]
