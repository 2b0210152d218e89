"""What tasks report arrives, and a value of the user that cannot be read fails its task by name."""

from __future__ import annotations

import threading

import pytest

from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.messages.messages import SplitRequest, TaskReport, TaskStateChanged
from rayflink.actors.messages.states import ExecutionState, JobStatus
from rayflink.actors.on_ray.reports import pack_reports, read_reports
from rayflink.common.errors import JobFailed
from rayflink.common.functions.accumulators import ListAccumulator
from rayflink.launch import raise_if_failed
from tests.actors.job.job_events import Job, three_vertices

ATTEMPT = TaskAddress("a" * 32)


class ParseError(Exception):
    """An exception that pickle writes and cannot read."""

    def __init__(self, line: str, why: str) -> None:
        super().__init__(f"{line}: {why}")


def collected(value: object) -> ListAccumulator:
    rows: ListAccumulator = ListAccumulator()
    rows.add(value)
    return rows


def finished(value: object, attempt: TaskAddress = ATTEMPT) -> TaskStateChanged:
    return TaskStateChanged(attempt, ExecutionState.FINISHED, accumulators={"rows": collected(value)})


def test_reports_arrive_in_order_with_their_accumulators() -> None:
    sent = [SplitRequest(ATTEMPT, "op"), TaskReport(ATTEMPT, {"numRecordsIn": 3}), finished(7)]
    request, report, end = read_reports(pack_reports(sent))
    assert (request, report) == tuple(sent[:2])
    assert isinstance(end, TaskStateChanged) and end.state is ExecutionState.FINISHED
    assert end.accumulators["rows"].get_local_value() == [7]


@pytest.mark.parametrize(
    ("value", "said"),
    [(ParseError("1", "bad"), "cannot be read by the coordinator: TypeError"), (threading.Lock(), "cannot be sent")],
)
def test_an_accumulator_that_does_not_come_through_pickle_fails_its_task_alone(value: object, said: str) -> None:
    report, end = read_reports(pack_reports([TaskReport(ATTEMPT, {}), finished(value)]))
    assert report == TaskReport(ATTEMPT, {})
    assert isinstance(end, TaskStateChanged) and end.failure is not None
    assert (end.attempt, end.state) == (ATTEMPT, ExecutionState.FAILED)
    assert f"accumulator 'rows' {said}" in end.failure.message
    assert "__reduce__" in end.failure.message


def test_what_a_failed_task_had_accumulated_does_not_hide_its_failure() -> None:
    sent = TaskStateChanged(ATTEMPT, ExecutionState.FAILED, accumulators={"rows": collected(ParseError("1", "bad"))})
    assert list(read_reports(pack_reports([sent]))) == [TaskStateChanged(ATTEMPT, ExecutionState.FAILED)]


def test_a_metric_that_cannot_be_sent_fails_its_task() -> None:
    (end,) = read_reports(pack_reports([TaskReport(ATTEMPT, {"gauge": threading.Lock()})]))
    assert isinstance(end, TaskStateChanged) and end.failure is not None
    assert "a metric cannot be sent" in end.failure.message


def test_the_job_fails_at_once_naming_accumulator_and_vertex() -> None:
    job = Job(three_vertices())
    job.all_run()
    attempt = next(iter(job.master.executions))
    (end,) = read_reports(pack_reports([finished(ParseError("1", "bad"), attempt)]))
    job.on(end)
    assert job.master.status is JobStatus.FAILING
    for other in list(job.master.executions):
        job.on(TaskStateChanged(other, ExecutionState.CANCELED))
    assert job.master.result is not None
    with pytest.raises(JobFailed, match="accumulator 'rows'") as caught:
        raise_if_failed(job.master.result)
    assert caught.value.operator == job.master.executions[attempt].vertex.name
