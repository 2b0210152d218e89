"""The enumerator of the Kafka source without a broker: which partitions it finds, and when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rayflink.connectors.kafka import kafka_enumerator
from rayflink.connectors.kafka.kafka_client import KafkaBrokerUnavailable
from rayflink.connectors.kafka.kafka_splits import FoundPartitions, KafkaPartitionSplit
from rayflink.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaTopicPartition
from tests.connectors.kafka.kafka_reading import strings_from


class Brokers:
    """In place of `PartitionLookup`: a topic with some partitions, or none that answers."""

    def __init__(self, partitions: int) -> None:
        self.partitions, self.outages = partitions, 0

    def find(self) -> FoundPartitions:
        if self.outages:
            self.outages -= 1
            raise KafkaBrokerUnavailable("no broker answers", "start one")
        return FoundPartitions(frozenset(KafkaTopicPartition("t", number) for number in range(self.partitions)))

    def resolve(self, partitions: frozenset[KafkaTopicPartition], starting: KafkaOffsetsInitializer) -> list[Any]:
        offset = 0 if starting == KafkaOffsetsInitializer.earliest() else 7
        return [KafkaPartitionSplit("t", each.partition, offset) for each in sorted(partitions)]


class Coordinator:
    """Does the work of enumerators at once, and notes the splits that they assign."""

    def __init__(self) -> None:
        self.assigned: list[tuple[int, int]] = []

    def call_async(self, work: Callable[[], Any], then: Callable[..., None], period_ms: int | None = None) -> None:
        try:
            answer = work()
        except Exception as error:
            then(None, error)
        else:
            then(answer, None)

    def assign_splits(self, assignment: dict[int, list[KafkaPartitionSplit]]) -> None:
        self.assigned += [(split.partition, split.offset) for splits in assignment.values() for split in splits]

    def signal_no_more_splits(self, subtask: int) -> None:
        """Do nothing."""

    def current_parallelism(self) -> int:
        return 1


@pytest.mark.parametrize(("is_bounded", "outages"), [(False, 0), (False, 1), (True, 0)])
def test_partitions_added_while_a_job_was_stopped_are_read(
    monkeypatch: pytest.MonkeyPatch, is_bounded: bool, outages: int
) -> None:
    brokers = Brokers(1)
    monkeypatch.setattr(kafka_enumerator, "PartitionLookup", lambda settings: brokers)
    builder = strings_from("localhost:1", "t").set_property("partition.discovery.interval.ms", "0")
    builder.set_starting_offsets(KafkaOffsetsInitializer.latest())
    source = (builder.set_bounded(KafkaOffsetsInitializer.latest()) if is_bounded else builder).build()
    coordinator = Coordinator()
    enumerator = source.create_enumerator(coordinator)
    enumerator.start()
    enumerator.handle_split_request(0)
    assert coordinator.assigned == [(0, 7)]
    brokers.partitions, brokers.outages = 2, outages
    restored = source.restore_enumerator(coordinator, enumerator.snapshot_state())
    restored.start()
    restored.handle_split_request(0)
    assert coordinator.assigned[1:] == ([] if is_bounded else [(1, 0)])
