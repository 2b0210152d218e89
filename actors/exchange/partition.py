"""The output of one subtask for one consumer vertex: its subpartitions and the bound on their buffers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rayflink.common.managed_memory import Allowance

from .exchange_statistics import PartitionStatistics
from .frames import PartitionId
from .spilled import SpilledSubpartition
from .subpartition import Buffer, Subpartition, SubpartitionState


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Bounds of one result partition, in buffers and records.

    Args:
        total: over all subpartitions; Flink's subpartitions x buffers-per-channel + floating-buffers-per-gate.
        per_channel: for any one subpartition (`taskmanager.network.memory.max-buffers-per-channel`).
        window: records in flight to a consumer that was not heard of yet; None: any number, then and later.
    """

    total: int
    per_channel: int
    window: int | None = None


def output_pool(subpartitions: int, buffers_per_channel: int, floating: int, max_per_channel: int) -> PoolLimits:
    """Return the size of a bounded result partition's pool.

    Source: apache/flink NettyShuffleUtils.getMinMaxNetworkBuffersPerResultPartition.
    """
    total = subpartitions * buffers_per_channel + floating
    return PoolLimits(max(total, subpartitions), min(max_per_channel, max(total, 1)))


def share_out(total: int, demands: list[tuple[int, int]]) -> list[int]:
    """Return the buffers of each pool when `total` are shared among pools with (minimum, maximum) `demands`.

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
    shares, used, extra_total = [], 0, 0
    for low, high in demands:
        used += high - low
        share = 0 if capacity == 0 else to_give * used // capacity - extra_total
        extra_total += share
        shares.append(low + share)
    return shares


class ResultPartition:
    """The subpartitions of one producer for one data set.

    Args:
        partition_id: which data set, which producer.
        subpartitions: how many consumers read it, >= 1.
        limits: when it counts as full; a blocking one never does.
        blocking: complete before it is read, and never full: what `memory` has no room for goes to files.
        directory: an existing folder for the files of a blocking partition, of this attempt alone.
        memory: what all subpartitions of a blocking partition may keep in memory together.
    Raises: ValueError: no subpartition, or a blocking partition without a folder or memory.
    """

    def __init__(
        self,
        partition_id: PartitionId,
        subpartitions: int,
        limits: PoolLimits,
        blocking: bool = False,
        directory: str | Path | None = None,
        memory: Allowance | None = None,
    ) -> None:
        if subpartitions < 1:
            raise ValueError(f"a result partition has at least one subpartition, found {subpartitions}")
        if blocking and directory is None:
            raise ValueError(f"blocking partition {partition_id} has no folder for its spill files; set io.tmp.dirs")
        if blocking and memory is None:
            raise ValueError(f"blocking partition {partition_id} has no allowance of managed memory, not even of 0")
        self.id = partition_id
        self.limits = limits
        self.blocking = blocking
        self.overdraft = 0
        """Buffers beyond `limits` that the element in work may still fill in front of an unaligned barrier."""
        self.subpartitions: list[Subpartition]
        if blocking and memory is not None:
            stem = f"{partition_id.dataset}-{partition_id.producer}"
            self.subpartitions = [
                SpilledSubpartition(i, Path(str(directory)) / f"{stem}-{i}.spill", part)
                for i, part in enumerate(memory.divided(subpartitions))
            ]
        else:
            self.subpartitions = [Subpartition(i, window=limits.window) for i in range(subpartitions)]

    @property
    def is_full(self) -> bool:
        """Return whether the producer must stop: the pool or a window is used up, or one consumer is too far behind."""
        if self.blocking:
            return False
        limit = self.limits.per_channel
        total = 0
        for sub in self.subpartitions:
            backlog = sub.backlog
            if backlog >= limit:
                return True
            window = sub.window
            if window is not None and window + sub.rows_worked <= sub.rows_written and sub.is_windowed:
                return True
            total += backlog
        return total >= self.limits.total

    @property
    def is_flooded(self) -> bool:
        """Return whether the producer must stop even for an unaligned barrier."""
        return self.is_full and sum(sub.backlog for sub in self.subpartitions) >= self.limits.total + self.overdraft

    def add(self, index: int, buffer: Buffer) -> bool:
        """Queue a buffer for consumer `index`; return False when the consumer wants nothing any more."""
        return self.subpartitions[index].add(buffer)

    @property
    def fully_consumed(self) -> bool:
        """Return whether every consumer has been sent everything, or has gone."""
        done = (SubpartitionState.CONSUMED, SubpartitionState.RELEASED)
        return all(sub.state in done for sub in self.subpartitions)

    @property
    def queued_bytes(self) -> int:
        """Return the bytes waiting for credit."""
        return sum(sub.queued_bytes for sub in self.subpartitions)

    def statistics(self) -> PartitionStatistics:
        """Return the present counts of all subpartitions."""
        subpartitions = tuple(sub.statistics() for sub in self.subpartitions)
        return PartitionStatistics(self.is_full, self.blocking, self.limits.total, subpartitions)
