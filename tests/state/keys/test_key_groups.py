"""Ownership of keys: hash to key group to subtask."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.state.errors import ParallelismError
from rayflink.state.keys import hash_keys, key_hash
from rayflink.state.keys.key_groups import (
    DEFAULT_MAX_PARALLELISM,
    default_max_parallelism,
    key_group,
    key_group_range,
    key_groups_of,
    resolve_max_parallelism,
    subtask_of,
)

widths = st.integers(1, 32768).flatmap(lambda m: st.tuples(st.integers(1, min(m, 300)), st.just(m)))


@pytest.mark.spec("X26")
@pytest.mark.parametrize(
    ("max_parallelism", "parallelism", "bounds"),
    [
        (128, 3, [(0, 42), (43, 85), (86, 127)]),
        (128, 4, [(0, 31), (32, 63), (64, 95), (96, 127)]),
        (10, 2, [(0, 4), (5, 9)]),
        (10, 3, [(0, 3), (4, 6), (7, 9)]),
        (10, 4, [(0, 2), (3, 4), (5, 7), (8, 9)]),
    ],
)
def test_ranges_have_the_bounds_of_flink(max_parallelism: int, parallelism: int, bounds: list[tuple[int, int]]) -> None:
    ranges = [key_group_range(i, parallelism, max_parallelism) for i in range(parallelism)]
    assert [(r[0], r[-1]) for r in ranges] == bounds


@pytest.mark.spec("G24")
@given(widths)
def test_ranges_partition_the_key_groups(width: tuple[int, int]) -> None:
    parallelism, max_parallelism = width
    ranges = [key_group_range(i, parallelism, max_parallelism) for i in range(parallelism)]
    assert [g for r in ranges for g in r] == list(range(max_parallelism))
    assert all(ranges)


@pytest.mark.spec("G25", "subtask", "X26")
@given(widths, st.data())
def test_the_subtask_of_a_group_is_the_one_whose_range_holds_it(width: tuple[int, int], data: st.DataObject) -> None:
    parallelism, max_parallelism = width
    group = data.draw(st.integers(0, max_parallelism - 1))
    owner = subtask_of(group, parallelism, max_parallelism)
    near = range(max(0, owner - 1), min(parallelism, owner + 2))
    assert [it for it in near if group in key_group_range(it, parallelism, max_parallelism)] == [owner]
    assert owner == group * parallelism // max_parallelism


@pytest.mark.spec("G25", "group", "X26")
@pytest.mark.parametrize(
    ("hashed", "mixed"), [(0, 0), (1, 0x514E28B7), (2, 0x30F4C306), (0xFFFFFFFF, 0x81F16F39), (0x12345678, 0xE37CD1BC)]
)
def test_the_group_of_a_key_is_its_hash_mixed_as_by_murmur_modulo_their_number(hashed: int, mixed: int) -> None:
    for max_parallelism in (1, 10, 128, 32768):
        assert key_group(hashed, max_parallelism) == mixed % max_parallelism


@given(st.lists(st.integers(0, 2**32 - 1)), st.integers(1, 32768))
def test_groups_of_many_hashes_are_the_groups_of_each(hashes: list[int], max_parallelism: int) -> None:
    array = np.array(hashes, dtype=np.uint32)
    groups = key_groups_of(array, max_parallelism)
    assert groups.dtype == np.int16
    assert groups.tolist() == [key_group(h, max_parallelism) for h in hashes]
    assert array.tolist() == hashes


@pytest.mark.spec("D07")
@given(st.sampled_from([1, True, 1.0, np.int64(1)]), widths)
def test_the_same_key_always_goes_to_the_same_subtask(key: object, width: tuple[int, int]) -> None:
    parallelism, max_parallelism = width
    owners = {subtask_of(key_group(key_hash(k), max_parallelism), parallelism, max_parallelism) for k in (key, 1)}
    assert len(owners) == 1
    assert owners.pop() in range(parallelism)


@pytest.mark.parametrize(
    "keys",
    [
        list(range(100_000)),
        [i * 4096 for i in range(100_000)],
        [i / 7 for i in range(100_000)],
        [i << 40 for i in range(100_000)],
        [f"user-{i}" for i in range(100_000)],
    ],
    ids=["sequence", "stride", "floats", "high bits", "strings"],
)
def test_keys_spread_evenly_over_the_key_groups(keys: list[object]) -> None:
    counts = np.bincount(key_groups_of(hash_keys(keys), 128), minlength=128)
    expected = len(keys) / 128
    chi_square = float(((counts - expected) ** 2 / expected).sum())
    assert chi_square < 200  # 127 degrees of freedom: above 200 by chance once in 25,000


@pytest.mark.spec("G26", "V11", "X26")
def test_the_default_is_128_key_groups() -> None:
    assert DEFAULT_MAX_PARALLELISM == 128
    assert resolve_max_parallelism(0, 0, 1) == 128
    assert [default_max_parallelism(p) for p in (1, 85, 86, 171, 20_000, 32768)] == [128, 128, 256, 256, 32768, 32768]


@pytest.mark.spec("G27")
def test_the_operators_key_groups_come_before_the_jobs() -> None:
    assert resolve_max_parallelism(64, 256, 4) == 64
    assert resolve_max_parallelism(0, 256, 4) == 256
    assert resolve_max_parallelism(-1, 256, 4) == 256
    assert resolve_max_parallelism(-1, -1, 100) == 256
    with pytest.raises(ParallelismError, match=r"parallelism is 65, must be in \[1, 64\]"):
        resolve_max_parallelism(64, 256, 65)


@pytest.mark.spec("G24")
def test_numbers_out_of_range_are_refused() -> None:
    for max_parallelism in (0, -1, 32769):
        with pytest.raises(ParallelismError, match="max parallelism"):
            key_group(1, max_parallelism)
        with pytest.raises(ParallelismError, match="max parallelism"):
            key_groups_of(np.zeros(1, np.uint32), max_parallelism)
    with pytest.raises(ParallelismError, match=r"subtask is 3, must be in \[0, 2\]"):
        key_group_range(3, 3, 128)
    with pytest.raises(ParallelismError, match="key group is 128"):
        subtask_of(128, 3, 128)
    with pytest.raises(ParallelismError, match="parallelism is 129"):
        subtask_of(0, 129, 128)
