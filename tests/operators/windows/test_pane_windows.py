from operator import itemgetter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import AggregateFunction, ProcessWindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP, RowBatch, Watermark
from rayflink.operators.base import UserCodeError
from rayflink.operators.windows.assigners import (
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TumblingEventTimeWindows,
)
from rayflink.operators.windows.pane_contents import merges
from rayflink.operators.windows.pane_windows import PaneWindowOperator
from rayflink.operators.windows.panes import Panes
from rayflink.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, aggregating, built_in, collecting, reducing
from rayflink.operators.windows.window_operator import WindowOperator
from rayflink.state.errors import SnapshotMismatch
from tests.operators.laws import answers, context, flat, now, run, snapshot_of, started, verify
from tests.operators.write_back import write_back_backend

first = itemgetter(0)
END = Watermark(MAX_TIMESTAMP)
NOT_SHARED = {"rayflink.window.share-panes": False}


class Mean(AggregateFunction):
    """Its accumulators are changed in place, by merge too."""

    def create_accumulator(self) -> Any:
        return [0, 0]

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator[0] += value[1]
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return tuple(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        acc_a[0] += acc_b[0]
        acc_a[1] += acc_b[1]
        acc_b[0] = None
        return acc_a


class Spoil(ProcessWindowFunction):  # type: ignore[type-arg]
    """Gives the window with what it was given, spoils that, and counts its clearings in state of the key."""

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        found = [list(element) for element in elements]
        for element in elements:
            if isinstance(element, list):
                element.clear()
        yield key, context.window(), found


class Kept(Mean):
    """Its result is its accumulator, which a window function may spoil."""

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


CONTENTS = {
    **{kind: lambda kind=kind: built_in(kind, 1) for kind in ("sum", "min", "max", "min_by", "max_by")},
    "reduce": lambda: reducing(lambda a, b: (a[0], a[1] + b[1], a[2])),
    "aggregate": lambda: aggregating(Mean()),
}
RECORDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 60)),
        st.integers(0, 60).map(Watermark),
    ),
    max_size=30,
)


def batches(given_records: list[Any]) -> list[Any]:
    """Records (key, number, timestamp) and watermarks, the records as (key, number, how many were before)."""
    steps: list[Any] = []
    for number, record in enumerate(given_records):
        if isinstance(record, Watermark):
            steps.append(record)
        else:
            steps.append(RowBatch([(*record[:2], number)], [record[2]]))
    return [*steps, END]


def test_a_window_that_fires_again_merges_panes_with_records_of_other_keys() -> None:
    def made(backend: Any = None) -> Any:
        assigner = SlidingEventTimeWindows.of(10, 5)
        operator = window_operator(first, assigner, CONTENTS["sum"](), None, WindowRules(None, 20, "late"))
        if backend is not None:
            operator.create_backend = backend
        return operator

    steps = [RowBatch([("a", 1), ("b", 1)], [1, 1]), Watermark(12), RowBatch([("a", 2), ("b", 2)], [7, 2]), END]
    fired = [entry for entry in run(made, steps) if entry == (None, ("a", 3), 9)]
    assert fired, "the first record of the key counts too"
    assert run(lambda: made(write_back_backend), steps) == run(made, steps)


@settings(max_examples=30, deadline=None)
@given(
    RECORDS, st.integers(2, 24), st.integers(1, 9), st.integers(0, 9), st.integers(0, 12), st.sampled_from([*CONTENTS])
)
@example([("a", 1, 9), ("a", 1, 2), Watermark(3), ("b", 0, 6), ("a", 2, 1)], 9, 4, 1, 6, "min_by")
def test_windows_that_share_panes_give_the_results_of_separate_ones_in_order(
    given_records: list[Any], size: int, slide: int, offset: int, lateness: int, kind: str
) -> None:
    slide = min(slide, size - 1)
    assigner = SlidingEventTimeWindows.of(size, slide, offset % slide)
    steps = batches(given_records)

    def made(trigger: Any = None) -> Any:
        return window_operator(first, assigner, CONTENTS[kind](), None, WindowRules(trigger, lateness, "late"))

    def written_back() -> Any:
        operator = made()
        operator.create_backend = write_back_backend
        return operator

    assert isinstance(made(), PaneWindowOperator)
    expected = run(lambda: made(EventTimeTrigger()), steps)
    assert run(made, steps) == expected
    assert run(written_back, steps) == expected


