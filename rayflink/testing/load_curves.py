"""Load that changes with time, for jobs whose parallelism follows it: curves, a source, and the cost of records."""

from __future__ import annotations

import math
import random
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from rayflink.common.connector_base.source import (
    END,
    PENDING,
    Boundedness,
    EnumeratorContext,
    Polled,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
)
from rayflink.common.metrics.metric_names import PENDING_RECORDS
from rayflink.common.records.batches import RowBatch

from .faults import StepDelay

POLL_MS = 250
"""Time between two looks of a reader for new records."""


@dataclass(frozen=True)
class LoadCurve:
    """The records that arrive in each second, from the first on; after the last none do.

    >>> curve = LoadCurve.of(lambda second: 10 + second, seconds=3)
    >>> [curve.arrived(seconds) for seconds in (0, 1, 1.5, 3, 9)]
    [0, 10, 15, 33, 33]
    """

    rates: tuple[int, ...]

    @classmethod
    def of(cls, rate: Callable[[int], float], seconds: int) -> LoadCurve:
        """Return the curve whose rate in each second is what a function returns for it."""
        return cls(tuple(max(0, round(rate(second))) for second in range(seconds)))

    @classmethod
    def steps(cls, *steps: tuple[int, int]) -> LoadCurve:
        """Return a curve of constant rates, each (seconds, records a second)."""
        return cls(tuple(rate for seconds, rate in steps for _ in range(seconds)))

    @classmethod
    def sine(cls, low: int, high: int, period: int, seconds: int) -> LoadCurve:
        """Return a curve that begins at its low and swings to its high and back."""
        middle, swing = (low + high) / 2, (high - low) / 2
        return cls.of(lambda second: middle - swing * math.cos(2 * math.pi * second / period), seconds)

    @classmethod
    def spikes(cls, low: int, high: int, every: int, length: int, seconds: int) -> LoadCurve:
        """Return a curve that is low but for spikes; the first comes after `every` seconds."""
        return cls.of(lambda second: high if second >= every and second % every < length else low, seconds)

    @cached_property
    def _sums(self) -> tuple[int, ...]:
        return (0, *accumulate(self.rates))

    @property
    def total(self) -> int:
        """Return the number of all records."""
        return self._sums[-1]

    def arrived(self, seconds: float) -> int:
        """Return the number of records that have arrived by then."""
        whole = min(max(0, int(seconds)), len(self.rates))
        part = self.rates[whole] * (seconds - whole) if whole < len(self.rates) and seconds > 0 else 0
        return self._sums[whole] + int(part)

    def second_of(self, number: int) -> int:
        """Return the second in which a record arrives, by its number."""
        return bisect_right(self._sums, number) - 1


@dataclass(frozen=True, slots=True)
class CurvePartition:
    """A part of the records: those whose number is `index` modulo the number of partitions.

    Args:
        position: how many of them were read.
    """

    index: int
    position: int = 0

    @property
    def split_id(self) -> str:
        """Return the id of the partition."""
        return f"partition {self.index}"


class LoadCurveSource(Source[int]):
    """Emits the numbers 0, 1, ... as they arrive by a curve, from partitions as a message log has them.

    Args:
        curve: when records arrive.
        start_ms: the moment at which the curve begins, in epoch milliseconds.
        partitions: the number of partitions, which the readers share.
        reports_pending: readers report what waits in their partitions as `pendingRecords`.
    """

    def __init__(self, curve: LoadCurve, start_ms: int, partitions: int = 16, reports_pending: bool = True) -> None:
        self.curve, self.start_ms, self.partitions = curve, start_ms, partitions
        self.reports_pending = reports_pending

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(self, ctx: EnumeratorContext) -> SplitEnumerator:
        return _CurveEnumerator(ctx, [CurvePartition(index) for index in range(self.partitions)])

    def restore_enumerator(self, ctx: EnumeratorContext, state: list[CurvePartition]) -> SplitEnumerator:
        return _CurveEnumerator(ctx, state)

    def create_reader(self, ctx: ReaderContext) -> SourceReader:
        return _CurveReader(self, ctx)


class _CurveEnumerator(SplitEnumerator):
    """Assigns each reader its share of the partitions when it first asks."""

    def __init__(self, ctx: EnumeratorContext, splits: Sequence[CurvePartition]) -> None:
        self._ctx, self._splits = ctx, list(splits)

    def handle_split_request(self, subtask: int) -> None:
        readers = self._ctx.current_parallelism()
        mine = [split for split in self._splits if split.index % readers == subtask]
        self._splits = [split for split in self._splits if split.index % readers != subtask]
        if mine:
            self._ctx.assign_splits({subtask: mine})
        self._ctx.signal_no_more_splits(subtask)

    def add_splits_back(self, splits: list[CurvePartition], subtask: int) -> None:
        self._splits += splits

    def snapshot_state(self) -> list[CurvePartition]:
        return list(self._splits)


class _CurveReader(SourceReader):
    def __init__(self, source: LoadCurveSource, ctx: ReaderContext) -> None:
        self._source, self._ctx, self._no_more, self._asks = source, ctx, False, True
        self._splits: list[CurvePartition] = []
        if ctx.metrics is not None and source.reports_pending:
            ctx.metrics.gauge(PENDING_RECORDS, lambda: sum(map(self._waiting, self._splits)))

    def _waiting(self, split: CurvePartition) -> int:
        source = self._source
        arrived = source.curve.arrived((self._ctx.now_ms() - source.start_ms) / 1000)
        return max(0, (arrived + source.partitions - 1 - split.index) // source.partitions - split.position)

    def needs_split(self) -> bool:
        asks, self._asks = self._asks, False
        return asks

    def add_splits(self, splits: list[CurvePartition]) -> None:
        self._splits += splits
        if self._ctx.metrics is not None:
            for split in splits:
                group = self._ctx.metrics.add_group("LoadCurve").add_group("topic", "curve")
                group.add_group("partition", str(split.index)).gauge("currentOffset", lambda: 0)

    def notify_no_more_splits(self) -> None:
        self._no_more = True

    def poll(self, max_records: int) -> Polled:
        source = self._source
        is_over = self._ctx.now_ms() - source.start_ms >= 1000 * len(source.curve.rates)
        if self._no_more and is_over and not any(map(self._waiting, self._splits)):
            return END
        numbers: list[int] = []
        for _ in range(len(self._splits)):  # in turns, so that none waits for the others
            split = self._splits.pop(0)
            count = min(max_records - len(numbers), self._waiting(split))
            self._splits.append(replace(split, position=split.position + count))
            first, step = split.index + split.position * source.partitions, source.partitions
            numbers += range(first, first + count * step, step)
            if len(numbers) >= max_records:
                break
        return RowBatch(numbers) if numbers else PENDING

    def next_poll_ms(self) -> int:
        return self._ctx.now_ms() + POLL_MS

    def snapshot_state(self) -> list[CurvePartition]:
        return list(self._splits)


@dataclass(frozen=True)
class RecordCost(StepDelay):
    """Every record takes the tasks of that name `ms` milliseconds.

    Args:
        name: part of the tasks' names.
        is_shared: the tasks share an outside system, so that a record takes as many times longer as there are of them.
    """

    name: str
    ms: float
    is_shared: bool = False

    def step_delay_ms(self, task: str, records: int, draw: random.Random) -> int:
        if self.name not in task or not records:
            return 0
        width = re.search(r"\(\d+/(\d+)\)$", task)
        return math.ceil(records * self.ms * (int(width[1]) if self.is_shared and width else 1))


__all__ = ["CurvePartition", "LoadCurve", "LoadCurveSource", "RecordCost"]
