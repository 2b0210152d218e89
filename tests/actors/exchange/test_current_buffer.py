"""Slices of the buffers of a gate: small batches are worked together, in the order in which they came."""

from __future__ import annotations

import numpy as np

from rayflink.actors.exchange.codec import encode_batch
from rayflink.actors.exchange.current_buffer import MERGED_ROWS, CurrentBuffer
from rayflink.actors.exchange.frames import BufferResponse, PartitionId, TaskAddress
from rayflink.actors.exchange.gate import ChannelSpec, InputGate
from rayflink.common.records.batches import RowBatch, Watermark, rows_of
from rayflink.common.records.row_columns import Coded, RowColumns


class Bench:
    """A gate of some channels, and the buffer that a task works."""

    def __init__(self, inputs: list[int]) -> None:
        specs = tuple(
            ChannelSpec(PartitionId(f"{i:032x}", 0), 0, TaskAddress(f"p{i}"), index, index)
            for i, index in enumerate(inputs)
        )
        self.gate = InputGate(specs, 4, 0)
        self.gate.request_partitions()
        self.buffer = CurrentBuffer(self.gate)
        self._sequences = [0] * len(inputs)

    def feed(self, channel: int, element: RowBatch | Watermark) -> None:
        is_batch = isinstance(element, RowBatch)
        body, event = (encode_batch(element), None) if is_batch else (None, element)  # type: ignore[arg-type]
        self.gate.receive(BufferResponse(channel, self._sequences[channel], 0, body, event))
        self._sequences[channel] += 1

    def load(self) -> None:
        item = self.gate.next()
        assert item is not None and item.body is not None
        self.buffer.load(item.body, item.channel, item.input_index)

    def slice(self, rows: int) -> list[object]:
        return list(rows_of(self.buffer.take_slice(rows)))


def test_a_slice_goes_on_with_the_buffers_of_other_channels() -> None:
    bench = Bench([0, 0, 0])
    for channel in range(3):
        bench.feed(channel, RowBatch([channel]))
    bench.load()
    assert bench.slice(100) == [0, 1, 2]
    assert bench.buffer.empty
    assert [channel.credit.free for channel in bench.gate.channels] == [4, 4, 4], "all buffers are free again"


def test_a_slice_has_no_more_records_than_asked_for_and_the_rest_is_next() -> None:
    bench = Bench([0])
    bench.feed(0, RowBatch([1, 2]))
    bench.feed(0, RowBatch([3, 4, 5]))
    bench.load()
    assert bench.slice(3) == [1, 2, 3]
    assert bench.buffer.rows == 2
    assert bench.slice(10) == [4, 5]


def test_a_slice_ends_before_an_event_another_input_and_records_of_another_kind() -> None:
    bench = Bench([0, 1])
    bench.feed(0, RowBatch([1]))
    bench.feed(0, Watermark(5))
    bench.load()
    assert bench.slice(10) == [1]
    item = bench.gate.next()
    assert item is not None and item.event == Watermark(5)
    bench.feed(0, RowBatch([2]))
    bench.feed(1, RowBatch(["other"]))
    bench.load()
    assert bench.slice(10) == [2]
    bench.load()
    assert bench.slice(10) == ["other"]
    bench.feed(0, RowBatch([3]))
    bench.feed(0, RowBatch([4], [40]))
    bench.load()
    assert bench.slice(10) == [3]
    assert not bench.buffer.empty and bench.slice(10) == [4]


def test_a_blocked_channel_is_not_drawn_from() -> None:
    bench = Bench([0, 0])
    bench.feed(0, RowBatch([1]))
    bench.feed(1, RowBatch([2]))
    bench.load()
    bench.gate.block(1)
    assert bench.slice(10) == [1]
    bench.gate.unblock()
    bench.load()
    assert bench.slice(10) == [2]


def test_large_batches_are_not_joined() -> None:
    bench = Bench([0])
    bench.feed(0, RowBatch(list(range(MERGED_ROWS))))
    bench.feed(0, RowBatch([-1]))
    bench.load()
    assert bench.buffer.rows_at_hand == MERGED_ROWS
    assert len(bench.slice(10_000)) == MERGED_ROWS


def test_what_was_read_ahead_is_a_slice_of_its_own() -> None:
    bench = Bench([0])
    bench.feed(0, RowBatch(list(range(MERGED_ROWS))))
    bench.feed(0, RowBatch([-1]))
    bench.load()
    ahead = bench.buffer.look_ahead(2)
    assert ahead is not None and list(rows_of(ahead)) == [0, 1]
    assert bench.buffer.rows_at_hand == 2
    assert bench.slice(2) == [0, 1]
    assert bench.buffer.look_ahead(2) is None, "so few are left that they are worked with those behind them"


def test_buffers_of_the_other_input_stay_where_they_are() -> None:
    bench = Bench([0, 1] * 5)
    for channel in range(10):
        bench.feed(channel, RowBatch([channel]))
    bench.load()
    assert bench.slice(100) == [0, 2, 4, 6, 8]
    bench.load()
    assert bench.slice(100) == [1, 3, 5, 7, 9]


def test_rows_that_came_as_columns_of_different_tables_are_worked_together_as_rows() -> None:
    bench = Bench([0])
    for table in (["red", "blue"], ["green", "red"]):
        bench.feed(0, RowColumns([Coded(table, np.array([0, 1], np.uint16)), np.array([1, 2])], None, 0))
    bench.load()
    assert bench.slice(100) == [("red", 1), ("blue", 2), ("green", 1), ("red", 2)]
