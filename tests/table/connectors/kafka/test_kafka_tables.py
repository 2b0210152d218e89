"""Tables of `kafka` and `upsert-kafka` against a real broker: what is written is read, and others see the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.table import EnvironmentSettings, TableEnvironment

pytestmark = pytest.mark.slow


def environment(is_batch: bool = False) -> TableEnvironment:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    for key, value in {"execution.target": "local", "table.local-time-zone": "UTC", "parallelism.default": "2"}.items():
        t_env.get_config().set_string(key, value)
    return t_env


def create(
    t_env: TableEnvironment, kafka: KafkaCluster, name: str, topic: str, columns: str, options: Mapping[str, str]
) -> None:
    given = {
        "connector": "kafka", "topic": topic, "properties.bootstrap.servers": kafka.bootstrap_servers,
        **({} if "connector" in options else {"scan.startup.mode": "earliest-offset"}),
        "scan.bounded.mode": "latest-offset", **options,
    }  # fmt: skip
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({listed})")


def produce(kafka: KafkaCluster, topic: str, messages: Sequence[Mapping[str, Any]]) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for message in messages:
        producer.produce(topic, **message)
    assert producer.flush(30) == 0


def consume(kafka: KafkaCluster, topic: str, count: int) -> list[Any]:
    """Return the first messages of a topic, by what a consumer of committed messages sees."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "outside", "enable.auto.commit": "false",
                "isolation.level": "read_committed"}  # fmt: skip
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, 10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        found: list[Any] = []
        while len(found) < count:
            messages = consumer.consume(count - len(found), 10)
            assert messages, f"{len(found)} of {count} messages came in 10 s"
            found += messages
        assert not consumer.consume(1, 0.3), "more messages than expected"
        return found
    finally:
        consumer.close()


def rows(t_env: TableEnvironment, query: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in t_env.execute_sql(query).collect()), key=str)


def test_rows_written_with_keys_headers_and_times_are_read_back(kafka: KafkaCluster) -> None:
    t_env, topic = environment(), kafka.new_topic(3)
    columns = (
        "id INT, name STRING, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', h MAP<STRING, BYTES> METADATA FROM "
        "'headers', p INT METADATA FROM 'partition' VIRTUAL, o BIGINT METADATA FROM 'offset' VIRTUAL, "
        "`timestamp-type` STRING METADATA VIRTUAL, topic STRING METADATA VIRTUAL, `leader-epoch` INT METADATA VIRTUAL"
    )
    keyed = {"key.format": "json", "key.fields": "id", "value.format": "json", "value.fields-include": "EXCEPT_KEY"}
    create(t_env, kafka, "t", topic, columns, keyed)
    t_env.execute_sql(
        "INSERT INTO t SELECT id, name, TO_TIMESTAMP_LTZ(id * 1000, 3), MAP['source', CAST('shop' AS BYTES)] "
        "FROM (VALUES (1, 'tea'), (2, 'cake'), (3, CAST(NULL AS STRING))) AS v(id, name)"
    ).wait()
    sent = {json.loads(message.key())["id"]: message for message in consume(kafka, topic, 3)}
    assert [json.loads(sent[number].value()) for number in (1, 2)] == [{"name": "tea"}, {"name": "cake"}]
    assert sent[2].timestamp() == (1, 2000) and sent[2].headers() == [("source", b"shop")]
    assert rows(t_env, "SELECT id, name FROM t") == [(1, "tea"), (2, "cake"), (3, None)]
    [row] = rows(t_env, "SELECT topic, `timestamp-type`, `leader-epoch`, CAST(at AS STRING), p FROM t WHERE id = 2")
    assert row == (topic, "CreateTime", 0, "1970-01-01 00:00:02.000", sent[2].partition())
    assert rows(t_env, "SELECT name, h['source'] FROM t WHERE id = 1") == [("tea", b"shop")]
    assert rows(t_env, "SELECT o FROM t WHERE id = 3") == [(sent[3].offset(),)]
    assert len(rows(t_env, "SELECT id FROM t LIMIT 2")) == 2


def test_batch_mode_reads_a_bounded_topic(kafka: KafkaCluster) -> None:
    t_env, topic = environment(is_batch=True), kafka.new_topic(2)
    produce(kafka, topic, [{"value": json.dumps({"id": number % 3}).encode()} for number in range(10)])
    create(t_env, kafka, "t", topic, "id INT", {"format": "json"})
    assert rows(t_env, "SELECT id, COUNT(*) FROM t GROUP BY id") == [(0, 4), (1, 3), (2, 3)]
    assert rows(t_env, "SELECT COUNT(*) FROM t") == [(10,)]


