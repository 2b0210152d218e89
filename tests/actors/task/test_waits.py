"""What a task waits for, as it stands in its reports."""

from __future__ import annotations

from typing import Any

from rayflink.actors.messages.messages import TriggerCheckpoint
from rayflink.actors.task.progress import Progress
from rayflink.actors.task.waits import Wait, WaitTimes
from rayflink.common.records.batches import CheckpointBarrier, RowBatch
from tests.actors.task.task_bench import TaskBench
from tests.actors.task.test_task_checkpoints import BARRIER, ONE_BUFFER, Gathers, GathersOneByOne


def reported(bench: TaskBench) -> dict[str, tuple[str, int]]:
    """Return the reason and the milliseconds of each wait in a report."""
    waits: list[dict[str, Any]] = bench.task.report().metrics.get("waits", [])
    return {wait["for"]: (wait["reason"], wait["ms"]) for wait in waits}


def test_a_task_that_aligns_reports_the_channels_it_holds_back_and_since_when() -> None:
    bench = TaskBench([Gathers()], (0, 0)).start()
    bench.feed(0, BARRIER, 6)
    bench.work()
    assert reported(bench)["barrier"] == ("holds back channels [0] for a barrier", 0)
    bench.clock.advance(6_000)
    bench.feed(1, 4)
    bench.work()
    waits = reported(bench)
    assert waits["barrier"] == ("holds back channels [0] for a barrier", 6_000)
    assert waits["input"] == ("waits for input on channels [1]", 0), "it has worked since"
    bench.feed(1, BARRIER)
    bench.work()
    assert "barrier" not in reported(bench)
    bench.feed(0, CheckpointBarrier(2, 900))
    bench.work()
    assert reported(bench)["barrier"][1] == 0, "that of another checkpoint"


def test_a_task_without_room_reports_it_with_the_checkpoint_that_waits() -> None:
    bench = TaskBench([GathersOneByOne(), Gathers()], config=ONE_BUFFER).start(credit=0)
    bench.feed(0, RowBatch([1, 2, 3]))
    bench.end(0)
    assert bench.work() is Progress.BACK_PRESSURED
    bench.task.mail(TriggerCheckpoint(BARRIER))
    bench.work()
    assert reported(bench)["trigger"] == ("a triggered checkpoint waits for room", 0)
    bench.clock.advance(5_000)
    bench.work()
    assert reported(bench) == {
        "room": ("outputs are full, waits for credit", 5_000),
        "trigger": ("a triggered checkpoint waits for room", 5_000),
    }
    bench.give_credit(100)
    bench.work()
    assert reported(bench) == {}, "nothing is reported of a task that does not wait"


def test_a_wait_begins_anew_after_a_report_without_it_and_with_another_mark() -> None:
    times = WaitTimes()
    room = Wait("room", "outputs are full", 7)
    assert [w["ms"] for w in times.report([room], 1.0)] == [0]
    assert [w["ms"] for w in times.report([room], 3.5)] == [2_500]
    assert [w["ms"] for w in times.report([Wait("room", "outputs are full", 8)], 4.0)] == [0]
    assert times.report([], 5.0) == []
    assert [w["ms"] for w in times.report([room], 6.0)] == [0]
