"""The Kafka sink beside a bare producer of the same client, and exactly-once beside at-least-once, in pairs by turns.

One broker on this machine, whose CPU is not counted. Records are 132 bytes of JSON. The sink's subtask gets batches of
1,000 records and a checkpoint after 300,000, which is a second of a job with that rate, or, to see what frequent ones
cost, after 50,000; a thread in the background stores it in a folder, as that of a slot does. Each run writes the
records several times, so that the last commit, which nothing overlaps, counts little. The bare producer has the sink's
properties, gives each record to `produce` and flushes in the end. Each has written a batch before.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from threading import Event
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
from rayflink.state.snapshots import OperatorSnapshot, stored
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.snapshot_files import SnapshotFileWriter, SnapshotPlace
from rayflink.testing import OperatorHarness, Place

RECORDS = 300_000
BATCH = 1_000
TARGET_OF_BARE = 70.0
TARGET_EXACTLY_ONCE = 15.0
_WARM = 1
"""Pairs before the ones that count."""
_INLINE_BYTES = 20_000
"""Bytes of a snapshot that are in no file, the default of `execution.checkpointing.data-inline-threshold`."""


@dataclass(frozen=True)
class Interval:
    """The distance of checkpoints.

    Args:
        records: between two checkpoints.
        rounds: how often a run writes all records.
    """

    records: int
    rounds: int = 1

    @property
    def name(self) -> str:
        return f"each {self.records:,} records"


INTERVALS = (Interval(300_000, 8), Interval(50_000, 4))


def run(data_path: str, pairs: int = 7, records: int = RECORDS) -> dict[str, Any]:
    """Run the pairs; the results are percentages: 100 is that of the other of a pair.

    Args:
        pairs: how many count.
        records: of each run.
    """
    began = time.time()
    values = _values(records)
    guarantees = {"at least once": DeliveryGuarantee.AT_LEAST_ONCE, "exactly once": DeliveryGuarantee.EXACTLY_ONCE}
    with ExitStack() as stack:
        cluster = stack.enter_context(kafka_cluster(settings={"log.segment.delete.delay.ms": "0"}))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        ways: dict[str, Callable[[], Cost]] = {"bare": lambda: _bare(cluster, values)}
        for interval in INTERVALS:
            for name, guarantee in guarantees.items():
                ways[f"{name}, {interval.name}"] = partial(_sink, cluster, values, guarantee, interval, folder)
        ready = time.time()
        costs: dict[str, list[Cost]] = {name: [] for name in ways}
        for number in range(-_WARM, pairs):
            for name in sorted(ways, reverse=bool(number % 2)):
                cost = ways[name]()
                if number >= 0:
                    costs[name].append(cost)
    results: dict[str, Any] = {
        "rows": records, "seconds_total": time.time() - began, "seconds_startup": ready - began,
        **_ratios("rate of a bare producer, %", costs["bare"], costs[f"at least once, {INTERVALS[0].name}"]),
    }  # fmt: skip
    for interval in INTERVALS:
        once, least = costs[f"exactly once, {interval.name}"], costs[f"at least once, {interval.name}"]
        results |= _ratios(f"cost of exactly once, a checkpoint {interval.name}, %", once, least, -100.0)
    for name, runs in costs.items():
        results[f"{name}: records/s"] = median(1 / clock for clock, _ in runs)
        results[f"{name}: CPU ns/record"] = median(cpu * 1e9 for _, cpu in runs)
    return results


def _ratios(name: str, above: Sequence[Cost], below: Sequence[Cost], less: float = 0.0) -> dict[str, float]:
    """Return the median and the quartiles of the ratios of pairs, in percent, by the clock and by CPU time."""
    results = {}
    for index, what in enumerate(("clock", "CPU")):
        ratios = [100 * a[index] / b[index] + less for a, b in zip(above, below, strict=True)]
        first, _, third = quantiles(ratios, n=4)
        results |= {f"{name} ({what})": median(ratios)}
        results |= {f"{name} ({what}), quartile 1": first, f"{name} ({what}), quartile 3": third}
    return results


Cost = tuple[float, float]
"""Seconds of a record, by the clock and of CPU."""


class _Measured:
    """The seconds of the clock and of CPU, of all threads of this process, since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def cost(self, records: int) -> Cost:
        return (time.perf_counter() - self._wall) / records, (time.process_time() - self._cpu) / records


