"""The bids of `kafka_sql`: nested JSON of about 840 bytes in a topic of a broker of its own; and the statements."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.runs.environments import Unavailable

EVENTS = 2_000_000
PARTITIONS = 2
TOPIC = "bids"
CONNECTOR = "org.apache.flink:flink-sql-connector-kafka:5.0.0-2.2"
"""Flink's connector, the newest there is for Flink 2."""
_EXTRA_BYTES = 480
_BATCH = 10_000
TABLES = """CREATE TABLE bids (event_type INT, bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING,
  url STRING, `dateTime` TIMESTAMP(3), extra STRING>, source ROW<host STRING, region STRING, version INT>,
  ts AS bid.`dateTime`, WATERMARK FOR ts AS ts - INTERVAL '4' SECOND) WITH ('connector' = 'kafka', 'topic' = 'bids',
  'properties.bootstrap.servers' = '{servers}', 'properties.group.id' = 'bench', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE counts (auction BIGINT, window_start TIMESTAMP(3), n BIGINT, top BIGINT) WITH ('connector' = 'blackhole')
"""
QUERY = """INSERT INTO counts SELECT auction, window_start, COUNT(*), MAX(price)
FROM (SELECT bid.auction AS auction, bid.price AS price, window_start, window_end
  FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' SECOND)))
GROUP BY auction, window_start, window_end"""


@contextmanager
def broker_with_bids(events: int) -> Iterator[str]:
    """Start a broker with a topic of bids, which ends with the block, and yield its address.

    Raises:
        Unavailable: Kafka cannot be started on this machine.
    """
    import pytest

    from benchmarks.servers.kafka_broker import kafka_cluster

    try:
        with kafka_cluster() as cluster:
            cluster.create_topic(TOPIC, PARTITIONS)
            write_bids(cluster.bootstrap_servers, events)
            yield cluster.bootstrap_servers
    except pytest.skip.Exception as reason:
        raise Unavailable(str(reason)) from reason


def write_bids(servers: str, events: int) -> None:
    """Write bids in the order of their times, which are 10,000 to a second, to the partitions in turns."""
    import numpy
    from confluent_kafka import Producer

    from rayflink.connectors.nexmark import BID, Nexmark

    rules = Nexmark(sizes=(200, 500, _EXTRA_BYTES + 100))
    numbers = rules.numbers(BID, 0, events * rules.epoch // 46 + rules.epoch)[:events]
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": 400_000})
    source = json.dumps({"host": "ingest-07.eu.example.com", "region": "eu-central-1", "version": 3})
    for start in range(0, events, _BATCH):
        columns = {name: column.to_pylist() for name, column in rules.bids(numbers[start : start + _BATCH]).items()}
        rows = (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))
        partition = numpy.int64(start // _BATCH) % PARTITIONS
        for row in rows:
            row["dateTime"] = row["dateTime"].isoformat(" ", "milliseconds")
            value = f'{{"event_type": 2, "bid": {json.dumps(row)}, "source": {source}}}'
            producer.produce(TOPIC, value.encode(), partition=int(partition))
        while len(producer) > 300_000:
            producer.poll(0.05)
    producer.flush()


def connector_jar(cache: Path) -> Path:
    """Return the jar of Flink's connector, which Maven downloads the first time.

    Raises:
        Unavailable: Maven is missing, or cannot download it.
    """
    _, name, version = CONNECTOR.split(":")
    jar = cache / f"{name}-{version}.jar"
    if jar.exists():
        return jar
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as work:
        copy = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={CONNECTOR}", f"-DoutputDirectory={work}"]
        try:
            subprocess.run(copy, cwd=work, check=True, capture_output=True, text=True, timeout=300)
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"Maven cannot download {CONNECTOR}: {error}") from error
        (Path(work) / jar.name).rename(jar)
    return jar
