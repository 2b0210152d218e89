"""The phases of a task: which it passes, and that it makes no other moves."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.messages import CancelTask
from rayflink.actors.messages.states import IllegalTransition
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.task_lifecycle import TASK_MOVES, TaskPhase
from rayflink.common.records.batches import EndOfData, EndOfPartition
from rayflink.operators.stateless import MapOperator
from tests.actors.task.task_bench import TaskBench


def bench() -> TaskBench:
    return TaskBench([MapOperator(lambda n: 10 // n)], channels=(0, 0))


def ends(task: TaskBench) -> None:
    """Let the task answer its peers until it is done."""
    task.work()
    assert task.work() is Progress.DONE
    assert task.task.phase is TaskPhase.DONE


def test_a_task_whose_input_ends_drains_serves_and_is_done():
    task = bench()
    assert task.task.phase is TaskPhase.STARTING
    task.start(credit=0)
    assert task.task.phase is TaskPhase.RUNNING
    task.feed(0, 5)
    for channel in (0, 1):
        task.feed(channel, EndOfData())
    task.work()
    assert task.task.phase is TaskPhase.DRAINING
    for channel in (0, 1):
        task.feed(channel, EndOfPartition())
    task.work()
    assert task.task.phase is TaskPhase.SERVING, "its consumer has given no credit for the data yet"
    task.give_credit(10)
    ends(task)
    assert task.states[-1] == "FINISHED"


@pytest.mark.parametrize("end", ["failed", "cancelled"])
def test_a_task_that_ends_early_releases_what_it_holds_and_is_done(end: str):
    task = bench().start()
    if end == "failed":
        task.feed(0, 0)
    else:
        task.task.mail(CancelTask())
    ends(task)


def test_a_task_never_goes_back():
    task = bench().start()
    with pytest.raises(IllegalTransition, match="cannot go from running to starting") as caught:
        task.task._life.enter(TaskPhase.STARTING)
    (move,) = caught.value.story
    assert (move.before, move.after, move.cause) == ("starting", "running", "its operators are open")
    assert task.task.phase is TaskPhase.RUNNING


def test_every_phase_but_the_last_may_end_and_none_is_entered_twice():
    order = list(TaskPhase)
    assert TASK_MOVES.keys() == set(order)
    for phase, moves in TASK_MOVES.items():
        assert all(order.index(move) > order.index(phase) for move in moves)
        assert bool(moves) == (phase is not TaskPhase.DONE)
