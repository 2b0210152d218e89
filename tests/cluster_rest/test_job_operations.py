"""Requests that change a job, without a server; the statuses and the errors are those of Flink 2.3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rayflink.cluster.rest.cluster_operations import ClusterOperations
from rayflink.cluster.rest.job_operations import BY, JobOperations
from rayflink.cluster.rest.job_rescaling import JobRescaling
from rayflink.cluster.rest.operations import KEEP_MS, MOST_KEPT, MOST_UNDER_WAY, Operations
from rayflink.common.options.stop_mode import StopMode
from tests.cluster_rest.known_jobs import ENDED, RUNNING, SINK, SOURCE, UNKNOWN, KnownJobs, Requests

JOB = f"/jobs/{RUNNING}"
CHOSEN = "c" * 32


class Work:
    """Work of operations that waits until `finish`, and a clock."""

    def __init__(self) -> None:
        self.pending: list[Callable[[], None]] = []
        self.now_ms = 0
        self.operations = Operations(lambda: self.now_ms, self.pending.append)

    def finish(self) -> None:
        while self.pending:
            self.pending.pop(0)()


@pytest.fixture
def work() -> Work:
    return Work()


@pytest.fixture
def jobs() -> KnownJobs:
    return KnownJobs()


@pytest.fixture
def requests(jobs: KnownJobs, work: Work) -> Requests:
    operations, cluster = JobOperations(jobs, work.operations), ClusterOperations(work.operations, lambda: None)
    return Requests(*operations.routes(), *JobRescaling(jobs).routes(), *cluster.routes())


def test_a_savepoint_is_in_progress_and_then_has_its_location(jobs: KnownJobs, work: Work, requests: Requests) -> None:
    jobs.job.answers["savepoint"] = ("/savepoints/savepoint-1", "")
    status, answer = requests.send("POST", f"{JOB}/savepoints", {})
    assert status == 202
    path = f"{JOB}/savepoints/{answer['request-id']}"
    assert requests.send("GET", path) == (200, {"status": {"id": "IN_PROGRESS"}, "operation": None})
    work.finish()
    completed = {"status": {"id": "COMPLETED"}, "operation": {"location": "/savepoints/savepoint-1"}}
    assert requests.send("GET", f"/v1{path}") == (200, completed)
    assert jobs.job.calls == [("savepoint", answer["request-id"], "", None)]


def test_the_id_that_a_client_has_chosen_means_one_savepoint(jobs: KnownJobs, work: Work, requests: Requests) -> None:
    jobs.job.answers["savepoint"] = ("/elsewhere/savepoint-1", "")
    body = {"triggerId": CHOSEN, "target-directory": "/elsewhere", "cancel-job": True, "formatType": "NATIVE"}
    for _ in range(2):
        assert requests.send("POST", f"{JOB}/savepoints", body) == (202, {"request-id": CHOSEN})
        work.finish()
    assert jobs.job.calls == [("savepoint", CHOSEN, "/elsewhere", None), ("cancel", BY)]


@pytest.mark.parametrize(("drain", "mode"), [(True, StopMode.DRAIN), (False, StopMode.SUSPEND)])
def test_a_job_stops_with_a_savepoint(
    jobs: KnownJobs, work: Work, requests: Requests, drain: bool, mode: StopMode
) -> None:
    jobs.job.answers["savepoint"] = ("", "the checkpoint expired")
    body = {"drain": drain, "triggerId": CHOSEN, "targetDirectory": "/d"}
    assert requests.send("POST", f"{JOB}/stop", body) == (202, {"request-id": CHOSEN})
    work.finish()
    cause = requests.send("GET", f"{JOB}/savepoints/{CHOSEN}")[1]["operation"]["failure-cause"]
    assert (cause["class"], cause["stack-trace"]) == ("OperationFailed", "OperationFailed: the checkpoint expired")
    assert jobs.job.calls == [("savepoint", CHOSEN, "/d", mode)]


def test_a_checkpoint_has_its_number_as_outcome(jobs: KnownJobs, work: Work, requests: Requests) -> None:
    jobs.job.answers["checkpoint"] = (7, "")
    body = {"checkpointType": "FULL", "triggerId": CHOSEN}
    assert requests.send("POST", f"{JOB}/checkpoints", body) == (202, {"request-id": CHOSEN})
    work.finish()
    completed = {"status": {"id": "COMPLETED"}, "operation": {"checkpointId": 7}}
    assert requests.send("GET", f"{JOB}/checkpoints/{CHOSEN}") == (200, completed)
    unknown = f"There is no savepoint operation with triggerId={CHOSEN} for job {RUNNING}."
    assert requests.send("GET", f"{JOB}/savepoints/{CHOSEN}") == (404, [unknown])


@pytest.mark.parametrize("job_id", [UNKNOWN, ENDED])
def test_a_savepoint_of_a_job_that_does_not_run_fails(work: Work, requests: Requests, job_id: str) -> None:
    status, answer = requests.send("POST", f"/jobs/{job_id}/savepoints", {})
    work.finish()
    outcome = requests.send("GET", f"/jobs/{job_id}/savepoints/{answer['request-id']}")
    assert (status, outcome[0]) == (202, 200), "as in Flink, which looks for the job later"
    assert job_id in outcome[1]["operation"]["failure-cause"]["stack-trace"]


@pytest.mark.parametrize(
    ("path", "body", "problem"),
    [
        ("/jobs/zz/savepoints", {}, 'Cannot resolve path parameter (jobid) from value "zz".'),
        (f"{JOB}/savepoints", {"triggerId": "zz"}, "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/savepoints", {"formatType": "zz"}, "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/savepoints", {"cancel-job": "nope"}, "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/savepoints", [], "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/savepoints", b"{", "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/savepoints", b"[" * 100_000, "expected format SavepointTriggerRequestBody"),
        (f"{JOB}/stop", {"drain": "x"}, "expected format StopWithSavepointRequestBody"),
        (f"{JOB}/checkpoints", {"checkpointType": "nosuch"}, "expected format CheckpointTriggerRequestBody"),
        ("/savepoint-disposal", {}, "Field savepoint-path must not be omitted or be null."),
    ],
)
def test_a_request_of_another_form_is_refused(requests: Requests, path: str, body: Any, problem: str) -> None:
    status, errors = requests.send("POST", path, body)
    assert status == 400 and problem in errors[0], errors


def test_a_savepoint_without_a_directory_is_refused(jobs: KnownJobs, requests: Requests) -> None:
    jobs.job.directory = ""
    problem = "Config key [execution.checkpointing.savepoint-dir] is not set."
    for path in (f"{JOB}/savepoints", f"{JOB}/stop"):
        refusal = requests.send("POST", path, {})
        assert refusal == (400, [f"{problem} Property [target-directory] must be provided."])


def test_a_job_is_cancelled(jobs: KnownJobs, requests: Requests) -> None:
    assert requests.send("PATCH", JOB, query={"mode": "cancel"}) == (202, {})
    assert requests.send("PATCH", JOB) == requests.send("GET", f"{JOB}/yarn-cancel") == (202, {})
    assert jobs.job.calls == [("cancel", BY)] * 3
    refused = requests.send("GET", f"{JOB}/yarn-cancel", sec_fetch_site="cross-site")
    assert (refused[0], len(jobs.job.calls)) == (403, 3), "a page elsewhere must not cancel a job by an image"


def test_what_cannot_be_cancelled_is_refused(jobs: KnownJobs, requests: Requests) -> None:
    assert requests.send("PATCH", f"/jobs/{UNKNOWN}")[0] == 404
    assert requests.send("PATCH", f"/jobs/{ENDED}")[0] == 409
    assert requests.send("PATCH", JOB, query={"mode": "stop"})[0] == 308
    status, errors = requests.send("PATCH", JOB, query={"mode": "nosuch"})
    assert status == 400 and 'Cannot resolve query parameter (mode) from value "nosuch".' in errors[0]
    jobs.ended.state = "CANCELED"
    assert requests.send("PATCH", f"/jobs/{ENDED}") == (202, {}), "it is what was wanted"


def bounds(lower: int, upper: int, *vertices: str) -> dict[str, Any]:
    return {vertex: {"parallelism": {"lowerBound": lower, "upperBound": upper}} for vertex in vertices}


def test_vertices_get_their_upper_bounds_in_one_rescale(jobs: KnownJobs, requests: Requests) -> None:
    jobs.job.answers["rescale"] = (12, "")
    path = f"{JOB}/resource-requirements"
    assert requests.send("PUT", path, bounds(1, 2, SOURCE, SINK)) == (200, {})
    assert jobs.job.calls == [("rescale", {SOURCE: 2})], "the other vertex has two subtasks already"
    assert requests.send("PUT", path, bounds(1, 1, SOURCE) | bounds(1, 2, SINK)) == (200, {})
    assert len(jobs.job.calls) == 1, "nothing changes"
    jobs.job.answers["rescale"] = (0, "there are no checkpoints")
    assert requests.send("PUT", path, bounds(1, 3, SOURCE, SINK)) == (409, ["there are no checkpoints"])


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({}, "Request body does not specify resource requirements."),
        ({"zz": {"parallelism": {"lowerBound": 1, "upperBound": 2}}}, "expected format JobResourceRequirementsBody"),
        ({SOURCE: {}, SINK: {}}, "expected format JobResourceRequirementsBody"),
        (bounds(1, 1, SOURCE), f"missing job vertex [{SINK}] resource requirements."),
        (bounds(1, 1, UNKNOWN, SOURCE, SINK), f"Job vertex [{UNKNOWN}] was not found in the JobGraph."),
        (bounds(3, 2, SOURCE, SINK), f"lower bound [3] for job vertex [{SOURCE}] is higher than the upper bound [2]."),
        (bounds(0, 2, SOURCE, SINK), "must be greater than zero"),
        (bounds(1, 5, SOURCE, SINK), f"parallelism 5 for the job vertex {SINK} exceeds its maximum parallelism 4."),
        (bounds(1, 2**31, SOURCE, SINK), "expected format JobResourceRequirementsBody"),
    ],
)
def test_resources_that_a_job_cannot_have_are_refused(requests: Requests, body: Any, problem: str) -> None:
    status, errors = requests.send("PUT", f"{JOB}/resource-requirements", body)
    assert status == 400 and problem in errors[0], errors


def test_the_earlier_request_for_another_parallelism_is_refused_as_in_flink(requests: Requests) -> None:
    assert requests.send("PATCH", f"{JOB}/rescaling")[0] == 503
    assert requests.send("PUT", f"/jobs/{ENDED}/resource-requirements", bounds(1, 1, SOURCE))[0] == 404


def test_outcomes_are_forgotten_after_a_time_and_beyond_a_number(work: Work) -> None:
    def location(trigger_id: str) -> Any:
        return Operations  # any value

    known = Requests(*JobOperations(KnownJobs(), work.operations).routes())
    ids = [work.operations.begin("savepoint", RUNNING, None, location).request_id for _ in range(MOST_UNDER_WAY)]
    with pytest.raises(Exception, match="no more are begun"):
        work.operations.begin("savepoint", RUNNING, None, location)
    work.finish()
    work.now_ms = KEEP_MS
    assert work.operations.result("savepoint", RUNNING, ids[0]).status.id == "COMPLETED"
    work.now_ms = KEEP_MS + 1
    assert known.send("GET", f"{JOB}/savepoints/{ids[0]}")[0] == 404
    ids = []
    for _ in range(MOST_KEPT + 1):
        ids.append(work.operations.begin("savepoint", RUNNING, None, location).request_id)
        work.finish()
    assert known.send("GET", f"{JOB}/savepoints/{ids[0]}")[0] == 404
    assert work.operations.result("savepoint", RUNNING, ids[1]).status.id == "COMPLETED"
