"""Joins and co-groups by window, at the operator: every kind of window, late records, hardships, and a nested loop."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.functions.function_classes import KeyBy, KeySelector
from rayflink.common.functions.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction
from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch, RowBatch, Watermark, rows_of
from rayflink.operators.base import UserCodeError
from rayflink.operators.key_failures import KeyExtractionError
from rayflink.operators.windows.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from rayflink.operators.windows.co_group_windows import (
    CoGroupedRecords,
    JoinedRecords,
    SideKeySelector,
    TagOperator,
    co_group_window_operator,
)
from rayflink.operators.windows.count_windows import CountTumblingWindowAssigner
from rayflink.operators.windows.evictors import CountEvictor
from rayflink.operators.windows.session_windows import EventTimeSessionWindows
from rayflink.operators.windows.triggers import CountTrigger, EventTimeTrigger
from rayflink.operators.windows.window_functions import collecting
from rayflink.state.rocksdb.rocksdb_backend import RocksDBBackend, StateMemory
from tests.operators.laws import answers, context, flat, started, verify
from tests.operators.running import run
from tests.operators.write_back import WriteBackBackend, WriteBackTable, write_back_backend

NAME = KeyBy(itemgetter(0), "job.py:1", None, "where"), KeyBy(itemgetter("name"), "job.py:2", None, "equal_to")
TUMBLING = TumblingEventTimeWindows.of(10)


def grouping(function: Any, assigner: Any = TUMBLING, trigger: Any = None, late: Any = None, **rules: Any) -> Any:
    settings = trigger, rules.get("lateness", 0), late, rules.get("evictor")
    return lambda: co_group_window_operator(
        SideKeySelector(*NAME), collecting, CoGroupedRecords(function), assigner, *settings
    )


def joining(function: Any = lambda left, right: (left[1], right["n"]), *arguments: Any, **rules: Any) -> Any:
    return grouping(JoinedRecords(function), *arguments, **rules)


def left(key: str, n: int) -> Any:
    return 0, (key, n)


def right(key: str, n: int) -> Any:
    return 1, {"name": key, "n": n}


def batch(*records: tuple[Any, int]) -> RowBatch:
    values, stamps = zip(*records, strict=True)
    return RowBatch(list(values), list(stamps))


GIVEN = [
    batch((left("a", 1), 1), (right("a", 10), 9), (right("b", 20), 3), (left("a", 2), 0), (right("a", 11), 12)),
    batch((left("b", 3), 14), (right("a", 12), 5), (left("a", 4), 17)),
]  # fmt: skip


END = Watermark(30)


@pytest.mark.slow
@pytest.mark.spec("C09", "X12")
@pytest.mark.parametrize("assigner", [TUMBLING, SlidingEventTimeWindows.of(10, 5)])
def test_a_join_is_all_pairs_of_a_key_and_window(assigner: Any) -> None:
    records = [(value, stamp) for step in GIVEN for value, stamp in zip(step.values, step.timestamps, strict=True)]
    expected = nested_loop(records, assigner)
    assert assigner is not TUMBLING or sorted(expected) == [(1, 10), (1, 12), (2, 10), (2, 12), (4, 11)]
    out = verify(joining(assigner=assigner), [*GIVEN, END])
    assert sorted(value for _, value, _ in out[:-1]) == sorted(expected)


def test_a_join_of_sessions_is_all_pairs_of_a_session() -> None:
    out = verify(joining(assigner=EventTimeSessionWindows.with_gap(6)), [*GIVEN, END])
    assert sorted(value for _, value, _ in out[:-1]) == [(one, other) for one in (1, 2, 4) for other in (10, 11, 12)]


def nested_loop(records: Any, assigner: Any) -> list[Any]:
    """The pairs of tagged records, window by window."""
    return [
        (one[1], other["n"])
        for (left_side, one), at in records
        for (right_side, other), then in records
        if left_side == 0 and right_side == 1 and one[0] == other["name"]
        for window in assigner.assign_windows(None, at, None)
        if window.start <= then < window.end
    ]


@pytest.mark.spec("C10")
def test_a_co_group_gets_both_lists_in_order_of_arrival_even_if_one_is_empty() -> None:
    class Counted(CoGroupFunction):
        def co_group(self, first: Any, second: Any) -> Any:
            yield [n for _, n in first], [record["n"] for record in second]

    out = verify(grouping(Counted()), [*GIVEN, END])
    lists = [([1, 2], [10, 12]), ([], [20]), ([4], [11]), ([3], [])]
    assert out == [(None, lists[0], 9), (None, lists[1], 9), (None, lists[2], 19), (None, lists[3], 19), END]


def test_pairs_come_with_the_first_stream_as_outer_loop_at_the_end_of_their_window() -> None:
    out = verify(joining(), [batch((right("a", 1), 5), (left("a", 2), 4), (right("a", 3), 3), (left("a", 4), 2)), END])
    assert out == [*((None, pair, 9) for pair in [(2, 1), (2, 3), (4, 1), (4, 3)]), END]


class Joined(JoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return [first[1], second["n"]]


class Flat(FlatJoinFunction):
    def join(self, first: Any, second: Any) -> Any:
        return [first[1], second["n"]] if second["n"] > 1 else None


def generating(first: Any, second: Any) -> Any:
    yield first[1]
    yield second["n"]


@pytest.mark.parametrize(
    ("function", "results"),
    [
        (Joined(), [[0, 1], [0, 2]]),
        (lambda first, second: None, [None, None]),
        (Flat(), [0, 2]),
        (generating, [0, 1, 0, 2]),
    ],
)
def test_a_join_function_gives_one_result_a_pair_and_a_flat_one_any_number(
    function: Any, results: Any
) -> None:
    out = verify(joining(function), [batch((left("a", 0), 1), (right("a", 1), 1), (right("a", 2), 1)), END])
    assert [value for _, value, _ in out[:-1]] == results


class Watched(WriteBackBackend):
    """A backend of bytes that notes each time a list is read."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.reads: list[str] = []
        reads = self.reads

        class Table(WriteBackTable):
            __slots__ = ()

            def load(self, keys: Any, namespace: Any = None) -> Any:
                reads.append("load")
                return super().load(keys, namespace)

            def get(self, key: Any, namespace: Any = None, default: Any = None) -> Any:
                reads.append("get")
                return super().get(key, namespace, default)

            def append(self, key: Any, value: Any, namespace: Any = None) -> None:
                self.put(key, [*super().get(key, namespace, ()), value], namespace)

        self.create_table = Table  # type: ignore[method-assign, assignment]


