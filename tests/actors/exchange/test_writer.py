"""When a batch closes, what it holds, and where it goes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.actors.exchange import writer as writer_module
from rayflink.actors.exchange.codec import decode_batch, encode_pieces, split_batches
from rayflink.actors.exchange.frames import BufferResponse, PartitionId, TaskAddress
from rayflink.actors.exchange.key_channels import KeyChannels
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.selectors import Broadcast, ByKeyGroup, RoundRobin, SingleChannel
from rayflink.actors.exchange.subpartition import Subpartition
from rayflink.actors.exchange.writer import BatchLimits, RecordWriter
from rayflink.common.records.batches import (
    ArrowBatch,
    Batch,
    CheckpointBarrier,
    EndOfPartition,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from rayflink.common.records.row_columns import RowColumns

UNBOUNDED = PoolLimits(10**9, 10**9)


def partition_of(width: int) -> ResultPartition:
    partition = ResultPartition(PartitionId("d" * 32, 0), width, UNBOUNDED)
    for sub in partition.subpartitions:
        sub.request(TaskAddress("consumer"), sub.index, 10**9)
    return partition


def drained(sub: Subpartition) -> list[Any]:
    """What the channel holds: decoded batches and events."""
    found: list[Any] = []
    while (frame := sub.poll()) is not None:
        assert isinstance(frame, BufferResponse)
        found += [frame.event] if frame.body is None else map(decode_batch, split_batches(frame.body))
    return found


def writer_of(width: int, selector: Any = None, **limits: int) -> RecordWriter:
    return RecordWriter(partition_of(width), selector, BatchLimits(**limits))


def channels(writer: RecordWriter) -> list[list[Any]]:
    return [drained(sub) for sub in writer.partition.subpartitions]


@pytest.mark.spec("D10")
def test_without_a_selector_records_go_to_the_channels_in_turn() -> None:
    writer = writer_of(3)
    writer.write(RowBatch([0, 1, 2, 3]))
    writer.flush()
    assert channels(writer) == [[RowBatch([0, 3])], [RowBatch([1])], [RowBatch([2])]]


def test_a_selector_for_another_number_of_channels_is_refused() -> None:
    with pytest.raises(ValueError, match="selector is for 2 channels, the partition has 3"):
        RecordWriter(partition_of(3), RoundRobin(2))


@pytest.mark.spec("N10", "V07", "X54")
def test_a_timeout_below_minus_one_is_refused() -> None:
    with pytest.raises(ValueError, match="buffer timeout must be -1 .*found -2"):
        BatchLimits(timeout_ms=-2)


@pytest.mark.parametrize("limits", [{"max_rows": 0}, {"max_bytes": 0}])
def test_a_batch_without_room_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1 row and 1 byte"):
        BatchLimits(**limits)


@pytest.mark.spec("N10", "X54", "V07")
def test_without_a_timeout_only_full_batches_are_sent() -> None:
    writer = writer_of(1, max_rows=4, max_bytes=70, timeout_ms=-1)
    writer.tick(0)
    writer.write(RowBatch([1, 2, 3]))
    writer.tick(10**9)
    assert writer.deadline_ms() is None
    assert channels(writer) == [[]]
    writer.write(RowBatch([4]))
    assert channels(writer) == [[RowBatch([1, 2, 3, 4])]]


@pytest.mark.spec("N10", "X54", "V07", "N06")
def test_timeout_zero_sends_after_every_write() -> None:
    writer = writer_of(2, timeout_ms=0)
    writer.write(RowBatch([1]))
    writer.write(RowBatch([2, 3]))
    assert channels(writer) == [[RowBatch([1]), RowBatch([3])], [RowBatch([2])]]
    assert writer.deadline_ms() is None


@pytest.mark.spec("N10", "X54", "V07")
def test_a_batch_is_sent_when_its_time_is_up() -> None:
    writer = writer_of(1, timeout_ms=100)
    writer.tick(1000)
    writer.write(RowBatch([1]))
    assert writer.deadline_ms() == 1100
    writer.tick(1099)
    assert channels(writer) == [[]]
    writer.write(RowBatch([2]))
    writer.tick(1100)
    assert channels(writer) == [[RowBatch([1, 2])]]
    assert writer.deadline_ms() is None
    assert writer.effective_timeout_ms > 0


def test_each_channel_has_its_own_time_and_a_busy_one_delays_no_other() -> None:
    writer = writer_of(2, ByKeyGroup(2, lambda r: r, 128), max_rows=8, max_bytes=80, timeout_ms=100)
    keys = {KeyChannels(2, 128, 40).key(key): key for key in range(40)}
    writer.tick(0)
    writer.write(RowBatch([keys[1]]))
    for now in range(10, 100, 10):
        writer.tick(now)
        writer.write(RowBatch([keys[0]] * 8))
    busy, quiet = channels(writer)
    assert (len(busy), quiet) == (9, [])
    writer.write(RowBatch([keys[0]]))
    writer.tick(100)
    assert channels(writer) == [[], [RowBatch([keys[1]])]]
    assert writer.deadline_ms() == 190


def test_records_written_before_the_time_is_known_wait_from_the_first_tick() -> None:
    writer = writer_of(1, timeout_ms=100)
    writer.write(RowBatch([1]))
    writer.tick(1_600_000_000_000)
    assert channels(writer) == [[]]
    writer.tick(1_600_000_000_100)
    assert channels(writer) == [[RowBatch([1])]]
    assert writer.effective_timeout_ms < 100


def test_a_clock_set_back_does_not_hold_a_batch_longer_than_the_timeout() -> None:
    writer = writer_of(1, timeout_ms=100)
    writer.tick(1_000_000)
    writer.write(RowBatch([1]))
    writer.tick(5_000)
    writer.tick(5_100)
    assert channels(writer) == [[RowBatch([1])]]


def test_a_deadline_passes_on_to_the_next_batch() -> None:
    writer = writer_of(1, max_rows=2, max_bytes=60, timeout_ms=100)
    writer.tick(0)
    writer.write(RowBatch([1]))
    writer.tick(50)
    writer.write(RowBatch([2]))
    assert writer.deadline_ms() is None
    writer.write(RowBatch([3]))
    assert writer.deadline_ms() == 150
    writer.write(Watermark(1))
    assert writer.deadline_ms() is None


@pytest.mark.spec("N09", "N12", "E13", "everywhere")
def test_an_event_goes_to_every_channel_behind_the_records_before_it() -> None:
    writer = writer_of(2, SingleChannel(2, 1))
    writer.write(RowBatch([1]))
    writer.broadcast(CheckpointBarrier(1, 0))
    writer.write(RowBatch([2]))
    writer.write(Watermark(5))
    writer.finish()
    assert channels(writer) == [
        [CheckpointBarrier(1, 0), Watermark(5), EndOfPartition()],
        [RowBatch([1]), CheckpointBarrier(1, 0), RowBatch([2]), Watermark(5), EndOfPartition()],
    ]


def test_watermarks_behind_one_another_are_one_the_newest() -> None:
    writer = writer_of(1)
    writer.write(RowBatch([1]))
    for stamp in (1, 2, 3):
        writer.write(Watermark(stamp))
    writer.write(WatermarkStatus(True))
    writer.write(Watermark(4))
    writer.write(RowBatch([2]))
    writer.write(Watermark(5))
    assert channels(writer) == [
        [RowBatch([1]), Watermark(3), WatermarkStatus(True), Watermark(4), RowBatch([2]), Watermark(5)]
    ]


@pytest.mark.spec("N08", "once", "N06")
def test_what_goes_to_every_channel_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[Batch] = []

    def counting(batch: Batch) -> bytes:
        encoded.append(batch)
        return encode_pieces(batch)

    monkeypatch.setattr(writer_module, "encode_pieces", counting)
    writer = writer_of(16, Broadcast(16))
    writer.write(RowBatch([1, 2]))
    writer.write(RowBatch([3]))
    writer.broadcast(Watermark(7))
    assert channels(writer) == [[RowBatch([1, 2, 3]), Watermark(7)]] * 16
    assert encoded == [RowBatch([1, 2, 3])]
    assert writer.rows_written == 3


sizes = st.lists(st.integers(0, 3000), max_size=40)


@pytest.mark.spec("N06", "X53", "smaller", "N07", "whole", "M01", "unit")
@settings(max_examples=25)
@given(st.lists(sizes, max_size=6), st.integers(1, 3), st.integers(1, 20), st.integers(40, 2000), st.booleans())
def test_no_buffer_exceeds_the_bounds_unless_a_single_record_does(
    writes: list[list[int]], width: int, max_rows: int, max_bytes: int, arrow: bool
) -> None:
    writer = writer_of(width, max_rows=max_rows, max_bytes=max_bytes, max_arrow_bytes=max_bytes)
    expected: list[list[Any]] = [[] for _ in range(width)]
    turn = 0
    for write in writes:
        records = ["x" * size for size in write]
        for record in records:
            expected[turn % width].append(record)
            turn += 1
        if arrow:
            writer.write(ArrowBatch(pa.record_batch({"r": pa.array(records, pa.string())})))
        else:
            writer.write(RowBatch(records))
    writer.finish()
    for sub, wanted in zip(writer.partition.subpartitions, expected, strict=True):
        found: list[Any] = []
        while (frame := sub.poll()) is not None:
            assert isinstance(frame, BufferResponse)
            if frame.body is None:
                continue
            batches = list(map(decode_batch, split_batches(frame.body)))
            assert arrow or all(len(batch) <= max_rows for batch in batches)
            assert len(frame.body) <= max_bytes or [len(batch) for batch in batches] == [1]
            for batch in batches:
                found += batch.values if isinstance(batch, RowBatch) else [row["r"] for row in batch.data.to_pylist()]
        assert found == wanted


def test_a_batch_goes_on_filling_while_an_earlier_one_waits_to_be_sent() -> None:
    writer = writer_of(1, timeout_ms=10)
    (sub,) = writer.partition.subpartitions
    sub.credit = 0
    for now in range(0, 100, 20):
        writer.tick(now)
        writer.write(RowBatch([now]))
    writer.tick(100)
    assert sub.backlog == 1  # [0], the first whose time was up
    assert writer.deadline_ms() is None  # nothing to wake up for before credit comes
    sub.add_credit(2)
    assert sub.poll() is not None
    writer.tick(101)
    frame = sub.poll()
    assert isinstance(frame, BufferResponse)
    assert frame.body is not None
    assert decode_batch(frame.body) == RowBatch([20, 40, 60, 80])
    assert writer.effective_timeout_ms > 0


@pytest.mark.spec("X53", "fills", "N07", "full", "N06")
def test_records_that_fill_a_buffer_to_the_byte_share_it_and_a_byte_less_splits_them() -> None:
    def sizes_of(max_bytes: int) -> list[int]:
        writer = writer_of(1, max_bytes=max_bytes)
        writer.write(RowBatch(["x" * 40]))
        writer.write(RowBatch(["y" * 40], [0]))
        writer.flush()
        frames = iter(writer.partition.subpartitions[0].poll, None)
        return [len(frame.body) for frame in frames if isinstance(frame, BufferResponse) and frame.body is not None]

    [whole] = sizes_of(1 << 20)
    assert sizes_of(whole) == [whole]
    assert len(sizes_of(whole - 1)) == 2


@pytest.mark.spec("N35", "whole")
def test_a_huge_record_goes_alone_and_small_ones_around_it_stay_in_their_batches() -> None:
    writer = writer_of(1, max_bytes=10_000, max_rows=1000)
    records = [b"s" * 10] * 500 + [b"h" * 1_000_000] + [b"s" * 10] * 500
    writer.write(RowBatch(records))
    writer.finish()
    (found,) = channels(writer)
    batches = [batch for batch in found if isinstance(batch, RowBatch)]
    assert [record for batch in batches for record in batch.values] == records
    assert [len(b) for b in batches if b"h" * 1_000_000 in b.values] == [1]
    assert len(batches) < 250


def test_large_records_do_not_pile_up_before_the_first_batch_is_measured() -> None:
    writer = writer_of(1, max_bytes=1 << 20, timeout_ms=-1)
    for _ in range(64):
        writer.write(RowBatch([("key", "x" * 400_000)]))
        assert writer._pending <= 3
    assert len(channels(writer)[0]) >= 21


def test_batches_grow_to_the_row_limit_while_rows_are_small() -> None:
    writer = writer_of(1, timeout_ms=-1)
    for start in range(0, 65536, 1024):
        writer.write(RowBatch(list(range(start, start + 1024))))
    writer.flush()
    *lengths, rest = [len(batch) for batch in channels(writer)[0]]
    assert max(lengths) == 8192
    assert lengths == sorted(lengths)
    assert rest == 65536 - sum(lengths)


def test_a_buffer_is_filled_with_batches_before_it_goes() -> None:
    writer = writer_of(1, max_bytes=100_000, timeout_ms=-1)
    sub = writer.partition.subpartitions[0]
    while not sub.backlog:
        writer.write(RowBatch(["x" * 10] * 1024))
    frame = sub.poll()
    assert isinstance(frame, BufferResponse)
    assert frame.body is not None
    assert 50_000 < len(frame.body) <= 100_000
    assert [len(decode_batch(part)) for part in split_batches(frame.body)][:2] == [1024, 2048]


def test_a_buffer_has_at_most_the_rows_that_are_allowed() -> None:
    writer = writer_of(1, max_rows=10, timeout_ms=-1)
    for start in range(0, 35, 7):
        writer.write(RowBatch(list(range(start, start + 7))))
    writer.flush()
    buffers = [part for part in channels(writer)[0] if isinstance(part, RowBatch)]
    assert [value for batch in buffers for value in batch.values] == list(range(35))
    assert max(len(batch) for batch in buffers) <= 10


def test_rows_with_and_without_timestamps_and_arrow_of_other_schemas_are_not_mixed() -> None:
    writer = writer_of(1)
    table = pa.record_batch({"a": [1]})
    parts: list[Batch] = [
        RowBatch([1]),
        RowBatch([2]),
        RowBatch([3], [30]),
        RowBatch([4], [40]),
        ArrowBatch(table),
        ArrowBatch(table),
        ArrowBatch(table, np.array([5])),
        ArrowBatch(pa.record_batch({"b": [1]}), np.array([6])),
        RowBatch([5]),
    ]
    for part in parts:
        writer.write(part)
    writer.flush()
    assert channels(writer) == [
        [
            RowBatch([1, 2]),
            RowBatch([3, 4], [30, 40]),
            ArrowBatch(pa.record_batch({"a": [1, 1]})),
            ArrowBatch(table, np.array([5])),
            ArrowBatch(pa.record_batch({"b": [1]}), np.array([6])),
            RowBatch([5]),
        ]
    ]


def test_a_writer_does_not_change_the_batch_it_was_given() -> None:
    writer = writer_of(1)
    first, second = RowBatch([1], [10]), RowBatch([2], [20])
    writer.write(first)
    writer.write(second)
    assert (first, second) == (RowBatch([1], [10]), RowBatch([2], [20]))


def test_an_empty_batch_starts_no_clock_and_sends_nothing() -> None:
    writer = writer_of(2, timeout_ms=0)
    writer.write(RowBatch([]))
    writer.write(ArrowBatch(pa.record_batch({"a": pa.array([], pa.int64())})))
    assert channels(writer) == [[], []]
    assert writer.deadline_ms() is None


def test_the_oldest_of_the_batches_that_stay_open_sets_the_next_deadline() -> None:
    writer = writer_of(3, RoundRobin(3, start=1), timeout_ms=100)
    for now in (0, 20, 50):
        writer.tick(now)
        writer.write(RowBatch([now]))
    writer.tick(100)
    assert channels(writer) == [[], [RowBatch([0])], []]
    assert writer.deadline_ms() == 120


def test_one_large_row_keeps_its_batch_small_though_small_rows_follow() -> None:
    writer = writer_of(1, max_bytes=800, timeout_ms=-1)
    writer.write(RowBatch(["x" * 400]))
    writer.write(RowBatch(["y"]))
    assert channels(writer) == [[RowBatch(["x" * 400, "y"])]]


def keyed_rows(count: int = 300) -> list[tuple[str, int]]:
    return [(f"w{i % 7}", i) for i in range(count)]


def test_keyed_rows_that_become_columns_arrive_in_order_also_between_rows() -> None:
    """Small batches stay rows, large ones become columns; a channel's order is that of arrival."""
    writer = writer_of(2, ByKeyGroup(2, lambda row: row[0], 128), max_rows=350)
    given = [keyed_rows(), keyed_rows(3), keyed_rows(600), [("a", None)] * 300, keyed_rows(5)]
    for values in given:
        writer.write(RowBatch(values))
    writer.flush()
    got = channels(writer)
    assert {type(batch) for batches in got for batch in batches} == {RowBatch, RowColumns}
    channel_of = KeyChannels(2, 128, 100).key
    for channel, batches in enumerate(got):
        sent = [row for values in given for row in values if channel_of(row[0]) == channel]
        assert [row for batch in batches for row in batch.values] == sent


