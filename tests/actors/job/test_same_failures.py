"""A job that fails again and again at the same place ends, whatever its restart strategy; outages do not count."""

from __future__ import annotations

import errno

import pytest

from rayflink.actors.exchange.links import MessageGap
from rayflink.actors.job.failures.same_failures import STEADY_MS, SameFailures
from rayflink.actors.messages.commands import EndJob, TaskGone, Tick
from rayflink.actors.messages.messages import TaskFailure
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.task.failures import describe_failure, is_outage
from rayflink.common.errors import JobFailed
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.storage.storage import MissingFileError, StorageError
from tests.actors.job.job_events import Job, three_vertices
from tests.actors.task.test_failures import DEPLOYMENT

FOR_EVER = {
    "restart_strategy__type": "fixed-delay",
    "restart_strategy__fixed_delay__attempts": "1000000",
    "restart_strategy__fixed_delay__delay": "10 ms",
}
MAP = "Map (1/2)"


def raised(line: int = 3, record: str = "'x'", **more: object) -> TaskFailure:
    traceback = f'Traceback:\n  File "parse.py", line {line}, in parse\nValueError: no number\n'
    return TaskFailure("ValueError", f"failed on record {record}", traceback, "Parse", "job.py:9", record, **more)


def test_the_failure_with_the_number_of_the_option_is_the_last():
    failures = SameFailures(3)
    assert [failures.is_last(raised(), restart, ran_ms=0) for restart in range(3)] == [False, False, True]
    assert failures.refusal.startswith("it failed so 3 times at the same place, with no checkpoint complete in between")


def test_subtasks_that_fail_in_one_restart_count_once():
    failures = SameFailures(2)
    assert [failures.is_last(raised(record=f"{n}"), 0, ran_ms=0) for n in range(4)] == [False] * 4
    assert failures.is_last(raised(), 1, ran_ms=0)


def test_another_line_or_another_type_is_another_failure():
    failures = SameFailures(2)
    other = TaskFailure("KeyError", "no", raised().traceback, "Parse")
    assert [failures.is_last(one, n, 0) for n, one in enumerate([raised(3), raised(4), other])] == [False] * 3


def test_a_failure_without_traceback_is_known_by_its_message_but_not_by_its_numbers():
    failures = SameFailures(2)
    first, second = (TaskFailure("OSError", f"folder /in is missing ({n} of 0x7f{n}a)", "", "Files") for n in (1, 2))
    assert not failures.is_last(first, 0, 0) and failures.is_last(second, 1, 0)


def test_a_complete_checkpoint_is_progress():
    failures = SameFailures(2)
    failures.is_last(raised(), 0, 0)
    failures.progressed()
    assert not failures.is_last(raised(), 1, 0)


@pytest.mark.parametrize(("record", "is_last"), [("'y'", False), ("'x'", True)])
def test_an_attempt_that_ran_long_made_progress_unless_it_failed_on_the_same_record(record, is_last):
    failures = SameFailures(2)
    failures.is_last(raised(), 0, STEADY_MS + 1)
    assert failures.is_last(raised(record=record), 1, STEADY_MS + 1) is is_last


def test_outages_lost_processes_and_a_limit_of_zero_never_end_the_job():
    lost = TaskFailure("TaskLost", "its process died", "")
    for failures, failure in (
        (SameFailures(1), raised(is_outage=True)),
        (SameFailures(1), lost),
        (SameFailures(0), raised()),
    ):
        assert not any(failures.is_last(failure, restart, 0) for restart in range(100))


class OperationalError(Exception):
    """As that of a client of a database."""


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError("no"), True), (TimeoutError(), True), (OSError(errno.ENOSPC, "full"), True),
        (OperationalError("gone"), True), (MessageGap("a", 1, 2, 30), True),
        (StorageError("read", "s3://", "no"), True),
        (FileNotFoundError(errno.ENOENT, "no"), False), (PermissionError(errno.EACCES, "no"), False),
        (MissingFileError("read", "/c", "no"), False), (ModuleNotFoundError("pandas"), False),
        (ValueError("no number"), False), (KeyError("x"), False), (RuntimeError("no"), False),
    ],
)  # fmt: skip
def test_an_error_of_something_outside_is_an_outage_and_others_recur(error, expected):
    assert is_outage(error) is expected
    wrapped = RuntimeError("cannot go on")
    wrapped.__cause__ = error
    assert describe_failure(wrapped, DEPLOYMENT).is_outage is expected


def running() -> Job:
    job = Job(three_vertices(**FOR_EVER))
    job.all_run()
    return job


def fail_once(job: Job, now: int, failure: TaskFailure | None) -> list:
    """One subtask fails, or its process is lost; the others end, and all begin anew where the job restarts."""
    if failure is None:
        job.on(TaskGone(job.execution(MAP).attempt, "killed"), now)
    else:
        job.says(MAP, ExecutionState.FAILED, now, failure=failure)
    commands = []
    for name, state in job.states().items():
        if state == "CANCELING":
            commands = job.says(name, ExecutionState.CANCELED, now + 1)
    commands += job.on(Tick(), now + 100)
    if job.master.status is JobStatus.RUNNING:
        for name in job.states():
            job.says(name, ExecutionState.RUNNING, now + 200)
    return commands


def test_a_job_that_may_restart_for_ever_ends_with_its_third_equal_failure():
    job = running()
    fail_once(job, 0, raised())
    fail_once(job, 1_000, raised())
    ended = [c for c in fail_once(job, 2_000, raised()) if isinstance(c, EndJob)]
    assert job.master.status is JobStatus.FAILED
    assert "3 times at the same place" in ended[0].result.failure.message
    assert "rayflink.restart-strategy.same-failure.attempts" in ended[0].result.failure.message


def test_kills_between_equal_failures_neither_count_nor_forgive():
    job = running()
    for number in range(5):
        fail_once(job, number * 1_000, None)
    assert job.master.status is JobStatus.RUNNING
    for number in range(5, 11):
        fail_once(job, number * 1_000, raised() if number % 2 else None)
    assert job.master.status is JobStatus.FAILED and job.master.restarts.count == 9


@pytest.mark.slow
def test_a_job_in_this_process_ends_with_its_first_failure_unless_a_strategy_is_set(tmp_path):
    def fails(number: int) -> int:
        with (tmp_path / "calls").open("a") as calls:
            calls.write("x")
        raise ValueError("malformed")

    def calls_with(**more: str) -> int:
        given = {"execution.target": "local", "execution.checkpointing.interval": "10 s", **more}
        (tmp_path / "calls").write_text("")
        env = StreamExecutionEnvironment.get_execution_environment(given)
        env.from_collection([1, 2]).map(fails).add_sink(print)
        with pytest.raises(JobFailed, match="malformed"):
            env.execute()
        return len((tmp_path / "calls").read_text())

    assert calls_with() == 1
    fixed = {key.replace("__", ".").replace("_", "-"): value for key, value in FOR_EVER.items()}
    assert calls_with(**fixed) == 3
