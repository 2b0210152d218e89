"""The offsets at which a source starts and stops, resolved to numbers before anything is read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from .kafka_errors import KafkaClientError
from .kafka_splits import KafkaTopicPartition

Offsets = dict[KafkaTopicPartition, int]


class KafkaOffsetResetStrategy(Enum):
    """The choice of an offset where a group has committed none, or where the offset does not exist."""

    LATEST = 0
    EARLIEST = 1
    NONE = 2
    """There is no choice: it is an error."""


class OffsetLookup(Protocol):
    """Answers questions about offsets; each call may block."""

    def beginnings(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets of the first records that brokers still have."""
        ...

    def ends(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return the offsets behind the last records that the source may read."""
        ...

    def at_time(self, partitions: Collection[KafkaTopicPartition], timestamp_ms: int) -> Offsets:
        """Return the offsets of the first records at or after a time; partitions without such a record are left out."""
        ...

    def committed(self, partitions: Collection[KafkaTopicPartition]) -> Offsets:
        """Return what the group has committed; partitions without are left out."""
        ...


class _Kind(Enum):
    EARLIEST = "earliest"
    LATEST = "latest"
    COMMITTED = "committed offsets"
    TIMESTAMP = "timestamp"
    OFFSETS = "offsets"


@dataclass(frozen=True)
class KafkaOffsetsInitializer:
    """The offsets at which a source starts or stops in each partition.

    >>> KafkaOffsetsInitializer.earliest()
    KafkaOffsetsInitializer.earliest()
    """

    _kind: _Kind
    _reset: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE
    _timestamp_ms: int = 0
    _offsets: Mapping[KafkaTopicPartition, int] = field(default_factory=dict)

    @staticmethod
    def committed_offsets(
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.NONE,
    ) -> KafkaOffsetsInitializer:
        """Return the offsets that the consumer group has committed.

        Args:
            offset_reset_strategy: for partitions without a committed offset, or whose offset has expired.
        """
        return KafkaOffsetsInitializer(_Kind.COMMITTED, offset_reset_strategy)

    @staticmethod
    def timestamp(timestamp: int) -> KafkaOffsetsInitializer:
        """Return the offsets of the first records at or after a time, in epoch milliseconds; else the ends.

        Raises:
            ValueError: it is negative.
        """
        if timestamp < 0:
            raise ValueError(f"the timestamp is {timestamp}, epoch milliseconds from 0 on are wanted; correct it")
        return KafkaOffsetsInitializer(_Kind.TIMESTAMP, KafkaOffsetResetStrategy.LATEST, timestamp)

    @staticmethod
    def earliest() -> KafkaOffsetsInitializer:
        """Return the offsets of the first records that brokers still have."""
        return KafkaOffsetsInitializer(_Kind.EARLIEST)

    @staticmethod
    def latest() -> KafkaOffsetsInitializer:
        """Return the offsets behind the last records, at the time when the source starts."""
        return KafkaOffsetsInitializer(_Kind.LATEST)

    @staticmethod
    def offsets(
        offsets: Mapping[KafkaTopicPartition, int],
        offset_reset_strategy: KafkaOffsetResetStrategy = KafkaOffsetResetStrategy.EARLIEST,
    ) -> KafkaOffsetsInitializer:
        """Return the offsets of a dict; other partitions have what the group has committed.

        Args:
            offsets: partition -> offset, from 0 on.
            offset_reset_strategy: for partitions that have neither, or whose offset does not exist.

        Raises:
            ValueError: an offset is negative.
        """
        for partition, offset in offsets.items():
            if offset < 0:
                raise ValueError(f"the offset of {partition} is {offset}, a number from 0 on is wanted; correct it")
        return KafkaOffsetsInitializer(_Kind.OFFSETS, offset_reset_strategy, 0, dict(offsets))

    def resolve(self, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup, is_stop: bool) -> Offsets:
        """Return the offset of each partition as a number.

        Args:
            is_stop: reading stops there, so that an offset behind the end is one to wait for.

        Raises:
            KafkaClientError: a partition has none, and the strategy is NONE.
        """
        if self._kind is _Kind.EARLIEST:
            return lookup.beginnings(partitions)
        if self._kind is _Kind.LATEST:
            return lookup.ends(partitions)
        if self._kind is _Kind.TIMESTAMP:
            return {**lookup.ends(partitions), **lookup.at_time(partitions, self._timestamp_ms)}
        offsets = {partition: self._offsets[partition] for partition in partitions if partition in self._offsets}
        others = [partition for partition in partitions if partition not in offsets]
        if others:
            offsets |= lookup.committed(others)
        return (
            offsets
            if is_stop and len(offsets) == len(partitions)
            else self._checked(offsets, partitions, lookup, is_stop)
        )

    def _checked(
        self, offsets: Offsets, partitions: Collection[KafkaTopicPartition], lookup: OffsetLookup, is_stop: bool
    ) -> Offsets:
        """Replace offsets that are missing or do not exist, by the strategy."""
        beginnings, ends = lookup.beginnings(partitions), lookup.ends(partitions)
        replacement = {KafkaOffsetResetStrategy.EARLIEST: beginnings, KafkaOffsetResetStrategy.LATEST: ends}
        resolved: Offsets = {}
        for partition in partitions:
            offset, first, end = offsets.get(partition), beginnings[partition], ends[partition]
            if offset is not None and (is_stop or first <= offset <= end):
                resolved[partition] = offset
            elif self._reset in replacement:
                resolved[partition] = replacement[self._reset][partition]
            else:
                raise _without_offset(partition, offset, first, end)
        return resolved

    def __repr__(self) -> str:
        if self._kind is _Kind.TIMESTAMP:
            return f"KafkaOffsetsInitializer.timestamp({self._timestamp_ms})"
        if self._kind is _Kind.OFFSETS:
            entries = {str(partition): offset for partition, offset in self._offsets.items()}
            return f"KafkaOffsetsInitializer.offsets({entries}, {self._reset})"
        if self._kind is _Kind.COMMITTED:
            return f"KafkaOffsetsInitializer.committed_offsets({self._reset})"
        return f"KafkaOffsetsInitializer.{self._kind.value}()"


def _without_offset(partition: KafkaTopicPartition, offset: int | None, first: int, end: int) -> KafkaClientError:
    remedy = "pass a KafkaOffsetResetStrategy of EARLIEST or LATEST, or other starting offsets"
    if offset is None:
        return KafkaClientError(f"the group has committed no offset for {partition}", remedy)
    has = f"the partition has the offsets from {first} to before {end}"
    return KafkaClientError(f"offset {offset} of {partition} does not exist: {has}", remedy)


__all__ = ["KafkaOffsetResetStrategy", "KafkaOffsetsInitializer", "OffsetLookup", "Offsets"]