def test_columns_of_several_writes_are_encoded_together() -> None:
    writer = writer_of(1 + 1, ByKeyGroup(2, lambda row: row[0], 128))
    for _ in range(3):
        writer.write(RowBatch(keyed_rows()))
    writer.flush()
    assert all(len(batches) == 1 and isinstance(batches[0], RowColumns) for batches in channels(writer))


def test_what_is_known_of_the_key_does_not_outlive_its_stream() -> None:
    """An operator that hands on what it was given must not make the next stream believe it has the same key."""
    keyed = writer_of(2, ByKeyGroup(2, lambda row: row[0], 128))
    keyed.write(RowBatch(keyed_rows()))
    keyed.flush()
    (first, *_), _ = channels(keyed)
    assert isinstance(first, RowColumns) and first.key_column == 0
    forward = writer_of(1)
    forward.write(first)
    again = writer_of(2, ByKeyGroup(2, lambda row: row[1], 128))
    again.write(first)
    for writer in (forward, again):
        writer.flush()
        arrived = [batch for batches in channels(writer) for batch in batches]
        assert sorted(row for batch in arrived for row in batch.values) == sorted(first.values)
        assert all(getattr(batch, "key_column", None) != 0 for batch in arrived)


@pytest.mark.parametrize(("width", "most"), [(1, 8 << 20), (8, 8 << 20), (32, 2 << 20), (200, 1 << 20)])
def test_arrow_buffers_are_the_smaller_the_more_channels_share_the_memory(width: int, most: int) -> None:
    writer = writer_of(width, SingleChannel(width), max_rows=10**9, timeout_ms=-1)
    batch = ArrowBatch(pa.record_batch({"a": np.arange(1 << 16)}))
    for _ in range(20):
        writer.write(batch)
    sizes = [entry.body for entry in bodies(writer.partition.subpartitions[0])]
    assert all(most // 3 < len(body) <= most for body in sizes) and sizes


def bodies(sub: Subpartition) -> list[Any]:
    return [frame for frame in iter(sub.poll, None) if isinstance(frame, BufferResponse)]
