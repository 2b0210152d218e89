"""Which consumer gets which record, a batch at a time.

A selector splits one batch into at most one batch a channel, keeping the order within each channel. What it decides for a
record depends on the records before it in arrival order only, never on how they were cut into batches.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import compress
from typing import Any, Protocol

from rayflink.common.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.state.key_groups import key_group, key_groups_of, subtask_of

Split = Sequence[tuple[int, Batch]]


class ChannelSelector(Protocol):
    """Splits batches over `channels` consumers."""

    channels: int

    def split(self, batch: Batch) -> Split:
        """(channel, batch) pairs; a record may go to several channels."""
        ...


class KeyExtractionError(Exception):
    """The user's key selector failed on a record."""

    def __init__(self, record: str) -> None:
        super().__init__(record)
        self.record = record

    def __str__(self) -> str:
        return f"Could not extract key from {self.record}"


class SingleChannel:
    """Everything to one channel: forward, and global."""

    def __init__(self, channels: int, channel: int = 0) -> None:
        self.channels, self._channel = channels, channel

    def split(self, batch: Batch) -> Split:
        """The whole batch."""
        return ((self._channel, batch),)


class Broadcast:
    """Everything to every channel."""

    def __init__(self, channels: int) -> None:
        self.channels = channels

    def split(self, batch: Batch) -> Split:
        """The batch once a channel."""
        return [(channel, batch) for channel in range(self.channels)]


class RoundRobin:
    """Record by record in turn: rebalance, and rescale over the consumers near by.

    Args:
        channels: how many consumers.
        start: the first one; differs between producers so that short streams spread as well.
    """

    def __init__(self, channels: int, start: int = 0) -> None:
        self.channels, self._next = channels, start % channels

    def split(self, batch: Batch) -> Split:
        """Every `channels`-th record to the same channel."""
        width, first, count = self.channels, self._next, len(batch)
        self._next = (first + count) % width
        if width == 1:
            return ((0, batch),)
        parts: list[tuple[int, Batch]] = []
        for offset in range(min(width, count)):
            parts.append(((first + offset) % width, every(batch, offset, width)))
        return parts


class RandomChannel:
    """Each record to a channel drawn by a seeded generator: shuffle."""

    def __init__(self, channels: int, seed: int) -> None:
        self.channels, self._random = channels, random.Random(seed)

    def split(self, batch: Batch) -> Split:
        """One draw a record."""
        draw = self._random.random
        width = self.channels
        return scatter(batch, [int(draw() * width) for _ in range(len(batch))], width)


class ByKeyGroup:
    """Equal keys to the same channel, by key group.

    Args:
        channels: how many consumers, their parallelism.
        key_of: the user's key selector (rows), or the names of columns (Arrow).
        max_parallelism: key groups in all.
        memo_entries: bound on the remembered keys.
    """

    def __init__(
        self, channels: int, key_of: Callable[[Any], Any], max_parallelism: int, memo_entries: int = 65536
    ) -> None:
        self.channels, self._max_parallelism = channels, max_parallelism
        self._key_of = key_of
        self._columns = getattr(key_of, "columns", None)
        self._memo = _ChannelMemo(channels, max_parallelism, memo_entries)

    def split(self, batch: Batch) -> Split:
        """By the hash of each record's key."""
        if isinstance(batch, ArrowBatch) and self._columns is not None:
            return self._split_columns(batch)
        if isinstance(batch, ArrowBatch):
            batch = RowBatch(list(rows_of(batch)), None if batch.timestamps is None else batch.timestamps.tolist())
        if self.channels == 1:
            return ((0, batch),)
        values = batch.values
        records = iter(values)
        memo = self._memo
        memo.trim()
        try:
            keys = list(map(self._key_of, records))
        except Exception as error:
            from rayflink.operators.base import record_at

            raise KeyExtractionError(record_at(values, records)) from error
        return scatter(batch, list(map(memo.__getitem__, keys)), self.channels)

    def _split_columns(self, batch: ArrowBatch) -> Split:
        import numpy as np
        import pyarrow as pa

        from rayflink.state.keys import hash_column, hash_columns

        columns = [batch.data.column(name) for name in self._columns or ()]
        hashes = hash_column(columns[0]) if len(columns) == 1 else hash_columns(columns)
        groups = key_groups_of(hashes, self._max_parallelism)
        targets = groups.astype(np.int64) * self.channels // self._max_parallelism
        parts: list[tuple[int, Batch]] = []
        for channel in range(self.channels):
            rows = np.flatnonzero(targets == channel)
            if len(rows):
                stamps = None if batch.timestamps is None else batch.timestamps[rows]
                parts.append((channel, ArrowBatch(batch.data.take(pa.array(rows)), stamps)))
        return parts


