"""A coordinator looks at the clock often while its job changes, and seldom while it only runs."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.actors.on_ray.tick_pace import QUIET_TICK_S, SETTLES_S, TICK_S, TickPace

QUIET = 100.0
"""A time at which a job that has begun at 0 is quiet."""


@pytest.mark.parametrize("status", [status for status in JobStatus if status is not JobStatus.RUNNING])
def test_a_job_that_does_not_run_is_looked_at_often(status: JobStatus) -> None:
    assert TickPace(0.0).next_tick(QUIET, QUIET, status, None) == QUIET + TICK_S


def test_an_event_makes_the_next_ticks_come_soon_until_the_job_has_settled() -> None:
    pace = TickPace(0.0)
    assert pace.next_tick(QUIET, QUIET, JobStatus.RUNNING, None) == QUIET + QUIET_TICK_S
    pace.changed(QUIET + 0.5)
    assert pace.next_tick(QUIET, QUIET + 0.5, JobStatus.RUNNING, None) == QUIET + TICK_S, "at once: that is past"
    assert pace.next_tick(QUIET + 1.0, QUIET + 1.0, JobStatus.RUNNING, None) == QUIET + 1.0 + TICK_S
    later = QUIET + 0.5 + SETTLES_S + 0.1
    assert pace.next_tick(later, later, JobStatus.RUNNING, None) == later + QUIET_TICK_S


@pytest.mark.parametrize(
    ("due", "expected"),
    [(QUIET + 0.5, QUIET + 0.5), (QUIET - 5.0, QUIET + TICK_S), (QUIET + 60.0, QUIET + QUIET_TICK_S)],
    ids=["in time", "overdue, without a busy loop", "not before heartbeats are checked"],
)
def test_a_tick_comes_when_something_is_due(due: float, expected: float) -> None:
    assert TickPace(0.0).next_tick(QUIET, QUIET, JobStatus.RUNNING, due) == expected
