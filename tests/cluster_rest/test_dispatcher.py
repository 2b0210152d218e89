"""The dispatcher: what was accepted runs or has ended, whatever is lost meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.job.notes.job_archive import JobArchive
from rayflink.actors.job.notes.registry_notes import newest_start, note_end
from rayflink.actors.job.submission import Submission
from rayflink.cluster.dispatcher.absent_jobs import StartAttempts
from rayflink.cluster.dispatcher.dispatcher import Dispatcher, DispatcherSettings
from rayflink.cluster.dispatcher.job_documents import now_ms
from rayflink.cluster.jobs.cluster_job import JobHasEnded, UnknownJob
from rayflink.cluster.registry.job_registry import DuplicateJob, JobRegistry
from rayflink.cluster.registry.leadership import DispatcherFenced
from rayflink.common.errors import ControlPlaneTimeout, JobExecutionError
from rayflink.launch.remote_submission import PackedArchive, RemoteSubmission
from rayflink.state.storage.local_storage import LocalStorage
from rayflink.state.storage.storage import StorageError
from tests.cluster.watching import eventually

JOB, OTHER = "a" * 32, "b" * 32


def submission(job_id: str = JOB, program: bytes = b"program") -> RemoteSubmission:
    return RemoteSubmission(job_id, "demo", {"jid": job_id, "vertices": []}, None, Submission(program))


def status(job_id: str, state: str, at_ms: int | None = None) -> dict[str, Any]:
    stamps = {state: now_ms() if at_ms is None else at_ms}
    return {"jid": job_id, "name": "demo", "state": state, "timestamps": stamps, "vertices": [], "exceptions": []}


class AtOnce(Executor):
    """Runs calls where they are submitted."""

    def submit(self, call: Any, /, *arguments: Any, **named: Any) -> Any:
        future: Future[Any] = Future()
        try:
            future.set_result(call(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


class Archived(list[Any]):
    """The jobs that were given to the archive, whose writing a test holds up."""

    is_held_up = False

    def add(self, job_id: str, read: Callable[[], Any]) -> None:
        self.append(read())

    def is_pending(self, job_id: str) -> bool:
        return self.is_held_up


class FakeJob:
    def __init__(self, job_id: str, runner: FakeRunner) -> None:
        self.job_id, self.runner = job_id, runner

    def status(self) -> Mapping[str, Any]:
        return self.runner.jobs[self.job_id]

    def description(self) -> Mapping[str, Any]:
        return {"jid": self.job_id}

    def checkpoints(self, checkpoint_id: int | None = None) -> Mapping[str, Any] | None:
        return {"history": [{"id": 3}]} if checkpoint_id is None else {"id": checkpoint_id}

    def accumulators(self) -> Mapping[str, Any]:
        return {"rows": 5}

    def cancel(self, by: str = "the user") -> None:
        self.runner.cancelled.append(by)


class FakeRunner:
    """Runs nothing; a test sets the states."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.starts: list[RemoteSubmission] = []
        self.refuses: Exception | None = None
        self.meanwhile: Callable[[], None] = lambda: None
        """Is called within each start, before the job can be found."""
        self.cancelled: list[str] = []
        self.without_job: set[str] = set()
        """Jobs that have a process, in which no start has arrived."""

    def start(self, submission: RemoteSubmission) -> Any:
        self.meanwhile()
        if self.refuses is not None:
            raise self.refuses
        self.starts.append(submission)
        self.jobs[submission.job_id] = status(submission.job_id, "RUNNING")
        return FakeJob(submission.job_id, self)

    def find(self, job_id: str) -> Any:
        return FakeJob(job_id, self) if job_id in self.jobs or job_id in self.without_job else None

    def withdraw(self, job_id: str) -> bool:
        is_without = job_id in self.without_job
        self.without_job.discard(job_id)
        return is_without

    known = find

    def status(self, job_id: str) -> Mapping[str, Any] | None:
        return self.jobs.get(job_id)

    def statuses(self) -> list[dict[str, Any]]:
        return [job for job in self.jobs.values() if job["state"] == "RUNNING"]

    def recorded(self, job_id: str) -> Mapping[str, Any] | None:
        return None

    def close(self) -> None:
        pass


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "registry")


def begun(storage: LocalStorage, runner: FakeRunner, **settings: Any) -> Dispatcher:
    """Return a dispatcher that has taken over; the test looks for it."""
    dispatcher = Dispatcher(storage, runner, DispatcherSettings(**settings, starters=AtOnce()))  # type: ignore[arg-type]
    dispatcher.take_over("http://here")
    return dispatcher


