"""What a job that waits for slots says of it, and when."""

from __future__ import annotations

import pytest

from rayflink.actors.job.slot_wait import LOG_EVERY_S, LOOK_EVERY_S, SlotRequest, SlotWait, described_waiting

FREE = "the cluster has 4 CPUs, 0 of them free"


def waiting() -> SlotWait:
    wait = SlotWait()
    wait.begin(100.0, "2 slots of 1 CPU")
    return wait


def test_slots_are_overdue_when_more_than_the_timeout_has_passed():
    request = SlotRequest(timeout_ms=500, asked_ms=1_000)
    assert [request.is_overdue(now_ms) for now_ms in (1_000, 1_500, 1_501)] == [False, False, True]


def test_the_status_says_at_once_that_slots_are_awaited_and_the_terminal_only_later():
    wait = waiting()
    assert wait.reason == "waiting for 2 slots of 1 CPU" and wait.note == ""
    assert not wait.is_due(100.0 + LOOK_EVERY_S - 0.1) and wait.is_due(100.0 + LOOK_EVERY_S)
    wait.look(102.0, FREE)
    assert wait.note == wait.reason == f"waiting for 2 slots of 1 CPU; {FREE}"


def test_slots_that_come_at_once_leave_no_line_in_the_log():
    wait = waiting()
    assert wait.end(101.0) == [] and wait.reason == "" and not wait.is_due(1_000.0)


def test_the_log_says_it_at_first_then_now_and_then_and_at_the_end():
    wait = waiting()
    looks = [wait.look(now, FREE) for now in (102.0, 104.0, 102.0 + LOG_EVERY_S, 103.0 + LOG_EVERY_S)]
    assert [len(lines) for lines in looks] == [1, 0, 1, 0]
    assert wait.end(142.4) == ["has its slots, after 42 s"]


@pytest.mark.parametrize(
    ("state", "tasks", "reason", "expected"),
    [
        ("CREATED", "CREATED", "waiting", "CREATED"),
        ("RUNNING", "DEPLOYING", "waiting", "CREATED"),
        ("RUNNING", "RUNNING", "waiting", "RUNNING"),
        ("RUNNING", "DEPLOYING", "", "RUNNING"),
        ("RESTARTING", "FAILED", "waiting", "RESTARTING"),
    ],
)
def test_a_job_of_which_nothing_runs_for_want_of_slots_is_created(state, tasks, reason, expected):
    status = {"state": state, "vertices": [{"states": {tasks: 2}}, {"states": {"DEPLOYING": 1}}]}
    described = described_waiting(status, reason)
    assert (described["state"], described["waiting"]) == (expected, reason)
