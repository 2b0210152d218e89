"""How many records a task takes, so that their results have room in its outputs."""

from __future__ import annotations

import pytest

from rayflink.actors.exchange.codec import split_batches
from rayflink.actors.exchange.frames import BufferResponse, PartitionId, TaskAddress
from rayflink.actors.exchange.output_room import OutputRoom
from rayflink.actors.exchange.partition import PoolLimits, ResultPartition
from rayflink.actors.exchange.selectors import Broadcast, ByKeyGroup
from rayflink.actors.exchange.writer import BatchLimits, RecordWriter
from rayflink.common.records.batches import RowBatch

MANY = 1 << 30


def writer_of(windows: list[int | None]) -> RecordWriter:
    """A writer whose consumers have announced these windows; None: a consumer that bounds nothing."""
    width = len(windows)
    bounded = None if windows[0] is None else 1
    partition = ResultPartition(PartitionId("d" * 32, 0), width, PoolLimits(1000, 1000, bounded))
    for index, (sub, window) in enumerate(zip(partition.subpartitions, windows, strict=True)):
        sub.request(TaskAddress(f"consumer {index}"), index, 1000)
        if window is not None:
            sub.update_window(0, window, max(1, window // 2))
    return RecordWriter(partition, ByKeyGroup(width, lambda key: key, 128), BatchLimits(timeout_ms=-1))


def fill(room: OutputRoom, writer: RecordWriter, taken: int, written: list[int]) -> None:
    room.count_taken(taken)
    for sub, rows in zip(writer.partition.subpartitions, written, strict=True):
        sub.rows_written += rows


def test_without_windows_all_is_taken() -> None:
    assert OutputRoom([]).rows(MANY) == MANY
    assert OutputRoom([writer_of([None, None])]).rows(MANY) == MANY


def test_before_anything_is_known_a_record_gives_a_record() -> None:
    assert OutputRoom([writer_of([40])]).rows(MANY) == 40
    assert OutputRoom([writer_of([40, 7])]).rows(MANY) == 7


@pytest.mark.parametrize(("given", "taken"), [(1, 90), (10, 9), (0.1, 900)])
def test_a_flat_map_takes_fewer_records_and_a_filter_more(given: float, taken: int) -> None:
    writer = writer_of([100])
    room = OutputRoom([writer])
    room.rows(MANY)
    fill(room, writer, int(10 / given), [10])
    assert room.rows(MANY) == pytest.approx(taken, rel=0.02)


def test_at_least_one_record_is_taken() -> None:
    writer = writer_of([5])
    room = OutputRoom([writer])
    room.rows(MANY)
    fill(room, writer, 1, [1000])
    assert room.rows(MANY) == 1


def test_what_was_restored_does_not_count_as_the_result_of_what_is_taken() -> None:
    writer = writer_of([1000])
    room = OutputRoom([writer])
    writer.partition.subpartitions[0].rows_written += 1_000_000
    writer.partition.subpartitions[0].update_window(1_000_000, 1000, 500)
    assert room.rows(MANY) == 1000
    fill(room, writer, 10, [10])
    assert room.rows(MANY) == pytest.approx(990, abs=2)


def test_many_records_for_a_small_window_are_encoded_together() -> None:
    writer = writer_of([1])
    writer.write(RowBatch(list(range(8192))))
    frame = writer.partition.subpartitions[0].poll()
    assert isinstance(frame, BufferResponse) and frame.body is not None
    assert len(split_batches(frame.body)) <= 8


def test_what_is_written_behind_a_used_up_window_goes_in_one_buffer() -> None:
    writer = writer_of([1])
    sub = writer.partition.subpartitions[0]
    for number in range(100):
        writer.write(RowBatch([number]))
    assert sub.backlog <= 100 and writer.partition.is_full
    writer = writer_of([50])
    sub = writer.partition.subpartitions[0]
    sub.update_window(0, 1, 1000)
    for number in range(100):
        writer.write(RowBatch([number]))
    assert sub.backlog == 1
    writer.tick(0)
    assert sub.backlog == 2


def test_a_receiver_that_is_gone_does_not_make_the_buffers_of_the_others_small() -> None:
    width = 2
    partition = ResultPartition(PartitionId("d" * 32, 0), width, PoolLimits(1000, 1000, 2))
    for index, sub in enumerate(partition.subpartitions):
        sub.request(TaskAddress(f"consumer {index}"), index, 1000)
        sub.update_window(0, 1000, 1 if index else 500)
    writer = RecordWriter(partition, Broadcast(width), BatchLimits(timeout_ms=-1))
    partition.subpartitions[1].release()
    for number in range(50):
        writer.write(RowBatch([number]))
    assert partition.subpartitions[0].backlog == 0


def test_a_channel_that_gets_little_does_not_make_slices_small() -> None:
    writer = writer_of([1000, 2])
    room = OutputRoom([writer])
    room.rows(MANY)
    for _ in range(10):
        fill(room, writer, 1000, [1000, 0])
        writer.partition.subpartitions[0].update_window(writer.partition.subpartitions[0].rows_written, 1000, 500)
        assert room.rows(MANY) == 1000


def test_a_channel_that_gets_nearly_all_bounds_the_slice() -> None:
    writer = writer_of([100, 100])
    room = OutputRoom([writer])
    room.rows(MANY)
    fill(room, writer, 50, [49, 1])
    assert 50 <= room.rows(MANY) <= 53


def test_a_filter_that_drops_nearly_all_does_not_take_without_bound() -> None:
    writer = writer_of([3])
    room = OutputRoom([writer])
    room.rows(MANY)
    fill(room, writer, 1_000_000, [1])
    assert room.rows(MANY) == 2000


def test_a_used_up_window_is_a_full_output_and_sends_what_is_open() -> None:
    writer = writer_of([3])
    room = OutputRoom([writer])
    sub = writer.partition.subpartitions[0]
    sub.update_window(0, 3, 100)
    writer.write(RowBatch([1, 2]))
    assert not room.is_full() and not sub.backlog
    writer.write(RowBatch([3]))
    assert room.is_full() and sub.backlog == 1, "no timeout sends it here"
    sub.update_window(1, 3, 100)
    assert not room.is_full() and sub.rows_in_flight == 2


def test_a_window_that_shrinks_sends_what_is_open() -> None:
    writer = writer_of([100])
    sub = writer.partition.subpartitions[0]
    sub.update_window(0, 100, 100)
    writer.write(RowBatch([1, 2, 3]))
    writer.tick(0)
    assert not sub.backlog
    sub.update_window(0, 2, 1)
    writer.tick(0)
    assert sub.backlog == 1


def test_a_buffer_has_no_more_records_than_its_consumer_asks_for() -> None:
    writer = writer_of([100])
    sub = writer.partition.subpartitions[0]
    sub.update_window(0, 100, 25)
    for number in range(60):
        writer.write(RowBatch([number]))
    assert sub.backlog == 2


def test_a_consumer_that_is_gone_bounds_nothing() -> None:
    writer = writer_of([1])
    writer.write(RowBatch([1]))
    assert writer.partition.is_full
    writer.partition.subpartitions[0].release()
    assert not writer.partition.is_full
