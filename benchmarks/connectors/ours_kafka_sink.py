"""The Kafka sink beside a bare producer of the same client, and exactly-once beside at-least-once, in pairs by turns.

One broker on this machine, whose CPU is not counted. Records are 150 bytes of JSON. The sink's subtask gets batches of
1,000 records and a checkpoint after every 50,000; what a checkpoint contains is written to a file. The bare producer
has the sink's properties, gives each record to `produce` and flushes in the end. Each has written a batch before.
"""

from __future__ import annotations

import pickle
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.servers.kafka_broker import KafkaCluster, kafka_cluster
from rayflink.common.records.batches import RowBatch
from rayflink.common.serialization import ByteArraySchema
from rayflink.connectors.kafka.kafka_client import ClientErrors, new_producer
from rayflink.connectors.kafka.kafka_record_serialization import KafkaRecordSerializationSchema
from rayflink.connectors.kafka.kafka_sink import KafkaSink
from rayflink.datastream.connectors.base import DeliveryGuarantee
from rayflink.operators.sinks import SinkOperator
from rayflink.state.clock import ManualClock
from rayflink.testing import OperatorHarness

RECORDS = 300_000
BATCH, CHECKPOINT = 1_000, 50_000
TARGET_OF_BARE = 70.0
TARGET_EXACTLY_ONCE = 15.0
_WARM = 1
"""Pairs before the ones that count."""


def run(data_path: str, pairs: int = 7, records: int = RECORDS) -> dict[str, Any]:
    """Run the pairs; the results are percentages: 100 is that of the other of a pair.

    Args:
        pairs: how many count.
        records: of each run.
    """
    began = time.time()
    values = _values(records)
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka_cluster())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways: dict[str, Callable[[], tuple[float, float]]] = {
            "bare": lambda: _bare(cluster, values),
            "at least once": lambda: _sink(cluster, values, DeliveryGuarantee.AT_LEAST_ONCE, folder),
            "exactly once": lambda: _sink(cluster, values, DeliveryGuarantee.EXACTLY_ONCE, folder),
        }
        ready = time.time()
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for number in range(-_WARM, pairs):
            for name in sorted(ways, reverse=bool(number % 2)):
                measured = ways[name]()
                if number >= 0:
                    found[name].append(measured)
    return {
        "rows": records, "seconds_total": time.time() - began, "seconds_startup": ready - began,
        **_ratios("rate of a bare producer, %", found["bare"], found["at least once"]),
        **_ratios("cost of exactly once, %", found["exactly once"], found["at least once"], -100.0),
        **{f"{name}: records/s": median(records / wall for wall, _ in runs) for name, runs in found.items()},
        **{f"{name}: CPU ns/record": median(cpu / records * 1e9 for _, cpu in runs) for name, runs in found.items()},
    }  # fmt: skip


def _ratios(
    name: str, above: Sequence[tuple[float, float]], below: Sequence[tuple[float, float]], less: float = 0.0
) -> dict[str, float]:
    """Return the median and the quartiles of the ratios of pairs, in percent, by the clock and by CPU time."""
    results = {}
    for index, what in enumerate(("clock", "CPU")):
        ratios = [100 * a[index] / b[index] + less for a, b in zip(above, below, strict=True)]
        first, _, third = quantiles(ratios, n=4)
        results |= {f"{name} ({what})": median(ratios)}
        results |= {f"{name} ({what}), quartile 1": first, f"{name} ({what}), quartile 3": third}
    return results


class _Measured:
    """The seconds of the clock and of CPU, of all threads of this process, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> tuple[float, float]:
        return time.perf_counter() - self._wall, time.process_time() - self._cpu


def _values(records: int) -> list[bytes]:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnop", k=8)) for _ in range(500)]
    form = '{"id": %d, "user": "%s", "page": "%s/%s", "agent": "%s", "price": %d, "at": "2026-01-01T00:%02d:00.000Z"}'
    rows = ((number, *chance.choices(words, k=4), number % 977, number % 60) for number in range(records))
    return [(form % row).encode() for row in rows]


def _builder(cluster: KafkaCluster, guarantee: DeliveryGuarantee) -> KafkaSink:
    topic = cluster.new_topic(4)
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema = schema.set_value_serialization_schema(ByteArraySchema())
    builder = KafkaSink.builder().set_bootstrap_servers(cluster.bootstrap_servers).set_record_serializer(schema.build())
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic).build()


def _bare(cluster: KafkaCluster, values: Sequence[bytes]) -> tuple[float, float]:
    sink = _builder(cluster, DeliveryGuarantee.AT_LEAST_ONCE)
    producer = new_producer({**sink._properties, "delivery.report.only.error": True}, ClientErrors({}))
    topic = str(sink._schema.topic)

    def write(part: Sequence[bytes]) -> None:
        for value in part:
            while True:
                try:
                    producer.produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.1)
        while producer.flush(1):
            pass

    write(values[:BATCH])
    measured = _Measured()
    write(values)
    return measured.seconds()


def _sink(
    cluster: KafkaCluster, values: Sequence[bytes], guarantee: DeliveryGuarantee, folder: Path
) -> tuple[float, float]:
    clock = ManualClock(time.time_ns() // 1_000_000)
    numbers = count(1)
    with OperatorHarness(lambda: SinkOperator(_builder(cluster, guarantee)), clock=clock) as sink:

        def checkpoint() -> None:
            number = next(numbers)
            with (folder / "checkpoint").open("wb") as file:
                file.write(pickle.dumps(sink.snapshot(number), protocol=5))
            sink.notify_checkpoint_complete(number)

        sink.process_batch(RowBatch(list(values[:BATCH])))
        checkpoint()
        measured = _Measured()
        for start in range(0, len(values), BATCH):
            sink.process_batch(RowBatch(list(values[start : start + BATCH])))
            if (start + BATCH) % CHECKPOINT == 0 or start + BATCH >= len(values):
                checkpoint()
        return measured.seconds()
