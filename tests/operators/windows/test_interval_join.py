"""Interval joins: which pairs, in which order, how late records leave, and when what was kept goes."""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import OutputTag, RuntimeContext
from rayflink.common.functions.join_functions import ProcessJoinFunction
from rayflink.common.records.batches import RowBatch, Watermark
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.interval_join import Interval, IntervalJoinOperator
from rayflink.state.descriptors import ValueStateDescriptor
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from rayflink.testing import HARDSHIPS, OperatorHarness, in2, rec, side, verify, wm
from tests.operators.laws import Metrics, answers, context, flat, started
from tests.operators.write_back import write_back_backend

first, name = itemgetter(0), itemgetter("name")


def paired(left: Any, right: Any) -> tuple[Any, Any]:
    return left[1], right["n"]


def joining(lower: int, upper: int, late: tuple[str | None, str | None] = (None, None), function: Any = paired) -> Any:
    return partial(IntervalJoinOperator, first, name, function, Interval(lower, upper, late))


def left(key: str, n: int, stamp: int) -> Any:
    return rec((key, n), stamp)


def right(key: str, n: int, stamp: int) -> Any:
    return in2(rec({"name": key, "n": n}, stamp))


def both(stamp: int) -> list[Any]:
    return [wm(stamp), in2(wm(stamp))]


GIVEN = [
    left("a", 1, 5), right("a", 10, 3), right("a", 11, 9), right("b", 12, 5), left("a", 2, 4), right("a", 13, 2),
    left("b", 3, 8), *both(4), right("a", 14, 4), left("a", 4, 3), right("b", 15, 7), *both(7), right("a", 16, 6),
    right("a", 17, 7), left("a", 5, 12), right("b", 18, 10), *both(30), left("c", 6, 31), right("c", 19, 30),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, write_back_backend], ids=["default", "write back"])
def test_pairs_are_those_within_the_interval_under_every_hardship(backend: Any) -> None:
    def make() -> IntervalJoinOperator:
        operator: IntervalJoinOperator = joining(-2, 4, ("late left", "late right"))()
        if backend is not None:
            operator.create_backend = backend  # type: ignore[method-assign]
        return operator

    then = [
        rec((1, 10), 5), rec((1, 11), 9), rec((2, 10), 4), rec((2, 13), 4), wm(4), rec((2, 14), 4), rec((1, 14), 5),
        side("late left", ("a", 4), 3), rec((3, 15), 8), wm(7), side("late right", {"name": "a", "n": 16}, 6),
        rec((2, 17), 7), rec((1, 17), 7), rec((3, 18), 10), wm(30), rec((6, 19), 31),
    ]  # fmt: skip
    verify(make, GIVEN, then, key=(first, name), without=[] if backend is None else JOBS)


JOBS = [hardship for hardship in HARDSHIPS if hardship.startswith("as a")]


def test_a_record_meets_its_partners_by_time_and_those_of_one_time_by_arrival() -> None:
    arrivals = [right("a", number, stamp) for number, stamp in enumerate([70, 20, 99, 20, 50, 0, 20, 15])]
    then = [
        rec((0, number), max(60, stamp))
        for number, stamp in [(5, 0), (7, 15), (1, 20), (3, 20), (6, 20), (4, 50), (0, 70)]
    ]
    verify(joining(-60, 20), [*arrivals, left("a", 0, 60)], then, key=(first, name))


def test_a_function_sees_both_timestamps_and_uses_side_outputs_and_state() -> None:
    class Telling(ProcessJoinFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.count = runtime_context.get_state(ValueStateDescriptor("count"))

        def process_element(self, left: Any, right: Any, ctx: ProcessJoinFunction.Context) -> Any:
            self.count.update((self.count.value() or 0) + 1)
            yield left[0], self.count.value()
            yield OutputTag("times"), (ctx.get_left_timestamp(), ctx.get_right_timestamp(), ctx.get_timestamp())

    verify(
        lambda: joining(-5, 5, function=Telling())(),
        [left("a", 1, 10), right("a", 2, 7), right("b", 3, 7), left("b", 4, 2), left("a", 5, 8)],
        [rec(("a", 1), 10), side("times", (10, 7, 10), 10), rec(("b", 1), 7), side("times", (2, 7, 7), 7),
         rec(("a", 2), 8), side("times", (8, 7, 8), 8)],
        key=(first, name),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (lambda left, right: [left[1], right["n"]], [[1, 2]]),
        (lambda left, right, ctx: [left[1], right["n"]], [1, 2]),
        (lambda left, right, ctx: None, []),
    ],
)
def test_a_function_of_two_gives_one_result_and_one_with_a_context_gives_several(function: Any, results: Any) -> None:
    then = [rec(result, 4) for result in results]
    verify(joining(0, 0, function=function), [left("a", 1, 4), right("a", 2, 4)], then, key=(first, name))


def test_a_generator_of_two_gives_several() -> None:
    def several(left: Any, right: Any) -> Any:
        yield left[1]
        yield right["n"]

    given = [left("a", 1, 4), right("a", 2, 4)]
    verify(joining(0, 0, function=several), given, [rec(1, 4), rec(2, 4)], key=(first, name))


