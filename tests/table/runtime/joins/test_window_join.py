"""Joins of windows under every hardship, beside a model, and within their memory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.records.batches import MAX_TIMESTAMP, ArrowBatch
from rayflink.state.errors import SnapshotMismatch
from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.plan.joins import JoinKind
from rayflink.table.plan.typed import Call, Column
from rayflink.table.runtime.joins import join_pairs
from rayflink.table.runtime.joins.window_join import WindowJoinOperator
from rayflink.table.runtime.keyed_state import frame_memory
from rayflink.table.types import DataTypes
from rayflink.table.udf import ScalarFunction, udf
from rayflink.testing import OperatorHarness, idle, in2, verify, wm
from rayflink.testing.elements import Record
from rayflink.testing.harness import rescaled_snapshots

from ..windows.test_window_model import late_in
from .join_cases import (
    BOUNDS,
    BY_WORD,
    alone,
    interval_join,
    joined,
    left,
    matches,
    pair,
    right,
    spec,
    window_join,
)

A1, A2, B1, N1 = (1, "a", 0, 10), (2, "a", 0, 10), (5, "b", 0, 10), (1, None, 0, 10)
X1, X2, Y1, M1 = (2, "a", 0, 10), (9, "a", 0, 10), (4, "b", 0, 10), (9, None, 0, 10)
LATER, OTHER_START = (3, "a", 10, 20), (3, "a", 15, 20)
LATER_RIGHT = (7, "a", 10, 20)
GIVEN = [
    left(A1, B1, A2), in2(right(X1, M1)), left(N1, LATER), in2(right(X2, Y1, LATER_RIGHT)), wm(8), in2(wm(8)),
    wm(9), in2(wm(9)), in2(right(X1)), left(A1), left(OTHER_START), in2(right(OTHER_START)), wm(30), in2(wm(30)),
]  # fmt: skip
PAIRS = [pair(A1, X1), pair(A1, X2), pair(A2, X2)]
THEN = {
    JoinKind.INNER: ([*PAIRS], [pair(LATER, LATER_RIGHT)]),
    JoinKind.LEFT: (
        [*PAIRS, pair(B1, None), pair(N1, None)], [pair(LATER, LATER_RIGHT), pair(OTHER_START, None)]
    ),
    JoinKind.RIGHT: (
        [*PAIRS, pair(None, M1), pair(None, Y1)], [pair(LATER, LATER_RIGHT), pair(None, OTHER_START)]
    ),
    JoinKind.FULL: (
        [*PAIRS, pair(B1, None), pair(N1, None), pair(None, M1), pair(None, Y1)],
        [pair(LATER, LATER_RIGHT), pair(OTHER_START, None), pair(None, OTHER_START)],
    ),
    JoinKind.SEMI: ([alone(A1), alone(A2)], [alone(LATER)]),
    JoinKind.ANTI: ([alone(B1), alone(N1)], [alone(OTHER_START)]),
}  # fmt: skip


@pytest.mark.spec("R24", "when-over")
@pytest.mark.slow
@pytest.mark.parametrize("kind", list(JoinKind))
def test_windows_are_joined_when_they_are_over(kind):
    first, second = THEN[kind]
    verify(window_join(kind), GIVEN, [wm(8), *first, wm(9), *second, wm(30)], BY_WORD)


def test_functions_in_its_condition_are_opened_and_closed():
    calls = []

    class Nearby(ScalarFunction):
        def open(self, function_context):
            calls.append("open")

        def eval(self, n):
            return n == 1

        def close(self):
            calls.append("close")

    nearby = udf(Nearby(), result_type=DataTypes.BOOLEAN()).registered("NEARBY")
    condition = Call(DataTypes.BOOLEAN(), nearby, (Column(DataTypes.BIGINT(), 0, "n"),))
    with OperatorHarness(window_join(JoinKind.INNER, condition=condition), 2) as harness:
        for element in (left(A1, A2), in2(right(X1)), wm(9), in2(wm(9))):
            harness.give(element)
        assert harness.output == [pair(A1, X1), wm(9)]
    assert calls == ["open", "close"]


@pytest.mark.spec("R24", "late")
def test_rows_of_windows_that_are_over_are_counted():
    harness = OperatorHarness(window_join(JoinKind.FULL), 2)
    for element in GIVEN:
        harness.give(element)
    assert late_in(harness) == 2


@pytest.mark.slow
def test_nulls_are_equal_where_that_is_asked_for():
    then = [pair(N1, M1), pair(None, X1), wm(20)]
    verify(window_join(JoinKind.RIGHT, nulls_match=True), [left(N1), in2(right(M1, X1)), wm(20), in2(wm(20))], then,
           BY_WORD)  # fmt: skip


def test_a_side_may_be_empty_or_idle():
    for kind, then in [(JoinKind.INNER, []), (JoinKind.LEFT, [pair(A1, None)]), (JoinKind.ANTI, [alone(A1)])]:
        harness = OperatorHarness(window_join(kind), 2)
        harness.give(left(A1))
        harness.give(in2(idle()))
        harness.give(wm(9))
        assert [one for one in harness.take() if isinstance(one, Record)] == then


def test_whole_tables_are_joined_at_their_ends():
    harness = OperatorHarness(lambda: WindowJoinOperator(spec(JoinKind.LEFT), None, "UTC"), 2)
    harness.give(left(A1, LATER, B1))
    harness.give(in2(right(X2)))
    harness.give(wm(MAX_TIMESTAMP))
    harness.give(in2(wm(MAX_TIMESTAMP)))
    assert harness.take() == []  # what aggregates a side gives its rows when that ends, behind the last watermark
    harness.end_input(0)
    harness.end_input(1)
    assert [one for one in harness.take() if isinstance(one, Record)] == [
        pair(A1, X2), pair(LATER, X2), pair(B1, None),
    ]  # fmt: skip


def test_a_whole_table_is_joined_with_groups_of_it():
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    options = {"execution.target": "local", "table.optimizer.join.broadcast-threshold": "-1"}
    for key, value in options.items():
        t_env.get_config().set_string(key, value)
    t_env.create_temporary_view("t", t_env.from_elements([(1, "a"), (2, "b"), (3, "a")], ["n", "w"]))
    grouped = "(SELECT w, MAX(n) AS m FROM t GROUP BY w)"
    found = t_env.execute_sql(f"SELECT t.n, g.m FROM t JOIN {grouped} g ON t.w = g.w").collect()
    assert sorted(map(tuple, found)) == [(1, 3), (2, 2), (3, 3)]


def test_state_of_another_join_is_refused():
    harness = OperatorHarness(window_join(JoinKind.INNER), 2)
    harness.give(left(A1))
    with pytest.raises(SnapshotMismatch, match="left side of a join of windows"):
        harness.restore(interval_join(JoinKind.INNER, 0, 1), harness.snapshot())


def test_a_large_product_of_one_key_comes_in_batches_of_a_bounded_size():
    operator = window_join(JoinKind.INNER, condition=None)()
    harness = OperatorHarness(lambda: operator, 2)
    harness.give(left(*[(at, "a", 0, 10) for at in range(300)]))
    harness.give(in2(right(*[(at, "a", 0, 10) for at in range(500)])))
    operator._time.progress = 20
    sizes = [len(one) for one in operator.fire() if isinstance(one, ArrowBatch)]
    assert sum(sizes) == 300 * 500 and max(sizes) <= join_pairs.BLOCK_PAIRS < sum(sizes)


# a model


values = st.tuples(st.none() | st.integers(0, 4), st.sampled_from(["a", "b", None]), st.integers(0, 3))
streams = st.lists(
    st.tuples(st.sampled_from([0, 1]), st.lists(values, min_size=1, max_size=6)) | st.integers(-5, 50), max_size=10
)


def windowed(value: tuple[Any, ...]) -> tuple[Any, ...]:
    number, word, window = value
    return number, word, window * 10, window * 10 + 10


@pytest.mark.spec("R24", "kinds")
@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(streams, st.sampled_from(list(JoinKind)), st.booleans(), st.booleans(), st.integers(0, 9))
def test_any_rows_in_any_order_are_joined_as_the_model_does(elements, kind, nulls_match, less, restored_at):
    how = {"nulls_match": nulls_match} if less else {"nulls_match": nulls_match, "condition": None}
    factory = window_join(kind, **how)
    harness = OperatorHarness(factory, 2)
    found: list[Record] = []
    wanted: list[Record] = []
    held: dict[int, tuple[list[Any], list[Any]]] = {}
    watermark, late = -(2**63), 0

    def fire() -> None:
        for end in sorted(one for one in held if one - 1 <= watermark):
            lefts, rights = held.pop(end)
            pairs = [
                (at, other)
                for at, one in enumerate(lefts)
                for other, two in enumerate(rights)
                if matches(one, two, nulls_match, less)
            ]
            wanted.extend(joined(kind, lefts, rights, pairs))

    for number, element in enumerate([*elements, 1000]):
        if isinstance(element, int):
            watermark = max(watermark, element)
            harness.give(wm(element))
            harness.give(in2(wm(element)))
            fire()
        else:
            side, given_rows = element
            own = [windowed(one) for one in given_rows]
            harness.give(in2(right(*own)) if side else left(*own))
            for one in own:
                if one[3] - 1 <= watermark:
                    late += 1
                else:
                    held.setdefault(one[3], ([], []))[side].append(one)
        if number == restored_at:
            found += [one for one in harness.take() if isinstance(one, Record)]
            assert late_in(harness) == late
            (snapshots,) = rescaled_snapshots([harness.snapshot()], 1)
            harness, late = harness.restore(factory, snapshots), 0
    found += [one for one in harness.take() if isinstance(one, Record)]
    assert late_in(harness) == late
    assert Counter(map(repr, found)) == Counter(map(repr, wanted))


# memory


@pytest.mark.slow
@pytest.mark.parametrize("kind", [
    pytest.param(kind, marks=[pytest.mark.soak] * (kind is not JoinKind.FULL)) for kind in JoinKind
])  # fmt: skip
@pytest.mark.parametrize("word", ["many", "one"])
def test_a_state_that_exceeds_its_memory_goes_to_files(tmp_path, monkeypatch, kind, word):
    monkeypatch.setattr(frame_memory, "STEP_BYTES", 256)
    monkeypatch.setattr(frame_memory, "LEAST_BYTES", 256)
    memory, files = MemoryManager(1 << 30), []
    written = frame_memory.FrameMemory.written

    class Small(WindowJoinOperator):
        def setup(self, ctx):
            ctx.managed_memory, ctx.spill_folder = Allowance(memory, "task", 4096), str(tmp_path)
            super().setup(ctx)

    def counted(self, pieces):
        files.append(1)
        return written(self, pieces)

    def worked(operator):
        harness = OperatorHarness(lambda: operator(spec(kind), BOUNDS, "UTC"), 2)
        found = []
        for number in range(20):
            words = [f"{at * number % 30}" if word == "many" else "a" for at in range(40)]
            own = [(at % 7, words[at], 0, 10 + 10 * (at % 2)) for at in range(40)]
            harness.give(left(*own))
            harness.give(in2(right(*own[:20])))
            if number == 10:
                found += harness.take()
                harness = harness.restore(lambda: operator(spec(kind), BOUNDS, "UTC"), harness.snapshot())
        harness.give(wm(100))
        harness.give(in2(wm(100)))
        found += harness.take()
        harness.close()
        return Counter(map(repr, found))

    wanted = worked(WindowJoinOperator)
    monkeypatch.setattr(frame_memory.FrameMemory, "written", counted)
    assert worked(Small) == wanted
    assert len(files) > 3 and memory.used == 0 and not list(tmp_path.iterdir())
