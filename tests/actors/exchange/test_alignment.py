"""Barriers of all channels in, one decision out."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rayflink.actors.exchange.alignment import (
    MAX_TRACKED,
    Aborted,
    Action,
    Aligned,
    BarrierAligner,
    BarrierTracker,
    Block,
    Unblock,
)
from rayflink.common.records.batches import CancelCheckpointMarker, CheckpointBarrier, EndOfPartition


def barrier(number: int) -> CheckpointBarrier:
    return CheckpointBarrier(number, timestamp=1000 * number)


def cancelled(number: int) -> CancelCheckpointMarker:
    return CancelCheckpointMarker(number)


@pytest.mark.spec("H07", "H13", "H40")
def test_a_channel_whose_barrier_came_waits_for_the_others() -> None:
    aligner = BarrierAligner(3)
    assert aligner.barrier(1, barrier(1), 100) == [Block(1)]
    assert aligner.barrier(0, barrier(1), 130) == [Block(0)]
    assert (aligner.pending_id, aligner.last_id) == (1, 0)
    assert aligner.barrier(2, barrier(1), 150) == [Aligned(barrier(1), 50), Unblock()]
    assert not aligner.pending_id
    assert aligner.last_id == 1


@pytest.mark.spec("H19", "X23")
@pytest.mark.parametrize("handler", [BarrierAligner, BarrierTracker])
def test_a_single_channel_never_waits(handler: Any) -> None:
    actions = handler(1).barrier(0, barrier(1), 5)
    assert actions[0] == Aligned(barrier(1), 0)
    assert Block(0) not in actions


def test_a_barrier_that_comes_twice_counts_once() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.barrier(0, barrier(1), 1) == [Block(0)]
    assert aligner.pending_id == 1


def test_a_newer_barrier_subsumes_the_checkpoint_that_waits() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.barrier(1, barrier(2), 10) == [Unblock(), Aborted(1), Block(1)]
    assert aligner.barrier(1, barrier(1), 11) == []
    assert aligner.barrier(0, barrier(2), 30) == [Aligned(barrier(2), 20), Unblock()]


def test_an_older_barrier_does_not_disturb_the_checkpoint_that_waits() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(5), 0)
    assert aligner.barrier(1, barrier(4), 1) == []
    assert aligner.pending_id == 5


@pytest.mark.spec("H39")
def test_a_cancel_during_alignment_lets_all_channels_go_on() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.cancel(1, cancelled(1)) == [Unblock(), Aborted(1)]
    assert aligner.cancel(0, cancelled(1)) == []
    assert aligner.barrier(1, barrier(1), 2) == []
    assert aligner.barrier(1, barrier(2), 3) == [Block(1)]


@pytest.mark.spec("H39")
def test_a_cancel_of_a_future_checkpoint_aborts_the_one_that_waits_as_well() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.cancel(1, cancelled(3)) == [Unblock(), Aborted(1), Aborted(3)]
    assert aligner.barrier(0, barrier(2), 1) == []
    assert aligner.barrier(0, barrier(3), 1) == []
    assert aligner.barrier(0, barrier(4), 1) == [Block(0)]


def test_a_cancel_before_any_barrier_is_passed_on_once() -> None:
    aligner = BarrierAligner(2)
    assert aligner.cancel(0, cancelled(1)) == [Aborted(1)]
    assert aligner.cancel(1, cancelled(1)) == []
    assert aligner.barrier(1, barrier(1), 0) == []


def test_a_cancel_of_an_older_checkpoint_is_dropped() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(3), 0)
    assert aligner.cancel(1, cancelled(2)) == []
    assert aligner.pending_id == 3


@pytest.mark.spec("H39", "H40")
def test_a_channel_that_ends_during_alignment_is_waited_for_no_longer() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 10)
    assert aligner.end(1, 40) == [Aligned(barrier(1), 30), Unblock()]
    assert aligner.barrier(0, barrier(2), 50) == [Aligned(barrier(2), 0), Unblock()]


@pytest.mark.spec("H40", "H39")
def test_a_channel_that_ended_before_the_barrier_is_not_waited_for() -> None:
    aligner = BarrierAligner(3)
    assert aligner.end(2, 0) == []
    assert aligner.barrier(0, barrier(1), 1) == [Block(0)]
    assert aligner.barrier(2, barrier(1), 1) == []
    assert aligner.barrier(1, barrier(1), 2) == [Aligned(barrier(1), 1), Unblock()]


def test_the_end_of_the_channel_that_delivered_does_not_complete_the_others() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.end(0, 1) == []
    assert aligner.end(1, 2) == [Aligned(barrier(1), 2), Unblock()]


def test_a_cancelled_checkpoint_does_not_come_back_at_the_end() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    aligner.cancel(1, cancelled(1))
    assert aligner.end(1, 1) == aligner.end(0, 1) == []


@pytest.mark.parametrize("handler", [BarrierAligner, BarrierTracker])
def test_with_all_channels_ended_a_triggered_checkpoint_is_taken_at_once(handler: Any) -> None:
    handler = handler(2)
    handler.end(0, 0)
    handler.end(1, 0)
    assert handler.trigger(barrier(1), 3)[0] == Aligned(barrier(1), 0)
    assert handler.trigger(barrier(1), 3) == []


@pytest.mark.parametrize("handler", [BarrierAligner, BarrierTracker])
def test_a_triggered_checkpoint_waits_for_the_channels_to_end(handler: Any) -> None:
    handler = handler(2)
    handler.end(0, 0)
    assert handler.trigger(barrier(1), 3) == []
    assert handler.pending_id == 1
    assert handler.end(1, 8)[0] == Aligned(barrier(1), 5)


def test_a_triggered_checkpoint_subsumes_and_is_cancelled_like_any_other() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 0)
    assert aligner.trigger(barrier(2), 1) == [Unblock(), Aborted(1)]
    assert aligner.cancel(0, cancelled(2)) == [Unblock(), Aborted(2)]


def test_a_clock_that_is_set_back_gives_no_negative_alignment() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1), 100)
    assert aligner.barrier(1, barrier(1), 50)[0] == Aligned(barrier(1), 0)


@pytest.mark.spec("H18")
def test_at_least_once_snapshots_at_the_last_barrier_and_holds_nothing_back() -> None:
    tracker = BarrierTracker(2)
    assert tracker.barrier(0, barrier(1), 0) == []
    assert tracker.barrier(0, barrier(2), 5) == []
    assert tracker.pending_id == 1
    assert tracker.barrier(1, barrier(1), 7) == [Aligned(barrier(1), 7)]
    assert tracker.barrier(1, barrier(2), 9) == [Aligned(barrier(2), 4)]


def test_a_tracked_checkpoint_below_a_complete_one_is_subsumed() -> None:
    tracker = BarrierTracker(2)
    tracker.barrier(0, barrier(1), 0)
    tracker.barrier(0, barrier(2), 0)
    assert tracker.barrier(1, barrier(2), 1) == [Aborted(1), Aligned(barrier(2), 1)]
    assert tracker.barrier(1, barrier(1), 2) == []


def test_a_cancel_aborts_the_older_tracked_checkpoints_too() -> None:
    tracker = BarrierTracker(2)
    for number in (1, 2, 4):
        tracker.barrier(0, barrier(number), 0)
    assert tracker.cancel(1, cancelled(3)) == [Aborted(1), Aborted(2), Aborted(3)]
    assert tracker.cancel(0, cancelled(3)) == []
    assert tracker.pending_id == 4


def test_an_end_completes_every_tracked_checkpoint_that_waited_for_the_channel() -> None:
    tracker = BarrierTracker(3)
    tracker.barrier(0, barrier(1), 0)
    tracker.barrier(1, barrier(1), 0)
    tracker.barrier(0, barrier(2), 0)
    tracker.barrier(1, barrier(2), 0)
    assert tracker.end(2, 4) == [Aligned(barrier(1), 4), Aligned(barrier(2), 4)]


def test_the_number_of_tracked_checkpoints_is_bounded() -> None:
    tracker = BarrierTracker(2)
    for number in range(1, MAX_TRACKED + 1):
        assert tracker.barrier(0, barrier(number), 0) == []
    assert tracker.barrier(0, barrier(MAX_TRACKED + 1), 0) == [Aborted(1)]
    assert tracker.barrier(1, barrier(1), 0) == []


# whole runs


def run(handler: Any, channels: list[list[Any]], order: list[int]) -> list[Any]:
    """What a task does with these channels: records worked and snapshots taken, channels drawn from in `order`."""
    queues = [deque(channel) for channel in channels]
    blocked: set[int] = set()
    done: list[Any] = []
    turns = iter(order)
    while any(queues):
        ready = [i for i, queue in enumerate(queues) if queue and i not in blocked]
        assert ready, f"no progress: {blocked} blocked, {handler.pending_id} waits"
        index = ready[next(turns, 0) % len(ready)]
        item = queues[index].popleft()
        actions: list[Action] = []
        if isinstance(item, CheckpointBarrier):
            actions = handler.barrier(index, item, 0)
        elif isinstance(item, CancelCheckpointMarker):
            actions = handler.cancel(index, item)
        elif isinstance(item, EndOfPartition):
            actions = handler.end(index, 0)
        else:
            done.append(item)
        for action in actions:
            if isinstance(action, Block):
                blocked.add(action.channel)
            elif isinstance(action, Unblock):
                blocked.clear()
            else:
                done.append(action)
    return done


@pytest.mark.spec("X21", "H14")
def test_records_behind_the_barrier_are_worked_after_the_snapshot() -> None:
    done = run(BarrierAligner(2), [[barrier(1), 6, 7], [4, barrier(1)]], [])
    assert done == [4, Aligned(barrier(1), 0), 6, 7]


@pytest.mark.spec("X22", "H18")
def test_at_least_once_puts_later_records_into_the_snapshot() -> None:
    done = run(BarrierTracker(2), [[barrier(1), 6, 7], [4, barrier(1)]], [])
    assert done.index(6) < done.index(Aligned(barrier(1), 0))


plans = st.lists(  # a channel: of checkpoints 1..5 in turn, does it send a barrier, a cancel or nothing
    st.lists(st.sampled_from(["barrier", "barrier", "barrier", "cancel", "skip"]), min_size=5, max_size=5),
    min_size=1,
    max_size=4,
)


def channel_of(index: int, plan: list[str]) -> list[Any]:
    items: list[Any] = []
    for number, what in enumerate(plan, 1):
        items.append((index, number - 1))
        if what == "barrier":
            items.append(barrier(number))
        elif what == "cancel":
            items.append(cancelled(number))
    return [*items, (index, len(plan)), EndOfPartition()]


@pytest.mark.spec("H07", "H40")
@given(plans, st.lists(st.integers(0, 7), max_size=80))
def test_exactly_once_snapshots_hold_what_was_before_the_barrier_on_every_channel(
    plan: list[list[str]], order: list[int]
) -> None:
    done = run(BarrierAligner(len(plan)), [channel_of(i, p) for i, p in enumerate(plan)], order)
    seen: set[Any] = set()
    decided: list[int] = []
    for item in done:
        if isinstance(item, Aligned):
            number = item.barrier.checkpoint_id
            decided.append(number)
            for index, what in enumerate(plan):
                if what[number - 1] == "barrier":
                    assert {n for i, n in seen if i == index} == set(range(number))
        elif isinstance(item, Aborted):
            decided.append(item.checkpoint_id)
        else:
            seen.add(item)
    assert decided == sorted(set(decided)), "each checkpoint is decided once, in order"
    assert len(seen) == 6 * len(plan), "no record is lost or kept back"
    for number in range(1, 6):
        if all(p[number - 1] == "barrier" for p in plan):
            assert Aligned(barrier(number), 0) in done or Aborted(number) in done
    if all(what == "barrier" for p in plan for what in p):
        assert [i.barrier.checkpoint_id for i in done if isinstance(i, Aligned)] == [1, 2, 3, 4, 5]


@given(plans, st.lists(st.integers(0, 7), max_size=80))
def test_at_least_once_snapshots_hold_at_least_what_was_before_the_barrier(
    plan: list[list[str]], order: list[int]
) -> None:
    done = run(BarrierTracker(len(plan)), [channel_of(i, p) for i, p in enumerate(plan)], order)
    seen: set[Any] = set()
    decided: list[int] = []
    for item in done:
        if isinstance(item, Aligned):
            number = item.barrier.checkpoint_id
            decided.append(number)
            for index, what in enumerate(plan):
                if what[number - 1] == "barrier":
                    assert {n for i, n in seen if i == index} >= set(range(number))
        elif isinstance(item, Aborted):
            decided.append(item.checkpoint_id)
        else:
            seen.add(item)
    assert decided == sorted(set(decided))
    assert len(seen) == 6 * len(plan)
