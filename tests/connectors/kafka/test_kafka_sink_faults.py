"""The Kafka sink under faults of a real broker and of its user: errors are clear, nothing is lost, no reader waits."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.common import SimpleStringSchema
from rayflink.common.records.batches import RowBatch
from rayflink.common.serialization import SerializationSchema
from rayflink.connectors.kafka.kafka_chunks import ChunkId, ChunkWriter
from rayflink.connectors.kafka.kafka_committing import UnknownChunks
from rayflink.connectors.kafka.kafka_messages import KafkaMessages
from rayflink.connectors.kafka.kafka_producing import TooLargeMessage
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.connectors.kafka.kafka_transactions import TransactionCounts, Transactions
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.operators.base import UserCodeError
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from tests.connectors.kafka.kafka_topics import counted, messages_in, started, strings_to, subtask, values_in

pytestmark = pytest.mark.slow
EXACTLY_ONCE, AT_LEAST_ONCE = DeliveryGuarantee.EXACTLY_ONCE, DeliveryGuarantee.AT_LEAST_ONCE
DAY_MS = 86_400_000


def test_a_dead_committer_keeps_readers_waiting_for_less_than_ten_seconds(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(1), kafka.bootstrap_servers
    sink = strings_to(servers, topic, EXACTLY_ONCE, topic).build()
    now_ms = time.time_ns() // 1_000_000
    writer = ChunkWriter(ChunkId(f"{topic}-0", f"{now_ms:x}-0000", 0, topic, now_ms, 1), None)
    writer.add(KafkaMessages(topic, [b"never"]), [5], now_ms)
    [chunk] = writer.take(now_ms)
    dead = Transactions(f"{topic}-0", sink._properties, DAY_MS, TransactionCounts())
    dead.fate(chunk, now_ms)
    assert dead._queue is not None
    dead._queue.producer.begin_transaction()
    for part in chunk.messages():
        dead._queue.put(part, 5)
    dead._queue.flush(5)  # and then the process is gone, and no other comes
    began = time.monotonic()
    with subtask(strings_to(servers, topic, AT_LEAST_ONCE).build()) as other:
        other.process("after")
        other.snapshot()
    assert values_in(servers, topic, within_s=10) == ["after"]
    assert 1 < time.monotonic() - began < 10


def test_a_restarted_committer_ends_the_transaction_of_a_dead_one_at_once(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(1), kafka.bootstrap_servers
    make = strings_to(servers, topic, EXACTLY_ONCE, topic).set_property("transaction.timeout.ms", "60000").build
    dead = started(make())
    dead.process("a")
    taken = dead.snapshot(1)
    committer = dead.operators[0]._committer
    [request] = committer_requests(dead)
    transactions = committer._transactions(request.id.transactional_id)
    transactions.fate(request, time.time_ns() // 1_000_000)
    transactions._queue.producer.begin_transaction()
    for part in request.messages():
        transactions._queue.put(part, request.size)
    transactions._queue.flush(5)
    began = time.monotonic()
    with subtask(make(), restore=[taken]):
        assert values_in(servers, topic, within_s=5) == ["a"]
        assert time.monotonic() - began < 9


def committer_requests(harness):
    """The chunks that wait in a subtask."""
    return [request.get_committable() for _, request in harness.operators[0]._commits._waiting]


def test_after_rescaling_restored_chunks_are_written_by_whoever_has_them(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(3), kafka.bootstrap_servers
    make = strings_to(servers, topic, EXACTLY_ONCE, topic).build
    dead = [started(make(), Place(number, 3)) for number in range(3)]
    for number, harness in enumerate(dead):
        harness.process(f"{number}")
    taken = [harness.snapshot(1) for harness in dead]
    dead[1].notify_checkpoint_complete(1)
    for parallelism in (1, 2):
        for number, share in enumerate(rescaled_snapshots(taken, parallelism)):
            with subtask(make(), Place(number, parallelism), [share]):
                pass
    assert values_in(servers, topic) == ["0", "1", "2"]


def test_the_task_goes_on_while_the_broker_is_away_and_then_writes_its_chunks(kafka: KafkaCluster) -> None:
    topic, servers, woken = kafka.new_topic(1), kafka.bootstrap_servers, threading.Event()
    [broker] = kafka.brokers

    def hear_of_the_commit(sink: OperatorHarness) -> None:
        assert woken.wait(60)
        woken.clear()
        sink.set_processing_time(sink.clock.now_ms())

    with subtask(strings_to(servers, topic, EXACTLY_ONCE, topic).build(), Place(wake=woken.set)) as sink:
        sink.process("a")
        sink.snapshot(1)
        sink.notify_checkpoint_complete(1)
        sink.process("b")
        sink.snapshot(2)
        broker.freeze()
        try:
            sink.notify_checkpoint_complete(2)
            assert counted(sink, "retriedCommittables") == 1, "the task has waited for the brokers once"
            sink.set_processing_time(sink.clock.now_ms() + 100)
            sink.process("c")
            sink.snapshot(3)
            assert counted(sink, "pendingCommittables") == 2 and counted(sink, "retriedCommittables") == 1
        finally:
            broker.thaw()
        hear_of_the_commit(sink)
        sink.notify_checkpoint_complete(3)
        while counted(sink, "pendingCommittables"):
            if (due := sink.operators[0].next_upkeep_ms()) is not None:
                sink.set_processing_time(max(due, sink.clock.now_ms()))
            else:
                hear_of_the_commit(sink)
        assert values_in(servers, topic) == ["a", "b", "c"]


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_missing_topic_is_named_at_the_start(kafka: KafkaCluster, guarantee: DeliveryGuarantee) -> None:
    sink = strings_to(kafka.bootstrap_servers, "nowhere", guarantee, "p").build()
    with pytest.raises(UserCodeError, match=r"topic 'nowhere' does not exist at 127.0.0.1.*create it"):
        started(sink)


def test_a_missing_topic_of_a_record_is_named(kafka: KafkaCluster) -> None:
    schema = KafkaRecordSerializationSchema.builder().set_topic_selector(str)
    builder = KafkaSink.builder().set_bootstrap_servers(kafka.bootstrap_servers)
    builder.set_property("topic.metadata.propagation.max.ms", "500")
    builder = builder.set_record_serializer(schema.set_value_serialization_schema(SimpleStringSchema()).build())
    with subtask(builder.set_delivery_guarantee(AT_LEAST_ONCE).build()) as sink:
        sink.process("not-there")
        with pytest.raises(UserCodeError, match="topic 'not-there' does not exist"):
            sink.snapshot()


@pytest.mark.parametrize("guarantee", list(DeliveryGuarantee))
def test_a_record_that_is_too_large_is_named_before_the_checkpoint(
    kafka: KafkaCluster, guarantee: DeliveryGuarantee
) -> None:
    topic = kafka.new_topic()
    with subtask(strings_to(kafka.bootstrap_servers, topic, guarantee, topic).build()) as sink:
        with pytest.raises(UserCodeError, match="xxx.*2000002 bytes is larger than message.max.bytes, 1000000"):
            sink.process("x" * 1_000_001)


def test_a_message_that_the_topic_refuses_fails_the_task_with_the_remedy(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(1, {"max.message.bytes": "1000"}), kafka.bootstrap_servers
    make = strings_to(servers, topic, EXACTLY_ONCE, topic).build
    with subtask(make()) as sink:
        sink.process("x" * 2_000)
        taken = sink.snapshot(1)
        with pytest.raises(UserCodeError, match="larger than is allowed.*max.message.bytes of the topic"):
            sink.notify_checkpoint_complete(1)
    assert values_in(servers, topic, 5) == []
    with pytest.raises(UserCodeError, match="larger than is allowed"):
        started(make(), restore=[taken])
    with subtask(strings_to(servers, topic, AT_LEAST_ONCE).build()) as sink:
        sink.process("x" * 2_000)
        with pytest.raises(UserCodeError, match="larger than is allowed"):
            sink.snapshot(1)


class LateReports:
    """A producer whose reports come after the errors that follow from them.

    Args:
        producer: the client's.
    """

    def __init__(self, producer: Any) -> None:
        self._producer = producer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def __len__(self) -> int:
        return len(self._producer)

    def poll(self, timeout: float) -> int:
        return int(self._producer.poll(timeout)) if timeout else 0

    def send_offsets_to_transaction(self, *arguments: Any) -> None:
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:  # until the broker has refused the message; nothing is reported here
            self._producer.send_offsets_to_transaction(*arguments)


def test_a_refused_message_is_named_also_where_its_report_is_late(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(1, {"max.message.bytes": "1000"}), kafka.bootstrap_servers
    sink = strings_to(servers, topic, EXACTLY_ONCE, topic).build()
    now_ms = time.time_ns() // 1_000_000
    writer = ChunkWriter(ChunkId(f"{topic}-0", f"{now_ms:x}-0000", 0, topic, now_ms, 1), None)
    writer.add(KafkaMessages(topic, [b"x" * 2_000]), [2_000], now_ms)
    [chunk] = writer.take(now_ms)
    transactions = Transactions(f"{topic}-0", sink._properties, DAY_MS, TransactionCounts())
    transactions.fate(chunk, now_ms)
    assert transactions._queue is not None
    transactions._queue.producer = LateReports(transactions._queue.producer)
    with pytest.raises(TooLargeMessage, match="larger than is allowed"):
        transactions.begin([chunk])
        transactions.finish([chunk])


def test_messages_that_no_broker_takes_fail_the_checkpoint(kafka: KafkaCluster) -> None:
    topic = kafka.new_topic()
    builder = strings_to(kafka.bootstrap_servers, topic, AT_LEAST_ONCE)
    with subtask(builder.set_property("delivery.timeout.ms", "1500").build()) as sink:
        kafka.brokers[0].freeze()
        try:
            sink.process("a")
            with pytest.raises(UserCodeError, match="writing to topic.*check that the brokers run"):
                sink.snapshot()
        finally:
            kafka.brokers[0].thaw()
        assert counted(sink, "numRecordsSendErrors") == 1


def test_a_full_queue_holds_the_task_back_and_loses_nothing(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(2), kafka.bootstrap_servers
    builder = strings_to(servers, topic, AT_LEAST_ONCE).set_property("queue.buffering.max.messages", "50")
    numbers = [f"{number:05}" for number in range(3_000)]
    with subtask(builder.build()) as sink:
        freezing = threading.Timer(0.0, kafka.brokers[0].freeze)
        freezing.start()
        freezing.join()
        thawing = threading.Timer(1.0, kafka.brokers[0].thaw)
        thawing.start()
        began = time.monotonic()
        for number in numbers:
            sink.process(number)
        assert time.monotonic() - began > 0.9
        thawing.join()
        sink.snapshot()
        assert values_in(servers, topic) == numbers
        assert counted(sink, "numRecordsSend") == 3_000


def test_a_chunk_that_may_be_in_kafka_is_the_users_choice(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(), kafka.bootstrap_servers
    builder = strings_to(servers, topic, EXACTLY_ONCE, topic)
    dead = started(builder.build(), days_ago=30)  # a savepoint of last month, whose ledger the broker has deleted
    dead.process("a")
    taken = dead.snapshot(1)
    with pytest.raises(UserCodeError, match=r"written 30.0 days ago.*may be in Kafka.*UnknownChunks.WRITE"):
        started(builder.build(), restore=[taken])
    with subtask(builder.set_unknown_chunks(UnknownChunks.DROP).build(), restore=[taken]) as sink:
        assert counted(sink, "failedCommittables") == 1
    assert values_in(servers, topic) == []
    with subtask(builder.set_unknown_chunks(UnknownChunks.WRITE).build(), restore=[taken]):
        assert values_in(servers, topic) == ["a"]


class Pairs(SerializationSchema):
    """One field of a record."""

    def __init__(self, index: int) -> None:
        self._index = index

    def serialize(self, element: tuple[str, str | None]) -> bytes | None:  # type: ignore[override]
        value = element[self._index]
        return None if value is None else value.encode()


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_messages_have_keys_headers_times_and_partitions(kafka: KafkaCluster, guarantee: DeliveryGuarantee) -> None:
    topic, servers = kafka.new_topic(4), kafka.bootstrap_servers
    schema = (
        KafkaRecordSerializationSchema.builder().set_topic(topic).set_key_serialization_schema(Pairs(0))
        .set_value_serialization_schema(Pairs(1))
        .set_header_provider(lambda pair: {"from": pair[0].encode(), "no": None})
        .set_partitioner(lambda pair, key, value, topic, partitions: partitions[-1] if pair[0] == "b" else None).build()
    )  # fmt: skip
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema)
    builder = builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic)
    with subtask(builder.build()) as sink:
        sink.process(("a", "1"), 1_700_000_000_123)
        sink.process(("b", None), 1_700_000_000_456)
        sink.process(("b", "3"))
        sink.snapshot(1)
        sink.notify_checkpoint_complete(1)
    found = {(m.key(), m.value()): m for m in messages_in(servers, topic)}
    assert set(found) == {(b"a", b"1"), (b"b", None), (b"b", b"3")}
    assert found[b"a", b"1"].headers() == [("from", b"a"), ("no", None)]
    assert found[b"a", b"1"].timestamp()[1] == 1_700_000_000_123
    assert found[b"b", None].timestamp()[1] == 1_700_000_000_456
    assert abs(found[b"b", b"3"].timestamp()[1] - time.time() * 1000) < 60_000
    assert found[b"b", b"3"].partition() == found[b"b", None].partition() == 3


@pytest.mark.parametrize("guarantee", [AT_LEAST_ONCE, EXACTLY_ONCE])
def test_a_batch_of_messages_goes_to_the_partitions_of_the_partitioner(
    kafka: KafkaCluster, guarantee: DeliveryGuarantee
) -> None:
    topic, servers = kafka.new_topic(4), kafka.bootstrap_servers
    schema = (
        KafkaRecordSerializationSchema.builder().set_topic(topic)
        .set_value_serialization_schema(SimpleStringSchema())
        .set_partitioner(lambda number, key, value, topic, partitions: int(number) % 4).build()
    )  # fmt: skip
    builder = KafkaSink.builder().set_bootstrap_servers(servers).set_record_serializer(schema)
    builder = builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic)
    with subtask(builder.build()) as sink:
        sink.process_batch(RowBatch([str(number) for number in range(40)]))
        sink.snapshot(1)
        sink.notify_checkpoint_complete(1)
    values: dict[int, list[int]] = {number: [] for number in range(4)}
    for message in messages_in(servers, topic):
        values[message.partition()].append(int(message.value()))
    assert values == {number: list(range(number, 40, 4)) for number in range(4)}


def test_keys_are_where_javas_producer_puts_them(kafka: KafkaCluster) -> None:
    topic, servers = kafka.new_topic(10), kafka.bootstrap_servers
    with subtask(strings_to(servers, topic, EXACTLY_ONCE, topic).build()) as sink:
        for key in ("21", "foobar", "a-little-bit-long-string", "abc"):
            sink.process(key)
        sink.snapshot(1)
        sink.notify_checkpoint_complete(1)
    found = {message.key(): message.partition() for message in messages_in(servers, topic)}
    assert found == {key: java_partition(key, 10) for key in found} and len(found) == 4


def java_partition(key: bytes, partitions: int) -> int:
    """The partition by Kafka's UtilsTest and DefaultPartitioner: the positive murmur2 of the key."""
    hashes = {b"21": -973932308, b"foobar": -790332482, b"a-little-bit-long-string": -985981536, b"abc": 479470107}
    return (hashes[key] & 0x7FFFFFFF) % partitions
