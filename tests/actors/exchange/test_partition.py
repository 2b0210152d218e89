"""What one producer holds for all its consumers, and when it must stop."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.frames import PartitionId, TaskAddress
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition, output_pool, share_out
from rayflink.actors.exchange.spilled import SpilledSubpartition
from rayflink.actors.exchange.subpartition import Buffer, Subpartition
from rayflink.common.managed_memory import Allowance, MemoryManager
from rayflink.common.records.batches import EndOfPartition, Watermark

ID = PartitionId("d" * 32, 1)
PLENTY = PoolLimits(1000, 1000)


@pytest.mark.spec("M16", "bounded")
def test_a_bounded_pool_holds_some_buffers_a_channel_and_some_for_all() -> None:
    assert output_pool(4, buffers_per_channel=2, floating=8, max_per_channel=10) == PoolLimits(16, 10)


@pytest.mark.spec("M19", "X48", "M16", "bounded")
@given(st.integers(1, 100), st.integers(0, 3), st.integers(0, 3), st.integers(1, 10))
def test_every_channel_has_a_buffer_whatever_is_configured(width: int, each: int, floating: int, most: int) -> None:
    pool = output_pool(width, each, floating, most)
    assert pool.total >= width
    assert 1 <= pool.per_channel <= most


@pytest.mark.spec("M15", "X49")
def test_what_is_left_is_shared_by_what_each_could_still_take() -> None:
    assert share_out(20, [(3, 10), (3, 10)]) == [10, 10]
    assert share_out(13, [(3, 10), (3, 10)]) == [6, 7]
    assert share_out(10, [(3, 10), (0, 3)]) == [7, 3]
    assert share_out(6, [(3, 10), (3, 3)]) == [3, 3]


@pytest.mark.spec("M15")
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 30)), max_size=8), st.integers(0, 300))
def test_sharing_gives_everyone_his_minimum_and_wastes_nothing(pairs: list[tuple[int, int]], spare: int) -> None:
    demands = [(low, low + more) for low, more in pairs]
    total = sum(low for low, _ in demands) + spare
    shares = share_out(total, demands)
    assert all(low <= share <= high for share, (low, high) in zip(shares, demands, strict=True))
    assert sum(shares) == min(total, sum(high for _, high in demands))


def test_minima_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="insufficient network buffers: 6 wanted as a minimum, 5 there"):
        share_out(5, [(3, 4), (3, 3)])


@pytest.mark.spec("N16")
def test_a_partition_has_at_least_one_subpartition() -> None:
    with pytest.raises(ValueError, match="at least one subpartition, found 0"):
        ResultPartition(ID, 0, PLENTY)


@pytest.mark.spec("M21", "P03", "P02", "blocks")
def test_it_is_full_when_the_pool_is_used_up_and_free_again_when_a_buffer_has_gone() -> None:
    partition = ResultPartition(ID, 2, PoolLimits(total=3, per_channel=10))
    for index in (0, 1, 0):
        assert not partition.is_full
        partition.add(index, Buffer(b"x", 1))
    assert partition.is_full
    partition.subpartitions[1].request(TaskAddress("c"), 0, 1)
    partition.subpartitions[1].poll()
    assert not partition.is_full


def test_it_is_full_when_one_consumer_is_too_far_behind() -> None:
    partition = ResultPartition(ID, 2, PoolLimits(total=100, per_channel=2))
    partition.add(0, Buffer(b"x", 1))
    assert not partition.is_full
    partition.add(0, Buffer(b"x", 1))
    assert partition.is_full


def test_events_never_make_it_full() -> None:
    partition = ResultPartition(ID, 1, PoolLimits(1, 1))
    for stamp in range(5):
        partition.subpartitions[0].add(Watermark(stamp))
    assert not partition.is_full


def test_what_nobody_wants_is_not_kept() -> None:
    partition = ResultPartition(ID, 2, PLENTY)
    partition.subpartitions[0].release()
    assert not partition.add(0, Buffer(b"x", 1))
    assert partition.add(1, Buffer(b"abc", 1))
    assert partition.queued_bytes == 3


def test_it_is_consumed_when_every_consumer_has_the_end_or_has_gone() -> None:
    partition = ResultPartition(ID, 2, PLENTY)
    partition.subpartitions[0].release()
    partition.subpartitions[1].add(EndOfPartition())
    assert not partition.fully_consumed
    partition.subpartitions[1].request(TaskAddress("c"), 0, 1)
    partition.subpartitions[1].poll()
    assert partition.fully_consumed


@pytest.mark.spec("N13", "N15", "blocking", "T02", "M16", "unbounded")
def test_a_blocking_partition_spills_and_is_never_full(tmp_path: Path) -> None:
    partition = ResultPartition(ID, 2, PoolLimits(1, 1), True, tmp_path, Allowance(MemoryManager(100), "me", 100))
    for _ in range(50):
        partition.add(1, Buffer(b"x" * 30, 1))
    assert not partition.is_full
    assert all(isinstance(sub, SpilledSubpartition) for sub in partition.subpartitions)
    assert [path.name for path in tmp_path.iterdir()] == [f"{ID.dataset}-1-1.spill"]
    for sub in partition.subpartitions:
        sub.release()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("N13", "N15", "pipelined")
def test_a_streaming_partition_is_pipelined_and_bounded() -> None:
    partition = ResultPartition(ID, 1, PoolLimits(1, 1))
    assert type(partition.subpartitions[0]) is Subpartition
    partition.add(0, Buffer(b"x", 1))
    assert partition.is_full


def test_a_blocking_partition_needs_a_folder() -> None:
    with pytest.raises(ValueError, match="no folder for its spill files; set io.tmp.dirs"):
        ResultPartition(ID, 1, PLENTY, blocking=True)


def test_a_blocking_partition_needs_an_allowance_of_memory(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has no allowance of managed memory, not even of 0"):
        ResultPartition(ID, 1, PLENTY, blocking=True, directory=tmp_path)