def _values(records: int) -> list[bytes]:
    chance = random.Random(7)
    words = ["".join(chance.choices("abcdefghijklmnop", k=8)) for _ in range(500)]
    form = '{"id": %d, "user": "%s", "page": "%s/%s", "agent": "%s", "price": %d, "at": "2026-01-01T00:%02d:00.000Z"}'
    rows = ((number, *chance.choices(words, k=4), number % 977, number % 60) for number in range(records))
    return [(form % row).encode() for row in rows]


@contextmanager
def _topic_of(cluster: KafkaCluster) -> Iterator[str]:
    """Yield a topic, whose messages are deleted after it: those of all runs together have ten gigabytes."""
    topic = cluster.new_topic(4)
    yield topic
    cluster.delete_topic(topic)


def _builder(cluster: KafkaCluster, topic: str, guarantee: DeliveryGuarantee) -> KafkaSink:
    schema = KafkaRecordSerializationSchema.builder().set_topic(topic)
    schema = schema.set_value_serialization_schema(ByteArraySchema())
    builder = KafkaSink.builder().set_bootstrap_servers(cluster.bootstrap_servers).set_record_serializer(schema.build())
    return builder.set_delivery_guarantee(guarantee).set_transactional_id_prefix(topic).build()


def _bare(cluster: KafkaCluster, values: Sequence[bytes]) -> Cost:
    with _topic_of(cluster) as topic:
        return _bare_to(cluster, topic, values)


def _bare_to(cluster: KafkaCluster, topic: str, values: Sequence[bytes]) -> Cost:
    sink = _builder(cluster, topic, DeliveryGuarantee.AT_LEAST_ONCE)
    producer = new_producer({**sink._properties, "delivery.report.only.error": True}, ClientErrors({}))

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
    return measured.cost(len(values))


def _sink(
    cluster: KafkaCluster, values: Sequence[bytes], guarantee: DeliveryGuarantee, interval: Interval, folder: Path
) -> Cost:
    clock = ManualClock(time.time_ns() // 1_000_000)
    woken, storage = Event(), LocalStorage(folder)
    place = Place(wake=woken.set)
    with (
        _topic_of(cluster) as topic,
        OperatorHarness(lambda: SinkOperator(_builder(cluster, topic, guarantee)), place=place, clock=clock) as sink,
        ThreadPoolExecutor(1) as background,
    ):
        checkpoints = _Checkpoints(sink, storage, background)
        sink.process_batch(RowBatch(list(values[:BATCH])))
        checkpoints.begin()
        checkpoints.complete()
        measured, since = _Measured(), 0
        for start in list(range(0, len(values), BATCH)) * interval.rounds:
            sink.process_batch(RowBatch(list(values[start : start + BATCH])))
            since += BATCH
            if woken.is_set():
                woken.clear()
                sink.set_processing_time(clock.now_ms())
            if checkpoints.is_stored:
                checkpoints.complete()
            if since >= interval.records:
                since = 0
                checkpoints.begin()
        if since:
            checkpoints.begin()
        checkpoints.complete()
        sink.close()  # which waits for the last commits
        cost = measured.cost(interval.rounds * len(values))
    checkpoints.discard()
    return cost


class _Checkpoints:
    """Checkpoints of a sink, one at a time, which a thread in the background stores as that of a slot does."""

    def __init__(self, sink: OperatorHarness, storage: LocalStorage, background: Executor) -> None:
        self._sink, self._storage, self._background = sink, storage, background
        self._number, self._stored = 0, Future[SnapshotFileWriter]()
        self._writers: list[SnapshotFileWriter] = []
        self._is_under_way = False

    @property
    def is_stored(self) -> bool:
        """Return whether a checkpoint is stored of which the sink was not notified."""
        return self._is_under_way and self._stored.done()

    def begin(self) -> None:
        """Take a checkpoint when the one before is complete."""
        self.complete()
        self._number, self._is_under_way = self._number + 1, True
        [operator] = self._sink.operators
        list(operator.prepare_snapshot(self._number))
        snapshot = operator.snapshot_state(self._number) or OperatorSnapshot()
        self._stored = self._background.submit(self._store, self._number, snapshot)

    def complete(self) -> None:
        """Wait until the checkpoint is stored, and notify the sink."""
        if self._is_under_way:
            self._writers.append(self._stored.result())
            self._is_under_way = False
            self._sink.notify_checkpoint_complete(self._number)

    def discard(self) -> None:
        """Delete the files."""
        for writer in self._writers:
            writer.abort()

    def _store(self, number: int, snapshot: OperatorSnapshot) -> SnapshotFileWriter:
        writer = SnapshotFileWriter(self._storage, SnapshotPlace.of_checkpoint(number, _INLINE_BYTES))
        stored(snapshot, writer)
        writer.finish()
        return writer
