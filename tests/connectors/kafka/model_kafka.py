"""A model of a Kafka cluster with transactions, in place of the client library: for orders of events that no broker
shows on request. Its rules are those of the protocol: an epoch for each transactional id, one open transaction for
each, whose messages and offsets are visible together or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from rayflink.connectors.kafka import kafka_producing, kafka_transactions


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Open:
    """A transaction that is not yet committed."""

    epoch: int
    values: list[str] = field(default_factory=list)
    offsets: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)


class ModelKafka:
    """A cluster in which every topic has one partition.

    `fault` happens at call number `at` of all calls to the brokers: "before" or "after" kill the process that calls,
    "refused" fails the call, "lost" does it and then fails, and "intruder" first lets `intruder` do something.
    """

    def __init__(self) -> None:
        self.log: list[tuple[str, str]] = []
        self.offsets: dict[tuple[str, str], tuple[int, str]] = {}
        self.epochs: dict[str, int] = {}
        self.open: dict[str, Open] = {}
        self.timeouts_ms: list[int] = []
        """Of the transactions of each producer that was made."""
        self.calls, self.at, self.fault = 0, -1, ""
        self.intruder: Callable[[], None] = lambda: None

    def values(self) -> list[str]:
        return [value for _, value in self.log]

    def call(self, work: Callable[[], None]) -> None:
        mine, fault = self.calls == self.at, self.fault
        self.calls += 1
        if mine and fault == "before":
            raise Killed
        if mine and fault == "refused":
            raise KafkaException(KafkaError(KafkaError._FENCED, "refused", True))
        if mine and fault == "intruder":
            self.intruder()
        work()
        if mine and fault == "after":
            raise Killed
        if mine and fault == "lost":
            raise KafkaException(KafkaError(KafkaError._FENCED, "lost", True))

    @contextmanager
    def installed(self) -> Iterator[None]:
        patch = pytest.MonkeyPatch()
        patch.setattr(kafka_producing, "new_block_producer", lambda *arguments: None)
        patch.setattr(kafka_producing, "new_producer", lambda properties, errors: ModelProducer(self, properties))
        patch.setattr(kafka_transactions, "new_consumer", lambda properties, errors: ModelConsumer(self, properties))
        try:
            yield
        finally:
            patch.undo()


class ModelProducer:
    """A producer with a transactional id."""

    def __init__(self, kafka: ModelKafka, properties: Mapping[str, Any]) -> None:
        self._kafka, self._id = kafka, properties.get("transactional.id", "")
        kafka.timeouts_ms.append(int(properties.get("transaction.timeout.ms", 0)))
        self._epoch = -1

    def __len__(self) -> int:
        return 0

    def list_topics(self, topic: str, timeout: float) -> Any:
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions={0: None})})

    def init_transactions(self, timeout: float) -> None:
        def work() -> None:
            self._epoch = self._kafka.epochs[self._id] = self._kafka.epochs.get(self._id, -1) + 1
            self._kafka.open.pop(self._id, None)

        self._kafka.call(work)

    def begin_transaction(self) -> None:
        """Nothing is sent."""

    def produce_batch(
        self, topic: str, rows: Sequence[Mapping[str, Any]], partition: int = -1, on_delivery: object = None
    ) -> int:
        def work() -> None:
            self._ongoing().values += [row["value"].decode() for row in rows]

        self._kafka.call(work)
        return len(rows)

    def send_offsets_to_transaction(self, offsets: Sequence[TopicPartition], group: str, timeout: float) -> None:
        def work() -> None:
            own = {(group, place.topic): (place.offset, place.metadata) for place in offsets}
            self._ongoing().offsets.update(own)

        self._kafka.call(work)

    def commit_transaction(self, timeout: float) -> None:
        def work() -> None:
            ongoing = self._ongoing()
            del self._kafka.open[self._id]
            self._kafka.log += [(self._id, value) for value in ongoing.values]
            self._kafka.offsets.update(ongoing.offsets)

        self._kafka.call(work)

    def poll(self, timeout: float) -> int:
        return 0

    def purge(self, blocking: bool) -> None:
        """Nothing waits."""

    def abort_transaction(self, timeout: float) -> None:
        self._kafka.open.pop(self._id, None)

    def _ongoing(self) -> Open:
        if self._kafka.epochs[self._id] != self._epoch:
            raise KafkaException(KafkaError(KafkaError._FENCED, "another has the id", True))
        return self._kafka.open.setdefault(self._id, Open(self._epoch))


class ModelConsumer:
    """A consumer that reads offsets of its group."""

    def __init__(self, kafka: ModelKafka, properties: Mapping[str, Any]) -> None:
        assert properties["isolation.level"] == "read_committed"
        self._kafka, self._group = kafka, properties["group.id"]

    def committed(self, places: Sequence[TopicPartition], timeout: float) -> list[TopicPartition]:
        found: list[TopicPartition] = []

        def work() -> None:
            for place in places:
                offset, metadata = self._kafka.offsets.get((self._group, place.topic), (-1001, ""))
                found.append(TopicPartition(place.topic, place.partition, offset, metadata))

        self._kafka.call(work)
        return found

    def consumer_group_metadata(self) -> str:
        return str(self._group)

    def close(self) -> None:
        """Nothing is open."""
