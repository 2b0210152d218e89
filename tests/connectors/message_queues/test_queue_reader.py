"""The reader of a queue, and its thread, on a broker in memory."""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

from rayflink.common import SimpleStringSchema
from rayflink.common.connector_base.source import PENDING, ReaderContext
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.message_queues.broker_errors import BrokerOutage, BrokerRefusal
from rayflink.connectors.message_queues.deliveries import Deliveries, QueueSplit
from rayflink.connectors.message_queues.queue_reader import QueueReader, QueueReading
from rayflink.connectors.message_queues.queue_source import QueueSource
from rayflink.state.clock import SystemClock


class Broker:
    """A queue of pairs of id and message; what a connection has not acknowledged comes again, first."""

    def __init__(self, messages: Iterable[tuple[str, bytes]], prefetch: int = 100) -> None:
        self.waiting, self.prefetch = deque(messages), prefetch
        self.connections: list[Connection] = []
        self.acknowledged: list[str] = []
        self.lock = threading.RLock()

    def connect(self) -> Connection:
        with self.lock:
            connection = Connection(self)
            self.connections.append(connection)
            return connection


class Connection:
    def __init__(self, broker: Broker) -> None:
        self.broker, self.is_lost, self.is_closed = broker, False, False
        self.unacknowledged: dict[int, tuple[str, bytes]] = {}
        self.tag = 0

    def lose(self) -> None:
        with self.broker.lock:
            self.is_lost = True
            self.broker.waiting.extendleft(reversed(self.unacknowledged.values()))
            self.unacknowledged.clear()

    def receive(self, most: int, wait_s: float) -> Deliveries | None:
        with self.broker.lock:
            if self.is_lost:
                raise BrokerOutage("the connection is lost", "wait")
            room = min(most, self.broker.prefetch - len(self.unacknowledged), len(self.broker.waiting))
            first = self.tag + 1
            for _ in range(room):
                self.tag += 1
                self.unacknowledged[self.tag] = self.broker.waiting.popleft()
            got = [self.unacknowledged[tag] for tag in range(first, self.tag + 1)]
        if not got:
            time.sleep(min(wait_s, 0.002))
            return None
        return Deliveries([message for _, message in got], range(first, self.tag + 1), [name for name, _ in got])

    def acknowledge(self, tags: Sequence[Any]) -> None:
        with self.broker.lock:
            self.broker.acknowledged += [self.unacknowledged.pop(tag)[0] for tag in tags]

    def close(self) -> None:
        with self.broker.lock:
            self.is_closed = True
            self.lose()


def messages(*numbers: int) -> list[tuple[str, bytes]]:
    return [(f"id{number}", b"%d" % number) for number in numbers]


class MemorySource(QueueSource[str]):
    def __init__(self, broker: Broker, drops_seen: bool) -> None:
        reading = QueueReading("q", "queue 'q'", broker.prefetch, "call more()", drops_seen, outage_timeout_ms=5_000)
        super().__init__(reading, SimpleStringSchema())
        self.broker = broker

    def connect(self, subtask: int) -> Connection:
        return self.broker.connect()


def open_reader(
    broker: Broker, metrics: MetricGroup, drops_seen: bool = False, checkpointing: bool = True,
    splits: Sequence[QueueSplit] = (),
) -> QueueReader:  # fmt: skip
    ctx = ReaderContext(clock=SystemClock(), metrics=metrics, checkpointing=checkpointing)
    reader = MemorySource(broker, drops_seen).create_reader(ctx)
    assert isinstance(reader, QueueReader)
    reader.add_splits(list(splits) or [QueueSplit("q")])
    return reader


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def read(reader: QueueReader, count: int) -> list[str]:
    records: list[str] = []

    def has_all() -> bool:
        answer = reader.poll(3)
        if isinstance(answer, RowBatch):
            records.extend(answer.values)
        return len(records) >= count

    until(has_all)
    return records


def test_a_complete_checkpoint_acknowledges_what_it_contains() -> None:
    broker, metrics = Broker(messages(*range(10))), MetricGroup()
    reader = open_reader(broker, metrics)
    first = read(reader, 4)
    splits = reader.snapshot_state()
    rest = read(reader, 10 - len(first))
    assert first + rest == [str(number) for number in range(10)] and metrics.snapshot()["numUnacknowledged"] == 10
    reader.notify_checkpoint_complete(1, splits)
    until(lambda: len(broker.acknowledged) == len(first))
    assert broker.acknowledged == [name for name, _ in messages(*range(len(first)))]
    reader.notify_checkpoint_complete(2, reader.snapshot_state())
    reader.close()
    until(lambda: broker.connections[0].is_closed)
    assert len(broker.acknowledged) == 10, "close() waits for acknowledgements that are under way"


def test_without_checkpoints_what_is_given_out_is_acknowledged() -> None:
    broker = Broker(messages(*range(250)), prefetch=20)
    reader = open_reader(broker, MetricGroup(), checkpointing=False)
    assert len(read(reader, 250)) == 250
    until(lambda: len(broker.acknowledged) == 250)
    reader.close()


