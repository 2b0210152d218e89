"""The queue of an iteration keeps its order whatever has to go to disk, and the head knows when the loop is empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.batches import EndOfSuperstep, RowBatch
from rayflink.operators.feedback import FeedbackQueue, FeedbackSpillError, IterationHead, IterationTail
from rayflink.testing import OperatorHarness


@given(st.lists(st.one_of(st.none(), st.integers(1, 50), st.just("end"))), st.sampled_from([0, 100, 10_000]))
def test_what_is_put_comes_out_in_order(moves: list[Any], memory: int) -> None:
    queue, put, taken = FeedbackQueue(memory, file_bytes=300), [], []
    for number, move in enumerate(moves):
        if move is None:
            taken.append(queue.take())
        elif move == "end":
            put.append(EndOfSuperstep(1, number, False))
            queue.put(put[-1])
        else:
            put.append(RowBatch([number] * move, [number] * move))
            queue.put(put[-1])
    while queue:
        taken.append(queue.take())
    assert queue.take() is None
    assert [element for element in taken if element is not None] == put
    queue.close()


def test_what_has_no_room_in_memory_is_on_disk() -> None:
    queue = FeedbackQueue(10_000)
    for number in range(100):
        queue.put(RowBatch([f"{number:0500}"]))
    assert queue.spilled_bytes > 30_000
    assert [queue.take().values for _ in range(100)] == [[f"{number:0500}"] for number in range(100)]  # type: ignore[union-attr]
    queue.put(RowBatch([1]))
    assert queue.take() == RowBatch([1])
    queue.close()


def test_files_that_have_been_read_go_while_others_wait() -> None:
    queue = FeedbackQueue(0, file_bytes=1000)
    for number in range(4):
        queue.put(RowBatch([number] * 200))
    for number in range(4, 100):
        queue.put(RowBatch([number] * 200))
        assert queue.take() == RowBatch([number - 4] * 200)
        assert len(queue._files) < 5
    queue.close()
    assert not queue and not queue._files


def test_no_queue_is_left_when_both_ends_have_closed_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    queues: dict[Any, FeedbackQueue] = {}
    monkeypatch.setattr("rayflink.operators.feedback._queues", queues)

    def head() -> OperatorHarness:
        return OperatorHarness(lambda: IterationHead(1))

    def tail() -> OperatorHarness:
        return OperatorHarness(lambda: IterationTail(1))

    with head():
        with tail():
            assert len(queues) == 1
    assert not queues
    with tail():
        with head():
            assert len(queues) == 1
    assert not queues
    with head():
        pass
    with tail():
        assert len(queues) == 1, "the head has gone, and so has the queue it had"
    assert not queues


def test_records_that_come_round_are_not_the_objects_that_were_fed_back() -> None:
    queue, record = FeedbackQueue(10_000), [1]
    queue.put(RowBatch([record]))
    record.append(2)
    assert queue.take() == RowBatch([[1]])


def test_the_head_ends_when_a_superstep_came_round_in_which_no_head_gave_anything() -> None:
    with (
        OperatorHarness(lambda: IterationHead(1)) as head,
        OperatorHarness(lambda: IterationTail(1)) as tail,
    ):
        queue = tail.operators[0]._queue  # type: ignore[attr-defined]
        ended: list[EndOfSuperstep] = []
        head.operators[0]._next_superstep = _noted(head.operators[0]._next_superstep, ended)  # type: ignore[attr-defined]
        assert head.poll() and [end.superstep for end in ended] == [1]
        assert head.poll(), "there is nothing yet"
        tail.process("a", 5)
        queue.put(ended[0])
        assert head.poll() and head.output_values() == ["a"]
        assert head.poll() and ended[-1] == EndOfSuperstep(1, 2, True)
        queue.put(ended[-1])
        assert head.poll() and ended[-1] == EndOfSuperstep(1, 3, False)
        queue.put(EndOfSuperstep(1, 3, True))  # another head gave something
        assert head.poll() and ended[-1] == EndOfSuperstep(1, 4, False)
        queue.put(ended[-1])
        assert not head.poll()


def _noted(give: Any, noted: list[EndOfSuperstep]) -> Any:
    def giving() -> Any:
        given = give()
        noted.extend(given)
        return given

    return giving


def test_a_disk_without_room_is_named_with_the_remedy(tmp_path: Path) -> None:
    queue = FeedbackQueue(0, str(tmp_path / "gone"))
    queue.put(RowBatch([1]))
    with pytest.raises(FeedbackSpillError, match=r"gone: .*No such file.*io.tmp.dirs to a larger disk"):
        queue.put(RowBatch([2]))