class _ChannelMemo(dict[Any, int]):
    """Key -> channel for keys seen lately; emptied between batches when it has grown past its bound."""

    def __init__(self, channels: int, max_parallelism: int, bound: int) -> None:
        super().__init__()
        self._channels, self._max_parallelism, self._bound = channels, max_parallelism, bound

    def trim(self) -> None:
        if len(self) > self._bound:
            self.clear()

    def __missing__(self, key: Any) -> int:
        from rayflink.state.keys import key_hash

        group = key_group(key_hash(key), self._max_parallelism)
        channel = self[key] = subtask_of(group, self._channels, self._max_parallelism)
        return channel


class ByFunction:
    """The user's partitioner decides: `partition(key, channels) -> channel`."""

    def __init__(self, channels: int, partition: Callable[[Any, int], int], key_of: Callable[[Any], Any]) -> None:
        self.channels, self._partition, self._key_of = channels, partition, key_of

    def split(self, batch: Batch) -> Split:
        """One call a record.

        Raises:
            ValueError: the partitioner named a channel outside [0, channels).
        """
        partition, key_of, width = self._partition, self._key_of, self.channels
        targets = []
        for value in rows_of(batch):
            target = partition(key_of(value), width)
            if not 0 <= target < width:
                raise ValueError(
                    f"the partitioner returned channel {target} for {width} channels; return a number in [0, {width})"
                )
            targets.append(target)
        return scatter(batch, targets, width)


def scatter(batch: Batch, targets: list[int], width: int) -> Split:
    """The batch split by each record's target channel."""
    if isinstance(batch, ArrowBatch):
        import numpy as np

        rows = np.asarray(targets)
        taken = ((c, np.flatnonzero(rows == c)) for c in range(width))
        return [(c, _take(batch, index)) for c, index in taken if len(index)]
    values, stamps = batch.values, batch.timestamps
    if width == 2:
        return _scatter_two(values, stamps, targets)
    parts: list[list[Any]] = [[] for _ in range(width)]
    appends = [part.append for part in parts]
    for target, value in zip(targets, values):
        appends[target](value)
    if stamps is None:
        return [(c, RowBatch(part)) for c, part in enumerate(parts) if part]
    times: list[list[int]] = [[] for _ in range(width)]
    appends = [part.append for part in times]
    for target, stamp in zip(targets, stamps):
        appends[target](stamp)
    return [(c, RowBatch(part, times[c])) for c, part in enumerate(parts) if part]


def _scatter_two(values: list[Any], stamps: list[int] | None, targets: list[int]) -> Split:
    ones = sum(targets)
    if ones == 0 or ones == len(values):
        return ((1 if ones else 0, RowBatch(values, stamps)),) if values else ()
    inverse = list(map((1).__sub__, targets))
    parts = []
    for channel, chosen in ((0, inverse), (1, targets)):
        times = None if stamps is None else list(compress(stamps, chosen))
        parts.append((channel, RowBatch(list(compress(values, chosen)), times)))
    return parts


def every(batch: Batch, offset: int, width: int) -> Batch:
    """Records offset, offset + width, offset + 2 width, ..."""
    if isinstance(batch, RowBatch):
        stamps = batch.timestamps
        return RowBatch(batch.values[offset::width], None if stamps is None else stamps[offset::width])
    import numpy as np

    return _take(batch, np.arange(offset, len(batch), width))


def _take(batch: ArrowBatch, rows: Any) -> ArrowBatch:
    import pyarrow as pa

    stamps = None if batch.timestamps is None else batch.timestamps[rows]
    return ArrowBatch(batch.data.take(pa.array(rows)), stamps)