def test_what_a_function_does_to_its_records_does_not_change_what_is_kept() -> None:
    def spoil(left: Any, right: Any) -> Any:
        left.append(right["n"])
        return left

    keyed = partial(IntervalJoinOperator, first, name, spoil, Interval(-9, 9))
    given = [rec(["a"], 1), right("a", 1, 1), right("a", 2, 1), rec(["a", 0], 1)]
    then = [["a", 1], ["a", 2], ["a", 0, 1], ["a", 0, 2]]
    verify(keyed, given, [rec(value, 1) for value in then], key=(first, name))


def kept(operator: Any) -> list[int]:
    """How many records each side keeps."""
    return [sum(len(entries) for _, _, entries in buffer.entries(range(128))) for buffer in operator._buffers]


@pytest.mark.parametrize(
    ("lower", "upper", "left_until", "right_until"),
    [(-3, 4, 14, 13), (2, 4, 14, 8), (-4, -2, 8, 14), (0, 0, 10, 10), (0, 5, 15, 10)],
)
def test_a_record_is_kept_until_the_watermark_passes_its_last_possible_partner(
    lower: int, upper: int, left_until: int, right_until: int
) -> None:
    for arrival, until in ((left("a", 1, 10), left_until), (right("a", 1, 10), right_until)):
        with OperatorHarness(joining(lower, upper), 2) as harness:
            harness.give(arrival)
            for watermark in range(until + 1):
                assert sum(kept(harness.operators[0])) == 1
                for element in both(watermark):
                    harness.give(element)
            assert sum(kept(harness.operators[0])) == 1
            for element in both(until + 1):
                harness.give(element)
            assert kept(harness.operators[0]) == [0, 0]
            if until < 10:
                harness.give(arrival)
            assert kept(harness.operators[0]) == [0, 0], "not late, but all its partners would be"
            assert not any(map(len, harness.operators[0]._timers))  # type: ignore[attr-defined]


def test_a_wide_interval_is_forgotten_at_most_an_eighth_of_it_later() -> None:
    with OperatorHarness(joining(0, 799), 2) as harness:
        for n in range(0, 2000, 10):
            harness.give(left("a", n, n))
        for watermark in range(0, 4000, 50):
            for element in both(watermark):
                harness.give(element)
            needed = sum(n + 799 >= watermark for n in range(0, 2000, 10))
            assert needed <= kept(harness.operators[0])[0] <= needed + 10


def test_a_record_looks_at_few_buckets_however_many_records_are_kept() -> None:
    with OperatorHarness(joining(-1000, 1000), 2) as harness:
        for n in range(500):
            harness.give(right("a", n, 40 * n))
        operator: Any = harness.operators[0]
        looked: list[int] = []
        buffer = operator._buffers[1]

        class Counted:
            def get(self, key: Any, bucket: Any) -> Any:
                found = buffer.get(key, bucket)
                looked.append(len(found or ()))
                return found

        operator._buffers[1] = Counted()
        harness.give(left("a", 1, 10_000))
        operator._buffers[1] = buffer
        assert len(harness.take()) == 51
        assert len(looked) <= 9 and sum(looked) <= 64


@pytest.mark.parametrize("bounds", [(-4, 4), (-40, 40), (0, 16), (-1, 0), (5, 13)])
@pytest.mark.parametrize("backend", [None, write_back_backend], ids=["default", "write back"])
def test_a_snapshot_of_another_interval_is_sorted_anew(bounds: Any, backend: Any) -> None:
    def make(lower: int, upper: int) -> IntervalJoinOperator:
        operator: IntervalJoinOperator = joining(lower, upper)()
        if backend is not None:
            operator.create_backend = backend  # type: ignore[method-assign]
        return operator

    with OperatorHarness(lambda: make(-8, 8), 2) as harness:
        for n in range(20, 40):
            harness.give(left("ab"[n % 2], n, n))
        for element in both(22):
            harness.give(element)
        snapshot = harness.snapshot()
    with harness.restore(lambda: make(*bounds), snapshot) as restored:
        restored.take()
        for watermark in range(22, 60):
            restored.give(right("a", watermark, watermark))
            met = sorted(record.value[0] for record in restored.take())
            reached = range(watermark - bounds[1], watermark - bounds[0] + 1)
            kept_until_then = [n for n in range(20, 40, 2) if n + 8 >= 22]
            assert met == [n for n in kept_until_then if n in reached]
            for element in both(watermark):
                restored.give(element)
            restored.take()
        for element in both(200):
            restored.give(element)
        assert kept(restored.operators[0]) == [0, 0]


def test_late_records_without_a_side_output_are_counted() -> None:
    ctx = context(metrics=Metrics())
    operator = started(joining(-5, 5), ctx)
    flat(answers(operator, Watermark(10)))
    assert flat(operator.process(RowBatch([("a", 1), ("a", 2)], [9, 10]), 0)) == []
    assert flat(operator.process(RowBatch([{"name": "a", "n": 1}], [3]), 1)) == []
    assert ctx.metrics.counters["numLateRecordsDropped"].count == 2
    assert flat(operator.process(RowBatch([{"name": "a", "n": 2}], [10]), 1)) == [(None, (2, 2), 10)]


