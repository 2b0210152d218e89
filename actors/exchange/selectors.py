"""Channel selectors: they partition the records of each batch among the consumers.

A selector splits one batch into at most one batch a channel, keeping the order within each channel. What it decides for
a record depends on the records before it in arrival order only, never on how they were cut into batches. An empty batch
goes nowhere.
"""

from __future__ import annotations

import operator
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rayflink.common.functions.function_classes import (
    KeyBy,
    RuntimeContext,
    UserFunction,
    as_key_selector,
    as_partitioner,
)
from rayflink.common.records.batches import ArrowBatch, Batch, RowBatch, rows_of
from rayflink.operators.base import OperatorContext, UserCodeError, shortened
from rayflink.operators.key_failures import KeyExtractionError, RefusedKeyError, extraction_cause
from rayflink.operators.list_loops import record_at
from rayflink.state.errors import InvalidKeyError
from rayflink.state.keys.key_forms import too_deep
from rayflink.user_types import UserCode, UserKey, UserRecord, UserValue

from .arrow_slices import partition_rows, take_rows
from .key_channels import KeyChannels
from .key_codes import MOST_ROWS, KeyedColumns
from .key_sample import KeySample

Split = Sequence[tuple[int, Batch]]


class PartitioningFunction(NamedTuple):
    """A user's function that partitions records; `step` names the step of the program that it belongs to."""

    function: UserFunction
    step: KeyBy
    what: str


class ChannelSelector(ABC):
    """Splits batches over `channels` consumers."""

    channels: int
    functions: tuple[PartitioningFunction, ...] = ()
    """The user's functions in it."""
    sample: KeySample | None = None
    """A sample of the keys of what it splits; None: it splits by no key, or none is asked for."""

    def __init__(self) -> None:
        self._opened = 0

    @abstractmethod
    def split(self, batch: Batch) -> Split:
        """Return (channel, batch) pairs; a record may go to several channels."""

    def open(self, ctx: OperatorContext) -> None:
        """Open the user's functions, for the operator whose records are partitioned.

        Raises:
            UserCodeError: one of them raised.
        """
        for function, step, what in self.functions:
            self._opened += 1
            try:
                function.open(RuntimeContext(ctx))
            except (Exception, SystemExit) as error:
                raise UserCodeError(step.step, step.call_site, "", f"open of {what}") from error

    def close(self) -> None:
        """Close the functions that were opened; a second call does nothing.

        Raises:
            UserCodeError: one of them raised; the others are closed all the same.
        """
        first: UserCodeError | None = None
        opened, self._opened = self._opened, 0
        for function, step, what in self.functions[:opened]:
            try:
                function.close()
            except (Exception, SystemExit) as error:
                failure = UserCodeError(step.step, step.call_site, "", f"close of {what}")
                failure.__cause__ = error
                first = first or failure
        if first is not None:
            raise first


class ChannelRangeError(ValueError):
    """The user's partitioner returned a channel that does not exist."""

    def __init__(self, result: str, channels: int, record: str) -> None:
        super().__init__(result, channels, record)
        self.result, self.channels, self.record = result, channels, record

    def __str__(self) -> str:
        return (
            f"the partitioner returned {self.result} for {self.channels} channels; return an int in "
            f"[0, {self.channels}); the record is {self.record}"
        )


class SingleChannel(ChannelSelector):
    """Sends everything to one channel: forward, and global."""

    def __init__(self, channels: int, channel: int = 0) -> None:
        super().__init__()
        self.channels, self._channel = channels, channel

    def split(self, batch: Batch) -> Split:
        """Return the whole batch for the channel."""
        return ((self._channel, batch),) if len(batch) else ()


