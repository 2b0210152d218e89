"""New starts of jobs by request: what the dispatcher accepts, refuses and remembers, without running anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.job import submission as stored
from rayflink.cluster.dispatcher.dispatcher import Dispatcher
from rayflink.cluster.dispatcher.job_documents import now_ms
from rayflink.cluster.dispatcher.restarted_submission import RestartChanges, ensure_changeable, restarted_submission
from rayflink.cluster.registry.job_registry import DuplicateJob, JobRegistry
from rayflink.cluster.rest.operations import Operations
from rayflink.cluster.rest.restart_endpoints import RestartEndpoints
from rayflink.common.errors import ConfigError, PlanError
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.serving.json_requests import Role
from rayflink.state.storage.local_storage import LocalStorage
from tests.cluster_rest.known_jobs import Requests
from tests.cluster_rest.restarts.lines_jobs import LinesJob
from tests.cluster_rest.test_dispatcher import FakeRunner, begun, status

NEW, OTHER, UNKNOWN = "1" * 32, "2" * 32, "0" * 32


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "registry")


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def submission(tmp_path: Path) -> RemoteSubmission:
    return LinesJob(tmp_path).priced()


@pytest.fixture
def dispatcher(storage: LocalStorage, runner: FakeRunner, submission: RemoteSubmission) -> Dispatcher:
    """A dispatcher whose one job has failed."""
    dispatcher = begun(storage, runner)
    dispatcher.submit(submission.encode(), "me")
    runner.jobs[submission.job_id] = status(submission.job_id, "FAILED")
    dispatcher.look()
    del runner.jobs[submission.job_id]
    return dispatcher


PENDING: list[Callable[[], None]] = []
"""The work of operations that have begun."""


@pytest.fixture
def requests(dispatcher: Dispatcher) -> Requests:
    PENDING.clear()
    return Requests(*RestartEndpoints(dispatcher, Operations(start=PENDING.append)).routes())


def outcome(requests: Requests, job_id: str, body: dict[str, Any]) -> dict[str, Any]:
    code, answer = requests.send("POST", f"/rayflink/jobs/{job_id}/restart", body)
    assert code == 202, answer
    while PENDING:
        PENDING.pop()()
    code, answer = requests.send("GET", f"/rayflink/jobs/{job_id}/restart/{answer['request-id']}")
    assert (code, answer["status"]["id"]) == (200, "COMPLETED")
    operation: dict[str, Any] = answer["operation"]
    return operation


def test_the_same_request_starts_one_job_also_at_the_next_dispatcher(
    dispatcher: Dispatcher, requests: Requests, runner: FakeRunner, submission: RemoteSubmission, storage: LocalStorage
) -> None:
    body = {"jobId": NEW, "startFrom": "NOTHING", "parallelism": {"price": 3}, "configuration": {"s3.region": "eu"}}
    for _ in range(2):
        assert outcome(requests, submission.job_id, body) == {"jobid": NEW, "start-from": ""}
    (_, start) = runner.starts
    changes = start.submission.changes
    assert changes is not None and (changes.program_id, changes.start_from) == (submission.job_id, "")
    assert changes.configuration == {"s3.region": "eu"} and start.submission.program == submission.submission.program
    sizes = {vertex["name"]: vertex["parallelism"] for vertex in start.description["vertices"]}
    assert sizes["price"] == 3 and sizes["Sink: lines"] == 1
    assert start.stored is not None and start.stored.url.endswith(f"/{NEW}")
    successor = begun(storage, runner)
    assert successor.restarts.restart(submission.job_id, NEW, "", RestartChanges(), "me").job_id == NEW
    assert len(runner.starts) == 2
    assert successor.lineage.successors(submission.job_id) == (NEW,)
    with pytest.raises(DuplicateJob):
        successor.restarts.restart(NEW, submission.job_id, "", RestartChanges(), "me")


def test_a_new_start_comes_back_with_its_changes(
    dispatcher: Dispatcher, runner: FakeRunner, submission: RemoteSubmission, storage: LocalStorage
) -> None:
    dispatcher.restarts.restart(submission.job_id, NEW, "", RestartChanges(parallelism={"price": 2}), "me")
    first = runner.starts[-1]
    runner.jobs.clear()
    successor = begun(storage, runner)
    successor.look()
    again = next(start for start in reversed(runner.starts) if start.job_id == NEW)
    assert again.submission.changes == first.submission.changes and again.submission.start_number == 2


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ({"startFrom": "PATH"}, 400, "savepointPath"),
        ({"savepointPath": "/somewhere"}, 400, "startFrom NEWEST"),
        ({"startFrom": "LATEST"}, 400, "did not match expected format"),
        ({"jobId": "7"}, 400, "did not match expected format"),
        ({"parallelism": {"price": 0}}, 400, "did not match expected format"),
        ({"configuration": {"execution.checkpointing.intervall": "1 s"}}, 400, "did you mean execution.check"),
        ({"configuration": {"execution.checkpointing.interval": "soon"}}, 400, "execution.checkpointing.interval"),
        ({"configuration": {"parallelism.default": "2"}}, 400, "read when a program is compiled"),
        ({"configuration": {"execution.savepoint.path": "/x"}}, 400, "choose it beside them"),
    ],
)
def test_wrong_requests_are_refused_before_anything_happens(
    requests: Requests, submission: RemoteSubmission, body: dict[str, Any], code: int, said: str
) -> None:
    found, messages = requests.send("POST", f"/rayflink/jobs/{submission.job_id}/restart", body)
    assert found == code and said in " ".join(messages)
    assert not PENDING


def test_what_fails_later_is_the_outcome(requests: Requests, submission: RemoteSubmission, tmp_path: Path) -> None:
    job_id = submission.job_id
    for body, said in (
        ({}, "it has completed no checkpoint; choose to start it from nothing"),
        ({"startFrom": "PATH", "savepointPath": str(tmp_path / "gone")}, "no checkpoint or savepoint at"),
        ({"startFrom": "NOTHING", "parallelism": {"prise": 2}}, "the job has no operator 'prise'"),
        ({"startFrom": "NOTHING", "parallelism": {"price": 129}}, "choose from 1 to 128"),
    ):
        cause = outcome(requests, job_id, body)["failure-cause"]
        assert said in cause["stack-trace"]
    assert requests.send("GET", f"/rayflink/jobs/{job_id}/restart")[1]["restarted_as"] == ()


def test_jobs_that_cannot_be_started_again_say_why(
    dispatcher: Dispatcher, requests: Requests, runner: FakeRunner, submission: RemoteSubmission,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    runner.jobs[OTHER] = status(OTHER, "RUNNING")
    dispatcher.look()
    refusal = requests.send("GET", f"/rayflink/jobs/{OTHER}/restart")[1]["refusal"]
    assert "its program has started it by itself" in refusal
    assert requests.send("POST", f"/rayflink/jobs/{OTHER}/restart", {})[0] == 409
    assert requests.send("GET", f"/rayflink/jobs/{UNKNOWN}/restart")[0] == 404
    assert requests.send("POST", f"/rayflink/jobs/{UNKNOWN}/restart", {})[0] == 404
    monkeypatch.setattr(stored, "versions", lambda: {"python": "4.0", "cloudpickle": "9", "rayflink": "1"})
    _, messages = requests.send("POST", f"/rayflink/jobs/{submission.job_id}/restart", {"startFrom": "NOTHING"})
    assert "python 3." in messages[0] and "here 4.0" in messages[0]


def test_a_dispatcher_that_no_longer_leads_starts_nothing(
    dispatcher: Dispatcher, requests: Requests, runner: FakeRunner, submission: RemoteSubmission, storage: LocalStorage
) -> None:
    begun(storage, FakeRunner())
    cause = outcome(requests, submission.job_id, {"startFrom": "NOTHING"})["failure-cause"]
    assert "another one has taken over" in cause["stack-trace"] and len(runner.starts) == 1


def test_a_program_is_stored_as_long_as_its_job_is_in_the_list(
    storage: LocalStorage, runner: FakeRunner, submission: RemoteSubmission
) -> None:
    dispatcher = begun(storage, runner, most_ended=1)
    dispatcher.submit(submission.encode(), "me")
    runner.jobs[submission.job_id] = status(submission.job_id, "FAILED", now_ms() - 1000)
    dispatcher.look()
    assert JobRegistry(storage).entry(submission.job_id) is not None
    dispatcher.restarts.restart(submission.job_id, NEW, "", RestartChanges(), "me")
    runner.jobs[NEW] = status(NEW, "FINISHED")
    dispatcher.look()
    dispatcher.look()
    assert JobRegistry(storage).entry(submission.job_id) is None and dispatcher.lineage.origin(NEW) == submission.job_id


def test_new_starts_need_the_right_to_submit(dispatcher: Dispatcher) -> None:
    roles = {route.method: route.role for route in RestartEndpoints(dispatcher, Operations()).routes()}
    assert roles == {"GET": Role.READ, "POST": Role.SUBMIT}


def test_an_option_by_its_older_name_replaces_that_of_the_program(submission: RemoteSubmission) -> None:
    older = {"state.checkpoints.num-retained": "3", "execution.checkpointing.externalized-checkpoint-retention":
             "DELETE_ON_CANCELLATION"}  # fmt: skip
    new = restarted_submission(submission, {}, NEW, "/data/chk-1", RestartChanges(True, {}, older))
    configuration = new.description["configuration"]
    assert configuration["state.checkpoints.num-retained"] == "3"
    assert configuration["execution.state-recovery.path"] == "/data/chk-1"
    assert new.submission.owner_timeout_ms is None, "no client waits for it"
    again = restarted_submission(new, {}, OTHER, "", RestartChanges())
    assert "execution.state-recovery.path" not in again.description["configuration"]
    assert again.submission.changes is not None
    assert again.submission.changes.configuration == older, "what was changed before stays"
    assert again.submission.changes.program_id == submission.job_id


def test_vertices_that_are_joined_change_together(submission: RemoteSubmission) -> None:
    ran = {vertex["id"]: 2 for vertex in submission.description["vertices"] if vertex["name"] == "price"}
    new = restarted_submission(submission, ran, NEW, "", RestartChanges(parallelism={"lines": 3}))
    sizes = {vertex["name"]: vertex["parallelism"] for vertex in new.description["vertices"]}
    assert sizes == {"Source: lanes": 1, "price": 2, "running": 3, "windows": 3, "Sink: lines": 3}
    with pytest.raises(PlanError, match="2 and 3 subtasks: the operators named are joined"):
        restarted_submission(submission, {}, NEW, "", RestartChanges(parallelism={"running": 2, "lines": 3}))


def test_options_that_no_compiled_program_heeds_are_refused() -> None:
    ensure_changeable({"execution.checkpointing.interval": "1 s", "restart-strategy.type": "none"})
    with pytest.raises(ConfigError, match="run the program again with it"):
        ensure_changeable({"pipeline.operator-chaining.enabled": "false"})


def test_a_changed_submission_is_read_as_it_was_written(submission: RemoteSubmission) -> None:
    new = restarted_submission(submission, {}, NEW, "/x", RestartChanges(options={"s3.region": "eu"}))
    read = RemoteSubmission.decode(new.encode())
    assert read.submission == new.submission and read.encode() == new.encode()
