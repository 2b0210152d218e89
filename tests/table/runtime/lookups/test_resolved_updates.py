"""Rows of a lookup join that are taken back as they were found, beside a model, with restores in between."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common.records.batches import ArrowBatch
from rayflink.common.records.row_kinds import with_kinds
from rayflink.common.types import RowKind
from rayflink.table.runtime.lookups.resolved_updates import ResolvedSpec, ResolveUpdatesOperator
from rayflink.testing import OperatorHarness
from rayflink.testing.elements import Columns, Record, columns
from rayflink.testing.harness import Place, rescaled_snapshots

SCHEMA = pa.schema([("n", pa.int64()), ("key", pa.string()), ("found", pa.int64())])
Change = tuple[RowKind, int, str | None, int | None]
"""Kind, a column of the row that comes, its key, and what it finds; None: nothing."""


def batch(changes: list[Change]) -> Columns:
    data = [pa.array([change[place] for change in changes], kind) for place, kind in enumerate(SCHEMA.types, 1)]
    is_found = pa.array([None if change[3] is None else True for change in changes], pa.bool_())
    rows = pa.RecordBatch.from_arrays([*data, is_found], names=[*SCHEMA.names, "$found"])
    return columns(ArrowBatch(with_kinds(rows, np.array([change[0].value for change in changes], dtype=np.int8))))


def changes_of(output: Any) -> list[tuple[str, tuple[Any, ...]]]:
    return [(str(record.value.get_row_kind()), tuple(record.value)) for record in output if isinstance(record, Record)]


def operator(keeps_misses: bool, keyed: bool = True, ttl_ms: int = 0) -> ResolveUpdatesOperator:
    return ResolveUpdatesOperator(ResolvedSpec((1,) if keyed else (), keeps_misses, ttl_ms, "counts"), SCHEMA)


def test_a_row_takes_back_what_it_found_when_it_came():
    with OperatorHarness(lambda: operator(False)) as harness:
        pairs = [("a", 10), ("a", 11), ("b", None)]
        harness.give(batch([(RowKind.INSERT, 1, key, value) for key, value in pairs]))
        assert changes_of(harness.take()) == [("+I", (1, "a", 10)), ("+I", (1, "a", 11))]
        harness.give(batch([
            (RowKind.UPDATE_BEFORE, 1, "a", None), (RowKind.UPDATE_AFTER, 2, "a", 20),
            (RowKind.UPDATE_BEFORE, 2, "a", 9), (RowKind.UPDATE_AFTER, 3, "a", 30), (RowKind.DELETE, 1, "b", 40),
        ]))  # fmt: skip
        assert changes_of(harness.take()) == [
            ("-U", (1, "a", 10)), ("-U", (1, "a", 11)), ("+U", (2, "a", 20)), ("-U", (2, "a", 20)),
            ("+U", (3, "a", 30)),
        ]  # fmt: skip


def test_found_rows_are_forgotten_with_time():
    with OperatorHarness(lambda: operator(True, ttl_ms=10)) as harness:
        harness.give(batch([(RowKind.INSERT, 1, "a", 10)]))
        harness.set_processing_time(50)
        harness.take()
        harness.give(batch([(RowKind.DELETE, 1, "a", 10)]))
        assert changes_of(harness.take()) == []


@st.composite
def histories(draw: st.DrawFn) -> list[list[Change]]:
    """Rows of keys that come, are replaced and go, each with what it finds at that time."""
    present: dict[str | None, int] = {}
    changes: list[Change] = []
    for number in range(draw(st.integers(1, 14))):
        key = draw(st.sampled_from(["a", "b", None]))
        finds = [draw(st.lists(st.integers(0, 9), max_size=2)) for _ in range(2)]
        for kind, values in zip((RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER), finds, strict=True):
            is_new = key not in present
            if kind is RowKind.UPDATE_BEFORE and is_new:
                continue
            row = present.pop(key) if kind is RowKind.UPDATE_BEFORE else number
            changes += [(kind, row, key, value) for value in values or [None]]
            if kind is RowKind.UPDATE_AFTER:
                present[key] = number
            elif draw(st.booleans()):
                break
    cuts = sorted(draw(st.lists(st.integers(0, len(changes)), max_size=3)))
    return [changes[first:stop] for first, stop in zip([0, *cuts], [*cuts, len(changes)], strict=True)]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(histories(), st.booleans(), st.integers(0, 3))
def test_what_is_left_is_what_was_found_last(history, keeps_misses, restored_at):
    harness = OperatorHarness(lambda: operator(keeps_misses))
    shown: dict[tuple[Any, ...], int] = defaultdict(int)
    last: dict[str | None, list[tuple[Any, ...]]] = {}
    for place, changes in enumerate(history):
        if place == restored_at:
            parts = rescaled_snapshots([harness.snapshot()], 2)
            halves = [OperatorHarness(lambda: operator(keeps_misses), 1, Place(number, 2), [part])
                      for number, part in enumerate(parts)]  # fmt: skip
            [whole] = rescaled_snapshots([half.snapshot() for half in halves], 1)
            harness = harness.restore(lambda: operator(keeps_misses), whole)
        for kind, number, key, value in changes:
            rows = last.setdefault(key, [])
            if kind is RowKind.UPDATE_BEFORE:
                rows.clear()
            elif value is not None or keeps_misses:
                rows.append((number, key, value))
        if changes:
            harness.give(batch(changes))
        for sign, row in changes_of(harness.take()):
            shown[row] += 1 if sign in ("+I", "+U") else -1
        wanted: dict[tuple[Any, ...], int] = defaultdict(int)
        for row in (row for rows in last.values() for row in rows):
            wanted[row] += 1
        assert {row: times for row, times in shown.items() if times} == wanted
    harness.close()
