"""What a task offers its consumers, and who hears what they send back."""

from __future__ import annotations

import pytest

from rayflink.actors.exchange.backoff import RequestBackoff
from rayflink.actors.exchange.frames import PartitionId
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.registry import PartitionNotFound, PartitionRegistry
from rayflink.actors.exchange.subpartition import ExchangeError


def partition(producer: int = 0, subpartitions: int = 2) -> ResultPartition:
    return ResultPartition(PartitionId("d" * 32, producer), subpartitions, PoolLimits(8, 8))


@pytest.mark.spec("N23", "tracked")
def test_a_partition_is_found_by_data_set_and_producer() -> None:
    mine, other = partition(0), partition(1)
    registry = PartitionRegistry([mine, other])
    assert registry.subpartition(other.id, 1) is other.subpartitions[1]
    assert registry.subpartition(mine.id, 1) is mine.subpartitions[1]


@pytest.mark.spec("N23", "duplicate", "N24")
def test_a_partition_is_registered_once() -> None:
    with pytest.raises(ExchangeError, match=r"^Result partition already registered\."):
        PartitionRegistry([partition(), partition()])


@pytest.mark.spec("N23", "tracked")
@pytest.mark.parametrize(("producer", "index"), [(1, 0), (0, 2), (0, -1)])
def test_what_is_not_offered_is_not_found(producer: int, index: int) -> None:
    registry = PartitionRegistry([partition()])
    with pytest.raises(PartitionNotFound, match=f"producer {producer}, subpartition {index}; the producer has not"):
        registry.subpartition(PartitionId("d" * 32, producer), index)


@pytest.mark.spec("N23", "shut-down", "N24")
def test_after_the_shutdown_nothing_is_offered_nor_taken() -> None:
    mine = partition()
    registry = PartitionRegistry([mine])
    assert registry.shut_down() == [mine]
    with pytest.raises(PartitionNotFound):
        registry.subpartition(mine.id, 0)
    with pytest.raises(ExchangeError, match=r"^Result partition manager already shut down\.$"):
        registry.register(partition(1))
    assert registry.shut_down() == []


@pytest.mark.spec("N33")
def test_an_event_reaches_those_who_subscribed_to_its_type_and_partition() -> None:
    heard: list[object] = []
    mine, other = partition(0), partition(1)
    registry = PartitionRegistry([mine, other])
    registry.subscribe(mine.id, str, heard.append)
    assert registry.publish(mine.id, "worker done")
    assert not registry.publish(mine.id, 5)
    assert not registry.publish(other.id, "worker done")
    assert heard == ["worker done"]
    with pytest.raises(PartitionNotFound):
        registry.subscribe(PartitionId("e" * 32, 0), str, heard.append)


@pytest.mark.spec("N31", "backoff")
@pytest.mark.parametrize(
    ("initial", "most", "waits"),
    [(100, 1000, [100, 200, 400, 800, 1000, None]), (5, 5, [5, None]), (0, 10, [None]), (3, 4, [3, 4, None])],
)
def test_waits_double_up_to_the_longest_and_then_end(initial: int, most: int, waits: list[int | None]) -> None:
    backoff = RequestBackoff(initial, most)
    assert [backoff.next_ms() for _ in waits] == waits


def test_a_backoff_that_shrinks_is_refused() -> None:
    with pytest.raises(ValueError, match="0 <= initial <= maximum, found 10 ms and 5 ms"):
        RequestBackoff(10, 5)
