"""INSERT INTO kafka from a window: a consumer of committed messages sees each result once, whoever is killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from benchmarks.servers.kafka_broker import KafkaCluster
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import StreamTableEnvironment
from rayflink.testing.connector_laws.crash_points import CrashPoints
from rayflink.testing.connector_laws.crashing_job import CrashingJob
from tests.connectors.kafka.kafka_reading import produce
from tests.connectors.kafka.kafka_topics import values_in

pytestmark = pytest.mark.slow
PARTITIONS, KEYS, EVERY_MS = 3, 5, 250
WINDOW_MS = 10_000


def message(number: int) -> dict[str, object]:
    """Return an event; each partition has its events in the order of their times."""
    millis = number * EVERY_MS
    time = f"2026-01-01 {millis // 3_600_000:02}:{millis // 60_000 % 60:02}:{millis % 60_000 / 1000:06.3f}"
    return {"value": json.dumps({"k": number % KEYS, "ts": time}), "partition": number % PARTITIONS}


@pytest.mark.parametrize("seed", [1, 2])
def test_results_of_windows_are_written_once_under_kills_and_at_other_parallelisms(
    kafka: KafkaCluster, tmp_path: Path, seed: int
) -> None:
    source, target, rounds, each = kafka.new_topic(PARTITIONS), kafka.new_topic(2), 4, 240

    def write(env: StreamExecutionEnvironment) -> None:
        t_env = StreamTableEnvironment.create(env)
        shared = f"'connector' = 'kafka', 'properties.bootstrap.servers' = '{kafka.bootstrap_servers}', "
        t_env.execute_sql(
            f"CREATE TABLE events (k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ({shared}'topic' = "
            f"'{source}', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset')"
        )
        t_env.execute_sql(
            f"CREATE TABLE counts (k INT, w STRING, n BIGINT) WITH ({shared}'topic' = '{target}', 'value.format' = "
            f"'json', 'key.format' = 'json', 'key.fields' = 'k', 'sink.delivery-guarantee' = 'exactly-once', "
            f"'sink.transactional-id-prefix' = '{target}')"
        )
        inserts = t_env.create_statement_set()
        inserts.add_insert_sql(
            "INSERT INTO counts SELECT k, CAST(window_start AS STRING), COUNT(*) FROM TABLE(TUMBLE(TABLE events, "
            "DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end"
        )
        inserts.attach_as_datastream()

    points = CrashPoints(f"windows {seed}", (), Random(seed))
    job = CrashingJob(write, tmp_path, points, (1, 3, 2))
    count = rounds * each
    expected = Counter((number % KEYS, number * EVERY_MS // WINDOW_MS) for number in range(count))

    def is_complete() -> bool:
        job.turn(100)
        return sum(seen().values()) >= len(expected)

    def seen() -> Counter[tuple[int, int, int]]:
        rows = map(json.loads, values_in(kafka.bootstrap_servers, target))
        return Counter((row["k"], _window(row["w"]), row["n"]) for row in rows)

    try:
        for number in range(rounds):
            produce(kafka.bootstrap_servers, source, *map(message, range(number * each, (number + 1) * each)))
            job.turn(20 + 10 * seed)
            job.end_without_notice() if (number + seed) % 2 else job.kill_task()
        closing = ({**message(count + 50_000), "partition": partition} for partition in range(PARTITIONS))
        produce(kafka.bootstrap_servers, source, *closing)
        job.turn_until(is_complete, lambda: "some windows are missing")
        job.check()
        assert seen() == Counter((*key, n) for key, n in expected.items())
    finally:
        job.cancel()
        points.close()


def _window(start: str) -> int:
    """Return the number of the window that starts at a time of the first of January."""
    hours, minutes, seconds = start.split(" ")[1].split(":")
    return int((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000) // WINDOW_MS
