"""The queue of an iteration keeps its order whatever has to go to disk, and the head knows when the loop is empty."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.common.records.batches import EndOfSuperstep, RowBatch
from rayflink.operators.base import OperatorContext, OperatorSnapshot
from rayflink.operators.feedback import (
    FeedbackQueue,
    FeedbackSpillError,
    IterationHead,
    IterationTail,
    batch_of,
    forget_job,
)
from rayflink.state.clock import ManualClock
from rayflink.testing import OperatorHarness

JOBS = count(1)


def taken(queue: FeedbackQueue) -> Any:
    """The oldest element as it was put."""
    element = queue.take()
    return batch_of(element) if isinstance(element, bytes) else element


@given(st.lists(st.one_of(st.none(), st.integers(1, 50), st.just("end"))), st.sampled_from([0, 100, 10_000]))
def test_what_is_put_comes_out_in_order(moves: list[Any], memory: int) -> None:
    queue, put, out = FeedbackQueue(memory, file_bytes=300), [], []
    for number, move in enumerate(moves):
        if move is None:
            out.append(taken(queue))
        elif move == "end":
            put.append(EndOfSuperstep(1, number, False))
            queue.put(put[-1])
        else:
            put.append(RowBatch([number] * move, [number] * move))
            queue.put(put[-1])
    while queue:
        out.append(taken(queue))
    assert queue.take() is None
    assert [element for element in out if element is not None] == put
    queue.close()


def test_what_has_no_room_in_memory_is_on_disk() -> None:
    queue = FeedbackQueue(10_000)
    for number in range(100):
        queue.put(RowBatch([f"{number:0500}"]))
    found = queue.statistics()
    assert found.in_memory + found.in_files == 100 and found.in_files > 60
    assert 0 < found.memory_bytes <= 10_000 and found.spilled_bytes == queue.spilled_bytes > 30_000
    assert [taken(queue).values for _ in range(100)] == [[f"{number:0500}"] for number in range(100)]
    queue.put(RowBatch([1]))
    assert taken(queue) == RowBatch([1])
    queue.close()


def test_files_that_have_been_read_go_while_others_wait() -> None:
    queue = FeedbackQueue(0, file_bytes=1000)
    for number in range(4):
        queue.put(RowBatch([number] * 200))
    for number in range(4, 100):
        queue.put(RowBatch([number] * 200))
        assert taken(queue) == RowBatch([number - 4] * 200)
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
    assert taken(queue) == RowBatch([[1]])


@pytest.mark.spec("C18", "head-and-tail")
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


# checkpoints


def ends(given: Sequence[OperatorSnapshot] = ()) -> tuple[IterationHead, IterationTail]:
    """Head and tail of one loop, the head restored and past its first end of a superstep."""
    job = f"{next(JOBS):032x}"
    head, tail = IterationHead(1), IterationTail(1)
    for operator in (head, tail):
        operator.setup(OperatorContext("o", "o", job_id=job, clock=ManualClock(0)))
        operator.initialize_state(tuple(given) if operator is head else ())
        operator.open()
    return head, tail


def gives(head: IterationHead) -> list[Any]:
    """All that the head gives now: records one by one, ends of supersteps as their number and activity."""
    out: list[Any] = []
    while head.next_poll_ms() is not None:
        elements = head.poll(100)
        if elements is None:
            return [*out, "end"]
        for element in elements:
            is_end = isinstance(element, EndOfSuperstep)
            out += [(element.superstep, element.active)] if is_end else element.values  # type: ignore[union-attr]
    return out


def kept(snapshot: OperatorSnapshot | None) -> list[Any] | None:
    if snapshot is None:
        return None
    return [value for entry in snapshot.lists["feedback"][1] for value in batch_of(entry).values]


def feed(tail: IterationTail, *elements: Any) -> None:
    for element in elements:
        if isinstance(element, EndOfSuperstep):
            list(tail.process_superstep(element))
        else:
            list(tail.process(RowBatch([element]), 0))


@pytest.mark.spec("H48", "counts-once")
def test_feedback_before_the_barrier_is_in_the_snapshot_and_is_processed_too() -> None:
    head, tail = ends()
    assert gives(head) == [(1, False)]
    feed(tail, "waits")
    head.snapshot_state(1)
    assert head.rest_of_snapshot(1) is None
    feed(tail, "under way")
    assert gives(head) == ["waits", "under way"], "the loop goes on meanwhile"
    feed(tail, "last", EndOfSuperstep(1, 1, False))
    tail.snapshot_state(1)
    feed(tail, "behind the barrier")
    snapshot = head.rest_of_snapshot(1)
    assert kept(snapshot) == ["waits", "under way", "last"]
    assert gives(head) == ["last", (2, True), "behind the barrier"]


@pytest.mark.spec("H48", "counts-once")
def test_a_restored_head_gives_the_records_first_and_ends_when_they_have_gone_round() -> None:
    head, tail = ends()
    assert gives(head) == [(1, False)]
    feed(tail, "a", "b")
    head.snapshot_state(1)
    tail.snapshot_state(1)
    snapshot = head.rest_of_snapshot(1)
    assert snapshot is not None
    again, behind = ends([snapshot])
    again.snapshot_state(2)
    assert gives(again) == ["a", "b", (2, True)]
    behind.snapshot_state(2)
    assert kept(again.rest_of_snapshot(2)) == ["a", "b"], "they were not given before the barrier"
    feed(behind, EndOfSuperstep(1, 2, True))
    assert gives(again) == [(3, False)], "the first one that comes round only says that the input has ended"
    feed(behind, EndOfSuperstep(1, 3, False))
    assert gives(again)[-1] == "end"


def test_checkpoints_as_often_as_the_head_gives_something_do_not_hold_the_loop_back() -> None:
    head, tail = ends()
    assert gives(head) == [(1, False)]
    feed(tail, *range(10))
    for checkpoint in range(1, 11):
        head.snapshot_state(checkpoint)
        tail.snapshot_state(checkpoint)
        assert head.rest_of_snapshot(checkpoint) is not None
        (batch,) = head.poll(100) or ()
        assert isinstance(batch, RowBatch) and batch.values == [checkpoint - 1]


def test_an_empty_loop_that_is_restored_ends_too() -> None:
    head, tail = ends()
    gives(head)
    feed(tail, EndOfSuperstep(1, 1, False))
    gives(head)
    head.snapshot_state(1)
    tail.snapshot_state(1)
    snapshot = head.rest_of_snapshot(1)
    assert snapshot is not None and kept(snapshot) == []
    again, behind = ends([snapshot])
    assert gives(again) == [(3, False)]
    feed(behind, EndOfSuperstep(1, 3, False))
    assert gives(again) == [(4, False)]
    feed(behind, EndOfSuperstep(1, 4, False))
    assert gives(again) == ["end"]


def test_barriers_of_several_checkpoints_go_round_behind_one_another() -> None:
    head, tail = ends()
    gives(head)
    head.snapshot_state(1)
    feed(tail, "a")
    head.snapshot_state(2)
    feed(tail, "b")
    tail.snapshot_state(1)
    feed(tail, "c")
    assert kept(head.rest_of_snapshot(1)) == ["a", "b"]
    assert head.rest_of_snapshot(2) is None
    assert gives(head) == ["a", "b", "c"]
    tail.snapshot_state(2)
    assert kept(head.rest_of_snapshot(2)) == ["a", "b", "c"], "'a' came back when the second barrier had gone"


def test_a_checkpoint_that_is_given_up_on_its_way_round_is_forgotten() -> None:
    head, tail = ends()
    gives(head)
    head.snapshot_state(1)
    feed(tail, "a")
    head.notify_checkpoint_aborted(1)
    assert gives(head) == ["a"]
    head.snapshot_state(2)
    feed(tail, "b")
    tail.snapshot_state(1)
    assert head.rest_of_snapshot(2) is None, "the older barrier came round"
    feed(tail, "c")
    tail.snapshot_state(2)
    assert kept(head.rest_of_snapshot(2)) == ["b", "c"] and gives(head) == ["b", "c"]


def test_a_head_that_has_ended_waits_for_no_barrier() -> None:
    head, tail = ends()
    gives(head)
    feed(tail, EndOfSuperstep(1, 1, False))
    gives(head)
    head.snapshot_state(1)
    assert head.rest_of_snapshot(1) is None
    feed(tail, EndOfSuperstep(1, 2, False))
    assert gives(head) == ["end"]
    assert kept(head.rest_of_snapshot(1)) == []


def test_attempts_of_another_coordinator_have_queues_of_their_own() -> None:
    old, new = IterationTail(1), IterationTail(1)
    for epoch, tail in enumerate((old, new)):
        tail.setup(OperatorContext("o", "o", job_id="e" * 32, clock=ManualClock(0), epoch=epoch))
        tail.open()
    feed(old, "of the old one")
    old.close()
    feed(new, "of the new one")
    assert taken(new._queue) == RowBatch(["of the new one"]) and not new._queue
    new.close()


def test_what_killed_attempts_left_is_dropped_by_the_next_run_of_a_job() -> None:
    head, tail = ends()
    feed(tail, "left behind")
    forget_job(head.ctx.job_id)
    again = IterationHead(1)
    again.setup(OperatorContext("o", "o", job_id=head.ctx.job_id, clock=ManualClock(0)))
    again.open()
    assert gives(again) == [(1, False)]
    again.close()
