"""The rows that wait for a driver."""

from __future__ import annotations

import threading

from rayflink.actors.on_ray.result_buffer import MAX_HELD_BYTES, ResultBuffer, ResultBufferStatistics


def test_blocks_are_taken_together_in_order_and_the_end_is_told() -> None:
    buffer = ResultBuffer(lambda: True)
    assert buffer.is_empty and buffer.take(0) == ()
    buffer.put(b"one")
    buffer.put(b"three")
    assert buffer.statistics() == ResultBufferStatistics(blocks=2, bytes=8) and not buffer.is_empty
    buffer.close()
    assert buffer.take(0) == (b"one", b"three") and buffer.statistics() == ResultBufferStatistics(0, 0)
    assert buffer.take(0) is None


def test_a_full_buffer_holds_the_task_back_until_its_rows_are_taken() -> None:
    buffer, huge = ResultBuffer(lambda: True), bytes(MAX_HELD_BYTES + 1)
    buffer.put(huge)
    task = threading.Thread(target=buffer.put, args=(b"next",), daemon=True)
    task.start()
    assert buffer.take(20) == (huge,) and buffer.take(20) == (b"next",)
    task.join(20)


def test_rows_that_nobody_wants_are_dropped() -> None:
    runs = [True]
    buffer = ResultBuffer(lambda: runs[0])
    buffer.put(b"while it runs")
    runs[0] = False
    buffer.put(b"afterwards")
    assert buffer.take(0) == (b"while it runs",)
    runs[0] = True
    buffer.put(b"again")
    buffer.discard()
    buffer.put(b"later")
    assert buffer.is_empty and buffer.statistics().bytes == 0
