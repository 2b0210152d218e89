"""Records in buffers on their way: whole, in order, not copied, and given back when the last record is worked."""

from __future__ import annotations

import pytest

from rayflink.actors.exchange.codec import CodecError, decode_batch, encode_batch, split_batches
from rayflink.actors.exchange.endpoint import ExchangeEndpoint
from rayflink.actors.exchange.envelopes import join_envelope, split_envelope
from rayflink.actors.exchange.frames import BufferResponse, Envelope, PartitionId, TaskAddress
from rayflink.actors.exchange.gate import ChannelSpec, InputGate
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.subpartition import Buffer, Subpartition
from rayflink.actors.exchange.writer import BatchLimits, RecordWriter
from rayflink.actors.messages.settings import TaskSettings
from rayflink.common.records.batches import EndOfPartition, LatencyMarker, RowBatch, Watermark
from rayflink.operators.stateless import MapOperator
from tests.actors.task.task_bench import ListSource, TaskBench

A, B = TaskAddress("a"), TaskAddress("b")


@pytest.mark.spec("N35", "whole")
def test_a_record_larger_than_any_buffer_arrives_whole() -> None:
    partition = ResultPartition(PartitionId("d" * 32, 0), 1, PoolLimits(100, 100))
    writer = RecordWriter(partition, limits=BatchLimits(max_bytes=32 * 1024))
    records = ["small", bytes(range(256)) * 16_384, "after it"]
    writer.write(RowBatch(records))
    writer.flush()
    sub = partition.subpartitions[0]
    sub.request(B, 0, 100)
    bodies = []
    while isinstance(frame := sub.poll(), BufferResponse):
        assert frame.body is not None
        bodies.append(frame.body)
    parts = [[decode_batch(part) for part in split_batches(body)] for body in bodies]
    assert [value for batches in parts for batch in batches for value in batch.values] == records  # type: ignore[union-attr]
    large = [batches for body, batches in zip(bodies, parts, strict=True) if len(body) > 32 * 1024]
    assert [len(batch) for batches in large for batch in batches] == [1]


@pytest.mark.spec("N34", "intermediate", "last", "M17", "exclusive")
def test_a_buffer_is_given_back_with_its_last_record_and_not_before() -> None:
    bench = TaskBench([MapOperator(lambda n: n * 10)]).start()
    bench.task._slicer.rows = lambda available: 1  # type: ignore[method-assign]
    credit = bench.task._gate.channels[0].credit
    bench.feed(0, RowBatch([1, 2, 3]))
    held = []
    for _ in range(3):
        bench.step()
        held.append((bench.output[-1], credit.statistics().taken))
    assert held == [(10, 1), (20, 1), (30, 0)]


@pytest.mark.spec("M12")
def test_a_buffers_bytes_are_never_copied_on_their_way() -> None:
    body = encode_batch(RowBatch(["x" * 1000]))
    sub = Subpartition(0)
    sub.add(Buffer(body, 1))
    sub.request(B, 0, 1)
    frame = sub.poll()
    header, bodies = split_envelope(Envelope(A, B, 0, (frame, Watermark(1))))  # type: ignore[arg-type]
    assert bodies[0] is body
    assert len(header) < 500
    received = join_envelope(header, tuple(bodies)).frames[0]
    assert isinstance(received, BufferResponse)
    gate = InputGate((ChannelSpec(PartitionId("d" * 32, 0), 0, A),), 2, 0)
    gate.request_partitions()
    gate.receive(received, A)
    item = gate.next()
    assert item is not None
    assert item.body is body


@pytest.mark.spec("M14", "M13", "one")
def test_what_one_partition_holds_is_taken_from_no_other() -> None:
    full, free = (ResultPartition(PartitionId("d" * 32, i), 1, PoolLimits(2, 2)) for i in range(2))
    for _ in range(2):
        full.add(0, Buffer(b"x", 1))
    assert (full.is_full, free.is_full) == (True, False)


@pytest.mark.spec("V30", "O17", "sequence")
def test_a_reader_counts_from_minus_one_and_its_first_message_is_number_zero() -> None:
    sub = Subpartition(0)
    assert sub.sequence == -1
    sub.add(Watermark(1))
    sub.request(B, 0, 0)
    assert sub.poll() == BufferResponse(0, 0, 0, None, Watermark(1))
    assert sub.sequence == 0


# flushing

GAP_TIMEOUT_MS = TaskSettings().gap_timeout_ms