def test_a_prefetch_that_is_used_up_is_counted_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    broker, metrics = Broker(messages(*range(30)), prefetch=10), MetricGroup()
    reader = open_reader(broker, metrics)
    for stalls in range(1, 4):
        read(reader, 10)
        until(lambda: reader.poll(3) is PENDING and metrics.snapshot()["numPrefetchStalls"])
        assert reader.poll(3) is PENDING and metrics.snapshot()["numPrefetchStalls"] == stalls
        reader.notify_checkpoint_complete(stalls, reader.snapshot_state())
    reader.close()
    warnings = [record.getMessage() for record in caplog.records if "prefetch" in record.getMessage()]
    assert len(warnings) == 1 and "10 deliveries wait" in warnings[0] and "call more(), or shorten" in warnings[0]


def test_messages_come_again_after_a_connection_is_lost_and_seen_ones_are_dropped() -> None:
    for drops_seen in (False, True):
        broker, metrics = Broker(messages(*range(6))), MetricGroup()
        reader = open_reader(broker, metrics, drops_seen)
        read(reader, 6)
        splits = reader.snapshot_state()
        broker.connections[0].lose()
        broker.waiting.append(("id6", b"6"))
        again = read(reader, 1 if drops_seen else 7)
        assert again == (["6"] if drops_seen else [str(number) for number in range(7)])
        reader.notify_checkpoint_complete(1, splits)
        reader.notify_checkpoint_complete(2, reader.snapshot_state())
        until(lambda broker=broker: len(broker.acknowledged) == 7)  # of the second connection, each once
        found = metrics.snapshot()
        assert (found["numReconnects"], found["numMessagesDropped"]) == (1, 6 if drops_seen else 0)
        reader.close()


def test_a_restored_reader_drops_what_its_checkpoint_has_and_nothing_else() -> None:
    broker = Broker(messages(*range(9)))
    reader = open_reader(broker, MetricGroup(), drops_seen=True)
    first = read(reader, 4)
    splits = reader.snapshot_state()
    read(reader, 9 - len(first))
    del reader  # as a process that is killed
    gc.collect()
    until(lambda: broker.connections[0].is_closed)
    assert not broker.acknowledged
    restored = open_reader(broker, MetricGroup(), drops_seen=True, splits=splits)
    assert first + read(restored, 9 - len(first)) == [str(number) for number in range(9)]
    restored.close()


def test_a_message_without_an_id_fails_the_source_that_needs_it() -> None:
    broker = Broker([("id0", b"0"), ("", b"1")])
    reader = open_reader(broker, MetricGroup(), drops_seen=True)
    with pytest.raises(BrokerRefusal, match="queue 'q', delivery 2 has no message id.*have producers set"):
        read(reader, 2)
    reader.close()


class Coordinator:
    """Does work at once, and notes what is assigned."""

    def __init__(self) -> None:
        self.assigned: list[int] = []
        self.work: list[tuple[Any, Any]] = []

    def assign_splits(self, assignment: dict[int, list[QueueSplit]]) -> None:
        self.assigned += assignment

    def call_async(self, work: Any, then: Any) -> None:
        self.work.append((work, then))

    def do_work(self) -> None:
        for work, then in self.work:
            try:
                answer, error = work(), None
            except BrokerRefusal as refusal:
                answer, error = None, refusal
            then(answer, error)


def test_readers_wait_until_the_queue_is_ready() -> None:
    class Prepared(MemorySource):
        tries = 0

        def prepare(self) -> None:
            self.tries += 1
            if self.tries == 1:
                raise BrokerOutage("no broker", "start it")

    source, ctx = Prepared(Broker([]), False), Coordinator()
    enumerator = source.create_enumerator(ctx)
    enumerator.start()
    enumerator.handle_split_request(1)
    enumerator.handle_split_request(0)
    assert not ctx.assigned and enumerator.snapshot_state() is False
    ctx.do_work()
    assert source.tries == 2 and ctx.assigned == [0, 1] and enumerator.snapshot_state() is True
    ctx = Coordinator()
    restored = source.restore_enumerator(ctx, True)
    restored.start()
    restored.handle_split_request(2)
    assert ctx.assigned == [2] and not ctx.work, "a queue that was deleted since is not declared again"


def test_a_queue_that_cannot_be_made_ready_fails_the_job() -> None:
    class Refused(MemorySource):
        def prepare(self) -> None:
            raise BrokerRefusal("no permission", "grant it")

    ctx = Coordinator()
    Refused(Broker([]), False).create_enumerator(ctx).start()
    with pytest.raises(BrokerRefusal, match="no permission; grant it"):
        ctx.do_work()


def test_an_outage_that_lasts_too_long_fails_the_source() -> None:
    class Away(MemorySource):
        def connect(self, subtask: int) -> Connection:
            raise BrokerOutage("no broker", "start it")

    source = Away(Broker([]), False)
    source._reading = QueueReading("q", "queue 'q'", outage_timeout_ms=1)
    reader = source.create_reader(ReaderContext(clock=SystemClock()))
    reader.add_splits([QueueSplit("q")])
    with pytest.raises(BrokerOutage, match="no broker; start it"):
        until(lambda: reader.poll(1) is not PENDING)
    reader.close()
    with pytest.raises(Exception, match="has parallelism 2, and can have 1"):
        MemorySource(Broker([]), True).create_reader(ReaderContext(parallelism=2))
