"""The Kafka sink on a real broker: what readers see, and when."""

from __future__ import annotations

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.testing import Place
from tests.connectors.kafka.kafka_topics import counted, started, strings_to, subtask, values_in

pytestmark = pytest.mark.slow
EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE


@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee))
def test_a_job_writes_its_records(kafka: KafkaCluster, guarantee: DeliveryGuarantee) -> None:
    topic = kafka.new_topic(3)
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    words = [f"word {number}" for number in range(2_500)]
    env.from_collection(words).sink_to(strings_to(kafka.bootstrap_servers, topic, guarantee, topic).build())
    env.execute()
    assert values_in(kafka.bootstrap_servers, topic) == sorted(words)


def test_records_are_seen_when_their_checkpoint_is_complete(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(2)
    servers = kafka.bootstrap_servers
    place = Place(wake=lambda: None)  # so a thread fills the second transaction early
    with subtask(strings_to(servers, topic, EXACTLY_ONCE, topic).build(), place) as sink:
        sink.process("a")
        sink.snapshot(1)
        sink.process("b")
        assert values_in(servers, topic) == []
        sink.notify_checkpoint_complete(1)
        assert values_in(servers, topic) == ["a"]
        sink.snapshot(2)
        sink.notify_checkpoint_complete(2)
        assert values_in(servers, topic) == ["a", "b"]
        sink.snapshot(3)
        sink.notify_checkpoint_complete(3)
        assert counted(sink, "numTransactions") == counted(sink, "numRecordsSend") == 2, "an empty interval is free"


def test_restored_chunks_are_written_once(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(2)
    servers = kafka.bootstrap_servers
    make = strings_to(servers, topic, EXACTLY_ONCE, topic).build
    first = started(make())
    first.process("a")
    savepoint = first.snapshot(1)
    first.notify_checkpoint_complete(1)  # committed, and then the process is gone
    for attempt in range(2):
        with subtask(make(), restore=[savepoint]) as again:
            again.process(f"new {attempt}")
            again.snapshot(2)
            again.notify_checkpoint_complete(2)
    assert values_in(servers, topic) == ["a", "new 0", "new 1"]
    first.close()
