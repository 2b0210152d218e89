"""The user's aggregate functions in groups, windows and OVER: they give what built-in functions give."""

from __future__ import annotations

import random
from collections import deque

import pytest

from rayflink.operators.base import UserCodeError
from rayflink.table.plan.logical import Emission
from rayflink.table.plan.over import Frame
from rayflink.table.runtime.windows.window_operators import (
    emitting_window_aggregate,
    global_window_aggregate,
    local_window_aggregate,
    session_window_aggregate,
)
from rayflink.table.types import DataTypes
from rayflink.testing import OperatorHarness, at, verify, wm

from ..groups.group_cases import (
    AFTER,
    BEFORE,
    BY_WORD,
    DELETE,
    INSERT,
    OK,
    Groups,
    N,
    agg,
    batch,
    changes_of,
    come,
    row,
)
from ..groups.test_stream_groups import TOGETHER, random_changes
from ..over import over_cases
from ..windows import window_cases
from .user_cases import MergingSum, Sum, Values, user

ARRAY = DataTypes.ARRAY(DataTypes.BIGINT())
PAIRS = (
    (user(Sum(), N), agg("SUM", N)), (user(Values(), N, ARRAY), agg("ARRAY_AGG", N)),
    (user(MergingSum(), N, filter=OK), agg("SUM", N, filter=OK)),
    (user(Sum(), N, distinct=True), agg("SUM", N, distinct=True)),
)  # fmt: skip
"""A user's function, and the built-in one that gives the same."""
BOTH = tuple(one for pair in PAIRS for one in pair)


@pytest.mark.slow
@pytest.mark.parametrize("mini_batch", [None, TOGETHER])
@pytest.mark.parametrize("retracts", [False, True])
def test_groups_change_as_those_of_built_in_functions(retracts, mini_batch):
    chance = random.Random(f"{retracts}{mini_batch}")
    groups, shown = Groups(BOTH, retracts=retracts, mini_batch=mini_batch), 0
    with OperatorHarness(groups.operators) as harness:
        for number in range(4):
            harness.give(batch(random_changes(chance, 40, retracts)))
            harness.give(at(1000 * (number + 1)))
            for _, values in changes_of(harness.take()):
                shown += 1
                assert values[1::2] == values[2::2]
    assert shown > 10


@pytest.mark.slow
def test_groups_go_on_under_every_hardship():
    groups = Groups((user(Sum(), N), user(Values(), N, ARRAY), agg("COUNT")), retracts=True)
    out = groups.out
    verify(
        groups.operators,
        elements=[
            come(row("a", 1), row("a", 5), row("b", None)),
            batch([(BEFORE, row("a", 5)), (INSERT, row("a", 7)), (DELETE, row("b", None))]),
            batch([(DELETE, row("a", 1)), (DELETE, row("a", 7)), (INSERT, row("a", 2))]),
        ],
        then=[
            out(INSERT, "a", 1, [1], 1), out(BEFORE, "a", 1, [1], 1), out(AFTER, "a", 6, [1, 5], 2),
            out(INSERT, "b", None, [None], 1), out(BEFORE, "a", 6, [1, 5], 2), out(AFTER, "a", 1, [1], 1),
            out(BEFORE, "a", 1, [1], 1), out(AFTER, "a", 8, [1, 7], 2), out(DELETE, "b", None, [None], 1),
            out(BEFORE, "a", 8, [1, 7], 2), out(AFTER, "a", 7, [7], 1), out(DELETE, "a", 7, [7], 1),
            out(INSERT, "a", 2, [2], 1),
        ],
        key=BY_WORD,
    )  # fmt: skip


def test_a_result_is_taken_back_as_it_was_shown():
    class Calls(Sum):
        calls = 0

        def get_value(self, accumulator):
            Calls.calls += 1
            return Calls.calls

    with OperatorHarness(Groups((user(Calls(), N),)).operators) as harness:
        harness.give(come(row("a", 1)))
        harness.give(come(row("a", 1)))
        assert [values[1] for _, values in changes_of(harness.take())] == [1, 1, 2]


