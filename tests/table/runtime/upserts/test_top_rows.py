"""The first rows of each key of a stream beside a model that sorts all rows, with restores in between."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.state.clock import ManualClock
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.upserts.top_operator import MiniBatchTopRowsOperator, TopRowsOperator
from rayflink.table.runtime.upserts.top_rows import TopSpec
from rayflink.testing import OperatorHarness, at
from rayflink.testing.elements import Columns, Record, columns
from rayflink.testing.harness import Place, rescaled_snapshots

COLUMNS = pa.schema([("n", pa.int64()), ("word", pa.string()), ("id", pa.int64())])
RESULT = pa.schema([*COLUMNS, ("rank", pa.int64())])
ORDER = ((0, True, False), (2, False, False), (1, False, False))
"""No two rows that differ are equal in it."""
Row = tuple[int | None, str | None, int]


def spec(first: int = 1, last: int = 2, retracts: bool = False, keyed: bool = True, **how: Any) -> TopSpec:
    partition = (1,) if keyed else ()
    return TopSpec(tuple(COLUMNS.types), partition, ORDER, first, last, retracts, **how)


def batch(changes: list[tuple[RowKind, Row]]) -> Columns:
    data = [pa.array([row[at] for _, row in changes], kind) for at, kind in enumerate(COLUMNS.types)]
    rows = pa.RecordBatch.from_arrays(data, schema=COLUMNS)
    kinds = np.array([kind.value for kind, _ in changes], dtype=np.int8)
    return columns(ArrowBatch(with_kinds(rows, kinds) if kinds.any() else rows))


def come(*rows: Row) -> Columns:
    return batch([(RowKind.INSERT, row) for row in rows])


def changes_of(output: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [(str(one.value.get_row_kind()), tuple(one.value)) for one in output if isinstance(one, Record)]


def _place(row: Row) -> tuple[Any, ...]:
    return (row[0] is None, -(row[0] or 0), row[2], row[1] is None, row[1] or "")


def top_of(rows: Counter[Row], wanted: TopSpec) -> set[tuple[Any, ...]]:
    """Return the first rows of each key with their numbers."""
    ordered = sorted(rows.elements(), key=_place)
    numbers: Counter[Any] = Counter()
    top = set()
    for row in ordered:
        key = row[1] if wanted.partition else None
        numbers[key] += 1
        if wanted.first <= numbers[key] <= wanted.last:
            top.add((*row, numbers[key]))
    return top


@pytest.mark.spec("R19", "changes")
def test_changes_of_a_batch_are_shown_together():
    with OperatorHarness(lambda: TopRowsOperator(spec(), RESULT)) as harness:
        harness.give(come((5, "a", 1), (7, "a", 2), (1, None, 3)))
        assert changes_of(harness.take()) == [
            ("+I", (7, "a", 2, 1)), ("+I", (5, "a", 1, 2)), ("+I", (1, None, 3, 1)),
        ]  # fmt: skip
        harness.give(come((6, "a", 4), (2, "a", 5)))
        assert changes_of(harness.take()) == [("-U", (5, "a", 1, 2)), ("+U", (6, "a", 4, 2))]
        [operator] = harness.operators
        assert len(operator._top.rows.table) == 3


@pytest.mark.spec("R19", "retractions")
def test_rows_that_go_let_others_move_up():
    with OperatorHarness(lambda: TopRowsOperator(spec(retracts=True, with_before=False), RESULT)) as harness:
        harness.give(come((5, "a", 1), (7, "a", 2), (1, "a", 3)))
        harness.take()
        harness.give(batch([(RowKind.DELETE, (7, "a", 2)), (RowKind.DELETE, (9, "b", 9))]))
        assert changes_of(harness.take()) == [("+U", (5, "a", 1, 1)), ("+U", (1, "a", 3, 2))]
        harness.give(batch([(RowKind.UPDATE_BEFORE, (1, "a", 3)), (RowKind.UPDATE_AFTER, (1, "b", 3))]))
        assert changes_of(harness.take()) == [("-D", (1, "a", 3, 2)), ("+I", (1, "b", 3, 1))]


def test_equal_rows_are_where_the_first_of_them_came():
    by_arrival = TopSpec(tuple(COLUMNS.types), (1,), (), 1, 1, True)
    x, y = (1, "a", 1), (2, "a", 2)
    with OperatorHarness(lambda: TopRowsOperator(by_arrival, RESULT)) as harness:
        for row in (x, y, x):
            harness.give(come(row))
        harness.give(batch([(RowKind.DELETE, x)]))
        assert changes_of(harness.take()) == [("+I", (*x, 1))]
        harness.give(batch([(RowKind.DELETE, x), (RowKind.INSERT, x)]))
        assert changes_of(harness.take()) == [("-U", (*x, 1)), ("+U", (*y, 1))]


def test_the_newest_rows_are_followed_as_rows_come_and_go():
    newest = TopSpec(tuple(COLUMNS.types), (1,), (), 1, 2, True, newest_first=True)
    x, y, z = (1, "a", 1), (2, "a", 2), (3, "a", 3)
    with OperatorHarness(lambda: TopRowsOperator(newest, RESULT)) as harness:
        harness.give(come(x, y))
        assert changes_of(harness.take()) == [("+I", (*y, 1)), ("+I", (*x, 2))]
        harness.give(come(x))
        assert changes_of(harness.take()) == [("-U", (*y, 1)), ("+U", (*x, 1))]
        harness = harness.restore(lambda: TopRowsOperator(newest, RESULT), harness.snapshot())
        harness.give(batch([(RowKind.UPDATE_BEFORE, y), (RowKind.UPDATE_AFTER, z)]))
        assert changes_of(harness.take()) == [("-U", (*x, 1)), ("+U", (*z, 1))]
        harness.give(batch([(RowKind.DELETE, z), (RowKind.DELETE, x)]))
        assert changes_of(harness.take()) == [("-U", (*z, 1)), ("+U", (*x, 1)), ("-D", (*x, 2))]


def test_rows_of_a_hot_key_that_come_again_count_once_more():
    top = TopSpec(tuple(HOT.types), (2,), HOT_ORDER, 1, 4, True)
    rows = [(float(number), "a", 0) for number in range(12)]
    steps = [[(RowKind.INSERT, row) for row in rows], *([(RowKind.INSERT, row)] for row in rows[:8:-1])]
    shown, remembered = play(top, steps, 2)
    assert (shown, remembered) == (play(top, steps, 100)[0], len(steps))


def test_rows_that_come_after_a_restore_are_behind_stored_ones():
    by_arrival = TopSpec(tuple(COLUMNS.types), (1,), (), 1, 1, True)
    x, y = (1, "a", 1), (2, "a", 2)
    with OperatorHarness(lambda: TopRowsOperator(by_arrival, RESULT), clock=ManualClock(1000)) as harness:
        harness.give(come(x))
        snapshot = harness.snapshot()
    behind = ManualClock(990)
    with OperatorHarness(lambda: TopRowsOperator(by_arrival, RESULT), restore=[snapshot], clock=behind) as harness:
        harness.give(come(y))
        assert not changes_of(harness.take())


def test_a_mini_batch_shows_its_changes_together():
    with OperatorHarness(lambda: MiniBatchTopRowsOperator(spec(last=1), RESULT, MiniBatch(100, 10))) as harness:
        harness.give(come((5, "a", 1)))
        harness.give(come((7, "a", 2)))
        assert not harness.take()
        harness.give(at(10))
        assert changes_of(harness.take()) == [("+I", (7, "a", 2, 1))]


rows = st.tuples(st.none() | st.integers(0, 3), st.sampled_from(["a", "b", None]), st.integers(0, 4))
batches = st.lists(st.lists(st.tuples(st.booleans(), rows), min_size=1, max_size=12), max_size=6)


@pytest.mark.spec("R19", "first-rows")
@pytest.mark.slow
@settings(max_examples=120, deadline=None)
@given(batches, st.booleans(), st.booleans(), st.sampled_from([(1, 1), (1, 3), (2, 3)]), st.integers(0, 5))
def test_the_rows_that_are_left_are_those_of_the_model(batches, retracts, keyed, wanted, restored_at):
    top = spec(*wanted, retracts, keyed)
    present: Counter[Row] = Counter()
    shown: Counter[tuple[Any, ...]] = Counter()
    harness = OperatorHarness(lambda: TopRowsOperator(top, RESULT))
    for place, changes in enumerate(batches):
        if place == restored_at:
            harness = harness.restore(lambda: TopRowsOperator(top, RESULT), harness.snapshot())
        given_rows = []
        for is_gone, row in changes:
            if is_gone and retracts and present[row]:
                present[row] -= 1
                given_rows.append((RowKind.DELETE, row))
            else:
                present[row] += 1
                given_rows.append((RowKind.INSERT, row))
        harness.give(batch(given_rows))
        for kind, row in changes_of(harness.take()):
            shown[row] += 1 if kind in ("+I", "+U") else -1
        assert {row: times for row, times in shown.items() if times} == dict.fromkeys(top_of(present, top), 1)
    harness.close()


HOT = pa.schema([("x", pa.float64()), ("word", pa.string()), ("id", pa.int64())])
HOT_RESULT = pa.schema([*HOT, ("rank", pa.int64())])
HOT_ORDER = ((0, True, True), (1, False, False))
"""Rows that differ are equal in it, and are in the order in which they came."""
VALUES = [None, 0.0, -0.0, float("nan"), float("inf"), -1.5, *(number / 3 for number in range(20))]


def random_steps(chance: random.Random) -> list[Any]:
    """Return batches of rows that come and go, with deletions of absent rows, restores and waits in between."""
    present: list[tuple[Any, ...]] = []
    steps: list[Any] = []
    for _ in range(14):
        other = chance.choices(["restore", "rescale", "time", None], [1, 1, 2, 10])[0]
        share, changes = chance.choice([0.2, 0.5, 0.8]), []
        for _ in range(chance.randint(1, 50)):
            if present and chance.random() < share:
                chosen = chance.choice([chance.choice(present), max(present, key=lambda row: row[0] or 0)])
                present.remove(chosen)
                changes.append((RowKind.DELETE, chosen))
            else:
                row = chance.choice(VALUES), chance.choice(["a", "b", "", None, "q", "w"]), chance.randint(0, 2)
                is_absent = chance.random() < 0.06
                present += [] if is_absent else [row]
                changes.append((RowKind.DELETE if is_absent else RowKind.INSERT, row))
        steps.append(other or changes)
    return steps


def play(top: TopSpec, steps: list[Any], fewest: int) -> tuple[list[Any], int]:
    """Return the changes of the first rows at each step, and in how many steps rows of hot keys were remembered."""

    def operator() -> TopRowsOperator:
        fresh = TopRowsOperator(top, HOT_RESULT)
        fresh._top._best.fewest = fewest
        return fresh

    harness, shown, remembered = OperatorHarness(operator), [], 0
    for step in steps:
        harness.set_processing_time(harness.clock.now_ms() + (6 if step == "time" else 1))
        if step == "restore":
            harness = harness.restore(operator, harness.snapshot())
        elif step == "rescale":
            parts = rescaled_snapshots([harness.snapshot()], 2)
            clock = ManualClock(harness.clock.now_ms())
            halves = [OperatorHarness(operator, 1, Place(number, 2), [part], clock=clock)
                      for number, part in enumerate(parts)]  # fmt: skip
            [whole] = rescaled_snapshots([half.snapshot() for half in halves], 1)
            harness = harness.restore(operator, whole)
        elif step != "time":
            data = [pa.array([row[place] for _, row in step], kind) for place, kind in enumerate(HOT.types)]
            kinds = np.array([kind.value for kind, _ in step], dtype=np.int8)
            harness.give(columns(ArrowBatch(with_kinds(pa.RecordBatch.from_arrays(data, schema=HOT), kinds))))
            shown.append([(kind, repr(row)) for kind, row in changes_of(harness.take())])
            remembered += bool(harness.operators[0]._top._best)
    harness.close()
    return shown, remembered


@pytest.mark.slow
@settings(max_examples=20, deadline=None, phases=[Phase.generate])
@given(
    st.randoms(use_true_random=False), st.sampled_from([(), (2,), (1, 2)]), st.sampled_from([0, 12, 25]),
    st.sampled_from([HOT_ORDER, ()]), st.booleans(),
)  # fmt: skip
def test_the_rows_of_hot_keys_are_those_of_all_rows(chance, partition, ttl_ms, order, newest_first):
    top = TopSpec(tuple(HOT.types), partition, order, 1, 2, True, ttl_ms, newest_first=newest_first)
    steps = random_steps(chance)
    assert play(top, steps, chance.randint(2, 5))[0] == play(top, steps, 1000)[0]


def test_a_hot_key_whose_best_rows_go_reads_its_rows_again():
    top = TopSpec(tuple(HOT.types), (2,), HOT_ORDER, 1, 2, True)
    rows = [(float(number), "a", 0) for number in range(12)]
    steps = [[(RowKind.INSERT, row) for row in rows], *([(RowKind.DELETE, row)] for row in rows[:2:-1])]
    shown, remembered = play(top, steps, 2)
    assert (shown, remembered) == (play(top, steps, 100)[0], len(steps) - 2)
    assert shown[-1] == [("-U", "(3.0, 'a', 0, 1)"), ("+U", "(2.0, 'a', 0, 1)"),
                         ("-U", "(2.0, 'a', 0, 2)"), ("+U", "(1.0, 'a', 0, 2)")]  # fmt: skip


def test_a_key_that_was_hot_forgets_its_best_rows():
    top = TopSpec(tuple(HOT.types), (2,), HOT_ORDER, 1, 2, True)
    come, go = ({n: (kind, (float(n), "a", 0)) for n in range(8)} for kind in (RowKind.INSERT, RowKind.DELETE))
    steps = [[come[n] for n in range(1, 7)], [go[1], go[2], go[3]], [come[7]], [come[0]]]
    shown, remembered = play(top, steps, 2)
    assert (shown, remembered) == (play(top, steps, 100)[0], 2)
