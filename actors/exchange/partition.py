"""What one subtask produces for one consumer vertex: its subpartitions and the bound on what they may hold."""

from __future__ import annotations

from dataclasses import dataclass

from .frames import PartitionId
from .subpartition import Buffer, Subpartition, SubpartitionState


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of one result partition, in buffers.

    Args:
        total: over all subpartitions; Flink's subpartitions x buffers-per-channel + floating-buffers-per-gate.
        per_channel: for any one subpartition (`taskmanager.network.memory.max-buffers-per-channel`).
    """

    total: int
    per_channel: int


def output_pool(subpartitions: int, buffers_per_channel: int, floating: int, max_per_channel: int) -> PoolLimits:
    """Size of a bounded result partition's pool.

    Source: apache/flink NettyShuffleUtils.getMinMaxNetworkBuffersPerResultPartition.
    """
    total = subpartitions * buffers_per_channel + floating
    return PoolLimits(max(total, subpartitions), min(max_per_channel, max(total, 1)))


def share_out(total: int, demands: list[tuple[int, int]]) -> list[int]:
    """Buffers of each pool when `total` are shared among pools with (minimum, maximum) `demands`.

    Everyone gets his minimum; the rest goes out in proportion to what each could still take (maximum - minimum).

    Raises:
        ValueError: not even the minima fit.
    Source: apache/flink NetworkBufferPool.redistributeBuffers.
    """
    minima = sum(low for low, _ in demands)
    if minima > total:
        raise ValueError(
            f"insufficient network buffers: {minima} wanted as a minimum, {total} there; "
            "raise taskmanager.network.numberOfBuffers or lower the parallelism"
        )
    spare = total - minima
    capacity = sum(high - low for low, high in demands)
    to_give = min(spare, capacity)
    shares, used, given = [], 0, 0
    for low, high in demands:
        used += high - low
        share = 0 if capacity == 0 else to_give * used // capacity - given
        given += share
        shares.append(low + share)
    return shares


class ResultPartition:
    """The subpartitions of one producer for one data set.

    Args:
        partition_id: which data set, which producer.
        subpartitions: how many consumers read it, >= 1.
        limits: when it counts as full.
    """

    def __init__(self, partition_id: PartitionId, subpartitions: int, limits: PoolLimits) -> None:
        if subpartitions < 1:
            raise ValueError(f"a result partition has at least one subpartition, found {subpartitions}")
        self.id = partition_id
        self.limits = limits
        self.subpartitions = [Subpartition(i) for i in range(subpartitions)]

    @property
    def is_full(self) -> bool:
        """Whether the producer must stop: the pool is used up, or one consumer is too far behind."""
        limit = self.limits.per_channel
        total = 0
        for sub in self.subpartitions:
            backlog = sub.backlog
            if backlog >= limit:
                return True
            total += backlog
        return total >= self.limits.total

    def add(self, index: int, buffer: Buffer) -> bool:
        """Queue a buffer for consumer `index`; False when it wants nothing any more."""
        return self.subpartitions[index].add(buffer)

    @property
    def fully_consumed(self) -> bool:
        """Whether every consumer has been sent everything, or has gone."""
        done = (SubpartitionState.CONSUMED, SubpartitionState.RELEASED)
        return all(sub.state in done for sub in self.subpartitions)

    @property
    def queued_bytes(self) -> int:
        """Bytes waiting for credit."""
        return sum(sub.queued_bytes for sub in self.subpartitions)
