"""Partitions of topics, and the splits that readers read: a partition from an offset on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, order=True)
class KafkaTopicPartition:
    """A partition of a topic.

    >>> KafkaTopicPartition("orders", 3)
    KafkaTopicPartition(topic='orders', partition=3)

    Args:
        topic: its name.
        partition: its number, from 0.
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class KafkaPartitionSplit:
    """A partition that is read from an offset on.

    Args:
        offset: of the next record.
        stopping_offset: the first offset that is not read any more; None: there is no end.
    """

    topic: str
    partition: int
    offset: int
    stopping_offset: int | None = None

    @property
    def split_id(self) -> str:
        """Return the name of the split, the same for each offset in it."""
        return f"{self.topic}-{self.partition}"

    @property
    def is_finished(self) -> bool:
        """Return whether nothing is left to read."""
        return self.stopping_offset is not None and self.offset >= self.stopping_offset


@dataclass(frozen=True)
class FoundPartitions:
    """The answer to a search for partitions.

    Args:
        partitions: those that the source is to read.
        topic_ids: name of a topic -> the id that it got when it was created; brokers before Kafka 2.8 have none.
    """

    partitions: frozenset[KafkaTopicPartition]
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class KafkaEnumeratorState:
    """The state of the enumerator in a checkpoint.

    Args:
        known: partitions that were found, those of the readers among them.
        unassigned: splits that no reader has yet.
        is_initialized: whether the first partitions were found; those that come later are read from their beginning.
        topic_ids: name of a topic -> the id that it got when it was created, as far as brokers have ids.
    """

    known: frozenset[KafkaTopicPartition] = frozenset()
    unassigned: tuple[KafkaPartitionSplit, ...] = ()
    is_initialized: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)


__all__ = ["FoundPartitions", "KafkaEnumeratorState", "KafkaPartitionSplit", "KafkaTopicPartition"]
