"""When a task may end: what it hears of a checkpoint may come before the checkpoint's barrier does."""

from __future__ import annotations

from rayflink.actors.task.final_checkpoint import FinalCheckpoint
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier

SUSPENDS = CheckpointBarrier(7, 0, stop=StopMode.SUSPEND)


def test_a_task_that_is_suspended_goes_on_when_the_savepoint_is_given_up():
    final = FinalCheckpoint(checkpointing=True)
    final.taken(SUSPENDS)
    assert final.is_suspended
    final.aborted(7)
    assert not final.is_suspended


def test_a_savepoint_that_was_given_up_before_its_barrier_came_suspends_nobody():
    final = FinalCheckpoint(checkpointing=True)
    final.aborted(7)
    final.taken(SUSPENDS)
    assert not final.is_suspended and not final.awaited
    final.taken(CheckpointBarrier(8, 0, stop=StopMode.SUSPEND))
    assert final.is_suspended, "the next one does"


def test_a_task_whose_data_is_in_a_complete_checkpoint_needs_no_other_one():
    final = FinalCheckpoint(checkpointing=True)
    assert not final.is_done
    assert final.data_over()
    final.taken(CheckpointBarrier(7, 0))
    assert not final.is_done
    final.complete(7)
    assert final.is_done