UPSERT = {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
KEYED = "id INT, name STRING, PRIMARY KEY (id) NOT ENFORCED"


def debezium(op: str, before: object, after: object) -> dict[str, bytes]:
    return {"value": json.dumps({"before": before, "after": after, "op": op}).encode()}


@pytest.mark.parametrize("buffer", [{}, {"sink.buffer-flush.max-rows": "1000", "sink.buffer-flush.interval": "1 s"}])
def test_changes_of_debezium_become_upserts_and_tombstones(kafka: KafkaCluster, buffer: dict[str, str]) -> None:
    t_env, source, target = environment(), kafka.new_topic(), kafka.new_topic()
    tea, cup, pot = ({"id": number, "name": name} for number, name in ((1, "tea"), (2, "cup"), (1, "pot")))
    changes = [debezium("c", None, tea), debezium("c", None, cup), debezium("u", tea, pot), debezium("d", cup, None)]
    produce(kafka, source, changes)
    create(t_env, kafka, "changes", source, KEYED, {"format": "debezium-json"})
    create(t_env, kafka, "latest", target, KEYED, {**UPSERT, **buffer})
    t_env.execute_sql("INSERT INTO latest SELECT id, name FROM changes").wait()
    expected = [(1, {"id": 1, "name": "tea"}), (2, cup), (1, pot), (2, None)][2 if buffer else 0 :]
    found = consume(kafka, target, len(expected))
    assert [(json.loads(m.key())["id"], m.value() and json.loads(m.value())) for m in found] == expected
    kinds = [(row.get_row_kind().name, *row) for row in t_env.execute_sql("SELECT name, id FROM latest").collect()]
    inserted = [("INSERT", value["name"], key) for key, value in expected[: 1 if buffer else 2] if value]
    others = [("UPDATE_BEFORE", "tea", 1), ("UPDATE_AFTER", "pot", 1), ("DELETE", "cup", 2)]
    assert kinds == inserted + ([] if buffer else others)


def test_upserts_are_written_to_another_topic_and_printed(
    kafka: KafkaCluster, capfd: pytest.CaptureFixture[str]
) -> None:
    t_env, source, target = environment(), kafka.new_topic(2), kafka.new_topic(2)
    keys = [{"key": json.dumps({"id": number}).encode()} for number in (1, 2, 1)]
    values = [b'{"id": 1, "name": "a"}', b'{"id": 2, "name": "b"}', None]
    produce(kafka, source, [{**key, "value": value, "partition": 1} for key, value in zip(keys, values, strict=True)])
    create(t_env, kafka, "t", source, KEYED, UPSERT)
    create(t_env, kafka, "u", target, "id INT, shout STRING, PRIMARY KEY (id) NOT ENFORCED", UPSERT)
    t_env.execute_sql("INSERT INTO u SELECT id, UPPER(name) FROM t").wait()
    found = {json.loads(m.key())["id"]: m.value() for m in consume(kafka, target, 3)}
    assert found[1] is None and json.loads(found[2]) == {"id": 2, "shout": "B"}
    t_env.execute_sql("CREATE TABLE p (id INT, name STRING) WITH ('connector' = 'print')")
    t_env.execute_sql("INSERT INTO p SELECT * FROM t").wait()
    printed = sorted(line.partition("> ")[2] or line for line in capfd.readouterr().out.splitlines() if "[" in line)
    assert printed == ["+I[1, a]", "+I[2, b]", "-D[1, a]"]


BAD = [b'{"id": 1}', b'{"id": ', b'{"id": 3}', b"\xff", b'{"id": "x"}']


def test_malformed_messages_fail_with_their_place(kafka: KafkaCluster) -> None:
    t_env, topic = environment(), kafka.new_topic()
    produce(kafka, topic, [{"value": value} for value in BAD])
    create(t_env, kafka, "t", topic, "id INT", {"format": "json"})
    with pytest.raises(Exception, match=f"topic {topic}, partition 0, offset 1"):
        rows(t_env, "SELECT id FROM t")


def test_malformed_messages_are_skipped(kafka: KafkaCluster) -> None:
    t_env, topic = environment(), kafka.new_topic()
    produce(kafka, topic, [{"value": value} for value in BAD])
    create(t_env, kafka, "t", topic, "id INT, o BIGINT METADATA FROM 'offset'",
           {"format": "json", "malformed-records": "skip"})  # fmt: skip
    assert rows(t_env, "SELECT id FROM t") == [(1,), (3,)]
    assert rows(t_env, "SELECT o FROM t") == [(0,), (2,)]


def test_malformed_messages_go_to_the_dead_letter_topic_as_they_came(kafka: KafkaCluster) -> None:
    t_env, topic, dead = environment(), kafka.new_topic(), kafka.new_topic()
    produce(kafka, topic, [{"value": value} for value in BAD])
    create(t_env, kafka, "t", topic, "id INT",
           {"format": "json", "malformed-records": "dead-letter", "dead-letter.topic": dead})  # fmt: skip
    assert rows(t_env, "SELECT id FROM t") == [(1,), (3,)]
    letters = consume(kafka, dead, 3)
    assert [letter.value() for letter in letters] == [BAD[1], BAD[3], BAD[4]]
    headers = dict(letters[2].headers())
    assert (headers["topic"], headers["partition"], headers["offset"]) == (topic.encode(), b"0", b"4")
    assert b"id" in headers["error"]


def test_start_and_end_are_those_of_the_options(kafka: KafkaCluster) -> None:
    t_env, topic = environment(), kafka.new_topic(2)
    for partition in (0, 1):
        values = [json.dumps({"id": 10 * partition + number}).encode() for number in range(5)]
        stamped = [{"value": value, "partition": partition, "timestamp": 1000 * (number + 1)}
                   for number, value in enumerate(values)]  # fmt: skip
        produce(kafka, topic, stamped)
    create(t_env, kafka, "t", topic, "id INT", {"format": "json"})

    def read(**options: str) -> list[int]:
        given = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        return [number for (number,) in rows(t_env, f"SELECT id FROM t /*+ OPTIONS({listed}) */")]

    offsets = "partition:0,offset:3;partition:1,offset:4"
    specific = {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": offsets}
    assert sorted(read(**specific)) == [3, 4, 14]
    assert sorted(read(scan__startup__mode="timestamp", scan__startup__timestamp_millis="4000")) == [3, 4, 13, 14]
    assert sorted(read(scan__bounded__mode="timestamp", scan__bounded__timestamp_millis="2000")) == [0, 10]
    assert sorted(read(scan__bounded__mode="specific-offsets", scan__bounded__specific_offsets=offsets)) == [
        0, 1, 2, 10, 11, 12, 13,
    ]  # fmt: skip
    assert read(scan__startup__mode="latest-offset") == []
    assert len(read(scan__startup__mode="group-offsets", properties__auto__offset__reset="earliest")) == 10


def test_topics_by_pattern_and_rows_to_several_topics(kafka: KafkaCluster) -> None:
    t_env, first, second = environment(), kafka.new_topic(), kafka.new_topic()
    columns = "id INT, target STRING METADATA FROM 'topic'"
    create(t_env, kafka, "t", f"{first};{second}", columns, {"format": "json"})
    t_env.execute_sql(f"INSERT INTO t VALUES (1, '{first}'), (2, '{second}')").wait()
    assert json.loads(consume(kafka, second, 1)[0].value()) == {"id": 2}
    options = f"'connector' = 'kafka', 'topic-pattern' = '{first}|{second}', 'format' = 'json', "
    options += "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', "
    t_env.execute_sql(f"CREATE TABLE u ({columns}) WITH ({options}'properties.bootstrap.servers' = "
                      f"'{kafka.bootstrap_servers}')")  # fmt: skip
    assert rows(t_env, "SELECT id, target FROM u") == [(1, first), (2, second)]


def test_watermarks_are_those_of_each_partition(kafka: KafkaCluster) -> None:
    t_env, topic = environment(), kafka.new_topic(2)
    t_env.get_config().set_string("parallelism.default", "1")
    late = [{"partition": 1, "value": b'{"ts": "2026-01-01 00:00:%02d"}' % second} for second in range(60)]
    early = [{"partition": 0, "value": b'{"ts": "2026-01-01 00:10:%02d"}' % second} for second in range(60)]
    produce(kafka, topic, early + late)
    create(t_env, kafka, "t", topic, "ts TIMESTAMP(3), WATERMARK FOR ts AS ts", {"format": "json",
           "scan.watermark.emit.strategy": "on-event", "scan.watermark.idle-timeout": "1 min"})  # fmt: skip
    query = (
        "SELECT CAST(window_start AS STRING), COUNT(*) FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '30' "
        "SECOND)) GROUP BY window_start, window_end"
    )
    assert [count for _, count in rows(t_env, query)] == [30, 30, 30, 30]
