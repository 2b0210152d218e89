"""The dispatcher on a storage that fails, dies or is damaged at any moment: no job is lost, and none runs twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.actors.job.notes.plain_values import plain
from rayflink.actors.job.submission import Stored
from rayflink.cluster.dispatcher.dispatcher import Dispatcher, DispatcherSettings
from rayflink.cluster.jobs.cluster_job import JobHasEnded
from rayflink.cluster.registry.job_registry import JobRegistry
from rayflink.cluster.registry.leadership import DispatcherFenced
from rayflink.cluster.rest.job_operations import JobOperations
from rayflink.cluster.rest.operations import Operations
from rayflink.cluster.rest.remote_job_endpoints import RemoteJobEndpoints
from rayflink.cluster.runners.local_runner import LocalRunner
from rayflink.cluster.runners.printed_lines import PrintedLines
from rayflink.common.errors import ControlPlaneTimeout
from rayflink.connectors.discard import DiscardingSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.launch.remote_submission import RemoteSubmission
from rayflink.serving.json_requests import JsonRequest, Refusal
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import Storage, StorageError

from .test_dispatcher import JOB, OTHER, AtOnce, FakeRunner, begun, status, submission


class Dies(BaseException):
    """The process is killed."""


class Fragile(Storage):
    """A storage whose calls fail from the Nth write on, before or after the write takes place.

    Args:
        storage: below it.
        writes: that go well.
        is_after: the failing one is done nevertheless.
        error: that it raises.
        failures: the number of writes that fail.
    """

    def __init__(
        self, storage: Storage, writes: int, is_after: bool, error: BaseException, failures: int = 1
    ) -> None:
        self.storage, self.writes, self.is_after, self.error, self.failures = storage, writes, is_after, error, failures
        self.has_failed = False

    @property
    def url(self) -> str:
        return self.storage.url

    def put_if_absent(self, path: str, data: bytes) -> bool:
        return bool(self._write(lambda: self.storage.put_if_absent(path, data)))

    def delete(self, path: str) -> None:
        self._write(lambda: self.storage.delete(path))

    def _write(self, write: Any) -> Any:
        self.writes -= 1
        if self.writes >= 0 or self.failures <= 0:
            return write()
        self.failures -= 1
        self.has_failed = True
        if self.is_after:
            write()
        raise self.error

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if self.has_failed and self.failures > 0:
            raise self.error
        return self.storage.read(path, offset, length)

    def list(self, folder: str = "") -> list[str]:
        return self.storage.list(folder)

    def upload(self, path: str, local: Path) -> None:
        raise AssertionError

    def download(self, path: str, local: Path) -> None:
        raise AssertionError


class Cluster(FakeRunner):
    """Jobs that outlive dispatchers, each started at most once at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.cancelled: list[str] = []

    def start(self, submission: Any) -> Any:
        assert submission.job_id not in self.jobs, "the job runs twice"
        return super().start(submission)


def use(dispatcher: Dispatcher, runner: Cluster) -> None:
    """Submit two jobs, end one, and look after them."""
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
    runner.jobs[JOB] = status(JOB, "FINISHED")
    dispatcher.look()
    dispatcher.look()


def taken_over(storage: Storage, runner: FakeRunner) -> Dispatcher:
    dispatcher = Dispatcher(storage, runner, DispatcherSettings(starters=AtOnce()))  # type: ignore[arg-type]
    dispatcher.take_over("http://here")
    return dispatcher


@pytest.mark.parametrize("is_after", [False, True])
@pytest.mark.parametrize("error", [StorageError("write", "registry", "no space left"), Dies()], ids=["fails", "dies"])
@pytest.mark.parametrize("writes", range(12))
def test_a_registry_that_fails_at_any_write_loses_no_job(writes: int, error: BaseException, is_after: bool) -> None:
    storage, runner = MemoryStorage("registry"), Cluster()
    failures = 10**6 if isinstance(error, Dies) else 2  # the second one is the read that looks whether it was written
    try:
        use(taken_over(Fragile(storage, writes, is_after, error, failures), runner), runner)
    except (StorageError, Dies):
        pass
    dispatcher = taken_over(storage, runner)
    for job_id in (JOB, OTHER):  # the client had no answer, and sends the same again
        dispatcher.submit(submission(job_id).encode(), "me")
    for _ in range(2):
        dispatcher.look()
    starts = [start.job_id for start in runner.starts]
    assert sorted(set(starts)) == sorted(starts) == [JOB, OTHER]
    runner.jobs[JOB] = status(JOB, "FINISHED")
    dispatcher.look()
    del runner.jobs[JOB]
    successor = taken_over(storage, runner)
    successor.look()
    assert {job["jid"]: job["state"] for job in successor.statuses()} == {JOB: "FINISHED", OTHER: "RUNNING"}
    assert len(runner.starts) == 2


