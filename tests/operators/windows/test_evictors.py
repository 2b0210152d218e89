"""Windows with evictors: what leaves them when, and what their functions see."""

from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions.function_classes import WindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.assigners import TumblingEventTimeWindows
from rayflink.operators.windows.count_windows import GlobalWindows
from rayflink.operators.windows.delta_trigger import DeltaTrigger
from rayflink.operators.windows.evictors import CountEvictor, DeltaEvictor, Evictor, TimeEvictor, TimestampedValue
from rayflink.operators.windows.session_windows import EventTimeSessionWindows
from rayflink.operators.windows.triggers import CountTrigger
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, built_in, collecting
from rayflink.testing import OperatorHarness, rec, verify, wm

first = itemgetter(0)


class Listed(WindowFunction):  # type: ignore[type-arg]
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, [value for _, value in inputs]


def maker(assigner: Any, contents: Any = collecting, listed: bool = True, **rules: Any) -> Any:
    evaluation = WindowEvaluation(Listed()) if listed else None
    return lambda: window_operator(first, assigner, contents(), evaluation, WindowRules(**rules))


ARRIVALS = [rec(("a", number)) for number in (2, 5, 7, 9, 4, 2)]
SLIDING: Any = {"trigger": CountTrigger.of(2), "evictor": CountEvictor.of(4)}


@pytest.mark.spec("X04", "F08", "F11", "F14")
def test_a_sliding_count_window_of_4_by_2_gives_7_23_and_22() -> None:
    lists = [[2, 5], [2, 5, 7, 9], [7, 9, 4, 2]]
    then = [rec(("a", values), MAX_TIMESTAMP) for values in lists]
    verify(maker(GlobalWindows.create(), **SLIDING), ARRIVALS, then)
    sums = [rec(("a", sum(values)), MAX_TIMESTAMP) for values in lists]
    verify(maker(GlobalWindows.create(), lambda: built_in("sum", 1), False, **SLIDING), ARRIVALS, sums)
    assert [out.value[1] for out in sums] == [7, 23, 22]
    with OperatorHarness(maker(GlobalWindows.create(), lambda: built_in("sum", 1), False, **SLIDING)) as harness:
        for step in ARRIVALS:
            harness.give(step)
        [(_, _, kept)] = harness.operators[0]._table.entries(range(128))  # type: ignore[attr-defined]
    assert sorted(value for (_, value), _ in kept) == [2, 4, 7, 9], "all records are kept, and only those"


@pytest.mark.spec("F08")
def test_an_evictor_sees_timestamps_and_clocks_before_and_behind_the_function() -> None:
    class Old(Evictor[Any, Any]):
        def evict_before(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            seen.append(("before", size, [element.timestamp for element in elements], ctx.get_current_watermark()))
            elements[:] = [element for element in elements if element.timestamp >= 3]

        def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            seen.append(("after", size, [element.timestamp for element in elements], window.start))
            elements.clear()

    seen: list[Any] = []
    ten = TumblingEventTimeWindows.of(10)
    steps = [rec(("a", 1), 1), rec(("a", 2), 5), wm(9), rec(("a", 4), 7), wm(11), wm(40)]
    with OperatorHarness(maker(ten, allowed_lateness_ms=5, evictor=Old())) as harness:
        for step in steps:
            harness.give(step)
        assert harness.output_values() == [("a", [2]), ("a", [4])]
        assert len(harness.operators[0]._table) == 0  # type: ignore[attr-defined]
    assert seen == [
        ("before", 2, [1, 5], 9), ("after", 2, [5], 0), ("before", 1, [7], 9), ("after", 1, [7], 0)
    ]  # fmt: skip
    verify(maker(ten, allowed_lateness_ms=5, evictor=CountEvictor.of(1, True)), steps, [
        rec(("a", [1, 2]), 9), wm(9), rec(("a", [2, 4]), 9), wm(11), wm(40),
    ])  # fmt: skip


@pytest.mark.spec("F08")
def test_sessions_that_merge_are_evicted_too() -> None:
    steps = [rec(("a", 1), 0), rec(("a", 2), 20), rec(("a", 3), 10), wm(50)]
    session = EventTimeSessionWindows(10)
    verify(maker(session, evictor=CountEvictor.of(2)), steps, [rec(("a", [2, 3]), 29), wm(50)])
    summed = maker(session, lambda: built_in("sum", 1), False, evictor=CountEvictor.of(2))
    verify(summed, steps, [rec(("a", 5), 29), wm(50)])


def test_without_records_there_is_no_result_but_of_functions_of_all_records() -> None:
    given = [rec(("a", 1), 0), wm(9)]
    ten = TumblingEventTimeWindows.of(10)
    verify(maker(ten, evictor=CountEvictor.of(0)), given, [rec(("a", []), 9), wm(9)])
    verify(maker(ten, lambda: built_in("sum", 1), False, evictor=CountEvictor.of(0)), given, [wm(9)])


def test_the_name_lists_the_evictor_and_its_failure_names_the_method_and_the_window() -> None:
    class Fails(CountEvictor[Any, Any]):
        def evict_after(self, elements: Any, size: int, window: Any, ctx: Any) -> None:
            raise ZeroDivisionError

    make = maker(TumblingEventTimeWindows.of(10), lambda: built_in("sum", 1), False, evictor=Fails(2))
    parts = "TumblingEventTimeWindows(10), EventTimeTrigger, Fails, SumAggregator, PassThroughWindowFunction"
    assert make().name == f"Window({parts})"
    with OperatorHarness(make) as harness:
        harness.process(("a", 1), 0)
        with pytest.raises(UserCodeError, match="failed in evict_after on record key 'a' in TimeWindow"):
            harness.advance_watermark(9)
    with pytest.raises(ValueError, match="at least 0 records, found -1"):
        CountEvictor.of(-1)


@pytest.mark.parametrize("after", [False, True])
def test_evictors_by_time_and_by_difference_keep_what_is_near_the_newest_record(after: bool) -> None:
    steps = [rec(("a", 1), 3), rec(("a", 9), 8), rec(("a", 8), 5), rec(("a", 7), 6), wm(9), rec(("a", 2), 4), wm(99)]
    lists = {
        "time": ([[9, 7], [9, 7]], [[1, 9, 8, 7], [9, 7, 2]]),
        "delta": ([[9, 8, 7], [2]], [[1, 9, 8, 7], [9, 8, 7, 2]]),
    }
    by_delta = DeltaEvictor.of(3, lambda old, new: abs(new[1] - old[1]), after)
    evictors = {"time": TimeEvictor.of(3, after), "delta": by_delta}
    for kind, evictor in evictors.items():
        first_list, second_list = lists[kind][after]
        make = maker(TumblingEventTimeWindows.of(10), evictor=evictor, allowed_lateness_ms=5)
        verify(make, steps, [rec(("a", first_list), 9), wm(9), rec(("a", second_list), 9), wm(99)])


def test_an_evictor_by_time_leaves_records_without_timestamps_alone() -> None:
    elements = [TimestampedValue(1, None), TimestampedValue(2, 50)]
    TimeEvictor.of(1).evict_before(elements, 2, None, None)  # type: ignore[arg-type]
    assert len(elements) == 2
    for wrong in (lambda: TimeEvictor.of(0), lambda: DeltaEvictor.of(1, 5), lambda: DeltaTrigger.of(1, "x")):  # type: ignore[arg-type]
        with pytest.raises((ValueError, TypeError), match="needs a time above 0|delta function is a callable"):
            wrong()
