"""Joins of several streams in one step: beside DuckDB, under every hardship, and in bounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.datastream.streams.selectors import NamedField
from rayflink.state.errors import SnapshotMismatch
from rayflink.table.runtime.joins import multi_join
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.testing import OperatorHarness, in2, verify
from rayflink.testing.elements import Columns, Record

from .multi_join_cases import MultiJoinCase, Part, batch, joined_by_duckdb
from .stream_join_cases import AFTER, BEFORE, DELETE, INSERT, Change, Values
from .test_joins_beside_duckdb import changes_of_step, forms, rows

steps = st.tuples(st.integers(0, 3), st.sampled_from(["come", "come", "go", "change"]), rows, st.integers(0, 20))
cuts_of_batches = st.lists(st.integers(1, 9), min_size=1)


@st.composite
def joins(draw: st.DrawFn) -> MultiJoinCase:
    """Three or four inputs of any form, inner and left joins, each by the word of any input before it."""
    parts = []
    for number in range(1, draw(st.integers(3, 4))):
        before = st.integers(0, number - 1)
        parts.append(Part(draw(st.booleans()), draw(before), draw(st.none() | before)))
    return MultiJoinCase(tuple(parts), tuple(draw(forms) for _ in range(len(parts) + 1)))


def output_of(case: MultiJoinCase, pieces: Sequence[tuple[int, list[Change]]], restored_at: int = -1) -> list[Any]:
    """Return (kind, row) of the changes that batches lead to.

    Args:
        restored_at: the batch before which the operator is restored.
    """
    shown = []
    harness = OperatorHarness(case, len(case.forms))
    for number, (source, changes) in enumerate(pieces):
        if number == restored_at:
            harness = harness.restore(case, harness.snapshot())
        harness.process_batch(batch(changes, source), source)
        shown += [(record.value.get_row_kind(), tuple(record.value)) for record in harness.take()
                  if isinstance(record, Record)]  # fmt: skip
    harness.close()
    return shown


def check(case: MultiJoinCase, side_steps: list[Any], cuts: list[int], restored_at: int) -> None:
    """Check that joins of changes, cut into batches and restored, show the joins of their tables at every moment."""
    tables: list[list[Values]] = [[] for _ in case.forms]
    changes = [
        (source, change)
        for number, *step in side_steps
        for source in [number % len(case.forms)]
        for change in changes_of_step(case.forms[source], tables[source], *step)
    ]
    single = [(source, [change]) for source, change in changes]
    pieces: list[tuple[int, list[Change]]] = []
    for source, change in changes:
        size = cuts[len(pieces) % len(cuts)]
        if pieces and pieces[-1][0] == source and len(pieces[-1][1]) < size:
            pieces[-1][1].append(change)
        else:
            pieces.append((source, [change]))
    shown: Counter[Values] = Counter()
    changelog = output_of(case, pieces, restored_at)
    for kind, row in changelog:
        shown[row] += 1 if kind in (INSERT, AFTER) else -1
        assert shown[row] >= 0, "a row is taken back that is not there"
    assert {row: count for row, count in shown.items() if count} == Counter(joined_by_duckdb(case, tables))
    assert Counter(output_of(case, single)) == Counter(changelog)


drawn = given(joins(), st.lists(steps, min_size=1, max_size=50), cuts_of_batches, st.integers(0, 9))


@pytest.mark.slow
@pytest.mark.spec("R22", "several")
@settings(max_examples=8, deadline=None)
@drawn
def test_changes_come_to_the_joins_of_the_tables(case, side_steps, cuts, restored_at):
    check(case, side_steps, cuts, restored_at)


@pytest.mark.soak
@settings(max_examples=150, deadline=None)
@drawn
def test_changes_come_to_the_joins_of_the_tables_in_many_ways(case, side_steps, cuts, restored_at):
    check(case, side_steps, cuts, restored_at)


@pytest.mark.slow
@settings(max_examples=8, deadline=None)
@drawn
def test_changes_come_to_the_joins_in_small_blocks(case, side_steps, cuts, restored_at):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(multi_join, "BLOCK_PAIRS", 3)
        patch.setattr(multi_join, "_LEAST_LOOK", 1)
        check(case, side_steps, cuts, restored_at)


COUNTED = (RowForm.COUNTED,) * 3
LEFTS = MultiJoinCase((Part(True, 0), Part(True, 1)), COUNTED)
A, B, C = ("k", 1, 1), ("k", 2, 2), ("k", 3, 3)
NOTHING = (None,) * 3


def test_a_first_partner_replaces_nulls_and_the_last_one_leaves_them():
    steps = [(0, [(INSERT, A)]), (2, [(INSERT, C)]), (1, [(INSERT, B), (INSERT, B)]), (1, [(DELETE, B), (DELETE, B)])]
    assert output_of(LEFTS, steps) == [
        (INSERT, (*A, *NOTHING, *NOTHING)),
        (DELETE, (*A, *NOTHING, *NOTHING)), (INSERT, (*A, *B, *C)), (INSERT, (*A, *B, *C)),
        (DELETE, (*A, *B, *C)), (DELETE, (*A, *B, *C)), (INSERT, (*A, *NOTHING, *NOTHING)),
    ]  # fmt: skip


def test_inner_joins_pass_updates_on_and_a_null_matches_nothing():
    inner = MultiJoinCase((Part(False, 0), Part(False, 1)), COUNTED)
    steps = [(0, [(INSERT, A), (INSERT, (None, 1, 1))]), (1, [(INSERT, B), (INSERT, (None, 2, 2))]),
             (2, [(INSERT, C), (BEFORE, C), (AFTER, ("k", 3, 4))])]  # fmt: skip
    assert output_of(inner, steps) == [
        (INSERT, (*A, *B, *C)), (BEFORE, (*A, *B, *C)), (AFTER, (*A, *B, "k", 3, 4)),
    ]  # fmt: skip


def test_each_input_has_a_time_to_live_of_its_own():
    case = MultiJoinCase((Part(False, 0), Part(True, 0)), COUNTED, (0, 10, 0))
    with OperatorHarness(case, 3) as harness:
        for number, row in ((0, A), (1, B)):
            harness.process_batch(batch([(INSERT, row)], number), number)
        assert len(harness.take()) == 1
        harness.set_processing_time(10)
        harness.process_batch(batch([(INSERT, C)], 2), 2)
        assert not harness.take(), "the row of the second input is over"
        harness.process_batch(batch([(INSERT, B)], 1), 1)
        assert [tuple(record.value) for record in harness.take()] == [(*A, *B, *C)]


def test_state_of_inputs_in_another_order_is_refused():
    with OperatorHarness(LEFTS, 3) as harness:
        harness.process_batch(batch([(INSERT, A)], 0), 0)
        snapshot = harness.snapshot()
        other = MultiJoinCase(LEFTS.parts, (RowForm.UNIQUE, RowForm.COUNTED, RowForm.COUNTED))
        with pytest.raises(SnapshotMismatch, match="keep the query"):
            harness.restore(other, snapshot)


CHANGES = [
    (0, [(INSERT, ("a", 1, 1)), (INSERT, ("b", 2, 2)), (INSERT, (None, 3, 3))]),
    (1, [(INSERT, ("a", 7, 5)), (INSERT, ("c", 8, 5)), (INSERT, (None, 9, 9))]),
    (0, [(BEFORE, ("b", 2, 2)), (AFTER, ("c", 2, 2)), (INSERT, ("a", 4, 4))]),
    (1, [(DELETE, ("a", 7, 5)), (INSERT, ("b", 7, 5))]),
    (0, [(DELETE, ("a", 4, 4)), (DELETE, ("a", 1, 1))]),
]


@pytest.mark.slow
def test_a_left_join_survives_every_hardship():
    case = MultiJoinCase((Part(True, 0, 0),), (RowForm.COUNTED, RowForm.UNIQUE))
    with OperatorHarness(case, 2) as harness:
        for number, changes in CHANGES:
            harness.process_batch(batch(changes, number), number)
        then = harness.take()
    assert len(then) == 14
    inputs = [(number, Columns(batch(changes, number))) for number, changes in CHANGES]
    elements = [in2(rows_in) if number else rows_in for number, rows_in in inputs]
    verify(case, elements, then, (NamedField("a_word"), NamedField("b_word")))