@pytest.mark.parametrize("writes", range(1, 5))
def test_a_job_whose_acceptance_got_no_answer_runs_when_it_is_sent_again(writes: int) -> None:
    runner, storage = Cluster(), MemoryStorage("registry")
    fragile = Fragile(storage, writes, True, StorageError("write", "registry", "timeout"), 2)
    dispatcher = taken_over(fragile, runner)
    data = submission().encode()
    try:
        dispatcher.submit(data, "me")
    except StorageError:
        fragile.failures = 0
        dispatcher.submit(data, "me")
    dispatcher.look()
    states = [job["state"] for job in dispatcher.statuses()]
    assert states == ["RUNNING"] or states == ["FAILED"] and JobRegistry(storage).ended(JOB) is not None


def test_a_job_that_an_older_dispatcher_accepted_late_is_run_by_the_newer_one() -> None:
    storage, runner = MemoryStorage("registry"), Cluster()
    older = taken_over(storage, runner)
    newer: list[Dispatcher] = []
    begin = storage.put_if_absent

    def take_over_first(path: str, data: bytes) -> bool:
        if path.endswith("/accepted") and not newer:
            newer.append(taken_over(storage, runner))
        return begin(path, data)

    storage.put_if_absent = take_over_first  # type: ignore[method-assign]
    with pytest.raises(DispatcherFenced):
        older.submit(submission().encode(), "me")
    assert runner.starts == [], "the newer one would not know of the job"
    assert newer[0].submit(submission().encode(), "me") == JOB
    newer[0].look()
    assert [start.job_id for start in runner.starts] == [JOB]


DAMAGE = [b"", b"{", b"[]", b"null", b'{"a": 1}', b"\xff\xfe", b"[" * 100_000, b'{"status": {"jid": 5}}']


@pytest.mark.parametrize("name", ["accepted", "ended"])
@pytest.mark.parametrize("damage", DAMAGE, ids=range(len(DAMAGE)))
def test_a_damaged_entry_keeps_no_other_job_from_coming_back(name: str, damage: bytes) -> None:
    storage, runner = MemoryStorage("registry"), Cluster()
    dispatcher = taken_over(storage, runner)
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
    path = f"jobs/{JOB}/{name}"
    storage.delete(path)
    storage.put_if_absent(path, damage)
    after = Cluster()
    successor = taken_over(storage, after)
    successor.look()
    assert [start.job_id for start in after.starts] == [OTHER]
    states = {job["jid"]: job["state"] for job in successor.statuses()}
    assert states == ({OTHER: "RUNNING"} if name == "accepted" else {JOB: "FAILED", OTHER: "RUNNING"})
    assert list(successor.describe()["damaged"]) == ([JOB] if name == "accepted" else [])


@pytest.mark.parametrize("damage", DAMAGE[:4])
def test_a_dispatcher_is_fenced_by_a_newer_one_whose_entry_is_damaged(damage: bytes) -> None:
    storage = MemoryStorage("registry")
    dispatcher = taken_over(storage, FakeRunner())
    storage.put_if_absent("leaders/000000002", damage)
    with pytest.raises(DispatcherFenced, match="unknown address"):
        dispatcher.submit(submission().encode(), "me")


def test_a_job_that_cannot_be_looked_at_keeps_no_other_from_coming_back(tmp_path: Path) -> None:
    storage, runner = MemoryStorage("registry"), Cluster()
    dispatcher = taken_over(storage, runner)
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
    del runner.jobs[OTHER]
    runner.jobs[JOB] = {**status(JOB, "FINISHED"), "vertices": "no vertices"}
    dispatcher.look()
    assert OTHER in runner.jobs


def test_a_job_that_is_cancelled_while_it_is_being_started_does_not_run() -> None:
    storage = MemoryStorage("registry")
    taken_over(storage, Cluster()).submit(submission().encode(), "me")
    runner, cancelled = FakeRunner(), []
    dispatcher = begun(storage, runner)  # type: ignore[arg-type]
    absent = dispatcher.running(JOB)
    begin = runner.start

    def cancel_first(submission: Any) -> Any:
        absent.cancel()
        job = begin(submission)
        job.cancel = cancelled.append
        return job

    runner.start = cancel_first  # type: ignore[method-assign]
    dispatcher.look()
    assert cancelled == ["the user"] and [job["state"] for job in dispatcher.statuses()] == ["CANCELED"]


