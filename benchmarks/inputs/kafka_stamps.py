"""Produces stamped messages at an even rate, consumes them from another topic, and prints the latencies as JSON.

`python -m benchmarks.inputs.kafka_stamps SERVERS TOPIC_IN TOPIC_OUT RATE SECONDS`: a process of its own, with plain
confluent-kafka. It waits until a message of each partition has come back, produces at the rate until the job has worked
off what came while it started (no message of the last two seconds was late), and then measures for SECONDS.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.streams.ours_latency import WARM_SECONDS, bucket, quantile

_TICK_S = 0.001
_KEYS = 1_000
_PADDING = b"x" * 76
_LONGEST_START_S = 60
_LATE_NS = 200_000_000
"""A message that takes longer shows that the job still works off what came while it started."""


class Receiver(threading.Thread):
    """Consumes the results and counts their latencies in microseconds.

    Args:
        servers, topic: what to consume, from its end.
    """

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": "watch", "enable.auto.commit": False, "fetch.wait.max.ms": 5}
        )
        partitions = self._consumer.list_topics(topic, timeout=30).topics[topic].partitions
        ends = [self._consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1] for p in partitions]
        self._consumer.assign([TopicPartition(topic, p, end) for p, end in zip(partitions, ends, strict=True)])
        self.latencies: Counter[int] = Counter()
        self.counts_from_ns = self.late_ns = 0
        self.missing = set(partitions)
        self.is_over = False

    @property
    def is_settled(self) -> bool:
        """Return whether no message was late in the last seconds."""
        return time.time_ns() - self.late_ns > WARM_SECONDS * 1_000_000_000

    def run(self) -> None:
        while not self.is_over:
            for message in self._consumer.consume(500, 0.01):
                now = time.time_ns()
                if message.error() is None:
                    self.missing.discard(message.partition())
                    stamp = int.from_bytes(message.value()[4:12], "big")
                    if now - stamp > _LATE_NS:
                        self.late_ns = now
                    if self.counts_from_ns and stamp >= self.counts_from_ns:
                        self.latencies[bucket(max(now - stamp, 0) // 1000)] += 1
        self._consumer.close()


def produce(producer: Producer, topic: str, rate: int, until: float) -> int:
    """Produce at an even rate until a time of the monotonic clock; return the number of messages."""
    began, sent = time.monotonic(), 0
    while (now := time.monotonic()) < until:
        while sent < (now - began) * rate:
            key = (sent % _KEYS).to_bytes(4, "big")
            producer.produce(topic, key + time.time_ns().to_bytes(8, "big") + _PADDING, partition=sent % 2)
            sent += 1
        producer.poll(0)
        time.sleep(_TICK_S)
    return sent


def main(servers: str, first: str, second: str, rate: str, seconds: str) -> None:
    receiver = Receiver(servers, second)
    receiver.start()
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 1, "acks": "all"})
    deadline = time.monotonic() + _LONGEST_START_S
    while receiver.missing and time.monotonic() < deadline:
        produce(producer, first, 100, time.monotonic() + 0.2)
    if receiver.missing:
        raise SystemExit(f"no message of partitions {sorted(receiver.missing)} came back within {_LONGEST_START_S} s")
    produce(producer, first, int(rate), time.monotonic() + WARM_SECONDS)
    while not receiver.is_settled and time.monotonic() < deadline:
        produce(producer, first, int(rate), time.monotonic() + 0.2)
    receiver.counts_from_ns = time.time_ns()
    sent = produce(producer, first, int(rate), time.monotonic() + float(seconds))
    producer.flush(10)
    time.sleep(1)
    receiver.is_over = True
    receiver.join()
    counts = receiver.latencies
    print(json.dumps({
        "messages": sum(counts.values()),
        "messages_per_second": sent / float(seconds),
        **{f"p{name}_ms": quantile(counts, float(name) / 100) / 1000 for name in ("50", "99", "99.9")},
        "max_ms": max(counts) / 1000,
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
