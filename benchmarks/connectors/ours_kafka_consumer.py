"""The messages of the topic of `kafka_sql` through the bare client library: the bound of what reads them in Python."""

from __future__ import annotations

import time
from typing import Any


def run(data_path: str | None, servers: str, events: int) -> dict[str, Any]:
    """Read all messages with one consumer, and count their bytes."""
    began = time.time()
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    from benchmarks.inputs.kafka_events import PARTITIONS, TOPIC

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bare", "enable.auto.commit": "false"})
    consumer.assign([TopicPartition(TOPIC, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    ready, cpu = time.time(), time.process_time()
    found = size = 0
    while found < events:
        messages = consumer.consume(500, 1.0)  # as the source does; 10,000 leave the caches and cost twice the CPU time
        found += len(messages)
        size += sum(len(message.value()) for message in messages)
    done = time.time()
    used = time.process_time() - cpu
    consumer.close()
    return {
        "rows": events, "seconds_total": done - began, "seconds_startup": ready - began, "seconds_job": done - ready,
        "cpu_seconds_job": used, "bytes_a_message": size / events,
    }  # fmt: skip