@pytest.mark.spec("C12")
@pytest.mark.parametrize("trigger", [None, EventTimeTrigger.create()])
@pytest.mark.parametrize("assigner", [TUMBLING, SlidingEventTimeWindows.of(10, 5)])
def test_in_a_backend_of_bytes_a_window_is_appended_to_and_read_once_when_it_fires(
    assigner: Any, trigger: Any
) -> None:
    operator: Any = joining(assigner=assigner, trigger=trigger)()
    operator.create_backend = lambda ctx: Watched(range(128), 128)
    started(lambda: operator, context())
    for n in range(20):
        flat(operator.process(batch((left("a", n), 3), (right("a", n), 4)), 0))
    assert operator.backend.reads == []
    windows = assigner.assign_windows(None, 3, None)
    assert len(flat(operator.process_watermark(Watermark(40)))) == 400 * len(windows) + 1
    assert operator.backend.reads == ["get"] * len(windows), "one key at a time, and once"


@pytest.mark.slow
@pytest.mark.spec("C12")
def test_windows_larger_than_the_memory_for_state_are_joined_from_disk(tmp_path: Path) -> None:
    def small(ctx: Any) -> RocksDBBackend:
        return RocksDBBackend(range(128), 128, "join", tmp_path / "state", StateMemory(100_000))

    operator: Any = joining()()
    operator.create_backend = small
    started(lambda: operator, context())
    for n in range(0, 2_000, 100):
        records = [(made(f"k{at % 50}", at), 1 + at % 9) for at in range(n, n + 100) for made in (left, right)]
        flat(operator.process(batch(*records), 0))
    assert operator.backend.store.is_open, "more than the cache holds"
    expected = [(one, other) for one in range(2_000) for other in range(one % 50, 2_000, 50)]
    assert sorted(value for _, value, _ in flat(operator.process_watermark(Watermark(9)))[:-1]) == expected
    operator.close()


