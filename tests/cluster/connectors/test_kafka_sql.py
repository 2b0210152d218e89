"""Tables of Kafka on Ray: a window over a topic into another one, exactly once, and upserts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster
from rayflink.table import EnvironmentSettings, TableEnvironment
from tests.connectors.kafka.kafka_reading import produce
from tests.connectors.kafka.kafka_topics import values_in

pytestmark = [pytest.mark.ray, pytest.mark.slow]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaCluster]:
    with kafka_cluster() as brokers:
        yield brokers


def environment() -> TableEnvironment:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    given = {"execution.target": "ray", "parallelism.default": "2", "execution.checkpointing.interval": "300 ms",
             "table.local-time-zone": "UTC"}  # fmt: skip
    for key, value in given.items():
        t_env.get_config().set_string(key, value)
    return t_env


@pytest.mark.timeout(240)
def test_a_window_over_a_topic_on_ray_is_written_once(cluster: object, kafka: KafkaCluster) -> None:
    source, target, servers = kafka.new_topic(2), kafka.new_topic(2), kafka.bootstrap_servers
    events = ({"value": json.dumps({"k": number % 3, "ts": f"2026-01-01 00:00:{number // 2:02}"}),
               "partition": number % 2} for number in range(120))  # fmt: skip
    produce(servers, source, *events)
    t_env, shared = environment(), f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{servers}', "
    t_env.execute_sql(
        f"CREATE TABLE events (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({shared}'topic' = '{source}', "
        f"'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset')"
    )
    t_env.execute_sql(
        f"CREATE TABLE counts (k INT, n BIGINT) WITH ({shared}'topic' = '{target}', 'format' = 'json', "
        f"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '{target}')"
    )
    t_env.execute_sql(
        "INSERT INTO counts SELECT k, COUNT(*) FROM TABLE(TUMBLE(TABLE events, DESCRIPTOR(ts), INTERVAL '30' SECOND)) "
        "GROUP BY k, window_start, window_end"
    ).wait()
    found = sorted((row["k"], row["n"]) for row in map(json.loads, values_in(servers, target)))
    assert found == [(0, 20), (0, 20), (1, 20), (1, 20), (2, 20), (2, 20)]
