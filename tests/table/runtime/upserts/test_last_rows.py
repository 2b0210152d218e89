"""The last row of each key, under every hardship and beside a model that goes row by row."""

from __future__ import annotations

import random

import pytest

from rayflink.datastream.streams.selectors import NamedField
from rayflink.table.plan.groups import MiniBatch
from rayflink.table.runtime.ranks.first_of_key import DUPLICATES
from rayflink.table.runtime.upserts.last_row_operators import UNKNOWN_DELETES
from rayflink.testing import OperatorHarness, at, verify

from .upsert_cases import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    WORD,
    Change,
    LastRowModel,
    N,
    batch,
    changes_of,
    deduplicated,
    last_rows,
    numbered,
    out,
    timed,
)

BY_WORD = NamedField("word")


@pytest.mark.slow
def test_the_last_row_of_a_key_replaces_the_one_before_it():
    verify(
        last_rows(WORD),
        elements=[
            batch((AFTER, ("a", 1, ["x"])), (AFTER, ("b", 2, None)), (AFTER, ("a", 1, ["x", None]))),
            batch((AFTER, ("b", 2, None)), (DELETE, ("a", None, None)), (DELETE, ("c", None, None))),
            batch((DELETE, ("b", None, None)), (AFTER, ("b", 7, [])), (BEFORE, ("b", 7, [])), (AFTER, (None, 1, []))),
        ],
        then=[
            out(INSERT, "a", 1, ["x"]), out(INSERT, "b", 2, None), out(BEFORE, "a", 1, ["x"]),
            out(AFTER, "a", 1, ["x", None]), out(DELETE, "a", 1, ["x", None]), out(DELETE, "b", 2, None),
            out(INSERT, "b", 7, []), out(INSERT, None, 1, []),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_a_row_that_stays_shows_that_its_key_is_in_use_where_keys_expire():
    verify(
        last_rows(WORD, ttl_ms=10),
        elements=[
            batch((AFTER, ("a", 1, None)), (AFTER, ("b", 1, None))), at(6), batch((AFTER, ("a", 1, None))), at(12),
            batch((AFTER, ("a", 1, None)), (AFTER, ("b", 1, None))), at(30), batch((DELETE, ("a", None, None))),
        ],
        then=[
            out(INSERT, "a", 1, None), out(INSERT, "b", 1, None), out(BEFORE, "a", 1, None), out(AFTER, "a", 1, None),
            out(BEFORE, "a", 1, None), out(AFTER, "a", 1, None), out(INSERT, "b", 1, None),
        ],
        key=BY_WORD,
    )  # fmt: skip


def random_changes(chance: random.Random, count: int) -> list[Change]:
    kinds = [INSERT, AFTER, AFTER, AFTER, BEFORE, DELETE]
    words, tags = ["a", "b", "c", None], [None, [], ["x"], ["x", "y"]]
    return [(chance.choice(kinds), (chance.choice(words), chance.choice([1, 2, None]), chance.choice(tags)))
            for _ in range(count)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("keys", [(WORD,), (N, WORD), ()])
@pytest.mark.parametrize("with_before", [True, False])
def test_every_change_is_that_of_the_model(keys, with_before):
    chance = random.Random(f"{keys}{with_before}")
    model = LastRowModel(keys, with_before)
    with OperatorHarness(last_rows(*keys, with_before=with_before)) as harness:
        for size in (1, 40, 7, 120, 2, 60):
            changes = random_changes(chance, size)
            harness.give(batch(*changes))
            assert changes_of(harness.take()) == model.add(changes)
        counts = harness.metrics.snapshot().items()
        assert model.dropped == sum(count for name, count in counts if name.endswith(UNKNOWN_DELETES)) > 0


@pytest.mark.spec("R20", "last")
@pytest.mark.slow
def test_the_last_row_by_event_time_is_replaced_by_those_that_are_not_earlier():
    verify(
        deduplicated(True),
        elements=[
            timed(("a", 5, 1), ("b", 3, 2), ("a", 4, 3), ("a", 5, 1)), timed(("b", 2, 4)),
            timed(("b", 9, 5), ("a", 1, 6), ("b", 8, 7)),
        ],
        then=[
            numbered(INSERT, "a", 5, 1), numbered(INSERT, "b", 3, 2), numbered(BEFORE, "a", 5, 1),
            numbered(AFTER, "a", 5, 1), numbered(BEFORE, "b", 3, 2), numbered(AFTER, "b", 9, 5),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_the_last_row_by_arrival_is_shown_once_however_often_it_comes():
    verify(
        deduplicated(False),
        elements=[timed(("a", 1, 1), ("a", 2, 1)), timed(("a", 3, 1), ("a", 4, 2), ("a", 5, 2)), timed(("a", 6, 3))],
        then=[
            numbered(INSERT, "a", 1, 1), numbered(BEFORE, "a", 1, 1), numbered(AFTER, "a", 4, 2),
            numbered(BEFORE, "a", 4, 2), numbered(AFTER, "a", 6, 3),
        ],
        key=BY_WORD,
    )  # fmt: skip


def test_a_mini_batch_shows_one_change_of_a_key():
    with OperatorHarness(deduplicated(False, MiniBatch(4, 100))) as harness:
        harness.give(timed(("a", 1, 1), ("b", 1, 2)))
        assert not harness.take()
        harness.give(timed(("a", 2, 3), ("a", 3, 4)))
        assert harness.take() == [numbered(INSERT, "b", 1, 2), numbered(INSERT, "a", 3, 4)]
        harness.give(timed(("a", 4, 5), ("a", 5, 4)))
        harness.give(timed(("b", 4, 5), ("b", 5, 6)))
        assert harness.take() == [numbered(BEFORE, "b", 1, 2), numbered(AFTER, "b", 5, 6)]


def test_rows_that_are_earlier_than_the_last_one_are_counted():
    with OperatorHarness(deduplicated(True)) as harness:
        harness.give(timed(("a", 5, 1)))
        harness.give(timed(("a", 4, 1), ("a", 3, 2)))
        assert harness.take() == [numbered(INSERT, "a", 5, 1)]
        assert [count for name, count in harness.metrics.snapshot().items() if name.endswith(DUPLICATES)] == [2]


def test_all_columns_may_be_the_key():
    changes = [(AFTER, ("a", 1)), (AFTER, ("a", 1)), (DELETE, ("a", 1))]
    with OperatorHarness(last_rows(WORD, N)) as harness:
        harness.give(batch(*((kind, (*values, ["x"])) for kind, values in changes)))
        assert [kind for kind, _ in changes_of(harness.take())] == [INSERT, DELETE]