LARGE = [(left("a", n), 3) for n in range(300)] + [(right("a", n), 4) for n in range(300)]
LAST = batch((left("b", 1), 5), (right("a", 300), 5))


@pytest.mark.slow
@pytest.mark.parametrize("backend", [None, write_back_backend], ids=["default", "write back"])
@pytest.mark.parametrize(
    ("assigner", "rules", "steps", "pairs"),
    [
        (TUMBLING, {}, [END], 90_000),
        (EventTimeSessionWindows.with_gap(6), {}, [END], 90_000),
        (TUMBLING, {"evictor": CountEvictor.of(10_000)}, [END], 90_000),
        (TUMBLING, {"lateness": 10}, [Watermark(9), LAST], 180_300),
        (CountTumblingWindowAssigner.of(601), {}, [LAST], 90_300),
    ],
    ids=["aligned", "sessions", "evicted", "late", "counted"],
)
def test_the_pairs_of_a_large_window_come_batch_by_batch(
    assigner: Any, rules: Any, steps: Any, pairs: int, backend: Any
) -> None:
    made = 0

    def counted(one: Any, other: Any) -> int:
        nonlocal made
        made += 1
        return made

    operator: Any = joining(counted, assigner, **rules)()
    if backend is not None:
        operator.create_backend = backend
    started(lambda: operator, context())
    flat(operator.process(batch(*LARGE), 0))
    sizes, most = [], 0
    for step in steps:
        for element in answers(operator, step):
            if isinstance(element, RowBatch):
                sizes.append(len(element))
                most = max(most, made - sum(sizes))
    assert sum(sizes) == pairs
    assert max(sizes) < 5_000 and most < 5_000


@pytest.mark.spec("F34")
def test_a_late_record_goes_to_the_side_output_as_it_was_and_is_else_counted() -> None:
    given = [batch((left("a", 1), 5)), Watermark(12), batch((left("a", 2), 6), (right("a", 3), 7), (left("b", 4), 13))]
    out = verify(grouping(lambda first, second: None, late="late"), given)
    assert out == [Watermark(12), ("late", ("a", 2), 6), ("late", {"name": "a", "n": 3}, 7)]
    ctx = context()
    operator = started(joining(), ctx)
    for step in given:
        flat(operator.process_watermark(step) if isinstance(step, Watermark) else operator.process(step, 0))
    assert ctx.metrics.counters["numLateRecordsDropped"].count == 2


def test_within_the_lateness_each_record_fires_its_window_again_with_all_its_pairs() -> None:
    given = [batch((left("a", 1), 5), (right("a", 2), 6)), Watermark(12), batch((right("a", 3), 7)), END]
    out = verify(joining(lateness=8), given)
    assert out == [(None, (1, 2), 9), Watermark(12), (None, (1, 2), 9), (None, (1, 3), 9), END]


@pytest.mark.slow
def test_triggers_and_evictors_see_tagged_records() -> None:
    arrivals = [left("a", 1), right("a", 2), left("a", 3), right("a", 4), right("a", 5), left("a", 6)]
    given = [RowBatch(arrivals)]
    by_two = grouping(lambda first, second: [(first, second)], CountTumblingWindowAssigner.of(3))
    lists = [([1, 3], [2]), ([6], [4, 5])]
    assert [named(value) for _, value, _ in verify(by_two, given)] == lists
    last_two = grouping(
        lambda first, second: [(first, second)], CountTumblingWindowAssigner.of(4), CountTrigger.of(4),
        evictor=CountEvictor.of(2),
    )  # fmt: skip
    assert [named(value) for _, value, _ in verify(last_two, given)] == [([3], [4])]


