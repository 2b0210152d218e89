"""The Kafka source on a real broker: what it reads, from where, and what a checkpoint contains."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common.connector_base.malformed_records import MalformedMessage, MalformedRecords
from rayflink.common.connector_base.source import END, PENDING
from rayflink.common.output_tag import OutputTag
from rayflink.common.records.batches import ArrowBatch, Tagged
from rayflink.common.serialization import DeserializationSchema, SimpleStringSchema
from rayflink.common.watermark_strategy import WatermarkStrategy
from rayflink.connectors.kafka.kafka_errors import KafkaClientError
from rayflink.connectors.kafka.kafka_source import KafkaSourceBuilder
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.kafka import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaRecord,
    KafkaRecordDeserializationSchema,
    KafkaTopicPartition,
)
from rayflink.datastream.functions import ProcessFunction
from tests.connectors.kafka.kafka_reading import DrivenSource, produce, strings_from, values

pytestmark = pytest.mark.slow
FOR_EVER = {"retention.ms": "-1"}
"""For records with timestamps of long ago, which brokers would delete."""
LATEST, EARLIEST = KafkaOffsetsInitializer.latest(), KafkaOffsetsInitializer.earliest()


def filled(kafka: KafkaCluster, partitions: int = 1, count: int = 10) -> str:
    """A topic with `count` messages in each partition."""
    topic = kafka.new_topic(partitions)
    produce(kafka.bootstrap_servers, topic, *(each for number in range(partitions) for each in values(count, number)))
    return topic


def all_values(partitions: int, count: int) -> list[str]:
    return sorted(f"{partition}:{number}" for partition in range(partitions) for number in range(count))


def bounded(builder: KafkaSourceBuilder) -> KafkaSourceBuilder:
    return builder.set_bounded(LATEST)


@pytest.mark.spec("C24", "kafka")
@pytest.mark.parametrize("parallelism", [1, 2, 5])
def test_a_job_reads_all_partitions_to_their_ends(kafka: KafkaCluster, parallelism: int) -> None:
    topic, other = filled(kafka, 3, 700), filled(kafka, 1, 5)
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": parallelism})
    source = bounded(strings_from(kafka.bootstrap_servers, topic, other)).build()
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    found = sorted(stream.execute_and_collect())
    assert found == sorted([*all_values(3, 700), *all_values(1, 5)])


def test_kafkas_timestamps_are_those_of_the_records(kafka: KafkaCluster) -> None:
    class Stamps(ProcessFunction):
        def process_element(self, value: str, ctx: ProcessFunction.Context) -> Any:
            yield value, ctx.timestamp()

    topic = kafka.new_topic(config=FOR_EVER)
    produce(kafka.bootstrap_servers, topic, {"value": "a", "timestamp": 17_000}, {"value": "b", "timestamp": 5_000})
    env = StreamExecutionEnvironment({"execution.target": "local"})
    source = bounded(strings_from(kafka.bootstrap_servers, topic)).build()
    for strategy in (WatermarkStrategy.for_monotonous_timestamps(), WatermarkStrategy.no_watermarks()):
        stream = env.from_source(source, strategy, "kafka").process(Stamps())
        assert list(stream.execute_and_collect()) == [("a", 17_000), ("b", 5_000)]


def test_a_reader_gives_batches_of_one_partition(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 3, 50)
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        reader, found = source.readers[0], []
        assert sorted(reader.split_ids()) == [f"{topic}-{number}" for number in range(3)]
        deadline = time.monotonic() + 20
        while (batch := reader.poll(1_000)) is not END:
            assert time.monotonic() < deadline
            if batch is not PENDING:
                assert {value.split(":")[0] for value in batch.values} == {reader.current_split()[-1]}
                found += batch.values
        assert sorted(found) == all_values(3, 50)
        assert list(reader.split_ids()) == []


def test_paused_partitions_give_no_records_until_they_resume(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 2, 3_000)
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        first = source.read(1, most=10)
        source.readers[0].pause_or_resume_splits([f"{topic}-0"], [])
        missing = sum(value.startswith("1:") for value in first)
        others = source.read(3_000 - missing)
        assert {value[0] for value in others} == {"1"}
        source.readers[0].pause_or_resume_splits([], [f"{topic}-0"])
        assert sorted([*first, *others, *source.read(9_999)]) == all_values(2, 3_000)


def test_a_reader_goes_on_where_its_snapshot_was_taken(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 2, 1_000)
    make = bounded(strings_from(kafka.bootstrap_servers, topic)).build
    found: list[str] = []
    state, splits = None, ()
    for parallelism, count in ((1, 300), (3, 500), (2, 5_000)):
        with DrivenSource(make(), parallelism, state, splits) as source:
            found += source.read(count, most=100)
            state, parts = source.snapshot()
            flat = [split for part in parts for split in part]
            splits = tuple(flat[start::parallelism] for start in range(parallelism))
    assert sorted(found) == all_values(2, 1_000)


def test_offsets_say_where_reading_starts(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(2)
    now_ms = int(time.time() * 1000)
    for n in range(4):  # in batches of their own
        stamp = now_ms + 1_000 * n
        produce(
            kafka.bootstrap_servers, topic, *(each | {"timestamp": stamp} for p in range(2) for each in values(1, p, n))
        )
    partitions = [KafkaTopicPartition(topic, number) for number in range(2)]

    def read(starting: KafkaOffsetsInitializer) -> list[str]:
        builder = bounded(strings_from(kafka.bootstrap_servers, topic)).set_starting_offsets(starting)
        with DrivenSource(builder.set_group_id(topic).build()) as source:
            return sorted(source.read(99))

    assert read(EARLIEST) == all_values(2, 4)
    assert read(LATEST) == []
    assert read(KafkaOffsetsInitializer.timestamp(now_ms + 2_500)) == ["0:3", "1:3"]
    assert read(KafkaOffsetsInitializer.timestamp(now_ms + 9_999)) == []
    assert read(KafkaOffsetsInitializer.offsets({partitions[0]: 3})) == ["0:3", "1:0", "1:1", "1:2", "1:3"]
    with pytest.raises(KafkaClientError, match=f"offset 9 of {topic}-0 does not exist: .* from 0 to before 4"):
        read(KafkaOffsetsInitializer.offsets(dict.fromkeys(partitions, 9), KafkaOffsetResetStrategy.NONE))
    with pytest.raises(KafkaClientError, match=f"the group has committed no offset for {topic}-0"):
        read(KafkaOffsetsInitializer.committed_offsets())
    assert read(KafkaOffsetsInitializer.committed_offsets(KafkaOffsetResetStrategy.LATEST)) == []


def test_only_records_before_the_stopping_offset_are_read(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 2, 10)
    stops = {KafkaTopicPartition(topic, 0): 3, KafkaTopicPartition(topic, 1): 0}
    builder = strings_from(kafka.bootstrap_servers, topic).set_unbounded(KafkaOffsetsInitializer.offsets(stops))
    with DrivenSource(builder.build()) as source:
        assert source.read(99) == ["0:0", "0:1", "0:2"]


@pytest.mark.parametrize("commits", [True, False])
def test_a_bounded_read_ends_before_a_transactions_marker(kafka: KafkaCluster, commits: bool) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, {"value": "before"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topic, b"within")
    producer.commit_transaction(20) if commits else producer.abort_transaction(20)
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        assert source.read(99) == (["before", "within"] if commits else ["before"])


def test_offsets_are_committed_when_a_checkpoint_is_complete(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 1, 10)
    source = strings_from(kafka.bootstrap_servers, topic).set_group_id(topic)
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})

    def committed() -> int:
        return consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset

    with DrivenSource(source.build()) as driven:
        driven.read(10)
        splits = driven.readers[0].snapshot_state()
        assert committed() < 0
        driven.readers[0].notify_checkpoint_complete(1, splits)
        driven.wait_until(lambda: driven.metric("commitsSucceeded"))
        assert committed() == 10
        assert driven.metric("committedOffset") == 10
        assert driven.metric("currentOffset") == 9
        assert driven.metric("pendingRecords") == driven.metric("records-lag-max") == 0
        assert driven.metric("bytes-consumed-total") == 30
    produce(kafka.bootstrap_servers, topic, *values(2, 0, 10))
    again = bounded(source).set_starting_offsets(KafkaOffsetsInitializer.committed_offsets())
    with DrivenSource(again.build()) as driven:
        assert driven.read(99) == ["0:10", "0:11"]
        driven.readers[0].notify_checkpoint_complete(1, driven.readers[0].snapshot_state())
    assert committed() == 12  # the end of a partition that was read through is committed too
    consumer.close()


@pytest.mark.parametrize("setting", [None, ("commit.offsets.on.checkpoint", "false")])
def test_no_offsets_are_committed_if_that_is_not_wanted(kafka: KafkaCluster, setting: tuple[str, str] | None) -> None:
    topic = filled(kafka)
    builder = strings_from(kafka.bootstrap_servers, topic)
    if setting is not None:
        builder.set_group_id(topic).set_property(*setting)
    with DrivenSource(builder.build()) as driven:
        driven.read(10)
        driven.readers[0].notify_checkpoint_complete(1, driven.readers[0].snapshot_state())
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})
    assert consumer.committed([TopicPartition(topic, 0)], timeout=20)[0].offset < 0
    consumer.close()


def test_new_partitions_and_topics_are_discovered(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 1, 2)
    builder = strings_from(kafka.bootstrap_servers).set_topic_pattern(f"{topic}.*").set_starting_offsets(LATEST)
    with DrivenSource(builder.build(), parallelism=2) as source:
        produce(kafka.bootstrap_servers, topic, {"value": "new", "partition": 0})
        assert source.read(1) == ["new"]
        kafka.create_topic(f"{topic}-more")
        kafka.create_topic(f"not-{topic}")
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
        admin.create_partitions([NewPartitions(topic, 2)])[topic].result(20)
        produce(kafka.bootstrap_servers, topic, *values(3, 1))
        produce(kafka.bootstrap_servers, f"{topic}-more", {"value": "x"})

        def has_all() -> bool:
            source.discover()
            return sum(len(reader.split_ids()) for reader in source.readers) == 3

        found = source.wait_until(has_all)
        assert sorted(found + source.read(4 - len(found))) == ["1:0", "1:1", "1:2", "x"]
        state, splits = source.snapshot()
        assert len(state.known) == 3
        assert not state.unassigned
    with DrivenSource(builder.build(), 1, state, [[split for part in splits for split in part]]) as source:
        produce(kafka.bootstrap_servers, topic, {"value": "last", "partition": 0})
        assert source.read(1) == ["last"]


def test_splits_of_a_failed_reader_are_assigned_to_the_next_one(kafka: KafkaCluster) -> None:
    topic = filled(kafka, 1, 3)
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        splits = source.readers[0].snapshot_state()
        source.restart_reader(0)
        source.enumerator.add_splits_back(splits, 0)
        assert source.enumerator.snapshot_state().unassigned == tuple(splits)
        source.enumerator.handle_split_request(0)
        assert source.read(99) == ["0:0", "0:1", "0:2"]


class Whole(KafkaRecordDeserializationSchema):
    def deserialize(self, record: KafkaRecord) -> KafkaRecord:
        return record


def test_a_record_schema_sees_all_of_a_record(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(config=FOR_EVER)
    headers = [("h", b"1"), ("h", None)]
    full = {"key": b"k", "value": b"v", "headers": headers, "timestamp": 5}
    produce(kafka.bootstrap_servers, topic, full, {"key": b"k"})
    source = bounded(strings_from(kafka.bootstrap_servers, topic)).set_deserializer(Whole()).build()
    with DrivenSource(source) as driven:
        first, tombstone = driven.read(99)
    assert first == KafkaRecord(topic, 0, 0, 5, b"k", b"v", (("h", b"1"), ("h", None)))
    assert (tombstone.key, tombstone.value, tombstone.offset) == (b"k", None, 1)


def test_a_schema_of_values_leaves_tombstones_out_and_counts_them(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, {"key": "a"}, {"value": "x"}, {"key": "b"}, {"key": "c"})
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        assert source.read(99) == ["x"]
        assert source.metric("numTombstonesSkipped") == 3


class Columns(DeserializationSchema):
    def deserialize(self, message: bytes) -> Any:
        raise AssertionError("batches are decoded")

    def deserialize_batch(self, messages: Sequence[bytes]) -> tuple[Any, Any]:
        return ArrowBatch(pa.record_batch({"value": list(messages)})), None


def test_columns_stay_columns_with_kafkas_timestamps(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic(config=FOR_EVER)
    produce(kafka.bootstrap_servers, topic, *({"value": "x", "timestamp": 7} for _ in range(5)))
    builder = bounded(strings_from(kafka.bootstrap_servers, topic)).set_value_only_deserializer(Columns())
    with DrivenSource(builder.build()) as source:
        batch = PENDING
        deadline = time.monotonic() + 20
        while batch is PENDING:
            assert time.monotonic() < deadline
            batch = source.readers[0].poll(100)
        assert batch.data.column("value").to_pylist() == [b"x"] * len(batch)
        assert batch.timestamps.tolist() == [7] * len(batch)


# malformed records

POISON = [{"value": v} for v in (b"\xff0", b"a", b"\xff1", b"\xff2", b"b", b"c", b"\xff3")]


def test_a_malformed_record_fails_the_job_and_is_named(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, {"value": b"fine"}, {"value": b"\xff"})
    with DrivenSource(bounded(strings_from(kafka.bootstrap_servers, topic)).build()) as source:
        with pytest.raises(MalformedMessage, match=f"topic {topic}, partition 0, offset 1: .*xff.* cannot be decoded"):
            source.read(99)
        assert source.metric("numRecordsInErrors") == 1


def test_malformed_records_are_skipped_and_counted(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *POISON)
    builder = bounded(strings_from(kafka.bootstrap_servers, topic)).set_malformed_records(MalformedRecords.skip())
    with DrivenSource(builder.build()) as source:
        assert source.read(99) == ["a", "b", "c"]
        assert source.metric("numRecordsInErrors") == 4


def test_malformed_records_go_to_a_side_output(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *POISON)
    tag = OutputTag("malformed")
    policy = MalformedRecords.side_output(tag)
    source = bounded(strings_from(kafka.bootstrap_servers, topic)).set_malformed_records(policy).build()
    env = StreamExecutionEnvironment({"execution.target": "local"})
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    side = stream.get_side_output(tag).map(lambda each: (each.message, each.place))
    assert [value for value in side.union(stream).execute_and_collect() if value in ("a", "b", "c")] == ["a", "b", "c"]
    stream = env.from_source(source, WatermarkStrategy.no_watermarks(), "kafka")
    side = stream.get_side_output(tag).map(lambda each: (each.message, each.place))
    places = [f"topic {topic}, partition 0, offset {offset}" for offset in (0, 2, 3, 6)]
    assert list(side.execute_and_collect()) == [(b"\xff%d" % n, place) for n, place in enumerate(places)]


def test_a_snapshot_between_good_and_malformed_records_is_exact(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    produce(kafka.bootstrap_servers, topic, *POISON)
    policy = MalformedRecords.side_output(OutputTag("malformed"))
    make = bounded(strings_from(kafka.bootstrap_servers, topic)).set_malformed_records(policy).build
    found, side, state, splits = [], [], None, []
    for _ in range(20):  # restored after each answer
        with DrivenSource(make(), 1, state, splits) as source:
            answer = PENDING
            deadline = time.monotonic() + 20
            while answer is PENDING:
                assert time.monotonic() < deadline
                answer = source.readers[0].poll(100)
            if answer is END:
                break
            if isinstance(answer, Tagged):
                side += [each.message for each in answer.batch.values]
            else:
                found += answer.values
            state, splits = source.snapshot()
    assert found == ["a", "b", "c"]
    assert side == [b"\xff0", b"\xff1", b"\xff2", b"\xff3"]


@pytest.mark.parametrize("is_aborted", [False, True], ids=["committed", "aborted"])
def test_a_bounded_read_ends_behind_the_markers_of_transactions(kafka: KafkaCluster, is_aborted: bool) -> None:
    topic = kafka.new_topic(2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions()
    for committed in (True, not is_aborted):
        producer.begin_transaction()
        for number in range(10):
            producer.produce(topic, f"{number} {committed}", partition=number % 2)
        if committed:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    builder = KafkaSourceBuilder().set_bootstrap_servers(kafka.bootstrap_servers).set_topics(topic)
    builder = builder.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(LATEST)
    source = builder.set_value_only_deserializer(SimpleStringSchema()).build()
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    values = env.from_source(source, WatermarkStrategy.no_watermarks(), "topic").execute_and_collect()
    assert sorted(values) == sorted(f"{number} True" for number in range(10) for _ in range(2 - is_aborted))
