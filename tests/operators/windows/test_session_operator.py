from collections import Counter
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import AggregateFunction, ProcessWindowFunction
from rayflink.common.records.batches import MAX_TIMESTAMP, RowBatch, Watermark
from rayflink.operators.windows.assigners import SlidingEventTimeWindows
from rayflink.operators.windows.merging_window_set import MergingWindowSet
from rayflink.operators.windows.merging_windows import MergingWindowOperator
from rayflink.operators.windows.session_operator import SessionWindowOperator
from rayflink.operators.windows.session_windows import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    ProcessingTimeSessionWindows,
)
from rayflink.operators.windows.triggers import EventTimeTrigger, ProcessingTimeTrigger
from rayflink.operators.windows.window import TimeWindow
from rayflink.operators.windows.window_factory import WindowRules, window_operator
from rayflink.operators.windows.window_functions import WindowEvaluation, aggregating, built_in, collecting, reducing
from rayflink.operators.windows.window_operator import LATE_METRIC, WindowOperator
from rayflink.state.descriptors import MapStateDescriptor
from rayflink.state.memory import HashMapBackend
from tests.operators.laws import Metrics, answers, context, flat, now, run, snapshot_of, started, verify
from tests.operators.write_back import write_back_backend

first = itemgetter(0)
END = Watermark(MAX_TIMESTAMP)
FIXED = EventTimeSessionWindows.with_gap(10)
DYNAMIC = DynamicEventTimeSessionWindows.with_dynamic_gap(lambda record: 1 + record[1] * 4)  # type: ignore[arg-type]
COARSE = EventTimeSessionWindows.with_gap(640)