def test_ended_jobs_that_left_the_list_leave_the_registry_at_the_next_start() -> None:
    storage, runner = MemoryStorage("registry"), Cluster()
    dispatcher = begun(storage, runner, ended_s=1e12)  # type: ignore[arg-type]
    for number in range(5):
        dispatcher.submit(submission(f"{number:032x}").encode(), "me")
        runner.jobs[f"{number:032x}"] = status(f"{number:032x}", "FINISHED")
        dispatcher.look()
    successor = begun(storage, runner, most_ended=2, ended_s=1e12)  # type: ignore[arg-type]
    successor.look()
    assert len(successor.statuses()) == 2 and len(JobRegistry(storage).entries()) == 2


def answer_of(dispatcher: Dispatcher, method: str, path: str) -> int:
    """Return the status of the answer to a request about JOB."""
    runner: Any = FakeRunner()
    routes = [*JobOperations(dispatcher, Operations()).routes(), *RemoteJobEndpoints(dispatcher, runner).routes()]
    (route,) = (route for route in routes if (route.method, route.pattern) == (method, path))
    try:
        route.answer(JsonRequest(path, {"jobid": JOB}, {}))
    except Refusal as refusal:
        return refusal.status
    return 200


@pytest.mark.parametrize("request_", [("PATCH", "/jobs/{jobid}"), ("POST", "/rayflink/jobs/{jobid}/cancel"),
                                      ("POST", "/rayflink/jobs/{jobid}/stop")])  # fmt: skip
def test_what_cannot_be_done_now_is_to_be_asked_again(request_: tuple[str, str]) -> None:
    storage = MemoryStorage("registry")
    taken_over(storage, Cluster()).submit(submission().encode(), "me")
    dispatcher = taken_over(storage, FakeRunner())  # in which the job does not run
    taken_over(storage, FakeRunner())
    assert answer_of(dispatcher, *request_) == 503


class Renewed(Cluster):
    """A job of it gives a savepoint, and comes to an end when its processes should end, or as soon as it is back.

    Args:
        registry: in which it notes its end; None: it goes on.
    """

    def __init__(self, registry: JobRegistry | None) -> None:
        super().__init__()
        self.registry = registry

    def find(self, job_id: str) -> Any:
        job = super().find(job_id)
        if job is not None:
            job.savepoint = lambda *_: ("savepoint", "")
        return job

    def suspend(self, job_id: str) -> None:
        del self.jobs[job_id]
        if self.registry is not None:
            self.registry.end(JobArchive.of(status(job_id, "FINISHED")))

    def start(self, submission: Any) -> Any:
        job = super().start(submission)
        if len(self.starts) > 1:
            self.jobs[submission.job_id] = status(submission.job_id, "FINISHED")
        return job


@pytest.mark.parametrize("ends_before", [True, False])
def test_a_job_that_ends_while_it_is_renewed_stays_ended_and_holds_nobody_up(ends_before: bool) -> None:
    storage = MemoryStorage("registry")
    runner = Renewed(JobRegistry(storage) if ends_before else None)
    dispatcher = taken_over(storage, runner)
    stored = Stored("memory://checkpoints/" + JOB)
    dispatcher.submit(replace(submission(), stored=stored).encode(), "me")
    if ends_before:
        with pytest.raises(JobHasEnded):
            dispatcher.renew(JOB)
    else:
        assert dispatcher.renew(JOB, wait_s=1).savepoint == "savepoint"
    dispatcher.look()
    assert len(runner.starts) == 2 - ends_before
    assert [job["state"] for job in dispatcher.statuses()] == ["FINISHED"]


def test_a_runner_that_has_ended_starts_no_job_beside_that_of_the_next_one(tmp_path: Path) -> None:
    env = StreamExecutionEnvironment()
    env.from_collection([1]).sink_to(DiscardingSink())
    runner = LocalRunner(PrintedLines(tmp_path))
    runner.close()
    with pytest.raises(ControlPlaneTimeout):
        runner.start(RemoteSubmission.of(env.get_job_graph("late"), [], None))
    assert runner.statuses() == []


def test_values_of_programs_become_json_whatever_they_are() -> None:
    class Hostile:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    endless: list[Any] = []
    endless.append(endless)
    values = plain({(1, 2): b"\xff", "half \ud800": Hostile(), "endless": endless, 3: {4}})
    assert values["(1, 2)"] == "b'\\xff'" and values["half \\ud800"] == "a Hostile, whose text raises RuntimeError"
    assert values["3"] == "{4}" and str(values["endless"]).startswith("[[[")
