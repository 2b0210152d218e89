"""Keys that were there before: many of them, with equal prints, forgotten, in files, and beside a set."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from rayflink.common.managed_memory import MemoryManager
from rayflink.table.runtime.keyed_state import seen_keys
from rayflink.table.runtime.keyed_state.key_index import KeyIndex, TooManyEqualPrints
from rayflink.table.runtime.keyed_state.seen_keys import SeenKeys
from rayflink.table.runtime.ranks.first_rows import first_rows
from rayflink.testing import OperatorHarness, at

from ..ranks.first_row_cases import ROWS, SCHEMA, WORD, N, distinct, row, rows, values_of
from ..windows.test_window_memory import told, with_memory


@pytest.fixture
def small(monkeypatch, small_pages):
    """Pages of a few rows, blocks of fewer."""
    monkeypatch.setattr(seen_keys, "FRAME_ROWS", 100)


def none(which, rows):
    return np.zeros(len(which), dtype=np.bool_)


def test_an_index_finds_what_was_added(small):
    index, known = KeyIndex(), {}
    chance = np.random.default_rng(5)
    for _ in range(60):
        prints = chance.integers(1, 2**32, 40, dtype=np.uint32)
        prints = np.array([one for one in np.unique(prints) if int(one) not in known], dtype=np.uint32)
        rows = np.arange(len(known), len(known) + len(prints))
        assert (index.find(prints, lambda which, rows: np.ones(len(which), dtype=np.bool_)) == -1).all()
        index.add(prints, rows)
        known.update(zip(prints.tolist(), rows.tolist(), strict=True))
    every = np.array(list(known), dtype=np.uint32)
    wanted = np.array(list(known.values()))
    assert (index.find(every, lambda which, rows: rows == wanted[which]) == wanted).all()
    assert len(index) == len(known) and index.pages > 50
    gone = np.concatenate([index.sweep(page, lambda rows: rows % 3 > 0) for page in range(index.pages)])
    assert sorted(gone.tolist()) == [one for one in wanted.tolist() if one % 3]
    assert (index.find(every, lambda which, rows: rows == wanted[which])[wanted % 3 > 0] == -1).all()
    for page in range(index.pages):
        index.sweep(page, lambda rows: rows % 90 > 0)
    index.shrink()
    assert index.pages < 5
    assert (index.find(every, lambda which, rows: rows == wanted[which])[wanted % 90 == 0] == wanted[::90]).all()


def test_keys_with_equal_prints_are_distinguished_up_to_a_page_of_them(small):
    index = KeyIndex()
    prints = np.full(24, 77, dtype=np.uint32)
    index.add(prints, np.arange(24))
    assert (index.find(prints, lambda which, rows: rows == which) == np.arange(24)).all()
    assert (index.find(prints, none) == -1).all()
    with pytest.raises(TooManyEqualPrints, match="key by another column as well"):
        index.add(prints, np.arange(24, 48))


def test_keys_with_equal_prints_are_compared(monkeypatch):
    monkeypatch.setattr(seen_keys, "fingerprints", lambda kept: np.ones(len(kept[0]), dtype=np.uint32))
    seen = SeenKeys([pa.string(), pa.int64()], 0, True)
    keys = [("a", 1), ("a", 2), ("b", 1), ("a", None), (None, 1), (None, None), ("", 0)]
    for given in (keys[:3], keys[2:6], keys, keys):
        kept = [pa.array([one[side] for one in given], kind) for side, kind in enumerate((pa.string(), pa.int64()))]
        known = seen.knows(kept, 0)
        assert seen.first(kept, 0).tolist() == (~known).tolist()
    assert len(seen) == len(keys) and known.all()


@pytest.mark.slow
def test_blocks_whose_rows_were_forgotten_are_used_again(small):
    seen, present = SeenKeys([pa.string(), pa.int64()], 10, True), {}
    chance = random.Random(3)
    for now_ms in range(0, 1500, 2):
        keys = {(chance.choice("abc"), chance.randrange(now_ms, now_ms + 40)): None for _ in range(5)}
        kept = [pa.array([one[side] for one in keys]) for side in (0, 1)]
        wanted = [one not in present or present[one] + 10 <= now_ms for one in keys]
        assert seen.first(kept, now_ms).tolist() == wanted
        present.update((one, now_ms) for one in keys)
        while seen.sweep_at is not None and seen.sweep_at <= now_ms:
            seen.sweep(now_ms)
    assert seen._rows.numbers < 1000 < 3 * len(present) // 4


@pytest.mark.slow
@pytest.mark.parametrize("ttl_ms", [0, 1 << 40])
def test_what_exceeds_the_memory_is_in_files_and_still_known(tmp_path, small, ttl_ms):
    memory = MemoryManager(1 << 30)
    schema = pa.schema([SCHEMA.field(WORD), SCHEMA.field(N)])
    limited = with_memory(first_rows, 2048, str(tmp_path), memory)

    def factory():
        return limited(ROWS, (WORD, N), (WORD, N), schema, ttl_ms, True, "rows")

    harness, known = OperatorHarness(factory), set()
    chance = random.Random(1)
    for number in range(60):
        given = [(f"customer {chance.randrange(300)}", chance.choice([1, None])) for _ in range(25)]
        harness.give(rows(*(row(*one) for one in given)))
        wanted = [one for one in dict.fromkeys(given) if one not in known]
        assert values_of(harness) == wanted
        known.update(given)
        if number % 20 == 19:
            assert told(harness, "spilledBytes") > 0
            assert memory.used <= 2048
            harness = harness.restore(factory, harness.snapshot())
    assert harness.operators[0].keys.seen._index.size == 0, "the index is in a file, too"
    assert not list(tmp_path.iterdir()), "files have no names"
    harness.close()
    assert memory.used == 0


def test_what_expired_is_removed_while_nothing_comes_and_counted(small):
    harness = OperatorHarness(distinct(WORD, ttl_ms=1000))
    for number in range(40):
        harness.give(rows(*(row(f"{number} {one}") for one in range(10))))
    harness.give(at(900))
    harness.give(rows(*(row(f"{number} 0") for number in range(40))))
    assert len(harness.operators[0].keys.seen) == 400
    for ms in range(1000, 1900, 100):
        harness.give(at(ms))
    assert len(harness.operators[0].keys.seen) == 40
    for ms in range(1900, 3500, 100):
        harness.give(at(ms))
    assert len(harness.operators[0].keys.seen) == 0
    assert harness.operators[0].keys.seen.sweep_at is None
    assert harness.operators[0].keys.seen._index.pages == 1
    assert told(harness, "numStateEntriesExpired") == 400
    harness.close()


def test_a_snapshot_leaves_out_what_expired():
    harness = OperatorHarness(distinct(WORD, ttl_ms=10))
    harness.give(rows(row("a"), row("b")))
    harness.clock.advance(5)
    harness.give(rows(row("a")))
    harness.clock.advance(5)
    harness = harness.restore(distinct(WORD, ttl_ms=10), harness.snapshot())
    assert len(harness.operators[0].keys.seen) == 1
    harness.close()


@pytest.mark.parametrize("ttl_ms", [2**63 - 1, 2**63 - 2**40, 10**30])
def test_the_longest_times_to_live_are_for_ever(ttl_ms):
    harness = OperatorHarness(distinct(WORD, ttl_ms=ttl_ms))
    for given in (at(2**41), rows(row("a")), rows(row("a"))):
        harness.give(given)
    harness = harness.restore(distinct(WORD, ttl_ms=ttl_ms), harness.snapshot())
    harness.give(rows(row("a"), row("b")))
    assert values_of(harness) == [("b",)]
    harness.close()
