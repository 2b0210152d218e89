"""Changes of both sides that hypothesis makes come to the rows of DuckDB's join of the tables that they leave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.table.plan.joins import JoinKind
from rayflink.table.runtime.keyed_state.keyed_multiset import RowForm
from rayflink.testing import OperatorHarness, in2
from rayflink.testing.elements import Record

from .stream_join_cases import (
    AFTER,
    BEFORE,
    DELETE,
    ID,
    INSERT,
    LEFT,
    RIGHT,
    WORD,
    Change,
    StreamJoinCase,
    Values,
    batch,
)

UNIQUE_COLUMN = {RowForm.UNIQUE: ID, RowForm.SINGLE: WORD}
OUTER = {JoinKind.INNER: "", JoinKind.LEFT: "LEFT", JoinKind.RIGHT: "RIGHT", JoinKind.FULL: "FULL"}
rows = st.tuples(st.sampled_from(["a", "b", None]), st.integers(0, 2), st.sampled_from([1, 2, None]))
steps = st.tuples(st.integers(0, 1), st.sampled_from(["come", "come", "go", "change"]), rows, st.integers(0, 20))
forms = st.sampled_from([RowForm.COUNTED, RowForm.UNIQUE, RowForm.SINGLE, RowForm.APPENDED])


@st.composite
def joins(draw: st.DrawFn) -> StreamJoinCase:
    """A join of any kind, with unique keys or not, with another condition or not, by a key or not."""
    chosen, has_key = (draw(forms), draw(forms)), draw(st.booleans()) or draw(st.booleans())
    if not has_key:  # all rows have one key, so none is unique by it
        chosen = (RowForm.COUNTED, RowForm.COUNTED)
    kind, is_bounded = draw(st.sampled_from(JoinKind)), draw(st.booleans())
    nulls_match, with_before = has_key and draw(st.booleans()), draw(st.booleans())
    return StreamJoinCase(kind, chosen, is_bounded, nulls_match, has_key, with_before=with_before)


def changes_of_step(form: RowForm, table: list[Values], action: str, row: Values, place: int) -> list[Change]:
    """Return the changes that a step makes of a table with a unique column or without, and make them there."""
    column = UNIQUE_COLUMN.get(form)
    same = [old for old in table if column is not None and old[column] == row[column]]
    if form is RowForm.APPENDED or not table or (action == "come" and not same):
        gone: Values | None = None
    else:
        gone = same[0] if same else table[place % len(table)]
    if gone is not None:
        table.remove(gone)
        if action == "go":
            return [(DELETE, gone)]
    table.append(row)
    return [(INSERT, row)] if gone is None else [(BEFORE, gone), (AFTER, row)]


@cache
def connection() -> Any:
    """The tables l and r of DuckDB, empty."""
    created = duckdb.connect()
    for name, schema in (("l", LEFT), ("r", RIGHT)):
        kinds = ["VARCHAR", "BIGINT", "BIGINT"]
        columns = ", ".join(f"{column} {kind}" for column, kind in zip(schema.names, kinds, strict=True))
        created.execute(f"CREATE TABLE {name} ({columns})")
    return created


def joined_by_duckdb(case: StreamJoinCase, tables: Sequence[list[Values]]) -> Counter[Values]:
    """Return the rows of the join of two tables."""
    for name, table in zip("lr", tables, strict=True):
        connection().execute(f"DELETE FROM {name}")
        if table:
            connection().executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", table)
    equal = "word IS NOT DISTINCT FROM word0" if case.nulls_match else "word = word0"
    conditions = [*([equal] if case.has_key else []), *(["n < m"] if case.is_bounded else [])]
    on = " AND ".join(conditions) or "TRUE"
    if case.kind.is_of_left:
        negated = "NOT " if case.kind is JoinKind.ANTI else ""
        query = f"SELECT * FROM l WHERE {negated}EXISTS (SELECT 1 FROM r WHERE {on})"
    else:
        query = f"SELECT * FROM l {OUTER[case.kind]} JOIN r ON {on}"
    return Counter(connection().execute(query).fetchall())


def check(case: StreamJoinCase, side_steps: list[Any], cuts: list[int], restored_at: int) -> None:
    """Check that a join of changes, cut into batches and restored in the middle, shows the join of their tables.

    Args:
        side_steps: (side, action, row, place of a row that goes) of each step.
        cuts: numbers of changes in the batches, one after the other and again from the first.
        restored_at: the batch before which the operator is restored.
    """
    tables: tuple[list[Values], list[Values]] = ([], [])
    changes = [
        (side, change)
        for side, *step in side_steps
        for change in changes_of_step(case.forms[side], tables[side], *step)
    ]
    shown: Counter[Values] = Counter()
    harness, number = OperatorHarness(case, 2), 0
    while changes:
        side = changes[0][0]
        size = next((place for place, (other, _) in enumerate(changes) if other != side), len(changes))
        size = min(size, cuts[number % len(cuts)])
        if number == restored_at:
            harness = harness.restore(case, harness.snapshot())
        rows_in = batch([change for _, change in changes[:size]], side)
        harness.give(in2(rows_in) if side else rows_in)
        for record in harness.take():
            if isinstance(record, Record):
                shown[tuple(record.value)] += 1 if record.value.get_row_kind() in (INSERT, AFTER) else -1
        changes, number = changes[size:], number + 1
    harness.close()
    assert {row: count for row, count in shown.items() if count} == joined_by_duckdb(case, tables)


cuts_of_batches = st.lists(st.integers(1, 9), min_size=1)
drawn = given(joins(), st.lists(steps, min_size=1, max_size=40), cuts_of_batches, st.integers(0, 9))


@pytest.mark.spec("R22", "kinds")
@settings(max_examples=8, deadline=None)
@drawn
def test_changes_come_to_the_join_of_the_tables(case, side_steps, cuts, restored_at):
    check(case, side_steps, cuts, restored_at)


@pytest.mark.soak
@settings(max_examples=1000, deadline=None)
@drawn
def test_changes_come_to_the_join_of_the_tables_in_many_ways(case, side_steps, cuts, restored_at):
    check(case, side_steps, cuts, restored_at)
