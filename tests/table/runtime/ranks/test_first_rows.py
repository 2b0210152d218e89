"""The first row of each key, by arrival and by event time, under every hardship and beside models row by row."""

from __future__ import annotations

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.datastream.streams.selectors import NamedField
from rayflink.state.errors import SnapshotMismatch
from rayflink.table.runtime.ranks import earliest_rows
from rayflink.testing import OperatorHarness, at, verify, wm

from ..windows.test_window_memory import told
from .first_row_cases import SCHEMA, WORD, N, X, distinct, earliest, first, out, row, rows, values_of

BY_WORD = NamedField("word")
WORDS = pa.schema([SCHEMA.field(WORD)])


def word(value):
    return out(value, of=WORDS)


@pytest.mark.slow
@pytest.mark.spec("G14", "keys", "R17")
def test_a_key_comes_once_until_nothing_came_of_it_for_the_time_to_live():
    verify(
        distinct(WORD, ttl_ms=10),
        elements=[
            rows(row("a"), row("b"), row("a"), row(None), row("c"), row(None)),
            at(6),
            rows(row("a"), row(None)),
            at(10),
            rows(row("b"), row("a"), row("b"), row(None)),
            at(19),
            rows(row("a"), row("b"), row("c")),
            at(29),
            rows(row("a"), row(None)),
        ],
        then=[word(one) for one in ("a", "b", None, "c", "b", "c", "a", None)],
        key=BY_WORD,
    )


@pytest.mark.slow
@pytest.mark.spec("G14", "keys", "R17")
def test_a_first_row_by_arrival_is_kept_for_the_time_to_live_whatever_comes():
    verify(
        first(WORD, ttl_ms=10),
        elements=[
            rows(row("a", 1), row("a", 2), row("b", 3)),
            at(9),
            rows(row("a", 4), row("b", 5)),
            at(10),
            rows(row("a", 6), row("a", 7)),
            at(19),
            rows(row("a", 8), row("b", 9)),
        ],
        then=[out(*row(*one)) for one in (("a", 1), ("b", 3), ("a", 6), ("b", 9))],
        key=BY_WORD,
    )


@pytest.mark.slow
def test_rows_without_a_key_have_one_first_row():
    verify(
        first(),
        elements=[rows(row("a", 1), row("b", 2)), rows(row("c", 3))],
        then=[out(*row("a", 1))],
        without=("three subtasks", "three subtasks become two"),
    )