class Broadcast(ChannelSelector):
    """Sends everything to every channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.channels = channels

    def split(self, batch: Batch) -> Split:
        """Return the batch once for each channel."""
        return [(channel, batch) for channel in range(self.channels)] if len(batch) else ()


class RoundRobin(ChannelSelector):
    """Sends records to the channels in turn: rebalance, and rescale over the consumers near by.

    Args:
        channels: how many consumers.
        start: the first one; differs between producers so that short streams spread as well.
    """

    def __init__(self, channels: int, start: int = 0) -> None:
        super().__init__()
        self.channels, self._next = channels, start % channels

    def split(self, batch: Batch) -> Split:
        """Send every `channels`-th record to the same channel."""
        width, first, count = self.channels, self._next, len(batch)
        self._next = (first + count) % width
        if width == 1:
            return ((0, batch),) if count else ()
        parts: list[tuple[int, Batch]] = []
        for offset in range(min(width, count)):
            parts.append(((first + offset) % width, every_nth(batch, offset, width)))
        return parts


class RandomChannel(ChannelSelector):
    """Sends each record to a channel drawn by a seeded generator: shuffle."""

    def __init__(self, channels: int, seed: int) -> None:
        super().__init__()
        self.channels, self._random = channels, random.Random(seed)

    def split(self, batch: Batch) -> Split:
        """Draw a channel for each record."""
        return partition_by_targets(batch, self._random.choices(range(self.channels), k=len(batch)), self.channels)


class ByKeyGroup(ChannelSelector):
    """Hash-partitions by key group: equal keys go to the same channel.

    Args:
        channels: how many consumers, their parallelism.
        key_by: the user's key selector (rows), or the KeyBy that holds it; where the selector has `columns`, the names
            of the key's columns (Arrow).
        max_parallelism: key groups in all.
        memo_entries: bound on the remembered keys.
        sample: counts hot key groups; None: none is asked for.
    """

    def __init__(
        self, channels: int, key_by: Callable[[UserRecord], UserKey], max_parallelism: int, memo_entries: int = 65536,
        sample: KeySample | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.channels = channels
        self._key_by = KeyBy.of(key_by)
        selector = as_key_selector(key_by)
        self.functions = (PartitioningFunction(selector, self._key_by, "the key selector"),)
        self._key_of = key_of = selector.call
        self._columns: Sequence[str] | None = getattr(key_of, "columns", None)
        self._channels_of = KeyChannels(channels, max_parallelism, memo_entries)
        self._by_columns = KeyedColumns(key_of, self._channels_of)
        self._checked_first_key = False
        self.sample = sample

    def split(self, batch: Batch) -> Split:
        """Partition by the hash of each record's key.

        Raises:
            KeyExtractionError: the key selector failed.
            RefusedKeyError: the key of a record cannot be a key.
        """
        if self.channels == 1:
            self._check_first_key(batch)
            return ((0, batch),) if len(batch) else ()
        if isinstance(batch, ArrowBatch):
            if self._columns is not None:
                try:
                    columns = [batch.data.column(name) for name in self._columns]
                    targets = self._channels_of.columns(columns)
                    if self.sample is not None and self.sample.is_due(len(batch)):
                        self.sample.add_columns(columns, len(batch))
                except KeyError as error:
                    raise KeyExtractionError.of(self._key_by, "") from extraction_cause(self._key_by, error)
                except InvalidKeyError as error:
                    raise RefusedKeyError.of(self._key_by, "") from error
                return partition_rows(batch, targets, self.channels)
            batch = RowBatch(list(rows_of(batch)), None if batch.timestamps is None else batch.timestamps.tolist())
        if len(batch) > MOST_ROWS:
            pieces = [
                batch.slice(start, min(start + MOST_ROWS, len(batch))) for start in range(0, len(batch), MOST_ROWS)
            ]
            return [part for piece in pieces for part in self.split(piece)]
        fields = self._by_columns.fields(batch)
        keys: Sequence[UserKey] | None = self._by_columns.keys(fields)
        if keys is None:
            keys = extract_keys(self._key_of, batch.values, self._key_by)
        if self.sample is not None and self.sample.is_due(len(batch)):
            self.sample.add_keys(keys)
        if fields is not None:
            partitioned = self._by_columns.partition(fields, keys, batch.timestamps)
            if partitioned is not None:
                return partition_rows(*partitioned, self.channels)
        try:
            channels = self._channels_of.keys(keys)
        except (TypeError, RecursionError):
            channels = self._channels_one_by_one(keys, batch.values)
        return partition_by_targets(batch, channels, self.channels)

    def _channels_one_by_one(self, keys: Sequence[UserKey], records: list[UserRecord]) -> list[int]:
        """Return the channels of keys some of which are not hashable; a record with an invalid key is named."""
        channels = []
        for key, record in zip(keys, records, strict=True):
            try:
                channels.append(self._channels_of.key(key))
            except InvalidKeyError as error:
                raise RefusedKeyError.of(self._key_by, shortened(record)) from error
            except RecursionError:
                raise RefusedKeyError.of(self._key_by, shortened(record)) from too_deep(key)
        return channels

    def _check_first_key(self, batch: Batch) -> None:
        """Check that the first record has a valid key, though a single channel needs none."""
        if not self._checked_first_key and type(batch) is RowBatch and len(batch):
            self._checked_first_key = True
            first = batch.values[:1]
            self._channels_one_by_one(extract_keys(self._key_of, first, self._key_by), first)


class ByFunction(ChannelSelector):
    """Partitions by the user's function: `partition(key, channels) -> channel`.

    Args:
        channels: how many consumers.
        partitioner: a Partitioner or a callable.
        key_by: gives the key, as for `ByKeyGroup`.
    """

    def __init__(self, channels: int, partitioner: UserCode, key_by: Callable[[UserRecord], UserKey]) -> None:
        super().__init__()
        self.channels, self._key_by = channels, KeyBy.of(key_by)
        selector, chooser = as_key_selector(key_by), as_partitioner(partitioner)
        self._key_of, self._partition = selector.call, chooser.call
        self.functions = (
            PartitioningFunction(selector, self._key_by, "the key selector"),
            PartitioningFunction(chooser, self._key_by, "the partitioner"),
        )

    def split(self, batch: Batch) -> Split:
        """Call the partitioner once for each record.

        Raises:
            KeyExtractionError: the key selector failed.
            UserCodeError: the partitioner failed, or (ChannelRangeError) named a channel outside [0, channels).
        """
        partition, width = self._partition, self.channels
        records = list(rows_of(batch))
        targets = []
        for key, record in zip(extract_keys(self._key_of, records, self._key_by), records, strict=True):
            try:
                target = _channel(partition(key, width), width, record)
            except Exception as error:
                failure = UserCodeError("partition_custom", self._key_by.call_site, shortened(record), "partition")
                raise failure from error
            targets.append(target)
        return partition_by_targets(batch, targets, width)


def _channel(result: UserValue, width: int, record: UserRecord) -> int:
    try:
        target = operator.index(result)
    except TypeError:
        raise ChannelRangeError(repr(result), width, shortened(record)) from None
    if not 0 <= target < width:
        raise ChannelRangeError(f"channel {target}", width, shortened(record))
    return target


def extract_keys(key_of: Callable[[UserRecord], UserKey], records: list[UserRecord], key_by: KeyBy) -> list[UserKey]:
    """Return the key of each record; `key_by` says whose selector `key_of` is.

    Raises:
        KeyExtractionError: `key_of` failed on one of them.
    """
    iterator: Iterator[UserRecord] = iter(records)
    try:
        keys = list(map(key_of, iterator))
    except KeyExtractionError:
        raise  # it names the step already
    except Exception as error:
        raise KeyExtractionError.of(key_by, record_at(records, iterator)) from extraction_cause(key_by, error)
    if len(keys) != len(records):  # to map, a StopIteration from within is the end of the records
        raise KeyExtractionError.of(key_by, record_at(records, iterator)) from extraction_cause(key_by, StopIteration())
    return keys


def partition_by_targets(batch: Batch, targets: list[int], width: int) -> Split:
    """Split the batch by each record's target channel."""
    if isinstance(batch, ArrowBatch):
        import numpy as np

        return partition_rows(batch, np.asarray(targets, dtype=np.uint16), width)
    parts: list[list[Any]] = [[] for _ in range(width)]
    for target, value in zip(targets, batch.values, strict=True):
        parts[target].append(value)
    if batch.timestamps is None:
        return [(channel, RowBatch(part)) for channel, part in enumerate(parts) if part]
    times: list[list[int]] = [[] for _ in range(width)]
    for target, stamp in zip(targets, batch.timestamps, strict=True):
        times[target].append(stamp)
    return [(channel, RowBatch(part, times[channel])) for channel, part in enumerate(parts) if part]


def every_nth(batch: Batch, offset: int, width: int) -> Batch:
    """Return the records offset, offset + width, offset + 2 width, ..."""
    if isinstance(batch, RowBatch):
        stamps = batch.timestamps
        return RowBatch(batch.values[offset::width], None if stamps is None else stamps[offset::width])
    import numpy as np

    return take_rows(batch, np.arange(offset, len(batch), width))
