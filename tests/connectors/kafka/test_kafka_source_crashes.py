"""The Kafka source under kills: each record once, in an exactly-once sink and in keyed counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from random import Random

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common.connector_base.source import Source
from rayflink.common.typeinfo import Types
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.functions import KeyedProcessFunction, RuntimeContext
from rayflink.datastream.state import ValueStateDescriptor
from rayflink.testing import CommittedSink, SourceSubject, check_source
from rayflink.testing.connector_laws.crash_points import CrashPoints
from rayflink.testing.connector_laws.crashing_job import CrashingJob
from tests.connectors.kafka.kafka_reading import produce, strings_from

pytestmark = pytest.mark.slow
PARTITIONS = 4


def source_of(kafka: KafkaCluster, topic: str) -> Source:
    builder = strings_from(kafka.bootstrap_servers, topic).set_group_id(topic)
    builder.set_property("partition.discovery.interval.ms", 50)
    return builder.set_properties({"socket.timeout.ms": 500, "reconnect.backoff.max.ms": 100}).build()


class Topic(SourceSubject):
    """A topic of four partitions; an outage is a broker that stands still."""

    def __init__(self, kafka: KafkaCluster) -> None:
        self._kafka, self._topic = kafka, kafka.new_topic(PARTITIONS)

    def __getstate__(self) -> dict[str, object]:
        return {}  # a job needs `number` alone

    def create_source(self) -> Source:
        return source_of(self._kafka, self._topic)

    def write(self, numbers: Sequence[int]) -> None:
        messages = ({"value": str(number), "partition": number % PARTITIONS} for number in numbers)
        produce(self._kafka.bootstrap_servers, self._topic, *messages)

    def outage(self) -> AbstractContextManager[None] | None:
        return self._frozen()

    @contextmanager
    def _frozen(self) -> Iterator[None]:
        self._kafka.brokers[0].freeze()
        try:
            yield
        finally:
            self._kafka.brokers[0].thaw()


def test_each_record_comes_once_whatever_happens(kafka: KafkaCluster) -> None:
    check_source(lambda: Topic(kafka), seeds=range(3))


@pytest.mark.soak
def test_each_record_comes_once_in_many_stories(kafka: KafkaCluster) -> None:
    check_source(lambda: Topic(kafka), seeds=range(100, 200))


class Count(KeyedProcessFunction):
    """Counts in keyed state, and gives each new count out."""

    def open(self, ctx: RuntimeContext) -> None:
        self._count = ctx.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: str, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[str, int]]:
        count = (self._count.value() or 0) + 1
        self._count.update(count)
        yield value, count


@pytest.mark.parametrize("seed", [1, 2])
def test_keyed_counts_are_exact_when_a_job_is_killed_and_rescaled(
    kafka: KafkaCluster, tmp_path: Path, seed: int
) -> None:
    topic, keys, rounds, each = kafka.new_topic(PARTITIONS), 7, 5, 200
    name = f"kafka counts {seed}"
    CommittedSink.forget(name)

    def write(env: StreamExecutionEnvironment) -> None:
        words = env.from_source(source_of(kafka, topic), WatermarkStrategy.no_watermarks(), "kafka").uid("kafka")
        words.key_by(lambda word: word).process(Count()).uid("count").sink_to(CommittedSink(name)).uid("sink")

    points = CrashPoints(f"counts {seed}", (), Random(seed))
    job = CrashingJob(write, tmp_path, points, (1, 3, 2))
    try:
        for number in range(rounds):
            words = [str(index % keys) for index in range(number * each, (number + 1) * each)]
            messages = ({"value": word, "partition": index % PARTITIONS} for index, word in enumerate(words))
            produce(kafka.bootstrap_servers, topic, *messages)
            job.turn(20 + 10 * seed)
            job.end_without_notice() if (number + seed) % 2 else job.kill_task()
        expected = Counter(str(index % keys) for index in range(rounds * each))
        wanted = {(word, count) for word, most in expected.items() for count in range(1, most + 1)}
        job.turn_until(lambda: wanted.issubset(CommittedSink.records(name)), lambda: "some counts are missing")
        job.check()
        assert Counter(CommittedSink.records(name)) == Counter(wanted)
    finally:
        job.cancel()
        points.close()
        CommittedSink.forget(name)
