"""Kafka sources driven by hand: the enumerator and its readers, without a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from rayflink.common import SimpleStringSchema
from rayflink.common.connector_base.source import END, PENDING, ReaderContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import Tagged
from rayflink.connectors.kafka.kafka_enumerator import KafkaEnumerator
from rayflink.connectors.kafka.kafka_reader import KafkaReader
from rayflink.connectors.kafka.kafka_source import KafkaSource, KafkaSourceBuilder
from rayflink.connectors.kafka.kafka_splits import KafkaEnumeratorState, KafkaPartitionSplit
from rayflink.state.clock import SystemClock

WITHIN_S = 20


def strings_from(servers: str, *topics: str) -> KafkaSourceBuilder:
    """A source of the values of topics as strings."""
    builder = KafkaSource.builder().set_bootstrap_servers(servers)
    builder = builder.set_topics(*topics) if topics else builder
    return builder.set_value_only_deserializer(SimpleStringSchema())


def produce(servers: str, topic: str, *messages: Mapping[str, Any], **properties: object) -> None:
    """Write messages, as arguments of `Producer.produce`, and wait until they are stored."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, **properties})
    failures: list[object] = []
    for message in messages:
        producer.produce(topic, **message, on_delivery=lambda error, _: failures.append(error) if error else None)
    assert producer.flush(WITHIN_S) == 0
    assert not failures, failures


def values(count: int, partition: int = 0, start: int = 0) -> list[dict[str, Any]]:
    """Messages "partition:number"."""
    return [{"value": f"{partition}:{number}", "partition": partition} for number in range(start, start + count)]


@dataclass
class Repeated:
    """Work of the enumerator that is due at each discovery interval."""

    work: Callable[[], Any]
    then: Callable[[Any, Exception | None], None]


class DrivenSource:
    """An enumerator and its readers, whose blocking work is done at once.

    Args:
        splits: restored, of each reader.
    """

    def __init__(
        self,
        source: KafkaSource,
        parallelism: int = 1,
        state: KafkaEnumeratorState | None = None,
        splits: Sequence[Sequence[KafkaPartitionSplit]] = (),
    ) -> None:
        self.source, self.parallelism, self.repeated, self.side = source, parallelism, [], []
        self.metrics = [MetricGroup() for _ in range(parallelism)]
        self.readers: list[KafkaReader] = [self._create_reader(index) for index in range(parallelism)]
        for index, reader in enumerate(self.readers):
            reader.start()
            if index < len(splits):
                reader.add_splits(list(splits[index]))
        make = source.create_enumerator(self) if state is None else source.restore_enumerator(self, state)
        self.enumerator: KafkaEnumerator = make  # type: ignore[assignment]
        try:
            self.enumerator.start()
            for index, reader in enumerate(self.readers):
                if reader.needs_split():
                    self.enumerator.handle_split_request(index)
        except BaseException:
            self.close()
            raise

    def _create_reader(self, index: int) -> Any:
        return self.source.create_reader(ReaderContext(index, self.parallelism, SystemClock(), self.metrics[index]))

    def restart_reader(self, index: int) -> None:
        """Replace a reader by one without splits, which has not asked for any yet."""
        self.readers[index].close()
        self.metrics[index] = MetricGroup()
        self.readers[index] = self._create_reader(index)
        self.readers[index].start()

    # what an enumerator calls

    def assign_splits(self, assignment: Mapping[int, Sequence[Any]]) -> None:
        for subtask, splits in assignment.items():
            self.readers[subtask].add_splits(list(splits))

    def signal_no_more_splits(self, subtask: int) -> None:
        self.readers[subtask].notify_no_more_splits()

    def current_parallelism(self) -> int:
        return self.parallelism

    def call_async(self, work: Any, then: Any, period_ms: int | None = None) -> None:
        if period_ms is not None:
            self.repeated.append(Repeated(work, then))
        self._call(work, then)

    def _call(self, work: Any, then: Any) -> None:
        try:
            answer = work()
        except Exception as error:
            then(None, error)
            return
        then(answer, None)

    # what a test calls

    def discover(self) -> None:
        """Let the discovery interval pass."""
        for each in self.repeated:
            self._call(each.work, each.then)

    def read(self, count: int, within_s: float = WITHIN_S, most: int = 500) -> list[Any]:
        """The next records of all readers, in batches of at most `most`: at least `count`, or all up to the end."""
        found: list[Any] = []
        deadline = time.monotonic() + within_s
        while len(found) < count:
            answers = [self._poll(reader, most, found) for reader in self.readers]
            if all(answer is END for answer in answers):
                break
            assert time.monotonic() < deadline, f"{len(found)} of {count} records came in {within_s} s: {found[-3:]}"
            if all(answer in (PENDING, END) for answer in answers):
                time.sleep(0.002)
        return found

    def _poll(self, reader: KafkaReader, most: int, found: list[Any]) -> object:
        answer = reader.poll(most)
        if isinstance(answer, Tagged):
            self.side += answer.batch.values
        elif answer is not PENDING and answer is not END:
            found += answer.values
        return answer

    def wait_until(self, condition: Callable[[], object], within_s: float = WITHIN_S) -> list[Any]:
        """Poll until something is so; return the records that came meanwhile."""
        found: list[Any] = []
        deadline = time.monotonic() + within_s
        while not condition():
            assert time.monotonic() < deadline, f"it is not so after {within_s} s"
            for reader in self.readers:
                self._poll(reader, 500, found)
            time.sleep(0.002)
        return found

    def snapshot(self) -> tuple[KafkaEnumeratorState, list[list[KafkaPartitionSplit]]]:
        """The state of the enumerator, and that of each reader."""
        return self.enumerator.snapshot_state(), [reader.snapshot_state() for reader in self.readers]

    def metric(self, name: str, reader: int = 0) -> Any:
        """The value of a metric of a reader, by the end of its name."""
        found = [value for key, value in self.metrics[reader].snapshot().items() if key.endswith(name)]
        assert len(found) == 1, (name, sorted(self.metrics[reader].snapshot()))
        return found[0]

    def close(self) -> None:
        for reader in self.readers:
            reader.close()
        if hasattr(self, "enumerator"):
            self.enumerator.close()

    def __enter__(self) -> DrivenSource:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