@pytest.mark.spec("R20", "first")
@pytest.mark.slow
def test_the_first_row_by_event_time_comes_when_none_can_come_before_it():
    verify(
        earliest(WORD),
        elements=[
            rows(row("a", 1, 7), row("b", 2, 5), row("a", 3, 4), row("a", 4, 4), row(None, 5, 9), row("b", 6, 6)),
            wm(4),
            rows(row("b", 7, 3), row("b", 8, 4), row("a", 9, 8), row("c", 10, 5), row("c", 11, 12)),
            wm(8),
            rows(row("a", 12, 9), row("b", 13, 20), row("d", 14, 8)),
            wm(30),
        ],
        then=[
            out(*row("a", 3, 4)), wm(4),
            out(*row("b", 8, 4)), out(*row("c", 10, 5)), wm(8),
            out(*row("d", 14, 8)), out(*row(None, 5, 9)), wm(30),
        ],
        key=BY_WORD,
        without=("three subtasks", "three subtasks become two"),
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("factory", [
    pytest.param(earliest(WORD), marks=pytest.mark.soak), earliest(WORD, ttl_ms=1000)
])  # fmt: skip
def test_rows_that_wait_are_redistributed_with_their_keys(factory):
    given = [rows(*(row(f"k{at % 23}", at, 100 + at * 7 % 50) for at in range(90))), wm(120),
             rows(*(row(f"k{at % 29}", at, 121 + at) for at in range(60))), wm(300)]  # fmt: skip
    verify(factory, elements=given, key=BY_WORD)


@pytest.mark.spec("R17")
def test_by_event_time_only_keys_that_had_their_row_expire():
    harness = OperatorHarness(earliest(WORD, ttl_ms=10))
    harness.give(rows(row("a", 1, 50)))
    harness.give(at(40))
    harness.give(wm(60))
    assert values_of(harness) == [(*row("a", 1, 50), 1)]
    harness.give(rows(row("a", 2, 70)))
    harness.give(at(50))
    harness.give(rows(row("a", 3, 80)))
    harness.give(wm(90))
    assert values_of(harness) == [(*row("a", 3, 80), 1)]
    harness.close()


def test_a_row_that_waits_goes_with_the_one_before_it_though_its_key_expires():
    harness = OperatorHarness(earliest(WORD, ttl_ms=10))
    harness.give(rows(row("a", 1, 50)))
    harness.give(rows(row("b", 2, 70)))
    harness.give(rows(row("a", 3, 70)))
    harness.give(wm(60))
    harness.give(at(20))
    harness.give(wm(80))
    assert [one[:2] for one in values_of(harness)] == [("a", 1), ("b", 2)]
    harness.close()


def test_what_is_dropped_is_counted():
    harness = OperatorHarness(distinct(WORD))
    harness.give(rows(*(row(one) for one in "abcabca")))
    harness.give(rows(row("c")))
    assert told(harness, "numDuplicatesDropped") == 5
    harness.close()
    harness = OperatorHarness(earliest(WORD))
    harness.give(rows(row("a", 1, 9), row("a", 1, 8), row("b", 1, 30)))
    harness.give(rows(row("a", 1, 7), row("a", 1, 40)))
    harness.give(wm(20))
    harness.give(rows(row("a", 2, 19), row("b", 2, 20), row("a", 2, 41)))
    harness.give(wm(50))
    assert (told(harness, "numDuplicatesDropped"), told(harness, "numLateRecordsDropped")) == (5, 1)
    assert [one[0:2] for one in values_of(harness)] == [("a", 1), ("b", 2)]
    harness.close()


def test_nulls_nans_and_zeros_are_keys_like_others():
    harness = OperatorHarness(distinct(X, N))
    harness.give(rows(*(row("", one, 0, x) for one in (0, None) for x in (math.nan, None, 0.0, -0.0, -math.nan, 1.5))))
    found = values_of(harness)
    assert [str(one) for one in found] == [
        str(one) for n in (0, None) for one in ((math.nan, n), (None, n), (0.0, n), (-0.0, n), (1.5, n))
    ]
    harness = harness.restore(distinct(X, N), harness.snapshot())
    harness.give(rows(row("", 0, 0, -math.nan), row("", None), row("", 0, 0, 2.5), row("", 0, 0, 0.0)))
    assert values_of(harness) == [(2.5, 0)]
    harness.close()


def test_empty_batches_give_nothing():
    for factory in (distinct(WORD), first(WORD), earliest(WORD)):
        harness = OperatorHarness(factory)
        harness.give(rows())
        harness = harness.restore(factory, harness.snapshot())
        harness.give(wm(5))
        assert values_of(harness) == []
        harness.close()


@pytest.mark.spec("R17")
def test_a_restored_job_takes_the_new_time_to_live():
    harness = OperatorHarness(distinct(WORD, ttl_ms=100))
    harness.give(rows(row("a"), row("b")))
    harness.give(at(50))
    harness = harness.restore(distinct(WORD, ttl_ms=60), harness.snapshot())
    harness.give(rows(row("a")))
    harness.give(at(60))
    harness.give(rows(row("b")))
    assert values_of(harness) == [("b",)]
    harness = harness.restore(distinct(WORD), harness.snapshot())
    harness.give(at(1000))
    harness.give(rows(row("a"), row("b"), row("c")))
    assert values_of(harness) == [("c",)]
    harness = harness.restore(distinct(WORD, ttl_ms=10), harness.snapshot())
    harness.give(at(1005))
    harness.give(rows(row("a")))
    harness.give(at(1010))
    harness.give(rows(row("a"), row("b")))
    assert values_of(harness) == [("b",)]
    harness.close()


def test_a_snapshot_of_other_keys_is_refused():
    harness = OperatorHarness(distinct(WORD))
    harness.give(rows(row("a", 1)))
    with pytest.raises(SnapshotMismatch, match="k0 string.*k0 int64"):
        harness.restore(distinct(N), harness.snapshot())


@pytest.mark.slow
@given(data=st.data(), seed=st.integers(0, 1 << 30))
@settings(max_examples=60, deadline=None)
def test_event_time_gives_what_a_model_gives(data, seed):
    chance = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(earliest_rows, "LEAST_ROWS", 5)
        harness = OperatorHarness(earliest(WORD))
        harness.give(wm(0))
        emitted, waiting, now, number = set(), {}, 0, 0
        for _ in range(data.draw(st.integers(1, 12))):
            given = []
            for _ in range(chance.randrange(12)):
                number += 1
                key, ms = chance.choice("abcdef"), now + chance.randrange(-5, 40)
                given.append(row(key, number, ms))
                if ms >= now and key not in emitted and ms < waiting.get(key, (1 << 40, 0))[0]:
                    waiting[key] = (ms, number)
            harness.give(rows(*given))
            if chance.random() < 0.3:
                harness = harness.restore(earliest(WORD), harness.snapshot())
            now += chance.randrange(1, 30)
            harness.give(wm(now))
            due = sorted((*waiting[key], key) for key in waiting if waiting[key][0] <= now)
            for _, _, key in due:
                emitted.add(key)
                del waiting[key]
            found = [(one[0], one[1]) for one in values_of(harness)]
            assert found == [(key, number) for _, number, key in due]
        harness.close()


@pytest.mark.spec("R20", "first-by-arrival")
@pytest.mark.slow
@given(seed=st.integers(0, 1 << 30), ttl_ms=st.sampled_from([0, 3, 20]), refreshes=st.booleans())
@settings(max_examples=60, deadline=None)
def test_arrival_gives_what_a_model_gives(seed, ttl_ms, refreshes):
    chance = random.Random(seed)
    factory = distinct(WORD, N, ttl_ms=ttl_ms) if refreshes else first(WORD, N, ttl_ms=ttl_ms)
    harness = OperatorHarness(factory)
    accessed, now = {}, 0
    for _ in range(12):
        given = [row(chance.choice(["a", "b", None]), chance.choice([1, 2, None])) for _ in range(chance.randrange(9))]
        wanted = []
        for one in given:
            is_first = one[:2] not in accessed or (ttl_ms and accessed[one[:2]] + ttl_ms <= now)
            if is_first:
                wanted.append(one[:2])
            if is_first or refreshes:
                accessed[one[:2]] = now
        harness.give(rows(*given))
        assert [one[:2] for one in values_of(harness)] == wanted
        if chance.random() < 0.3:
            harness = harness.restore(factory, harness.snapshot())
        now += chance.choice([0, 1, 7, 300])
        harness.give(at(now))
    harness.close()