class Sender:
    """A task's writer and conversations, and a consumer `B`."""

    def __init__(self, in_flight: int = 2) -> None:
        self.partition = ResultPartition(PartitionId("d" * 32, 0), 1, PoolLimits(100, 100))
        self.writer = RecordWriter(self.partition, limits=BatchLimits(timeout_ms=-1))
        self.peers = ExchangeEndpoint(A, InputGate((), 2, 0), [self.partition], in_flight, GAP_TIMEOUT_MS)

    def request(self) -> None:
        self.partition.subpartitions[0].request(B, 0, 100)
        self.peers._link(B).serve(self.partition.subpartitions[0])

    def sent(self) -> list[int]:
        """Frames of each call that goes out now."""
        return [len(envelope.frames) for envelope in self.peers.outgoing()]

    def write(self, *values: object) -> None:
        self.writer.write(RowBatch(list(values)))


@pytest.mark.spec("N21", "O38")
def test_a_flush_sends_what_is_open_once_and_without_records_does_nothing() -> None:
    sender = Sender()
    sender.request()
    sender.writer.flush()
    assert sender.sent() == []
    sender.write(1, 2)
    assert sender.sent() == []
    sender.writer.flush()
    sender.writer.flush()
    assert sender.sent() == [1]
    assert sender.sent() == []


@pytest.mark.spec("N20")
def test_a_consumer_hears_nothing_before_it_asks_and_then_one_call_carries_all() -> None:
    sender = Sender(in_flight=1)
    for value in range(3):
        sender.write(value)
        sender.writer.flush()
    assert sender.sent() == []
    sender.request()
    assert sender.sent() == [3]
    for value in range(4):  # a call is under way: no further one is made for each buffer
        sender.write(value)
        sender.writer.flush()
        assert sender.sent() == []
    sender.peers.returned(B)
    assert sender.sent() == [4]


@pytest.mark.spec("N20", "O38")
def test_the_end_is_told_at_once_with_what_was_open() -> None:
    sender = Sender()
    sender.request()
    sender.write(1)
    sender.writer.finish()
    [envelope] = sender.peers.outgoing()
    assert [getattr(frame, "event", None) for frame in envelope.frames] == [None, EndOfPartition()]


# reading


@pytest.mark.spec("N36", "end-of-partition")
def test_a_task_ends_when_every_channel_has_ended() -> None:
    bench = TaskBench([MapOperator(lambda n: n)], channels=(0, 0, 0)).start()
    for channel in (2, 0):
        bench.end(channel)
        bench.work()
        assert bench.states == ["DEPLOYING", "INITIALIZING", "RUNNING"]
    bench.feed(1, "last")
    bench.end(1)
    bench.work()
    assert bench.states[-1] == "FINISHED"
    assert bench.output[0] == "last"


@pytest.mark.spec("N36", "unfinished")
def test_a_buffer_with_an_unfinished_record_is_an_error() -> None:
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    whole = encode_batch(RowBatch(["a record", "another one"]))
    bench.say(TaskAddress("producer 0"), BufferResponse(0, 0, 0, whole[:-5]))
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert bench.failure.kind == CodecError.__name__


@pytest.mark.spec("N36", "unexpected")
def test_an_event_nobody_expects_is_an_error() -> None:
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    bench.say(TaskAddress("producer 0"), BufferResponse(0, 0, 0, None, "end of superstep"))  # type: ignore[arg-type]
    bench.work()
    assert bench.states[-1] == "FAILED"
    assert "Unexpected event: 'end of superstep' on channel 0" in bench.failure.message


# three ways of passing data


@pytest.mark.spec("N04", "B20", "serialized", "I22", "direct", "I23", "apart")
def test_operators_of_one_task_pass_the_very_object_on_and_no_buffer() -> None:
    record = {"mutable": True}
    seen: list[object] = []

    def keep(value: object) -> object:
        seen.append(value)
        return value

    bench = TaskBench([ListSource([RowBatch([record])]), MapOperator(keep), MapOperator(keep)], channels=())
    bench.start().work()
    assert seen[0] is record
    assert seen[1] is seen[0]
    assert bench.output[0] == record
    assert bench.output[0] is not record, "between two tasks it is written and read"


@pytest.mark.spec("I25", "copies")
@pytest.mark.parametrize(("reuse", "same"), [("true", True), ("false", False), (None, True)])
def test_chained_operators_get_copies_only_where_the_program_asks_for_them(reuse: str | None, same: bool) -> None:
    seen: list[object] = []

    def keep(value: object) -> object:
        seen.append(value)
        return value

    config = {} if reuse is None else {"pipeline.object-reuse": reuse}
    chain = [ListSource([RowBatch([["a list"]])]), MapOperator(keep), MapOperator(keep)]
    TaskBench(chain, channels=(), config=config).start().work()
    assert seen[0] == seen[1] == ["a list"]
    assert (seen[0] is seen[1]) is same


def test_a_latency_marker_is_an_event_every_task_expects() -> None:
    bench = TaskBench([MapOperator(lambda n: n)]).start()
    bench.feed(0, LatencyMarker(5, "0" * 32, 0))
    bench.work()
    assert LatencyMarker(5, "0" * 32, 0) in bench.output