@pytest.mark.parametrize("kind", CONTENTS)
@pytest.mark.parametrize("lateness", [pytest.param(0, marks=pytest.mark.slow), 7])
@pytest.mark.slow
def test_shared_panes_give_the_same_under_every_hardship(kind: str, lateness: int) -> None:
    records = [
        ("a", 1, 1), ("b", 2, 7), ("a", 1, 12), Watermark(9), ("a", 0, 3), ("c", 1, 9), Watermark(12), ("a", 1, 3),
        ("b", 2, 14), ("a", 1, 19), ("a", 1, 8), Watermark(21), ("c", 0, 20), ("a", 1, 17), Watermark(23),
    ]  # fmt: skip
    rules = WindowRules(None, lateness, "late")
    assigner = SlidingEventTimeWindows.of(10, 4)
    verify(lambda: window_operator(first, assigner, CONTENTS[kind](), None, rules), batches(records))


def test_sliding_windows_of_the_wall_clock_share_panes_too() -> None:
    assigner = SlidingProcessingTimeWindows.of(10, 3)
    steps = [RowBatch([("a", 1), ("b", 2)]), now(2), RowBatch([("a", 4)]), now(7), RowBatch([("b", 8)]), now(30)]
    out = verify(lambda: window_operator(first, assigner, built_in("sum", 1)), steps)
    alone = WindowRules(ProcessingTimeTrigger())
    assert run(lambda: window_operator(first, assigner, built_in("sum", 1), None, alone), steps) == out


class Counted(AggregateFunction):
    """Counts the calls."""

    def __init__(self) -> None:
        self.adds = self.merges = 0

    def create_accumulator(self) -> Any:
        return 0

    def add(self, value: Any, accumulator: Any) -> Any:
        self.adds += 1
        return accumulator + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        self.merges += 1
        return acc_a + acc_b


@pytest.mark.parametrize("ratio", [2, 10, 60])
def test_a_record_is_added_once_and_a_firing_merges_few_panes_for_any_window_length(ratio: int) -> None:
    function = Counted()
    assigner = SlidingEventTimeWindows.of(10 * ratio, 10)
    operator = started(lambda: window_operator(first, assigner, aggregating(function)), context())
    fired = 0
    for start in range(0, 3000, 10):
        flat(answers(operator, RowBatch([("a", start), ("b", start)], [start, start + 5])))
        fired += len(flat(answers(operator, Watermark(start + 9)))) - 1
    assert function.adds == 600
    assert fired == 600
    assert function.merges <= 3 * fired


@pytest.mark.parametrize("kept", [False, True])
def test_what_windows_are_given_is_nobody_elses(kept: bool) -> None:
    rules = WindowRules(None, 8 if kept else 0, "late")
    steps = batches([("a", 1, 1), ("a", 2, 5), Watermark(6), ("a", 4, 9), ("a", 8, 2), Watermark(13)])

    def made() -> Any:
        windows = SlidingEventTimeWindows.of(12, 4)
        return window_operator(first, windows, aggregating(Kept()), WindowEvaluation(Spoil()), rules)

    verify(made, steps)


def test_nothing_is_left_when_all_windows_are_over() -> None:
    for lateness in (0, 5):
        rules = WindowRules(None, lateness)
        windows = SlidingEventTimeWindows.of(12, 5)
        operator = started(lambda: window_operator(first, windows, built_in("sum", 1), None, rules), context())  # noqa: B023
        for step in batches([("a", 1, 1), ("b", 2, 15), Watermark(14), ("a", 4, 4), Watermark(33), ("b", 1, 31)]):
            flat(answers(operator, step))
        assert snapshot_of(operator).keyed == {}
        assert not operator._running and len(operator._table) == 0  # type: ignore[attr-defined]


