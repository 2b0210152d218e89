import io
import pickle
from operator import itemgetter
from typing import Any

import pytest

from rayflink.common.functions.function_classes import ProcessWindowFunction, WindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP
from rayflink.operators.windows.assigners import (
    TumblingEventTimeWindows,
)
from rayflink.operators.windows.continuous_triggers import ContinuousProcessingTimeTrigger
from rayflink.operators.windows.count_windows import (
    CountSlidingWindowAssigner,
    CountTumblingWindowAssigner,
    GlobalWindows,
)
from rayflink.operators.windows.triggers import (
    CountTrigger,
    EventTimeTrigger,
    NeverTrigger,
    ProcessingTimeTrigger,
    PurgingTrigger,
)
from rayflink.operators.windows.window import (
    CountWindow,
    CountWindowSerializer,
    GlobalWindow,
    GlobalWindowSerializer,
    TimeWindow,
    TimeWindowSerializer,
    Window,
)
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, built_in, collecting
from rayflink.testing import OperatorHarness, at, rec, verify, wm

first = itemgetter(0)
RECORDS = [rec((key, number), number) for number, key in enumerate("abacbaacaaba")]


class Listed(WindowFunction):  # type: ignore[type-arg]
    def apply(self, key: Any, window: Any, inputs: Any) -> Any:
        yield key, repr(window), [value for _, value in inputs]


def maker(assigner: Any, trigger: Any = None, contents: Any = collecting, evaluation: Any = Listed) -> Any:
    """Makes operators; `evaluation` makes a function, or is None."""
    rules = WindowRules(trigger)
    return lambda: window_operator(first, assigner, contents(), evaluation and WindowEvaluation(evaluation()), rules)


@pytest.mark.slow
@pytest.mark.spec("F01", "count", "F13")
def test_a_count_window_is_evaluated_when_it_is_full_and_the_next_begins_empty() -> None:
    out = [
        ("a", "CountWindow(id=0)", [0, 2, 5]), ("b", "CountWindow(id=0)", [1, 4, 10]),
        ("a", "CountWindow(id=1)", [6, 8, 9]),
    ]  # fmt: skip
    at_end = MAX_TIMESTAMP
    verify(
        maker(CountTumblingWindowAssigner.of(3)),
        RECORDS,
        [rec(out[0], at_end), rec(out[2], at_end), rec(out[1], at_end)],
    )
    verify(
        maker(CountTumblingWindowAssigner.of(3), None, lambda: built_in("sum", 1), None),
        RECORDS, [rec(("a", 7), at_end), rec(("a", 23), at_end), rec(("b", 15), at_end)],
    )  # fmt: skip


