"""Sessions, count windows and global windows in whole jobs."""

from __future__ import annotations

import pytest

from rayflink.common import Duration, PlanError, Time
from rayflink.datastream import CountWindow, DataStream, ProcessWindowFunction, WindowAssigner
from rayflink.datastream.window import (
    CountEvictor,
    CountSlidingWindowAssigner,
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    GlobalWindows,
    NeverTrigger,
    PurgingTrigger,
    SessionWindowTimeGapExtractor,
    TimeWindow,
)
from tests.datastream.programs import environment, timed

VISITS = [("a", 1, 0), ("b", 2, 1_000), ("a", 4, 4_000), ("a", 8, 9_001), ("b", 16, 6_000), ("a", 32, 30_000)]


class Spans(ProcessWindowFunction):
    def process(self, key, context, elements):
        yield key, context.window().start, context.window().end, sum(value for _, value, *_ in elements)


class Waits(SessionWindowTimeGapExtractor):
    def extract(self, element):
        return 1_000 * element[1]


@pytest.mark.spec("C07", "F21", "F23")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_sessions_of_each_key(parallelism):
    windows = (
        timed(environment(parallelism), VISITS).key_by(0).window(EventTimeSessionWindows.with_gap(Time.seconds(5)))
    )
    assert sorted(windows.process(Spans()).execute_and_collect()) == [
        ("a", 0, 9_000, 5), ("a", 9_001, 14_001, 8), ("a", 30_000, 35_000, 32), ("b", 1_000, 11_000, 18),
    ]  # fmt: skip
    summed = windows.sum(1)
    assert type(summed) is DataStream
    assert sorted(value for _, value, _ in summed.execute_and_collect()) == [5, 8, 18, 32]


def test_sessions_whose_gap_is_in_the_record():
    windows = timed(environment(), VISITS).key_by(0).window(EventTimeSessionWindows.with_dynamic_gap(Waits()))
    assert sorted(windows.process(Spans()).execute_and_collect()) == [
        ("a", 0, 1_000, 1), ("a", 4_000, 8_000, 4), ("a", 9_001, 17_001, 8), ("a", 30_000, 62_000, 32),
        ("b", 1_000, 3_000, 2), ("b", 6_000, 22_000, 16),
    ]  # fmt: skip


@pytest.mark.spec("C08")
def test_sessions_of_all_records_are_worked_by_one_subtask():
    windows = timed(environment(2), VISITS).window_all(EventTimeSessionWindows.with_gap(Duration.of_seconds(4)))
    summed = windows.sum(1)
    assert summed._transformation.parallelism == 1
    assert sorted(summed.execute_and_collect()) == [("a", 31, 0), ("a", 32, 30_000)]


class Counted(ProcessWindowFunction[tuple, tuple, str, CountWindow]):
    def process(self, key, context, elements):
        yield key, context.window().id, [value for _, value in elements]


@pytest.mark.spec("F15")
def test_count_windows_of_all_records():
    stream = environment(2).from_collection([1, 2, 3, 4, 5]).set_parallelism(1)
    assert list(stream.count_window_all(2).sum().execute_and_collect()) == [3, 7]
    assert list(stream.count_window_all(3, 1).sum().execute_and_collect()) == [1, 3, 6, 9, 12]
    full = stream.window_all(CountSlidingWindowAssigner.of(3, 1))
    assert list(full.sum().execute_and_collect()) == [6, 9, 12]


@pytest.mark.spec("F13", "X05")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_count_windows_of_each_key(parallelism):
    records = [("a", 1), ("b", 2), ("a", 3), ("a", 4), ("b", 5), ("a", 6), ("a", 7)]
    keyed = environment(parallelism).from_collection(records).key_by(0)
    assert sorted(keyed.count_window(2).process(Counted()).execute_and_collect()) == [
        ("a", 0, [1, 3]), ("a", 1, [4, 6]), ("b", 0, [2, 5]),
    ]  # fmt: skip
    assert sorted(keyed.window(CountSlidingWindowAssigner.of(3, 1)).process(Counted()).execute_and_collect()) == [
        ("a", 0, [1, 3, 4]), ("a", 1, [3, 4, 6]), ("a", 2, [4, 6, 7]),
    ]  # fmt: skip
    whole = keyed.window(GlobalWindows.create()).trigger(PurgingTrigger.of(CountTrigger.of(2)))
    assert sorted(whole.sum(1).execute_and_collect()) == [("a", 4), ("a", 10), ("b", 7)]
    assert keyed.count_window(1, 1) is not None
    for size, slide in ((0, 0), (0, 1), (2, -1)):
        with pytest.raises(ValueError, match="at least 1 record"):
            keyed.count_window(size, slide)


@pytest.mark.spec("F14")
@pytest.mark.spec("X04")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_sliding_count_window_fires_at_every_slide_like_its_three_parts(parallelism):
    records = [("a", number) for number in (2, 5, 7, 9, 4, 2)] + [("b", 1)]
    windows = environment(parallelism).from_collection(records).key_by(0).window(GlobalWindows.create())
    sums = windows.trigger(CountTrigger.of(2)).evictor(CountEvictor.of(4)).sum(1)
    assert list(sums.execute_and_collect()) == [("a", 7), ("a", 23), ("a", 22)]
    sums = environment(parallelism).from_collection(records).key_by(0).count_window(4, 2).sum(1)
    assert list(sums.execute_and_collect()) == [("a", 7), ("a", 23), ("a", 22)]
    with pytest.raises(TypeError, match="an Evictor is wanted, found 4"):
        windows.evictor(4)


def test_a_trigger_that_cannot_merge_is_refused_for_sessions_in_its_line():
    windows = timed(environment(), VISITS).key_by(0).window(EventTimeSessionWindows.with_gap(5))
    with pytest.raises(PlanError, match=r"(?s)cannot be used with a trigger that.*NeverTrigger.*test_window_kinds\.py"):
        windows.trigger(NeverTrigger())


def test_an_assigner_of_ones_own_is_given_the_environment_for_its_trigger():
    given = []

    class Tens(WindowAssigner[tuple, TimeWindow]):
        def assign_windows(self, element, timestamp, context):
            return [TimeWindow(timestamp - timestamp % 10_000, timestamp - timestamp % 10_000 + 10_000)]

        def get_default_trigger(self, env):
            given.append(env)
            return EventTimeTrigger.create()

        def is_event_time(self):
            return True

    env = environment()
    assert sorted(timed(env, VISITS).key_by(0).window(Tens()).sum(1).execute_and_collect()) == [
        ("a", 13, 0), ("a", 32, 30_000), ("b", 18, 1_000),
    ]  # fmt: skip
    assert given == [env]
