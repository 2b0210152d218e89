"""The scheduler of the simulator: what is due, in which order, and that the seed alone decides."""

from __future__ import annotations

import random

import pytest

from rayflink.state.clock import ManualClock
from rayflink.testing.simulator.scheduler import EventSource, FirstOfEachTarget, Lanes, Pool, ScheduledEvent, Scheduler


def event(due_ms: int, target: str, happened: list[str] | None = None) -> ScheduledEvent:
    note = f"{target} {due_ms}"
    return ScheduledEvent(due_ms, target, lambda: None if happened is None else happened.append(note))


def targets(source: EventSource, now_ms: int = 0) -> list[object]:
    return [each.target for each in source.due(now_ms)]


@pytest.mark.parametrize("lanes", [Lanes(), FirstOfEachTarget()], ids=["lanes", "first of each target"])
def test_an_event_waits_for_earlier_ones_of_its_target(lanes: Lanes | FirstOfEachTarget) -> None:
    late, early, other = event(5, "a"), event(0, "a"), event(0, "b")
    for each in (late, early, other):
        lanes.add(each)
    assert lanes.due(0) == [other]
    assert lanes.due(5) == [late, other]
    lanes.take(late)
    assert lanes.due(0) == [early, other]


def test_events_of_a_pool_wait_for_no_other() -> None:
    pool = Pool()
    for each in (event(5, "a"), event(0, "a"), event(0, "b")):
        pool.add(each)
    assert targets(pool) == ["a", "b"]
    assert sorted(pool.times()) == [0, 0, 5]
    pool.drop("a")
    assert targets(pool, 9) == ["b"]


@pytest.mark.parametrize(("keep_places", "order"), [(False, ["b", "a"]), (True, ["a", "b"])])
def test_a_target_without_events_loses_its_place_unless_it_is_kept(keep_places: bool, order: list[str]) -> None:
    lanes = Lanes(keep_places)
    first = event(0, "a")
    lanes.add(first)
    lanes.add(event(0, "b"))
    lanes.take(first)
    lanes.add(event(0, "a"))
    assert targets(lanes) == order


def test_of_equal_events_one_is_taken() -> None:
    pool, call = Pool(), event(0, "a")
    pool.add(call)
    pool.add(call)
    pool.take(call)
    assert pool.due(0) == [call]


def run(seed: int) -> list[str]:
    """What happens of ten events of three targets."""
    clock, happened = ManualClock(), list[str]()
    scheduler, lanes = Scheduler(clock, random.Random(seed)), Lanes()
    scheduler.add(lanes)
    for number in range(10):
        lanes.add(event(number % 4, "abc"[number % 3], happened))
    while len(happened) < 10:
        if not scheduler.perform_one():
            scheduler.wait([100])
    assert scheduler.move == 10 and not scheduler.perform_one()
    return happened


def test_the_seed_determines_the_order_and_each_target_keeps_its_own() -> None:
    assert run(3) == run(3)
    assert len({tuple(run(seed)) for seed in range(5)}) > 1
    assert [each for each in run(4) if each[0] == "b"] == ["b 1", "b 0", "b 3"]


def test_the_clock_waits_for_the_next_event_or_for_an_earlier_time() -> None:
    clock = ManualClock()
    scheduler, pool = Scheduler(clock, random.Random(1)), Pool()
    scheduler.add(pool)
    pool.add(event(30, "a"))
    scheduler.wait([0, 10])
    assert clock.now_ms() == 10
    scheduler.wait([0, 10])
    assert clock.now_ms() == 30 and scheduler.perform_one()
