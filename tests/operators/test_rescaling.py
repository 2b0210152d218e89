"""Snapshots for another number of subtasks: every key group goes to its owner, lists by their mode."""

from __future__ import annotations

from operator import itemgetter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.operators.keyed.rolling import KeyedSumOperator
from rayflink.operators.rescaling import rescale
from rayflink.state.keys import key_hash
from rayflink.state.keys.key_groups import key_group, key_group_range
from rayflink.state.snapshots import StoredSnapshot
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots

GROUPS = 12


@settings(max_examples=50)
@given(st.dictionaries(st.integers(0, GROUPS - 1), st.binary()), st.integers(1, GROUPS), st.integers(1, GROUPS))
def test_every_key_group_goes_to_its_owner(groups: dict[int, bytes], p: int, q: int) -> None:
    def of(subtask: int, parallelism: int) -> dict[int, bytes]:
        owned = key_group_range(subtask, parallelism, GROUPS)
        return {group: data for group, data in groups.items() if group in owned}

    taken = [StoredSnapshot(keyed=of(n, p), raw_keyed=of(n, p)) for n in range(p)]
    for n, mine in enumerate(rescale(taken, q, GROUPS)):
        assert mine is not None
        assert mine.keyed == mine.raw_keyed == of(n, q)
        assert mine.version == taken[0].version


def test_an_operator_without_state_has_none_afterwards() -> None:
    assert rescale([None, None], 3, GROUPS) == [None] * 3
    one = StoredSnapshot(lists={"l": ("split", (b"a", b"b"))})
    assert [part and part.lists["l"][1] for part in rescale([None, one, None], 2, GROUPS)] == [(b"a",), (b"b",)]


@pytest.mark.parametrize("parallelism", [1, 4, 7])
def test_sums_by_key_of_three_subtasks_go_on_in_others(parallelism: int) -> None:
    def make() -> KeyedSumOperator:
        return KeyedSumOperator(itemgetter(0), 1)

    def owner(key: str, of: int) -> int:
        return next(n for n in range(of) if key_group(key_hash(key), 128) in key_group_range(n, of, 128))

    def work(of: int, value: int, restored: list[object]) -> tuple[list[object], list[object]]:
        snapshots, found = [], []
        for n in range(of):
            with OperatorHarness(make, place=Place(n, of), restore=restored[n : n + 1]) as harness:  # type: ignore[arg-type]
                for key in "abcdefghijkl":
                    if owner(key, of) == n:
                        harness.process((key, value))
                snapshots.append(harness.snapshot())
                found += harness.output_values()
        return snapshots, sorted(found)

    three, _ = work(3, 1, [])
    _, sums = work(parallelism, 2, rescaled_snapshots(three, parallelism))  # type: ignore[arg-type]
    assert sums == [(key, 3) for key in "abcdefghijkl"]