@pytest.mark.spec("S04", "master")
def test_a_submission_that_is_repeated_starts_one_job(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    data = submission().encode()
    assert [dispatcher.submit(data, "me"), dispatcher.submit(data, "me")] == [JOB, JOB]
    assert len(runner.starts) == 1
    with pytest.raises(DuplicateJob, match="already been submitted"):
        dispatcher.submit(submission(program=b"another").encode(), "me")


def test_a_submission_is_accepted_at_once_and_its_job_starts_later(storage: LocalStorage) -> None:
    runner, goes_on = FakeRunner(), threading.Event()
    runner.meanwhile = lambda: _awaited(goes_on)
    dispatcher = Dispatcher(storage, runner)  # type: ignore[arg-type]
    dispatcher.take_over("http://here")
    data = submission().encode()
    assert dispatcher.submit(data, "me", wait_s=0.0) == JOB
    assert [entry.job_id for entry in JobRegistry(storage).entries() if entry.is_accepted] == [JOB]
    assert dispatcher.view(JOB).status()["state"] == "INITIALIZING" and runner.starts == []
    dispatcher.look()
    assert dispatcher.submit(data, "me", wait_s=0.0) == JOB, "nothing else starts it meanwhile"
    goes_on.set()
    assert eventually(lambda: dispatcher.view(JOB).status()["state"] == "RUNNING", within_s=10)
    assert len(runner.starts) == 1
    dispatcher.close()


def test_what_keeps_an_accepted_job_from_its_start_is_its_end_with_the_remedy(storage: LocalStorage) -> None:
    runner, goes_on = FakeRunner(), threading.Event()
    runner.meanwhile = lambda: _awaited(goes_on)
    runner.refuses = JobExecutionError(JOB, "cannot be loaded", "install its module")
    dispatcher = Dispatcher(storage, runner)  # type: ignore[arg-type]
    dispatcher.take_over("http://here")
    assert dispatcher.submit(submission().encode(), "me", wait_s=0.0) == JOB
    goes_on.set()
    assert eventually(lambda: dispatcher.view(JOB).status()["state"] == "FAILED", within_s=10)
    (failure,) = dispatcher.view(JOB).status()["exceptions"]
    assert failure["refusal"] == ["cannot be loaded", "install its module"]
    with pytest.raises(JobExecutionError, match="cannot be loaded"):  # where the client waits for the start
        dispatcher.submit(submission(OTHER).encode(), "me")
    dispatcher.close()


def _awaited(event: threading.Event) -> None:
    assert event.wait(30)


@pytest.mark.spec("S04", "memory")
def test_the_next_dispatcher_brings_back_what_does_not_run_and_leaves_what_does(storage: LocalStorage) -> None:
    first = FakeRunner()
    dispatcher = begun(storage, first)
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
    second = FakeRunner()
    second.jobs[OTHER] = status(OTHER, "RUNNING")
    successor = begun(storage, second)
    assert {job["jid"]: job["state"] for job in successor.statuses()} == {JOB: "INITIALIZING", OTHER: "RUNNING"}
    successor.look()
    assert [start.job_id for start in second.starts] == [JOB]
    assert second.starts[0].submission.program == b"program"
    assert {job["state"] for job in successor.statuses()} == {"RUNNING"}


def test_a_process_left_without_its_job_is_ended_and_the_job_starts(storage: LocalStorage) -> None:
    begun(storage, FakeRunner()).submit(submission().encode(), "me")
    runner = FakeRunner()
    runner.without_job.add(JOB)
    successor = begun(storage, runner)
    successor.look()
    assert runner.without_job == set() and runner.starts == []
    successor.look()
    assert [start.submission.start_number for start in runner.starts] == [2]


def test_a_fenced_dispatcher_ends_no_process_that_waits_for_its_job(storage: LocalStorage) -> None:
    begun(storage, FakeRunner()).submit(submission().encode(), "me")
    runner = FakeRunner()
    runner.without_job.add(JOB)
    fenced = begun(storage, runner)
    begun(storage, FakeRunner())
    fenced.look()
    assert runner.without_job == {JOB}


def test_a_job_whose_coordinator_noted_its_end_is_not_started_again(storage: LocalStorage) -> None:
    dispatcher = begun(storage, FakeRunner())
    dispatcher.submit(submission().encode(), "me")
    place = JobRegistry(storage).folder(JOB)
    note_end(LocalStorage(place), JobArchive.of(status(JOB, "FINISHED")))
    runner = FakeRunner()
    successor = begun(storage, runner)
    successor.look()
    assert runner.starts == []
    assert successor.view(JOB).status()["state"] == "FINISHED"
    with pytest.raises(JobHasEnded, match="FINISHED"):
        successor.running(JOB)


def test_a_job_that_ends_just_before_its_dispatcher_is_noted_and_archived(storage: LocalStorage) -> None:
    archived = Archived()
    runner = FakeRunner()
    settings = DispatcherSettings(ended_s=1e12, archives=archived, starters=AtOnce())
    dispatcher = Dispatcher(storage, runner, settings)  # type: ignore[arg-type]
    dispatcher.start("http://here")
    dispatcher.submit(submission().encode(), "me")
    runner.jobs[JOB] = status(JOB, "FINISHED")
    dispatcher.close()
    assert [job.status()["jid"] for job in archived] == [JOB]
    assert JobRegistry(storage).ended(JOB) is not None


def test_an_end_is_noted_archived_and_readable_until_it_is_forgotten(storage: LocalStorage) -> None:
    archived = Archived()
    runner = FakeRunner()
    dispatcher = begun(storage, runner, most_ended=1, ended_s=1e12, archives=archived)
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
        runner.jobs[job_id] = status(job_id, "FINISHED" if job_id == JOB else "FAILED")
        dispatcher.look()
    assert [job.status()["jid"] for job in archived] == [JOB, OTHER]
    kept = dispatcher.view(OTHER)
    assert (kept.checkpoints(3), kept.checkpoints(4), kept.accumulators()) == ({"id": 3}, None, {"rows": 5})
    del runner.jobs[JOB]
    with pytest.raises(UnknownJob):
        dispatcher.view(JOB)
    assert [entry.job_id for entry in JobRegistry(storage).entries()] == [OTHER]


def test_a_job_that_cannot_start_is_refused_and_shown_as_failed(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    runner.refuses = JobExecutionError(JOB, "could not start", "install the module")
    with pytest.raises(JobExecutionError, match="could not start"):
        dispatcher.submit(submission().encode(), "me")
    (job,) = dispatcher.statuses()
    assert job["state"] == "FAILED"
    assert "install the module" in dispatcher.view(JOB).status()["exceptions"][0]["exception"]
    runner.refuses = None
    begun(storage, runner).look()
    assert runner.starts == []


def test_a_job_whose_process_takes_too_long_to_start_is_accepted_and_started_later(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    runner.refuses = ControlPlaneTimeout("start", "the coordinator", 60_000)
    assert dispatcher.submit(submission().encode(), "me") == JOB
    (job,) = dispatcher.statuses()
    assert job["state"] == "INITIALIZING" and "60000 ms" in job["exceptions"][0]["exception"]
    runner.refuses = None
    begun(storage, runner).look()
    assert [start.job_id for start in runner.starts] == [JOB]


def test_a_job_that_does_not_come_back_is_tried_again_and_can_be_cancelled(storage: LocalStorage) -> None:
    begun(storage, FakeRunner()).submit(submission().encode(), "me")
    runner = FakeRunner()
    runner.refuses = ModuleNotFoundError("No module named 'lib'")
    dispatcher = begun(storage, runner)
    dispatcher.look()
    (job,) = dispatcher.statuses()
    assert job["state"] == "INITIALIZING" and "No module named 'lib'" in job["exceptions"][0]["exception"]
    absent = dispatcher.running(JOB)
    with pytest.raises(JobExecutionError, match="being brought back: .*lib"):
        absent.savepoint("0" * 32, "", None, 0)
    absent.cancel()
    runner.refuses = None
    dispatcher.look()
    begun(storage, runner).look()
    assert runner.starts == [] and dispatcher.view(JOB).status()["state"] == "CANCELED"


def test_a_job_whose_processes_are_lost_while_it_is_cancelled_does_not_come_back(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    dispatcher.submit(submission().encode(), "me")
    dispatcher.cancel(JOB, "me")
    assert runner.cancelled == ["me"]
    successor = begun(storage, FakeRunner())
    successor.look()
    assert successor.view(JOB).status()["state"] == "CANCELED"
    assert begun(storage, FakeRunner()).view(JOB).status()["state"] == "CANCELED", "the end is in the registry"


def test_a_job_that_forgot_its_cancellation_is_asked_again_now_and_then(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    dispatcher.submit(submission().encode(), "me")
    dispatcher.cancel(JOB, "me")
    successor = begun(storage, runner)
    runner.jobs[JOB]["state"] = "RUNNING"  # its coordinator was lost, and another one has taken over
    successor.look()
    successor.look()
    assert runner.cancelled == ["me", "the user"] and [start.job_id for start in runner.starts] == [JOB]


def test_a_cancellation_that_cannot_be_noted_leaves_the_job_as_it_is(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    dispatcher.submit(submission().encode(), "me")
    (Path(storage.url) / "jobs" / JOB / "cancelling").mkdir()
    with pytest.raises(StorageError):
        dispatcher.cancel(JOB, "me")
    assert runner.cancelled == []


def test_attempts_to_start_a_job_come_ever_more_seldom_and_at_least_each_minute() -> None:
    now = [0.0]
    attempts = StartAttempts(lambda: now[0])
    assert attempts.is_due(JOB)
    pauses = [attempts.failed(JOB, "no") for _ in range(9)]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60] and not attempts.is_due(JOB)
    now[0] += 60
    assert attempts.is_due(JOB) and attempts.reason(JOB) == "no"
    attempts.forget(JOB)
    assert attempts.reason(JOB) == ""


def test_each_start_of_a_job_has_a_number_by_which_earlier_processes_end(storage: LocalStorage) -> None:
    first, second = FakeRunner(), FakeRunner()
    begun(storage, first).submit(submission().encode(), "me")
    begun(storage, second).look()
    assert [start.submission.start_number for start in (*first.starts, *second.starts)] == [1, 2]
    place = second.starts[0].submission.ends_at
    assert place is not None and newest_start(place.open().list()) == 2


def test_a_fenced_dispatcher_accepts_nothing_and_starts_nothing(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    dispatcher.submit(submission().encode(), "me")
    begun(storage, FakeRunner())
    with pytest.raises(DispatcherFenced, match="taken over at http://here"):
        dispatcher.submit(submission(OTHER).encode(), "me")
    del runner.jobs[JOB]
    dispatcher.look()
    assert len(runner.starts) == 1


@pytest.mark.slow
def test_a_dispatcher_ends_when_another_one_has_taken_over(storage: LocalStorage) -> None:
    ended = threading.Event()
    dispatcher = Dispatcher(storage, FakeRunner(), DispatcherSettings(at_fence=ended.set))  # type: ignore[arg-type]
    dispatcher.start("http://here")
    begun(storage, FakeRunner())
    assert ended.wait(20) and dispatcher.fenced is not None
    dispatcher.close()


def test_a_submission_that_cannot_be_stored_is_not_accepted(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)

    def refuse(path: str, data: bytes) -> bool:
        raise StorageError("write", "registry", "no space left")

    storage.put_if_absent = refuse  # type: ignore[method-assign]
    with pytest.raises(StorageError, match="no space left"):
        dispatcher.submit(submission().encode(), "me")
    assert runner.starts == [] and dispatcher.statuses() == []


@pytest.mark.spec("S04", "optional")
def test_jobs_of_programs_themselves_are_shown_and_their_ends_kept(storage: LocalStorage) -> None:
    runner = FakeRunner()
    dispatcher = begun(storage, runner)
    runner.jobs[OTHER] = status(OTHER, "RUNNING")
    dispatcher.look()
    assert [job["state"] for job in dispatcher.statuses()] == ["RUNNING"]
    del runner.jobs[OTHER]
    dispatcher.look()
    (job,) = dispatcher.statuses()
    exceptions = dispatcher.view(OTHER).status()["exceptions"]
    assert (job["state"], exceptions[-1]["exception"]) == ("FAILED", "the job's coordinator was lost")


def test_a_submission_comes_back_from_its_bytes() -> None:
    archives = (PackedArchive("data.zip", "data", b"zip"), PackedArchive("more.zip", "more"))
    sent = replace(submission(), archives=archives, executable="python3")
    received = RemoteSubmission.decode(sent.encode())
    assert (received.archives, received.submission, received.executable) == (list(archives), sent.submission, "python3")


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_a_submission_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises((JobExecutionError, Exception), match="cannot be read|damaged"):
        RemoteSubmission.decode(submission().encode()[:cut])


def test_a_dispatcher_that_is_fenced_while_it_starts_a_job_notes_no_end_of_it(storage: LocalStorage) -> None:
    old, new = FakeRunner(), FakeRunner()
    dispatcher = begun(storage, old)
    successors: list[Dispatcher] = []

    def take_over() -> None:
        successors.append(begun(storage, new))
        successors[0].look()
        raise JobExecutionError(JOB, "has a coordinator already", "ask it")

    old.meanwhile = take_over
    with pytest.raises(DispatcherFenced):
        dispatcher.submit(submission().encode(), "me")
    assert JobRegistry(storage).ended(JOB) is None
    assert successors[0].view(JOB).status()["state"] == "RUNNING"


def test_ends_that_grow_old_without_a_dispatcher_leave_the_registry(storage: LocalStorage) -> None:
    dispatcher, registry = begun(storage, FakeRunner()), JobRegistry(storage)
    for job_id in (JOB, OTHER):
        dispatcher.submit(submission(job_id).encode(), "me")
        note_end(LocalStorage(registry.folder(job_id)), JobArchive.of(status(job_id, "FINISHED", at_ms=1)))
    archived = Archived()
    successor = begun(storage, FakeRunner(), archives=archived)
    successor.archive_missing({OTHER})
    assert [job.status()["jid"] for job in archived] == [JOB] and successor.statuses() == []
    archived.is_held_up = True
    successor.look()
    assert len(registry.entries()) == 2, "nothing has their archives yet"
    archived.is_held_up = False
    successor.look()
    assert registry.entries() == [] and storage.list("jobs") == []
