"""The keyed multiset does what a dict would do: in memory, with hardly any of it, in small pages and extents."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.table.runtime.keyed_state import extents, table_capture, table_records
from rayflink.table.runtime.keyed_state.comparable_keys import distinct_keys
from rayflink.table.runtime.keyed_state.frame_memory import FrameMemory
from rayflink.table.runtime.keyed_state.keyed_multiset import KeyedMultiset, MultisetSpec, RowForm
from rayflink.table.runtime.keyed_state.secondary_index import SecondaryIndex
from rayflink.table.runtime.keyed_state.stored_table import StoredTable
from rayflink.testing.table_laws.multiset_laws import KEYED_MULTISET_LAWS, check_keyed_multiset


def in_memory(spec, ctx):
    multiset = KeyedMultiset(spec)
    multiset.table.open(FrameMemory(ctx))
    return multiset, StoredTable(multiset.table, "rows", ctx)


@pytest.fixture
def small(monkeypatch, small_pages):
    monkeypatch.setattr(table_records, "SLICE_ROWS", 16)
    monkeypatch.setattr(table_records, "_LEAST_ROOM", 4)
    monkeypatch.setattr(extents, "_LEAST_ROOM", 4)
    monkeypatch.setattr(table_capture, "SHARED_BYTES", 0)


@pytest.mark.slow
def test_a_multiset_with_small_pages_obeys(small):
    check_keyed_multiset(in_memory)


@pytest.mark.slow
def test_a_multiset_with_hardly_any_memory_obeys(small, tmp_path):
    filed = [0]

    def make(spec, ctx):
        memory = MemoryManager(512)
        ctx = replace(ctx, managed_memory=Allowance(memory, "rows", 512), spill_folder=str(tmp_path / "spill"))
        multiset, stored = in_memory(spec, ctx)
        if (index := multiset.table._secondary) is not None:
            file = index.file

            def count(allocate):
                filed[0] += 1
                file(allocate)

            index.file = count
        return multiset, stored

    check_keyed_multiset(make, KEYED_MULTISET_LAWS)
    assert filed[0]
    assert not list(tmp_path.glob("spill/*"))


def test_a_hot_key_keeps_its_extent_within_bounds():
    index = SecondaryIndex(lambda wanted, which, rows: np.ones(len(which), dtype=bool), lambda keys: None)
    chance, rows, known = np.random.default_rng(1), np.arange(40_000), set()
    for part in np.array_split(rows, 7):
        index.add([pa.array(np.zeros(len(part), dtype=np.int64))], part)
    known.update(rows.tolist())
    gone = chance.permutation(rows)
    for part in np.array_split(gone[:39_900], 9):
        index.remove(part)
        known.difference_update(part.tolist())
        found = index.find([pa.array([0])])
        assert sorted(found.order[found.first[0] : found.first[0] + found.count[0]].tolist()) == sorted(known)
    assert index._pool.rows.top <= 4 * 1024
    index.remove(gone[39_900:])
    assert index.find([pa.array([0])]).count.tolist() == [0]
    assert index.keys == 0


def test_keys_with_equal_prints_are_told_apart():
    keys = [pa.array([5, 6, 5, 6, 7, 5])]
    for prints in ([1, 1, 1, 1, 1, 1], [3, 1, 3, 1, 2, 3]):
        codes, firsts = distinct_keys(keys, np.array(prints, dtype=np.uint32))
        assert keys[0].take(pa.array(firsts[codes])).equals(keys[0])
        assert sorted(firsts.tolist()) == [0, 1, 4]


def test_more_rows_than_there_are_cannot_be_taken_back():
    rows = KeyedMultiset(MultisetSpec((pa.int64(),), 1, RowForm.COUNTED))
    for signs, expected in (([1, 1, -1], 1), ([-1, -1, 1, 1, 1], 3), ([-1, -1, -1, -1], 0), ([-1, 1], 1)):
        rows.change([pa.array([7] * len(signs))], np.array(signs), None, 0)
        found = rows.find([pa.array([7])])
        counts = rows.counts(found.order[found.first[0] : found.first[0] + found.count[0]])
        assert Counter(counts.tolist()).total() == (1 if expected else 0)
        assert counts.sum() == expected
