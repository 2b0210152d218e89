"""Joins of mini-batches: what is left of their changes comes to the join of the tables, and no more is emitted."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.records.row_kinds import with_kinds
from rayflink.operators.base import Operator
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.joins.folded_changes import folded_by_key, folded_equal
from rayflink.table.runtime.joins.mini_batch_join import MiniBatchJoinOperator
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.testing import OperatorHarness
from rayflink.testing.elements import Mark, Record

from . import multi_join_cases, stream_join_cases, test_multi_join
from .multi_join_cases import MultiJoinCase, Part
from .stream_join_cases import AFTER, BEFORE, DELETE, INSERT, StreamJoinCase, Values
from .test_joins_beside_duckdb import changes_of_step, joined_by_duckdb, joins, steps


class MiniBatchCase:
    """A case whose operator waits for this many changes, or for a second."""

    def __init__(self, case: StreamJoinCase | MultiJoinCase, rows: int) -> None:
        self.case, self.rows = case, rows

    def __call__(self) -> Operator:
        return MiniBatchJoinOperator(self.case.spec, MiniBatch(self.rows, 1_000))


def rows_in(case: Any, change: Any, number: int) -> Any:
    """A change of an input as a batch."""
    several = isinstance(case, MultiJoinCase)
    return multi_join_cases.batch([change], number) if several else stream_join_cases.batch([change], number).batch


def check(case: Any, side_steps: list[Any], rows: int, restored_at: int) -> None:
    """Check that mini-batches, one of which ends with a restore, show the join of the tables that changes leave."""
    tables: list[list[Values]] = [[] for _ in case.forms]
    shown: Counter[Values] = Counter()
    waiting = MiniBatchCase(case, rows)
    harness, number = OperatorHarness(waiting, len(case.forms)), 0

    def look() -> None:
        for record in harness.take():
            if isinstance(record, Record):
                shown[tuple(record.value)] += 1 if record.value.get_row_kind() in (INSERT, AFTER) else -1
                assert shown[tuple(record.value)] >= 0, "a row is taken back that is not there"

    for step in side_steps:
        side, *action = step[0] % len(case.forms), *step[1:]
        for change in changes_of_step(case.forms[side], tables[side], *action):
            number += 1
            if number == restored_at:
                snapshot = harness.snapshot()
                look()
                harness = harness.restore(waiting, snapshot)
            harness.process_batch(rows_in(case, change, side), side)
            look()
    for place in range(len(case.forms)):
        harness.end_input(place)
    look()
    harness.close()
    judged = multi_join_cases.joined_by_duckdb if isinstance(case, MultiJoinCase) else joined_by_duckdb
    assert {row: count for row, count in shown.items() if count} == Counter(judged(case, tables))


drawn = given(joins() | test_multi_join.joins(), st.lists(steps, min_size=1, max_size=40), st.sampled_from([1, 7, 50]),
              st.integers(0, 40))  # fmt: skip


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@drawn
def test_mini_batches_come_to_the_join_of_the_tables(case, side_steps, rows, restored_at):
    check(case, side_steps, rows, restored_at)


@pytest.mark.soak
@settings(max_examples=150, deadline=None)
@drawn
def test_mini_batches_come_to_the_join_of_the_tables_in_many_ways(case, side_steps, rows, restored_at):
    check(case, side_steps, rows, restored_at)


A, OTHER, B, C = ("k", 1, 1), ("k", 1, 5), ("k", 2, 2), ("k", 3, 3)
LEFT_JOINS = [
    StreamJoinCase(JoinKind.LEFT, (RowForm.UNIQUE, RowForm.COUNTED)),
    MultiJoinCase((Part(True, 0), Part(True, 0)), (RowForm.UNIQUE, RowForm.COUNTED, RowForm.COUNTED)),
]


@pytest.mark.parametrize("case", LEFT_JOINS, ids=["two", "several"])
def test_a_result_that_holds_only_in_between_is_not_emitted(case):
    nothing = (None,) * (len(case.forms) - 2) * 3
    with OperatorHarness(MiniBatchCase(case, 100), len(case.forms)) as harness:
        for number, change in ((0, (INSERT, A)), (1, (INSERT, B)), (0, (BEFORE, A)), (0, (AFTER, OTHER)),
                               (1, (INSERT, C)), (1, (DELETE, C))):  # fmt: skip
            harness.process_batch(rows_in(case, change, number), number)
        for number in range(len(case.forms)):
            harness.advance_watermark(7, number)
        assert not harness.take(), "the watermark waits for the rows before it"
        harness.set_processing_time(1_000)
        first, mark = harness.take()
        assert (first.value.get_row_kind(), tuple(first.value), mark) == (INSERT, (*OTHER, *B, *nothing), Mark(7))
        for change in ((DELETE, B), (INSERT, B)):
            harness.process_batch(rows_in(case, change, 1), 1)
        harness.snapshot()
        assert not harness.take(), "a row that goes and comes back changes nothing"


def folded(changes: list[tuple[Any, int, int]], fold: Any) -> list[tuple[int, int, int]]:
    """(kind, key, value) of what is left of changes."""
    kinds = np.array([kind.value for kind, *_ in changes], dtype=np.int8)
    rows = pa.record_batch({"key": [key for _, key, _ in changes], "value": [value for *_, value in changes]})
    left = fold(with_kinds(rows, kinds)).to_pydict()
    return list(zip(left.get("$row_kind", [0] * len(left["key"])), left["key"], left["value"], strict=True))


@pytest.mark.parametrize(("changes", "left"), [
    ([(INSERT, 1, 1), (BEFORE, 1, 1), (AFTER, 1, 2)], [(INSERT, 1, 2)]),
    ([(BEFORE, 1, 1), (AFTER, 1, 2), (BEFORE, 1, 2), (AFTER, 1, 3)], [(BEFORE, 1, 1), (AFTER, 1, 3)]),
    ([(BEFORE, 1, 1), (AFTER, 1, 2), (DELETE, 1, 2)], [(DELETE, 1, 1)]),
    ([(BEFORE, 1, 1), (AFTER, 1, 2), (BEFORE, 1, 2), (AFTER, 1, 1)], []),
    ([(AFTER, 1, 1), (DELETE, 1, 1)], []),
    ([(INSERT, 2, 1), (DELETE, 1, 1)], [(DELETE, 1, 1), (INSERT, 2, 1)]),
])  # fmt: skip
def test_changes_of_a_unique_key_become_its_first_and_its_last_row(changes, left):
    assert folded(changes, lambda rows: folded_by_key(rows, (0,))) == [(kind.value, *row) for kind, *row in left]


def test_a_row_that_replaces_an_unknown_one_and_goes_is_deleted():
    changes = [(AFTER, 1, 2), (DELETE, 1, 2), (INSERT, 2, 1), (DELETE, 2, 1)]
    assert folded(changes, lambda rows: folded_by_key(rows, (0,), True)) == [(DELETE.value, 1, 2)]


@pytest.mark.parametrize(("changes", "left"), [
    ([(INSERT, 1, 1), (DELETE, 1, 1), (INSERT, 1, 1)], [(INSERT, 1, 1)]),
    ([(DELETE, 1, 1), (DELETE, 1, 1), (INSERT, 1, 1)], [(DELETE, 1, 1)]),
    ([(INSERT, 1, 1), (INSERT, 1, 1), (DELETE, 2, 2)], [(DELETE, 2, 2), (INSERT, 1, 1), (INSERT, 1, 1)]),
    ([(BEFORE, 1, 1), (AFTER, 1, 2), (DELETE, 1, 2)], [(DELETE, 1, 1)]),
    ([(BEFORE, 1, 1), (AFTER, 1, 2)], [(BEFORE, 1, 1), (AFTER, 1, 2)]),
])  # fmt: skip
def test_equal_rows_that_come_and_go_cancel_each_other(changes, left):
    assert folded(changes, folded_equal) == [(kind.value, *row) for kind, *row in left]
