"""Least, greatest, first and last values of groups with more values than the lists take, beside lists that take all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rayflink.state.clock import ManualClock
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.groups import overflow_table
from rayflink.testing import OperatorHarness
from rayflink.testing.harness import Place, rescaled_snapshots

from .group_cases import (
    DELETE,
    INSERT,
    WORD,
    Change,
    D,
    Groups,
    N,
    X,
    agg,
    batch,
    changes_of,
    come,
    row,
    same,
)

EXTREMES = (agg("MIN", N), agg("MAX", N), agg("MIN", X), agg("MAX", X), agg("MAX", D), agg("MIN", WORD), agg("COUNT"))
ENDS = tuple(agg(f"{end}_VALUE", column) for end in ("FIRST", "LAST") for column in (N, X, D, WORD))
KEYS = {"one group": (), "a boolean": (4,)}
rows = st.builds(
    row,
    st.sampled_from(["a", "b", "ab", "", "z", None]),
    st.none() | st.integers(-3, 8),
    st.sampled_from([None, 0.0, -0.0, float("nan"), float("inf"), -1.5, 2.5, 7.0]),
    st.sampled_from([None, "1.25", "-3.10", "9.99", "0.01"]),
    st.booleans(),
)
changes = st.lists(st.tuples(st.sampled_from([INSERT, INSERT, DELETE]), rows), min_size=1, max_size=25)
steps = st.lists(changes | st.sampled_from(["restore", "rescale", "time"]), max_size=9)


def set_limits(fewest: int, most: int) -> None:
    overflow_table.FEWEST_LISTED, overflow_table.MOST_LISTED = fewest, most


@pytest.fixture(autouse=True)
def _limits():
    limits = overflow_table.FEWEST_LISTED, overflow_table.MOST_LISTED
    yield
    set_limits(*limits)


def stored_values(harness: OperatorHarness) -> list[int]:
    """Return the number of values in the table of each extreme."""
    return [len(overflow.table) for overflow in harness.operators[-1]._changes._overflows.values()]


def play(groups: Groups, steps: list[Any], limits: tuple[int, int]) -> list[list[Change]]:
    """Return the changes of results of each step."""
    set_limits(*limits)
    harness, shown, now_ms = OperatorHarness(groups.operators, clock=ManualClock()), [], 0
    for step in steps:
        if step == "time":
            now_ms += 6
            harness.set_processing_time(now_ms)
        elif step == "restore":
            harness = harness.restore(groups.operators, harness.snapshot())
        elif step == "rescale":
            parts = rescaled_snapshots([harness.snapshot()], 2)
            halves = [OperatorHarness(groups.operators, 1, Place(number, 2), [part], clock=ManualClock(now_ms))
                      for number, part in enumerate(parts)]  # fmt: skip
            [whole] = rescaled_snapshots([half.snapshot() for half in halves], 1)
            harness = harness.restore(groups.operators, whole)
        else:
            harness.give(batch(step))
            shown.append(changes_of(harness.take()))
    harness.close()
    return shown


@pytest.mark.slow
@settings(max_examples=60, deadline=None, phases=[Phase.generate])
@given(
    steps, st.sampled_from([EXTREMES, ENDS]), st.sampled_from(sorted(KEYS)), st.sampled_from([0, 10]), st.booleans(),
    st.integers(1, 3),
)  # fmt: skip
def test_results_are_those_of_lists_that_take_all_values(steps, aggregates, key, ttl_ms, is_folded, fewest):
    groups = Groups(aggregates, KEYS[key], True, ttl_ms, mini_batch=MiniBatch(1, 100) if is_folded else None)
    wanted = play(groups, steps, (1000, 1000))
    assert same(play(groups, steps, (fewest, 2 * fewest)), wanted)


def test_values_beyond_the_best_ones_come_back_and_go_with_their_group():
    set_limits(2, 4)
    groups = Groups((agg("MAX", N),), retracts=True)
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(*(row("a", n) for n in range(9))))
        harness.take()
        assert stored_values(harness) == [7]
        harness.give(batch([(DELETE, row("a", n)) for n in (8, 7, 6)]))
        assert changes_of(harness.take())[-1][1] == ("a", 5)
        harness.give(batch([(DELETE, row("a", n)) for n in range(6)]))
        assert changes_of(harness.take()) == [(DELETE, ("a", 5))] and stored_values(harness) == [0]
        harness.give(come(row("a", 3)))
        assert [values for _, values in changes_of(harness.take())] == [("a", 3)]


def test_values_beyond_the_best_ones_are_forgotten_when_their_group_expires():
    set_limits(2, 4)
    groups = Groups((agg("MIN", D), agg("MIN", N)), retracts=True, ttl_ms=10)
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(*(row("a", n, d=str(Decimal(n))) for n in range(9))))
        assert stored_values(harness) == [7, 7]
        harness.set_processing_time(50)
        assert stored_values(harness) == [0, 0]


def test_values_between_the_first_and_the_last_ones_come_back_in_their_order():
    set_limits(2, 4)
    groups = Groups((agg("FIRST_VALUE", N), agg("LAST_VALUE", N)), retracts=True)
    with OperatorHarness(groups.operators) as harness:
        harness.give(come(*(row("a", n) for n in (5, 3, 5, 1, 5, 2, 3, 4))))
        harness.take()
        assert stored_values(harness) == [12, 11]  # 6 values, the order, and a queue of each distinct one
        harness.give(batch([(DELETE, row("a", n)) for n in (5, 3, 5)]))
        assert changes_of(harness.take())[-1][1] == ("a", 1, 4)
        harness.give(batch([(DELETE, row("a", n)) for n in (4, 3, 2)]))
        assert changes_of(harness.take())[-1][1] == ("a", 1, 5)
        harness.give(batch([(DELETE, row("a", n)) for n in (1, 5)]))
        assert changes_of(harness.take())[-1][0] == DELETE and stored_values(harness) == [0, 0]