@pytest.mark.parametrize("stamps", [None, [4, -(2**63)]])
def test_a_record_without_a_timestamp_is_an_error_with_the_remedy(stamps: Any) -> None:
    operator = started(joining(-5, 5), context())
    with pytest.raises(UserCodeError, match=r"records with timestamps.*assign_timestamps_and_watermarks") as failure:
        list(operator.process(RowBatch([("a", 1), ("a", 2)], stamps), 0))
    assert failure.value.record == ("('a', 1)" if stamps is None else "('a', 2)")


def test_a_failing_function_names_both_records() -> None:
    def failing(left: Any, right: Any) -> Any:
        return left[1] / right["n"]

    operator = started(joining(0, 0, function=failing), context())
    list(operator.process(RowBatch([("a", 1)], [4]), 0))
    with pytest.raises(UserCodeError, match="ZeroDivisionError") as failure:
        list(operator.process(RowBatch([{"name": "a", "n": 0}], [4]), 1))
    assert failure.value.record == "('a', 1) and {'name': 'a', 'n': 0}"


@pytest.mark.slow
def test_times_at_the_ends_of_time_are_no_trouble() -> None:
    low, high = -(2**63) + 1, 2**63 - 2
    given = [left("a", 1, low), right("a", 2, low), left("a", 3, high), right("a", 4, high), *both(2**63 - 1)]
    verify(joining(-(2**62), 2**62), given, [rec((1, 2), low), rec((3, 4), high), wm(2**63 - 1)], key=(first, name))


def test_results_that_never_end_come_batch_by_batch() -> None:
    def endless(left: Any, right: Any, ctx: Any) -> Any:
        while True:
            yield 1

    operator = started(joining(0, 0, function=endless), context())
    list(operator.process(RowBatch([("a", 1)], [4]), 0))
    drawn = iter(operator.process(RowBatch([{"name": "a", "n": 0}], [4]), 1))
    assert 0 < len(next(drawn)) <= 8192


def test_an_interval_the_wrong_way_round_is_refused() -> None:
    with pytest.raises(ValueError, match="from 3 ms to 2 ms"):
        Interval(3, 2)


@pytest.mark.slow
def test_more_records_than_the_memory_for_state_are_joined_from_disk(tmp_path: Path) -> None:
    operator: Any = joining(-400, 600)()
    operator.create_backend = lambda ctx: RocksDBBackend(
        range(128), 128, "join", tmp_path / "state", StateMemory(100_000)
    )
    started(lambda: operator, context())
    got: list[Any] = []
    for n in range(0, 2_000, 100):
        times = list(range(n, n + 100))
        got += flat(operator.process(RowBatch([(f"k{at % 40}", at) for at in times], times), 0))
        got += flat(operator.process(RowBatch([{"name": f"k{at % 40}", "n": at} for at in times], times), 1))
        flat(answers(operator, Watermark(n)))
    assert operator.backend.store.is_open, "more than the cache holds"
    expected = [
        (one, other)
        for one in range(2_000)
        for other in range(one % 40, 2_000, 40)
        if -400 <= other - one <= 600
    ]  # fmt: skip
    assert sorted(value for _, value, _ in got) == expected
    flat(answers(operator, Watermark(10_000)))
    assert kept(operator) == [0, 0]
    operator.close()


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([0, 1]), st.sampled_from("ab"), st.integers(-20, 40)),
        st.tuples(st.just(2), st.just(""), st.integers(-20, 40)),
    ),
    max_size=40,
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(EVENTS, st.integers(-12, 12), st.integers(0, 20), st.booleans())
def test_any_stream_gives_the_pairs_of_a_nested_loop(events: Any, lower: int, width: int, write_back: bool) -> None:
    """Out of order and late: pairs are those of all records that were not late when they came."""
    upper = lower + width
    operator = joining(lower, upper, ("late left", "late right"))()
    if write_back:
        operator.create_backend = write_back_backend
    started(lambda: operator, context())
    got, late = [], []
    sides: tuple[list[Any], list[Any]] = [], []
    expected_late, watermark = [], -(2**63)
    for number, (kind, key, stamp) in enumerate(events):
        if kind == 2:
            watermark = max(watermark, stamp)
            flat(answers(operator, Watermark(watermark)))
            continue
        value: Any = {"name": key, "n": number} if kind else (key, number)
        for tag, result, result_stamp in flat(operator.process(RowBatch([value], [stamp]), kind)):
            if tag is None:
                got.append((result, result_stamp))
            else:
                late.append((tag, result))
        if stamp < watermark:
            expected_late.append(("late right" if kind else "late left", value))
        else:
            sides[kind].append((key, number, stamp))
    pairs = [
        ((one, other), max(at, then))
        for key, one, at in sides[0]
        for other_key, other, then in sides[1]
        if key == other_key and lower <= then - at <= upper
    ]
    assert sorted(got) == sorted(pairs)
    assert late == expected_late
