"""Samples of the keys that a producer sends: hot key groups and keys, at little cost."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rayflink.actors.exchange.key_sample import EVERY_ROWS, SAMPLED_ROWS, KeySample
from rayflink.actors.exchange.selectors import ByKeyGroup
from rayflink.common.records.batches import ArrowBatch, RowBatch
from rayflink.state.keys.key_groups import key_group
from rayflink.state.keys.key_hash import key_hash

GROUPS = 128


def group_of(key: object) -> int:
    return key_group(key_hash(key), GROUPS)


def skewed(count: int, seed: int = 1) -> list[str]:
    """Return keys of which three in five are "hot"."""
    draw = random.Random(seed)
    return ["hot" if draw.random() < 0.6 else f"key {draw.randrange(10_000)}" for _ in range(count)]


@pytest.mark.parametrize("names_keys", [False, True])
def test_the_hot_key_group_has_its_share_and_keys_are_named_only_if_they_may_be(names_keys: bool) -> None:
    sample = KeySample(GROUPS, "count", names_keys)
    selector = ByKeyGroup(4, lambda value: value, GROUPS, sample=sample)
    for seed in range(100):
        selector.split(RowBatch(skewed(2_000, seed)))
    report = sample.report()
    assert report is not None and report["consumer"] == "count" and report["max_parallelism"] == GROUPS
    group, count = report["groups"][0]
    assert group == group_of("hot") and 0.5 < count / report["sampled"] < 0.7
    assert report["rows"] <= 200_000
    keys = [(key, group) for key, group, _ in report["keys"]]
    assert keys[:1] == ([("'hot'", group_of("hot"))] if names_keys else [])


def test_columns_are_sampled_as_rows_are() -> None:
    def by_word(record: dict[str, str]) -> str:
        return record["word"]

    by_word.columns = ("word",)  # type: ignore[attr-defined]
    sample = KeySample(GROUPS, "count", True)
    selector = ByKeyGroup(4, by_word, GROUPS, sample=sample)
    selector.split(ArrowBatch(pa.record_batch({"word": skewed(5_000)})))
    report = sample.report()
    assert report is not None and report["sampled"] <= SAMPLED_ROWS
    assert report["groups"][0][0] == group_of("hot") and report["keys"][0][0] == "'hot'"


@pytest.mark.parametrize("as_columns", [False, True])
@pytest.mark.parametrize("turns", [2, 4, 5])
def test_keys_that_come_in_turns_have_their_shares(turns: int, as_columns: bool) -> None:
    """A batch of 1,000 rows is sampled once in 4 rows, one of 1,280 once in 5."""
    sample = KeySample(GROUPS, "count", True)
    for rows in (1_000, 1_280) * 20:
        keys = [row % turns for row in range(rows)]
        if as_columns:
            sample.add_columns([pa.array(keys)], rows)
        else:
            sample.add_keys(keys)
    report = sample.report()
    assert report is not None and len(report["keys"]) == turns
    for _, _, count in report["keys"]:
        assert count / report["sampled"] == pytest.approx(1 / turns, rel=0.1)


def test_few_batches_are_sampled_once_there_are_many() -> None:
    sample = KeySample(GROUPS, "count", False)
    due = [sample.is_due(1_000) for _ in range(1_000)]
    assert due[:5] == [True, False, True, False, False] and due[0:70].count(True) < 10
    assert due[300:].count(True) == pytest.approx(700_000 / EVERY_ROWS, abs=2)


def test_small_batches_are_sampled_until_there_are_enough_records() -> None:
    sample = KeySample(GROUPS, "count", False)
    for _ in range(100_000):
        if sample.is_due(4):
            sample.add_keys([1, 2, 3, 4])
    report = sample.report()
    rounds = 10  # doublings from 256 records on
    assert report is not None and rounds * SAMPLED_ROWS <= report["sampled"] <= 2 * rounds * SAMPLED_ROWS


def test_a_key_that_was_hot_is_forgotten() -> None:
    sample = KeySample(GROUPS, "count", True)
    for key in ("old", "new"):
        for _ in range(100):
            sample.add_keys([key] * SAMPLED_ROWS)
    report = sample.report()
    assert report is not None and report["keys"][0][0] == "'new'"
    assert report["keys"][0][2] > 2 * report["keys"][1][2]


def test_values_that_can_be_no_key_are_left_to_the_partitioning() -> None:
    sample = KeySample(GROUPS, "count", True)
    sample.add_keys([["a list"], {}])
    assert sample.report() is None
