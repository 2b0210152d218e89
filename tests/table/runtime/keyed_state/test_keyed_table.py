"""The keyed table obeys the laws of keyed tables: in memory, with hardly any of it, in small pages and slices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.runtime.keyed_state import (
    changes_by_barrier,
    key_rows,
    table_capture,
    table_records,
)
from rayflink.table.runtime.keyed_state.frame_memory import FrameMemory
from rayflink.table.runtime.keyed_state.key_index import KeyIndex
from rayflink.table.runtime.keyed_state.keyed_table import KeyedTable
from rayflink.table.runtime.keyed_state.record_layout import RecordLayout
from rayflink.table.runtime.keyed_state.stored_table import StoredTable
from rayflink.table.runtime.keyed_state.table_records import TableRecords
from rayflink.testing.table_laws.laws import (
    KEYED_TABLE_LAWS,
    a_history_gives_what_a_dict_would_give,
    many_long_histories_give_what_a_dict_would_give,
    rows_expire_are_counted_and_come_anew,
)


def in_memory(keys, values, ttl_ms, identity, ctx):
    table = KeyedTable(keys, values, ttl_ms)
    table.open(FrameMemory(ctx))
    return StoredTable(table, identity, ctx)


@pytest.fixture
def small(monkeypatch, small_pages):
    """Pages of a few rows, blocks and slices of fewer."""
    monkeypatch.setattr(table_records, "SLICE_ROWS", 16)
    monkeypatch.setattr(table_records, "_LEAST_ROOM", 4)
    monkeypatch.setattr(table_capture, "SHARED_BYTES", 0)
    monkeypatch.setattr(key_rows, "LARGE_BYTES", 256)


@pytest.fixture
def merges(monkeypatch):
    """Small segments that are merged often."""
    monkeypatch.setattr(changes_by_barrier, "_LEAST_SEGMENT", 4)
    monkeypatch.setattr(changes_by_barrier, "RUN", 2)


QUICK = {rows_expire_are_counted_and_come_anew}


def laws(*chosen):
    marked = [law if law in QUICK else pytest.param(law, marks=pytest.mark.slow) for law in chosen]
    return pytest.mark.parametrize("law", marked, ids=lambda law: law.__name__)


@laws(*KEYED_TABLE_LAWS)
def test_a_table_in_memory_obeys(law):
    law(in_memory)


@laws(a_history_gives_what_a_dict_would_give, many_long_histories_give_what_a_dict_would_give)
def test_a_table_with_small_pages_obeys(law, small, merges):
    law(in_memory)


@laws(
    a_history_gives_what_a_dict_would_give,
    many_long_histories_give_what_a_dict_would_give,
    rows_expire_are_counted_and_come_anew,
)
def test_a_table_with_hardly_any_memory_obeys(law, small, tmp_path):
    spilled = [0]

    def make(keys, values, ttl_ms, identity, ctx):
        memory = MemoryManager(512)
        ctx = replace(ctx, managed_memory=Allowance(memory, "table", 512), spill_folder=str(tmp_path / "spill"))
        stored = in_memory(keys, values, ttl_ms, identity, ctx)
        mapped = stored.table._memory.mapped

        def count(shape, dtype):
            spilled[0] += 1
            return mapped(shape, dtype)

        stored.table._memory.mapped = count
        return stored

    law(make)
    assert spilled[0]
    assert not list(tmp_path.glob("spill/*"))


def test_lists_that_were_replaced_leave_the_memory(monkeypatch):
    monkeypatch.setattr(key_rows, "LARGE_BYTES", 1 << 12)
    table = KeyedTable([pa.int64()], [pa.large_list(pa.int64())])
    keys = table.comparable([pa.array([1, 2])])
    lists = [pa.LargeListArray.from_arrays([0, 1000, 1001], pa.array(range(number, number + 1001)))
             for number in range(50)]  # fmt: skip
    rows = table.add(keys, [lists[0]], 0)
    for values in lists[1:]:
        table.put(rows, [values], 0)
    assert table.take(rows)[0].to_pylist() == lists[-1].to_pylist()
    assert table.value_heap.size < 6 * lists[0].nbytes, "what was replaced is gone, but for a few lists"


def test_an_index_forgets_what_was_removed(small):
    index, known, chance = KeyIndex(), {}, np.random.default_rng(7)
    for turn in range(60):
        prints = np.setdiff1d(chance.integers(1, 2**32, 40, dtype=np.uint32), np.array([*known], dtype=np.uint32))
        rows = np.arange(turn * 40, turn * 40 + len(prints))
        (index.add_many if turn % 2 else index.add)(prints, rows)
        known.update(zip(prints.tolist(), rows.tolist(), strict=True))
        over = chance.permutation(np.array([*known], dtype=np.uint32))[: len(known) * (turn % 3) // 3]
        index.remove(over, np.array([known.pop(key) for key in over.tolist()], dtype=np.int64))
        every = np.array([*known], dtype=np.uint32)
        wanted = np.array([*known.values()], dtype=np.int64)
        assert (index.find(every, lambda which, rows: rows == wanted[which]) == wanted).all()  # noqa: B023
        assert (index.find(over, lambda which, rows: np.ones(len(which), dtype=np.bool_)) == -1).all()
        assert len(index) == len(known)


def test_a_view_has_records_as_they_were_when_it_was_made(small):
    layout = RecordLayout([pa.int64()], [pa.int64()], False)
    table, chance = TableRecords(layout.dtype), np.random.default_rng(8)
    records = layout.keys([pa.array(range(100))])
    table.add(records)
    for wanted in (None, chance.random(100) < 0.5):
        before = table.take(np.arange(100))
        view, numbers, seen = table.view(), [], []
        for rows, some in view.slices(wanted):
            numbers.append(rows)
            seen.append(some)
            changed = chance.permutation(np.concatenate([*table.in_use()]))[:20]
            table.replace(changed, records.take(chance.integers(0, 100, len(changed))))
            gone = changed[:5]
            table.remove(gone)
            table.add(records[: len(gone) + 10])
        expected = np.arange(100) if wanted is None else np.flatnonzero(wanted)
        assert np.concatenate(numbers).tolist() == expected.tolist()
        assert (np.concatenate(seen) == before.take(expected)).all()
        assert view.is_closed