def named(lists: Any) -> Any:
    return [n for _, n in lists[0]], [record["n"] for record in lists[1]]


def test_each_key_selector_is_blamed_for_its_own_records() -> None:
    for value, step in (((0, ()), "where"), ((1, {"n": 1}), "equal_to")):
        operator = started(joining(), context())
        with pytest.raises(KeyExtractionError) as failure:
            list(operator.process(RowBatch([left("a", 1), value], [1, 2]), 0))
        assert failure.value.record == repr(value[1])
        assert (failure.value.operator, failure.value.call_site[:7]) == (step, "job.py:")
    assert "wants field 'name' of each record" in str(failure.value)


def test_key_selectors_are_opened_and_closed() -> None:
    calls: list[str] = []

    class CallRecorder(KeySelector):
        def open(self, runtime_context: Any) -> None:
            calls.append("open")

        def close(self) -> None:
            calls.append("close")

        def get_key(self, value: Any) -> Any:
            return value

    key = SideKeySelector(KeyBy(CallRecorder()), KeyBy(CallRecorder()))
    run(co_group_window_operator(key, collecting, CoGroupedRecords(lambda a, b: None), TUMBLING), [])
    assert calls == ["open", "open", "close", "close"]


def test_a_failing_function_names_key_and_window() -> None:
    operator = started(joining(lambda one, other: one[1] / 0), context())
    flat(operator.process(batch((left("a", 1), 5), (right("a", 2), 6)), 0))
    with pytest.raises(UserCodeError, match="ZeroDivisionError") as failure:
        list(operator.process_watermark(END))
    assert failure.value.record == "key 'a' in TimeWindow(start=0, end=10)"


def test_tags_keep_timestamps_and_make_rows_of_columns() -> None:
    assert flat(TagOperator(1).process(RowBatch(["x", "y"], [3, 4]), 0)) == [(None, (1, "x"), 3), (None, (1, "y"), 4)]
    assert flat(TagOperator(0).process(RowBatch(["x"]), 0)) == [(None, (0, "x"), None)]
    columns = ArrowBatch(pa.RecordBatch.from_pydict({"n": [1, 2]}))
    assert [value for _, value, _ in flat(TagOperator(0).process(columns, 0))] == [(0, row) for row in rows_of(columns)]


RECORDS = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.sampled_from("ab"), st.integers(0, 30), st.booleans()), max_size=30
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(RECORDS, st.sampled_from([TUMBLING, SlidingEventTimeWindows.of(9, 4)]), st.booleans())
def test_any_join_gives_the_pairs_of_a_nested_loop(records: Any, assigner: Any, write_back: bool) -> None:
    """Out of order and late: a record that is late for a window has no pairs in it."""
    operator = joining(assigner=assigner)()
    if write_back:
        operator.create_backend = write_back_backend
    started(lambda: operator, context())
    taken: list[Any] = []
    got: list[Any] = []
    watermark = -1
    for number, (tag, key, stamp, moves) in enumerate(records):
        value = right(key, number) if tag else left(key, number)
        got += flat(operator.process(RowBatch([value], [stamp]), 0))
        taken += [
            (value, window) for window in assigner.assign_windows(value, stamp, None) if window.end > watermark + 1
        ]
        if moves and stamp > watermark:
            watermark = stamp
            got += flat(operator.process_watermark(Watermark(watermark)))
    got += flat(operator.process_watermark(Watermark(MAX_TIMESTAMP)))
    pairs = [
        ((one[1], other["n"]), window.end - 1)
        for (tag, one), window in taken
        for (other_tag, other), other_window in taken
        if (tag, other_tag) == (0, 1) and window == other_window and one[0] == other["name"]
    ]
    assert sorted((value, stamp) for _, value, stamp in (entry for entry in got if type(entry) is tuple)) == sorted(
        pairs
    )
