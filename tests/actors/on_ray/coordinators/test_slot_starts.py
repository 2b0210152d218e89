"""How many processes of slots start at a time, over the jobs of one process."""

from __future__ import annotations

import doctest

from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.actors.on_ray.coordinators import slot_starts
from rayflink.actors.on_ray.coordinators.slot_starts import ASKS_WITHIN_S, LONGEST_S, SlotStarts


def test_the_example_runs() -> None:
    assert doctest.testmod(slot_starts).failed == 0


def test_without_a_bound_everybody_begins_at_once() -> None:
    starts = SlotStarts()
    assert all(starts.begin(f"job {number}", 100, now=0.0) for number in range(50))


def test_a_large_job_waits_for_all_others_and_is_not_passed_by_later_ones() -> None:
    starts = SlotStarts(most=lambda: 4)
    assert starts.begin("small", 1, now=0.0)
    assert not starts.begin("large", 100, now=0.0) and not starts.begin("later", 1, now=0.0)
    starts.end("small")
    assert not starts.begin("later", 1, now=1.0) and starts.begin("large", 100, now=1.0)
    assert not starts.begin("later", 1, now=2.0)
    starts.end("large")
    assert starts.begin("later", 1, now=3.0)


def test_a_job_that_leaves_the_queue_holds_up_no_other() -> None:
    starts = SlotStarts(most=lambda: 1)
    assert starts.begin("first", 1, now=0.0) and not starts.begin("cancelled", 1, now=0.0)
    assert not starts.begin("third", 1, now=0.0)
    starts.end("cancelled")
    starts.end("first")
    assert starts.begin("third", 1, now=1.0)


def test_a_job_that_asks_no_more_holds_up_no_other() -> None:
    """Such as one that restarts after a pause, or waits for another node."""
    starts = SlotStarts(most=lambda: 1)
    assert starts.begin("first", 1, now=0.0) and not starts.begin("pauses", 1, now=0.0)
    starts.end("first")
    assert not starts.begin("third", 1, now=ASKS_WITHIN_S)
    assert starts.begin("third", 1, now=ASKS_WITHIN_S + 1)


def test_a_start_that_takes_too_long_holds_up_no_other() -> None:
    starts = SlotStarts(most=lambda: 1)
    assert starts.begin("hangs", 1, now=0.0) and not starts.begin("second", 1, now=LONGEST_S)
    assert starts.begin("second", 1, now=LONGEST_S + 1)


def test_a_job_whose_processes_are_there_does_not_wait() -> None:
    starts = SlotStarts(most=lambda: 1)
    assert starts.begin("first", 1, now=0.0) and starts.begin("with idle processes", 0, now=0.0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=12), st.integers(1, 4))
def test_all_begin_in_their_order_and_never_more_than_the_bound(jobs: list[int], most: int) -> None:
    starts, began, running, now = SlotStarts(most=lambda: most), [], dict[str, int](), 0.0
    waiting = {f"job {number}": processes for number, processes in enumerate(jobs)}
    while waiting or running:
        now += 1.0
        for job, processes in list(waiting.items()):
            if starts.begin(job, processes, now):
                began.append(job)
                running[job] = waiting.pop(job)
        assert running, "somebody always begins"
        assert len(running) == 1 or sum(running.values()) <= most
        ended = next(iter(running))
        del running[ended]
        starts.end(ended)
    assert began == [f"job {number}" for number in range(len(jobs))]
