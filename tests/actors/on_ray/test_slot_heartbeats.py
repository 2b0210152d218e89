"""The heartbeats of the tasks of a slot go to the coordinator together, and none is late."""

from __future__ import annotations

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.messages.messages import TaskReport
from rayflink.actors.on_ray.slots.slot_heartbeats import SlotHeartbeats


def beat(attempt: str, number: int = 0) -> TaskReport:
    return TaskReport(TaskAddress(attempt), {"number": number})


def test_heartbeats_wait_until_each_task_has_one() -> None:
    slot = SlotHeartbeats()
    assert slot.add(beat("a"), 3) == [] and slot.add(beat("b"), 3) == []
    assert slot.add(beat("c"), 3) == [beat("a"), beat("b"), beat("c")]
    assert slot.add(beat("a"), 1) == [beat("a")], "the others have ended"


def test_a_task_that_is_stalled_holds_no_other_one_back() -> None:
    slot = SlotHeartbeats()
    assert slot.add(beat("a", 1), 3) == [] and slot.add(beat("b", 1), 3) == []
    assert slot.add(beat("a", 2), 3) == [beat("a", 2), beat("b", 1)]


def test_a_heartbeat_comes_before_what_its_task_reports_later() -> None:
    slot = SlotHeartbeats()
    slot.add(beat("a"), 2)
    assert slot.take(TaskAddress("a")) == [beat("a")]
    assert slot.take(TaskAddress("a")) == []