def test_an_error_names_the_function_and_the_arguments():
    with OperatorHarness(Groups((user(deque(), N, kind="pandas"),)).operators) as harness, pytest.raises(UserCodeError):
        harness.give(come(row("a", 1)))
    bad = user(Sum(), 0)
    with OperatorHarness(Groups((bad,)).operators) as harness:
        with pytest.raises(Exception, match=r"accumulate.* of function Sum failed for the arguments \('a',\): TypeErr"):
            harness.give(come(row("a", 1)))


WINDOWS = [window_cases.tumble(), window_cases.hop(), window_cases.cumulate(), window_cases.session()]
WN = window_cases.N


def _sums(window):
    ordered = user(Values(), WN, ARRAY)
    sums = (user(Sum(), WN), user(MergingSum(), WN), user(MergingSum(), WN, filter=window_cases.OK))
    built_in = (window_cases.aggregate("ARRAY_AGG", WN), *(window_cases.aggregate("SUM", WN),) * 2,
                window_cases.aggregate("SUM", WN, filter=window_cases.OK))  # fmt: skip
    distinct = user(Sum(), WN, distinct=True), window_cases.aggregate("SUM", WN, distinct=True)
    return window_cases.by_word(window, ordered, *sums, distinct[0], *built_in, distinct[1])


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind.value)
def test_windows_give_what_those_of_built_in_functions_give(window):
    aggregation, chance, shown = _sums(window), random.Random(1), 0
    factory = lambda: [local_window_aggregate(aggregation), global_window_aggregate(aggregation)]  # noqa: E731
    if window.gap_ms:
        factory = lambda: session_window_aggregate(aggregation)  # noqa: E731
    with OperatorHarness(factory) as harness:
        for time in range(0, 60, 6):
            harness.give(_rows(chance, time))
            harness.give(wm(time))
        harness.give(wm(200))
        for record in harness.take():
            values = list(record.value)[1:-3] if hasattr(record, "value") else []
            shown += bool(values)
            assert values[: len(values) // 2] == values[len(values) // 2 :]
    assert shown > 2


def _rows(chance, time):
    return window_cases.rows(
        *((chance.choice("abc"), chance.choice([None, 1, 2, 5]), time + chance.randrange(9), chance.random() < 0.6)
          for _ in range(12))
    )  # fmt: skip


@pytest.mark.slow
def test_windows_give_the_same_under_every_hardship():
    aggregation = window_cases.by_word(window_cases.session(), user(Values(), WN, ARRAY), user(MergingSum(), WN))
    factory = lambda: session_window_aggregate(aggregation)  # noqa: E731
    chance = random.Random(2)
    elements = [element for time in (0, 7, 14, 21) for element in (_rows(chance, time), wm(time))]
    verify(factory, [*elements, wm(90)], key=window_cases.key_of(aggregation))


def test_early_results_of_windows_are_changes():
    aggregation = window_cases.by_word(window_cases.tumble(), user(Sum(), WN), user(MergingSum(), WN))
    with OperatorHarness(lambda: emitting_window_aggregate(aggregation, Emission(early_ms=0))) as harness:
        harness.give(window_cases.rows(("a", 1, 0), ("a", 2, 3)))
        assert [values[1:3] for _, values in changes_of(harness.take())] == [(1, 1), (1, 1), (3, 3)]


@pytest.mark.parametrize(
    "frame", [over_cases.UNTIL_ROW, over_cases.ALL_BEFORE, Frame(True, -2, 0), Frame(False, -200, 0)], ids=str
)
def test_over_gives_what_built_in_functions_give(frame):
    pandas = user(lambda values: values.sum(min_count=1), N, kind="pandas")
    columns = ((pandas, agg("SUM", N)),) if frame.first is not None else ()
    functions = [one for pair in (*PAIRS, *columns) for one in pair]
    over, chance = over_cases.Over(tuple(functions), frame), random.Random(str(frame))
    with OperatorHarness(over.operators) as harness:
        for ms in (0, 1000):
            values = [over_cases.row(chance.choice("ab"), chance.choice([None, 1, 2]), ms + 100 * chance.randrange(9))
                      for _ in range(15)]  # fmt: skip
            harness.give(over_cases.rows(*values))
            harness.give(wm(ms + 950))
        results = [values[6:] for values in over_cases.values_of(harness.take())]
    assert len(results) == 30
    assert all(values[::2] == values[1::2] for values in results)