class Listed(AggregateFunction):
    """Its accumulator says in which order records were added and merged."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(value[1])
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return tuple(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return [*acc_a, *acc_b]


class Recorder(ProcessWindowFunction):  # type: ignore[type-arg]
    """Yields key, window and results, and records the windows that were cleared."""

    def __init__(self) -> None:
        self.cleared: list[Any] = []

    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window(), list(elements)

    def clear(self, context: Any) -> None:
        self.cleared.append(context.window())


def steps_of(given_records: list[Any], stretch: int = 1) -> list[Any]:
    steps = [
        record if isinstance(record, Watermark) else RowBatch([record[:2]], [record[2] * stretch])
        for record in given_records
    ]
    return [*steps, END]


def by_watermark(out: list[Any]) -> list[Any]:
    """The times of results in their order, and how often each result came between two watermarks."""
    parts: list[Any] = [[]]
    for entry in out:
        parts[-1].append(entry)
        if isinstance(entry, Watermark):
            parts.append([])
    stamps = [[entry[2] for entry in part if not isinstance(entry, Watermark)] for part in parts]
    return [stamps, *(Counter(map(repr, part)) for part in parts)]


RECORDS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("ab"), st.integers(0, 3), st.integers(0, 90)), st.integers(0, 90).map(Watermark)
    ),
    max_size=30,
)


@settings(max_examples=40, deadline=None)
@given(RECORDS, st.sampled_from([0, 7, 30]), st.sampled_from([FIXED, DYNAMIC, COARSE]), st.booleans())
@example([("a", 1, 0), ("a", 2, 40), ("a", 3, 9), Watermark(21), ("a", 0, 20), ("a", 1, 12)], 30, FIXED, True)
@example([("a", 1, 0), ("a", 2, 40), ("a", 3, 9), Watermark(21), ("a", 0, 20), ("a", 1, 12)], 30, FIXED, False)
def test_sessions_are_those_of_windows_that_merge(
    given_records: list[Any], lateness: int, assigner: Any, aggregates: bool
) -> None:
    steps = steps_of(given_records, 30 if assigner is COARSE else 1)

    def told(trigger: Any = None, backend: Any = None) -> tuple[list[Any], list[Any]]:
        """What comes out, and the windows that are cleared."""
        function, rules = Recorder(), WindowRules(trigger, lateness, "late")
        contents = aggregating(Listed()) if aggregates else collecting()
        operator = window_operator(first, assigner, contents, WindowEvaluation(function), rules)
        assert isinstance(operator, SessionWindowOperator if trigger is None else MergingWindowOperator)
        if backend is not None:
            operator.create_backend = backend  # type: ignore[method-assign]
        return run(lambda: operator, steps), function.cleared

    out, cleared = told()
    out_merging, cleared_merging = told(EventTimeTrigger())
    assert by_watermark(out) == by_watermark(out_merging)
    assert Counter(cleared) == Counter(cleared_merging)
    assert told(backend=write_back_backend) == (out, cleared)


OUT_OF_ORDER = [
    ("a", 1, 31), ("a", 2, 0), ("b", 0, 7), ("a", 3, 12), Watermark(5), ("a", 2, 22), ("b", 1, 17), Watermark(21),
    ("a", 1, 4), ("c", 2, 3), Watermark(26), ("b", 3, 18), Watermark(44), ("a", 1, 41),
]  # fmt: skip


@pytest.mark.parametrize("lateness", [pytest.param(0, marks=pytest.mark.slow), 15])
@pytest.mark.parametrize("assigner", [FIXED, DYNAMIC], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("contents", [lambda: aggregating(Listed()), collecting], ids=["aggregates", "records"])
@pytest.mark.slow
def test_sessions_are_the_same_under_every_hardship(contents: Any, assigner: Any, lateness: int) -> None:
    rules = WindowRules(None, lateness, "late")
    steps = steps_of(OUT_OF_ORDER)
    verify(lambda: window_operator(first, assigner, contents(), WindowEvaluation(Recorder()), rules), steps)


def test_sessions_of_aggregates_by_the_wall_clock() -> None:
    assigner = ProcessingTimeSessionWindows.with_gap(10)
    steps = [
        RowBatch([("a", 1), ("b", 2)]),
        now(6),
        RowBatch([("a", 4)]),
        now(16),
        RowBatch([("a", 8)]),
        now(17),
        now(40),
    ]
    out = verify(lambda: window_operator(first, assigner, built_in("sum", 1)), steps, [
        (None, ("b", 2), 9), (None, ("a", 5), 15), (None, ("a", 8), 25),
    ])  # fmt: skip
    triggered = WindowRules(ProcessingTimeTrigger())
    assert run(lambda: window_operator(first, assigner, built_in("sum", 1), None, triggered), steps) == out


@pytest.mark.spec("F26")
def test_a_record_extends_a_session_without_a_merge_and_without_a_timer() -> None:
    class Unmerged(Listed):
        def merge(self, acc_a: Any, acc_b: Any) -> Any:
            raise AssertionError("nothing is to be merged")

    operator = started(lambda: window_operator(first, FIXED, aggregating(Unmerged())), context())
    for stamp in (50, 59, 44, 69, 40, 60):
        flat(answers(operator, RowBatch([("a", stamp)], [stamp])))
    assert [timer[:2] for timer in operator._event_timers] == [(59, "a")]  # type: ignore[attr-defined]
    assert flat(answers(operator, END))[0] == (None, (50, 59, 44, 69, 40, 60), 78)
    assert snapshot_of(operator).keyed == {}


@pytest.mark.slow
@pytest.mark.parametrize("contents", [collecting, lambda: built_in("sum", 1)])
def test_a_key_with_thousands_of_open_sessions_looks_at_those_near_a_record(contents: Any) -> None:
    looked_at: list[int] = []

    class Watching(EventTimeSessionWindows):  # type: ignore[type-arg]
        def merge_windows(self, windows: Any, callback: Any) -> None:
            looked_at.append(len(list(windows)))
            super().merge_windows(windows, callback)

    assigner: Any = Watching(10) if contents is collecting else FIXED
    operator = started(lambda: window_operator(first, assigner, contents()), context())
    stamps = [20 * number for number in range(2000)]
    for order in (stamps[::2], stamps[::-1], [stamp + 5 for stamp in stamps]):
        flat(answers(operator, RowBatch([("a", 1)] * len(order), order)))
    assert max(looked_at, default=0) <= 2
    fired = flat(answers(operator, END))
    assert [stamp for _, _, stamp in fired[:-1]] == [stamp + 14 for stamp in stamps]


def test_windows_of_a_key_with_many_are_kept_in_order() -> None:
    table = HashMapBackend(range(128), 128).map_table(MapStateDescriptor("windows"))
    kept = MergingWindowSet(FIXED, table)
    merges: list[Any] = []
    for number in (*range(0, 100, 2), *range(1, 100, 2)):
        kept.add("a", TimeWindow(20 * number, 20 * number + 10), lambda *merge: merges.append(merge))
    assert not merges
    for number in range(90):
        kept.retire("a", TimeWindow(20 * number, 20 * number + 10))
    assert kept.add("a", TimeWindow(1805, 1825), lambda *merge: merges.append(merge)) == TimeWindow(1800, 1830)
    assert [merge[1] for merge in merges] == [[TimeWindow(1800, 1810), TimeWindow(1820, 1830)]]
    table.clear("a")
    kept.forget()
    assert kept.add("a", TimeWindow(0, 10), lambda *merge: merges.append(merge)) == TimeWindow(0, 10)


@pytest.mark.parametrize("assigner", [FIXED, SlidingEventTimeWindows.of(10, 4)], ids=repr)
def test_late_records_of_sessions_and_of_shared_panes_are_counted(assigner: Any) -> None:
    metrics = Metrics()
    operator = started(lambda: window_operator(first, assigner, built_in("sum", 1)), context(metrics=metrics))
    assert not isinstance(operator, MergingWindowOperator) and type(operator) is not WindowOperator
    for step in (RowBatch([("a", 1)], [40]), Watermark(39), RowBatch([("a", 1), ("b", 1), ("b", 1)], [12, 29, 45])):
        flat(answers(operator, step))
    assert metrics.counters[LATE_METRIC].count == 2


@pytest.mark.parametrize("assigner", [FIXED, SlidingEventTimeWindows.of(10, 5)], ids=repr)
def test_keys_that_are_no_numbers_are_one_key_on_a_backend_of_bytes_too(assigner: Any) -> None:
    steps = [RowBatch([(float("nan"), 1)] * 2, [20, 21]), RowBatch([(float("nan"), 4)], [22]), Watermark(99)]
    steps[0].values[1] = (float("nan"), 2)

    def made() -> Any:
        operator = window_operator(first, assigner, reducing(lambda one, other: ("nan", one[1] + other[1])))
        operator.create_backend = write_back_backend  # type: ignore[method-assign]
        return operator

    assert {value for _, value, _ in run(made, steps)[:-1]} == {("nan", 7)}


def test_many_sessions_of_one_time_are_not_taken_out_together(monkeypatch: Any) -> None:
    monkeypatch.setattr("rayflink.operators.windows.session_operator._MANY_KEYS", 100)
    monkeypatch.setattr("rayflink.state.rocksdb.rocksdb_backend._MOST_TIMERS", 64)
    together: list[int] = []
    take_due = SessionWindowOperator._take_due

    def watched(operator: Any, keys: Any, horizon: int, of_many: bool) -> Any:
        due = take_due(operator, keys, horizon, of_many)
        together.append(len(due))
        return due

    monkeypatch.setattr(SessionWindowOperator, "_take_due", watched)
    stamps = [(7 * number) % 1_500 for number in range(1_500)]
    records = RowBatch([(f"k{number}", number) for number in range(1_500)], stamps)
    gaps = EventTimeSessionWindows.with_gap(1_000_000)
    out = run(
        lambda: window_operator(first, gaps, reducing(max), WindowEvaluation(Recorder()), WindowRules()), [records, END]
    )
    assert [entry[2] for entry in out[:-1]] == sorted(stamp + 999_999 for stamp in stamps)
    assert max(together) < 300


def test_thousands_of_sessions_of_one_key_end_in_linear_time() -> None:
    sessions = [item for number in range(60_000) for item in (10 * number, 10 * number + 5, number, False)]
    operator = SessionWindowOperator.__new__(SessionWindowOperator)
    operator._lateness_ms = 0
    due: list[Any] = []
    assert operator._next_due("a", sessions, 400_000, due) == 400_004
    assert len(due) == 40_000 and len(sessions) == 4 * 20_000 and sessions[:2] == [400_000, 400_005]
