"""The consumer and the producer of Flink 1.x are the source and the sink under other names."""

from __future__ import annotations

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import SimpleStringSchema
from rayflink.common.errors import PlanError
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.kafka.flink_kafka_producer import FixedPartitionSchema
from rayflink.connectors.kafka.kafka_messages import KafkaMessages
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors import FlinkKafkaConsumer, FlinkKafkaProducer, Semantic
from rayflink.datastream.connectors.kafka import DeliveryGuarantee, KafkaOffsetResetStrategy, KafkaOffsetsInitializer
from tests.connectors.kafka.kafka_topics import messages_in

BROKER = {"bootstrap.servers": "127.0.0.1:1", "group.id": "shop"}


def consumer(**properties: str) -> FlinkKafkaConsumer:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return FlinkKafkaConsumer(["a", "b"], SimpleStringSchema(), {**BROKER, **named})


def test_a_consumer_starts_where_its_group_stopped_or_at_the_end():
    committed = KafkaOffsetsInitializer.committed_offsets
    assert consumer()._settings.starting == committed(KafkaOffsetResetStrategy.LATEST)
    assert consumer(auto_offset_reset="earliest")._settings.starting == committed(KafkaOffsetResetStrategy.EARLIEST)
    assert consumer(auto_offset_reset="none")._settings.starting == committed(KafkaOffsetResetStrategy.NONE)


def test_a_consumer_starts_where_its_last_method_says():
    assert consumer().set_start_from_earliest()._settings.starting == KafkaOffsetsInitializer.earliest()
    assert consumer().set_start_from_timestamp(7)._settings.starting == KafkaOffsetsInitializer.timestamp(7)
    again = consumer().set_start_from_latest().set_start_from_group_offsets()
    assert again._settings.starting == consumer()._settings.starting


def test_a_consumer_commits_offsets_and_looks_for_partitions_as_flinks_does():
    settings = consumer()._settings
    assert (settings.commits, settings.discovery_ms, settings.selection.topics) == (True, None, ("a", "b"))
    assert not consumer().set_commit_offsets_on_checkpoints(False)._settings.commits
    named = {**BROKER, "flink.partition-discovery.interval-millis": "500"}
    assert FlinkKafkaConsumer("a", SimpleStringSchema(), named)._settings.discovery_ms == 500
    with pytest.raises(PlanError, match="no topics"):
        FlinkKafkaConsumer([], SimpleStringSchema(), BROKER)


def producer(**more: object) -> FlinkKafkaProducer:
    return FlinkKafkaProducer("out", SimpleStringSchema(), {"bootstrap.servers": "127.0.0.1:1"}, **more)


def test_a_producer_promises_what_is_asked_for_or_says_what_to_use():
    assert producer()._mode.guarantee is DeliveryGuarantee.AT_LEAST_ONCE
    assert producer(semantic=Semantic.NONE)._mode.guarantee is DeliveryGuarantee.NONE
    assert producer().set_flush_on_checkpoint(False)._mode.guarantee is DeliveryGuarantee.NONE
    with pytest.raises(PlanError, match="cannot be exactly once.*set_transactional_id_prefix"):
        producer(semantic=Semantic.EXACTLY_ONCE)
    with pytest.raises(PlanError, match="would lose messages"):
        producer().set_log_failures_only(True)


class _Partitions:
    subtask, parallelism = 4, 5

    def partitions_of(self, topic: str) -> range:
        return range(3)


def test_a_subtask_of_a_producer_writes_to_one_partition_and_its_own_times():
    schema = FixedPartitionSchema("out", SimpleStringSchema())
    batch = RowBatch(["a", "b"], [5, 6])
    assert schema.encode_batch(batch, _Partitions()) == KafkaMessages("out", [b"a", b"b"], partitions=[1, 1])
    with_times = producer().set_write_timestamp_to_kafka(True)._schema.encode_batch(batch, _Partitions())
    assert with_times.timestamps == [5, 6]


@pytest.mark.slow
@pytest.mark.spec("C24", "kafka")
def test_a_program_of_flink_1_writes_and_reads(kafka: KafkaCluster) -> None:
    topic, address = kafka.new_topic(2), {"bootstrap.servers": kafka.bootstrap_servers}
    env = StreamExecutionEnvironment({"execution.target": "local"})
    env.from_collection(["to", "be"]).add_sink(FlinkKafkaProducer(topic, SimpleStringSchema(), address))
    env.execute()
    assert {message.partition() for message in messages_in(kafka.bootstrap_servers, topic)} == {0}
    source = FlinkKafkaConsumer(topic, SimpleStringSchema(), {**address, "group.id": topic}).set_start_from_earliest()
    with env.add_source(source, "words").execute_and_collect() as words:
        assert sorted([next(words), next(words)]) == ["be", "to"]
