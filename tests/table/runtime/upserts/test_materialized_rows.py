"""The rows of each key of a table, under every hardship and beside a model that goes row by row."""

from __future__ import annotations

import random

import pytest

from rayflink.datastream.streams.selectors import NamedField
from rayflink.table.runtime.upserts.last_row_operators import UNKNOWN_DELETES
from rayflink.testing import OperatorHarness, at, verify

from .upsert_cases import (
    AFTER,
    BEFORE,
    DELETE,
    INSERT,
    Change,
    MaterializedModel,
    changes_of,
    materialized,
    pairs,
    written,
)

BY_WORD = NamedField("word")


@pytest.mark.spec("R27", "deduplicate")
@pytest.mark.slow
def test_the_row_before_is_shown_again_when_the_last_one_goes():
    verify(
        materialized(),
        elements=[
            pairs((INSERT, ("a", 1, None)), (INSERT, ("a", 2, 0.5)), (INSERT, ("b", 1, None))),
            pairs((INSERT, ("a", 3, None)), (INSERT, ("a", 1, None)), (DELETE, ("a", 1, None))),
            pairs((DELETE, ("a", 1, None)), (DELETE, ("b", 2, None))),
            pairs((DELETE, ("a", 3, None)), (DELETE, ("b", 1, None))),
            pairs((DELETE, ("a", 2, 0.5)), (AFTER, ("b", 9, None))),
        ],
        then=[
            written(INSERT, "a", 1), written(AFTER, "a", 2, 0.5), written(INSERT, "b", 1), written(AFTER, "a", 3),
            written(AFTER, "a", 1), written(AFTER, "a", 3), written(AFTER, "a", 2, 0.5), written(DELETE, "b", 1),
            written(DELETE, "a", 2, 0.5), written(INSERT, "b", 9),
        ],
        key=BY_WORD,
    )  # fmt: skip


@pytest.mark.slow
def test_rows_expire():
    verify(
        materialized(ttl_ms=10),
        elements=[
            pairs((INSERT, ("a", 1, None))), at(6), pairs((INSERT, ("a", 2, None))), at(12),
            pairs((DELETE, ("a", 2, None))), at(30), pairs((INSERT, ("a", 4, None))),
        ],
        then=[written(INSERT, "a", 1), written(AFTER, "a", 2), written(DELETE, "a", 2), written(INSERT, "a", 4)],
        key=BY_WORD,
    )  # fmt: skip


def random_changes(chance: random.Random, present: list[tuple], count: int) -> list[Change]:
    """Rows that come, go, move to other keys, and some that go and are not there."""
    changes: list[Change] = []
    for _ in range(count):
        fresh = (chance.choice("abc"), chance.choice([1, 2, None]), chance.choice([0.5, None]))
        if present and chance.random() < 0.55:
            gone = present.pop(chance.randrange(len(present)))
            if chance.random() < 0.5:
                fresh = (chance.choice([gone[0], fresh[0]]), *fresh[1:])
                changes += [(BEFORE, gone), (AFTER, fresh)]
                present.append(fresh)
            else:
                changes.append((DELETE, gone))
        elif chance.random() < 0.1:
            changes.append((chance.choice([BEFORE, DELETE]), ("d", 1, None)))
        else:
            changes.append((chance.choice([INSERT, AFTER]), fresh))
            present.append(fresh)
    return changes


@pytest.mark.slow
def test_every_change_is_that_of_the_model():
    for seed in range(4):
        chance, model, present = random.Random(seed), MaterializedModel(), []
        with OperatorHarness(materialized()) as harness:
            for size in (1, 40, 7, 120, 2, 1, 1, 60):
                changes = random_changes(chance, present, size)
                harness.give(pairs(*changes))
                assert changes_of(harness.take()) == model.add(changes)
            counts = harness.metrics.snapshot().items()
            assert model.dropped == sum(count for name, count in counts if name.endswith(UNKNOWN_DELETES)) > 0


def test_a_row_is_found_by_the_key_that_the_query_has():
    with OperatorHarness(materialized(1)) as harness:
        harness.give(pairs((INSERT, ("a", 1, 0.5)), (INSERT, ("a", 2, 0.5)), (DELETE, ("a", 2, None))))
        assert harness.take() == [
            written(INSERT, "a", 1, 0.5), written(AFTER, "a", 2, 0.5), written(AFTER, "a", 1, 0.5)
        ]  # fmt: skip
