"""When a task may end: what it hears of a checkpoint may come before the checkpoint's barrier does."""

from __future__ import annotations

from rayflink.actors.task.final_checkpoint import LastCheckpoint
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier

SUSPENDS = CheckpointBarrier(7, 0, stop=StopMode.SUSPEND)


def test_a_task_that_is_suspended_goes_on_when_the_savepoint_is_given_up():
    last = LastCheckpoint(checkpointing=True)
    last.taken(SUSPENDS)
    assert last.is_suspended
    last.aborted(7)
    assert not last.is_suspended


def test_a_savepoint_that_was_given_up_before_its_barrier_came_suspends_nobody():
    last = LastCheckpoint(checkpointing=True)
    last.aborted(7)
    last.taken(SUSPENDS)
    assert not last.is_suspended and not last.awaited
    last.taken(CheckpointBarrier(8, 0, stop=StopMode.SUSPEND))
    assert last.is_suspended, "the next one does"


def test_a_task_whose_data_is_in_a_complete_checkpoint_needs_no_other_one():
    last = LastCheckpoint(checkpointing=True)
    assert not last.is_done
    assert last.data_over()
    last.taken(CheckpointBarrier(7, 0))
    assert not last.is_done
    last.complete(7)
    assert last.is_done