@pytest.mark.spec("F12", "F13", "X05")
def test_a_count_window_is_the_global_window_with_a_purging_count_trigger() -> None:
    trigger = PurgingTrigger.of(CountTrigger.of(3))
    verify(maker(GlobalWindows.create(), trigger), RECORDS, [
        rec((key, "GlobalWindow", values), MAX_TIMESTAMP)
        for key, values in (("a", [0, 2, 5]), ("a", [6, 8, 9]), ("b", [1, 4, 10]))
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("size", "slide", "windows"),
    [(3, 2, [[0, 2, 5], [5, 6, 8], [8, 9, 11]]), (1, 3, [[0], [6], [11]]), (4, 5, [[0, 2, 5, 6]])],
)  # fmt: skip
def test_sliding_count_windows_are_evaluated_when_they_are_full(size: int, slide: int, windows: Any) -> None:
    mine = [record for record in RECORDS if record.value[0] == "a"]
    then = [rec(("a", f"CountWindow(id={number})", values), MAX_TIMESTAMP) for number, values in enumerate(windows)]
    verify(maker(CountSlidingWindowAssigner.of(size, slide)), mine, then)


def test_nothing_but_the_count_is_left_of_a_full_count_window() -> None:
    with OperatorHarness(maker(CountTumblingWindowAssigner.of(2))) as harness:
        for number in range(4):
            harness.process(("a", number), number)
        assert len(harness.operators[0]._table) == 0  # type: ignore[attr-defined]
        assert harness.operators[0].next_processing_time() is None
        harness.process(("a", 4), 4)
        assert len(harness.operators[0]._table) == 1  # type: ignore[attr-defined]


@pytest.mark.spec("F12")
def test_the_global_window_never_fires_by_itself() -> None:
    verify(maker(GlobalWindows.create()), [*RECORDS, wm(50), at(50)], [wm(50)])
    assert isinstance(GlobalWindows.create().get_default_trigger(None), NeverTrigger)


def test_a_class_that_changes_aligned_windows_is_asked_and_offsets_may_be_none() -> None:
    class Late(TumblingEventTimeWindows[Any]):
        def get_default_trigger(self, env: Any = None) -> Any:
            return CountTrigger.of(1)

    verify(maker(Late.of(10, None)), [rec(("a", 1), 4)], [rec(("a", "TimeWindow(start=0, end=10)", [1]), 9)])
    assert isinstance(EventTimeTrigger.create(), EventTimeTrigger)
    assert isinstance(ProcessingTimeTrigger.create(), ProcessingTimeTrigger)
    for trigger, merges in ((CountTrigger.of(2), True), (PurgingTrigger.of(NeverTrigger()), False)):
        assert trigger.can_merge() is merges
    NeverTrigger().on_merge(GlobalWindow.get(), None)  # type: ignore[arg-type]


def test_windows_are_values_and_their_bytes_are_flinks() -> None:
    for window in (TimeWindow(1, 9), CountWindow(3), GlobalWindow.get()):
        assert pickle.loads(pickle.dumps(window)) == window and hash(window) == hash(pickle.loads(pickle.dumps(window)))
        assert isinstance(window, Window)
    assert CountWindow(3).max_timestamp() == GlobalWindow().max_timestamp() == MAX_TIMESTAMP
    assert TimeWindow(0, 9) < TimeWindow(1, 2) and GlobalWindow() != CountWindow(0)
    for serializer, window, size in (
        (TimeWindowSerializer(), TimeWindow(-1, 9), 16), (CountWindowSerializer(), CountWindow(7), 8),
        (GlobalWindowSerializer(), GlobalWindow(), 1),
    ):  # fmt: skip
        stream = io.BytesIO()
        serializer.serialize(window, stream)  # type: ignore[attr-defined]
        assert len(stream.getvalue()) == size
        assert serializer.deserialize(io.BytesIO(stream.getvalue())) == window  # type: ignore[attr-defined]
        with pytest.raises(EOFError, match="before the end"):
            serializer.deserialize(io.BytesIO(b""))  # type: ignore[attr-defined]


class Merges:
    def __init__(self) -> None:
        self.told: list[Any] = []

    def merge(self, to_be_merged: Any, merge_result: Any) -> None:
        self.told.append((merge_result, to_be_merged))


def test_windows_that_overlap_or_touch_become_one() -> None:
    merges = Merges()
    windows = [
        TimeWindow(5, 7),
        TimeWindow(0, 2),
        TimeWindow(2, 3),
        TimeWindow(9, 10),
        TimeWindow(6, 8),
        TimeWindow(5, 7),
    ]
    TimeWindow.merge_windows(windows, merges)
    assert merges.told == [
        (TimeWindow(0, 3), [TimeWindow(0, 2), TimeWindow(2, 3)]),
        (TimeWindow(5, 8), [TimeWindow(5, 7), TimeWindow(6, 8)]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "make",
    [
        lambda: CountTumblingWindowAssigner.of(0), lambda: CountSlidingWindowAssigner.of(2, 0),
        lambda: CountTrigger.of(0), lambda: ContinuousProcessingTimeTrigger.of(-1),
    ],
)  # fmt: skip
def test_impossible_counts_are_refused(make: Any) -> None:
    with pytest.raises(ValueError, match="found"):
        make()


def test_global_state_of_a_window_function_is_apart_from_the_count() -> None:
    class Count(ProcessWindowFunction):  # type: ignore[type-arg]
        def process(self, key: Any, context: Any, elements: Any) -> Any:
            yield key, context.window().id, len(list(elements))

    verify(
        maker(CountTumblingWindowAssigner(2), None, collecting, Count),
        [rec(("a", n)) for n in range(4)], [rec(("a", n, 2), MAX_TIMESTAMP) for n in range(2)],
    )  # fmt: skip