class NoMerge(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        raise NotImplementedError("windows that merge are not wanted here")


class BaseMerge(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return super(Mean, self).merge  # type: ignore[safe-super]


def test_contents_without_a_merge_are_kept_by_window() -> None:
    windows = SlidingEventTimeWindows.of(10, 5)
    for contents in (aggregating(NoMerge()), aggregating(BaseMerge()), collecting()):
        assert type(window_operator(first, windows, contents)) is WindowOperator
    for assigner in (
        TumblingEventTimeWindows.of(10),
        SlidingEventTimeWindows.of(10, 10),
        SlidingEventTimeWindows.of(5, 10),
    ):
        assert type(window_operator(first, assigner, built_in("sum", 1))) is WindowOperator
    assert merges(Mean()) and not merges(NoMerge()) and not merges(object())


def test_sharing_can_be_turned_off() -> None:
    windows = SlidingEventTimeWindows.of(10, 5)
    latest = reducing(lambda a, b: (a[0], a[1] + b[1]))
    make = lambda: window_operator(first, windows, latest)  # noqa: E731
    steps = [RowBatch([("a", "x"), ("a", "y"), ("a", "z")], [7, 2, 8]), END]
    for config, joined in (({}, "xzy"), (NOT_SHARED, "xyz")):
        operator = started(make, context(config=config))
        out = [entry for step in steps for entry in flat(answers(operator, step))]
        assert [value for _, value, stamp in out[:-1] if stamp == 9] == [("a", joined)]


def test_state_of_panes_is_not_restored_as_that_of_windows_or_of_other_panes() -> None:
    make = lambda size=10: window_operator(first, SlidingEventTimeWindows.of(size, 5), built_in("sum", 1))  # noqa: E731
    for config, other in (({}, NOT_SHARED), (NOT_SHARED, {})):
        operator = started(make, context(config=config))
        flat(answers(operator, RowBatch([("a", 1)], [1])))
        snapshot = snapshot_of(operator)
        started(make, context(config=config), (snapshot,))
        with pytest.raises(SnapshotMismatch):
            started(make, context(config=other), (snapshot,))
        if not config:
            with pytest.raises(SnapshotMismatch, match=r"size, slide and offset 10 5 0.*15 5 0.*another uid"):
                started(lambda: make(15), context(), (snapshot,))


class Nothing(Mean):
    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        acc_a.extend(acc_b)


def test_a_merge_that_gives_nothing_is_an_error_that_names_the_remedy() -> None:
    operator = started(
        lambda: window_operator(first, SlidingEventTimeWindows.of(10, 5), aggregating(Nothing())), context()
    )
    flat(answers(operator, RowBatch([("a", 1), ("a", 2)], [1, 6])))
    with pytest.raises(UserCodeError, match=r"(?s)share-panes: false.*key 'a' in TimeWindow.*merge gave None"):
        flat(answers(operator, END))


@given(st.integers(-50, 50), st.integers(1, 20), st.integers(1, 20), st.integers(-19, 19))
def test_windows_are_rows_of_panes(stamp: int, size: int, slide: int, offset: int) -> None:
    size = max(size, slide)
    assigner = SlidingEventTimeWindows.of(size, slide, offset % slide)
    panes = Panes(assigner)
    (start,) = panes.starts([stamp])
    pane = panes.pane(start)
    assert start == panes.start(stamp) and pane.start <= stamp < pane.end
    windows = assigner.assign_windows(None, stamp, None)
    assert [window.start for window in windows] == list(panes.window_starts(panes.earliest(start), panes.latest(start)))
    for window in windows:
        inside = [panes.pane(at) for at in panes.inside(window.start, window.end)]
        assert (inside[0].start, inside[-1].end) == window and pane in inside
        assert all(one.end == other.start for one, other in zip(inside, inside[1:], strict=False))
        pivot = panes.pivot(window.start)
        assert window.start <= pivot < window.end and (pivot - assigner.offset_ms) % slide == 0
