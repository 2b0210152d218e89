"""Savepoints as the coordinator decides them, and the end of a job."""

from __future__ import annotations

import pytest

from rayflink.actors.checkpoints.completed import CompletedCheckpoint
from rayflink.actors.checkpoints.failures import FailJob
from rayflink.actors.checkpoints.plan import CheckpointProperties
from rayflink.actors.messages.commands import (
    AnswerSavepoint,
    CheckpointsLeft,
    DiscardFiles,
    PublishCheckpoint,
    SavepointRequested,
)
from rayflink.actors.messages.messages import (
    CheckpointAborted,
    CheckpointComplete,
    CheckpointDeclined,
    TriggerCheckpoint,
)
from rayflink.actors.messages.states import JobStatus
from rayflink.common.options.registry import ExternalizedCheckpointRetention
from rayflink.common.options.stop_mode import StopMode
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.state.storage.manifest import CheckpointManifest
from tests.actors.checkpoints.checkpointed_job import ALL, BASE, JOB_ID, Checkpoints, S, sent, state

FIRST = "/s/savepoint-abcdef-000000000001"
SECOND = "/s/savepoint-abcdef-000000000002"


def asked(job: Checkpoints, stop: StopMode | None = None, directory: str = "/s/") -> list[object]:
    return list(job.it.savepoint(SavepointRequested("r", directory, stop), job.now))


def triggered(number: int, now: int, location: str, stop: StopMode | None = None) -> list[object]:
    return list(sent(TriggerCheckpoint(CheckpointBarrier(number, now, True, location, stop)), S))


def test_a_savepoint_begins_at_once_beside_pending_ones_and_its_barrier_is_aligned() -> None:
    job = Checkpoints(unaligned=True, min_pause_ms=10**6).run()
    job.at(100)
    assert asked(job) == triggered(2, 100, FIRST)
    assert asked(job) == triggered(3, 100, SECOND)
    assert job.complete(1) == sent(CheckpointComplete(1)), "and neither subsumes the other"
    assert job.it.pending == (2, 3)


@pytest.mark.spec("H59")
def test_a_savepoint_has_a_folder_of_its_own_and_is_no_place_to_restart_from() -> None:
    job = Checkpoints().run()
    asked(job)
    for attempt in ALL[:-1]:
        job.ack(attempt, 1, state(attempt))
    (publish,) = job.ack(ALL[-1], 1, state(ALL[-1]))
    assert isinstance(publish, PublishCheckpoint)
    assert (publish.base, publish.path) == (FIRST, "_metadata")
    assert (publish.manifest.kind, publish.manifest.own_base) == ("savepoint", True)
    assert job.it.published(1, 5) == [AnswerSavepoint("r", FIRST)], "the tasks commit nothing for it"
    assert job.it.latest is None
    assert job.it.history.overview()["latest"]["savepoint"]["external_path"] == FIRST


@pytest.mark.spec("X29", "H53", "G22", "storage")
def test_the_places_of_checkpoint_50_and_of_a_savepoint() -> None:
    job = Checkpoints(job_id="0171897fa809692093b4a9b223cb35e4", directory="/flink/checkpoints").run()
    job.it.restored([], next_id=50)
    job.at(100)
    (publish,) = job.ack_all(50)
    assert isinstance(publish, PublishCheckpoint)
    assert f"{publish.base}/{publish.path}" == ("/flink/checkpoints/0171897fa809692093b4a9b223cb35e4/chk-50/_metadata")
    other = Checkpoints(job_id="11bbc5" + "0" * 26, new_id="bd967f90709b").run()
    asked(other)
    (savepoint,) = other.ack_all(1)
    assert isinstance(savepoint, PublishCheckpoint)
    assert f"{savepoint.base}/{savepoint.path}" == "/s/savepoint-11bbc5-bd967f90709b/_metadata"


def test_where_no_directory_is_known_the_answer_says_what_to_set() -> None:
    job = Checkpoints().run()
    (answer,) = asked(job, directory="")
    assert isinstance(answer, AnswerSavepoint) and answer.location == ""
    assert "execution.checkpointing.savepoint-dir" in answer.failure
    assert asked(Checkpoints(savepoint_directory="/s").run(), directory="") == triggered(1, 0, FIRST)


def test_savepoints_need_no_periodic_checkpoints() -> None:
    job = Checkpoints(interval_ms=None, directory="").run()
    assert asked(job) == triggered(1, 0, FIRST)
    assert isinstance(job.ack_all(1)[0], PublishCheckpoint)


def test_a_savepoint_that_can_not_be_triggered_is_answered() -> None:
    job = Checkpoints()
    assert asked(job) == [AnswerSavepoint("r", "", "the job does not run at the moment: ask again when it does")]
    job.run()
    job.plan = "not all required tasks are running"
    assert asked(job) == [AnswerSavepoint("r", "", "no savepoint was triggered: not all required tasks are running")]


def test_a_savepoint_that_fails_in_the_coordinator_is_no_failure_of_the_job() -> None:
    job = Checkpoints(tolerable_failures=0, interval_ms=None).run()
    asked(job)
    job.ack_all(1)
    assert job.it.not_published(1, "full", 5) == [
        *sent(CheckpointAborted(1)),
        DiscardFiles(FIRST, (), ""),
        AnswerSavepoint("r", "", "Failure to write the checkpoint's metadata: full"),
    ]


def test_a_savepoint_a_task_declines_counts() -> None:
    job = Checkpoints(tolerable_failures=0).run()
    asked(job)
    assert isinstance(job.it.decline(CheckpointDeclined(S, 1, "full", True), 5)[-1], FailJob)


def test_a_savepoint_that_a_task_cannot_write_fails_the_request_and_not_the_job() -> None:
    job = Checkpoints(tolerable_failures=0).run()
    asked(job)
    commands = job.it.decline(CheckpointDeclined(S, 1, "no such folder", is_unwritten=True), 5)
    assert not any(isinstance(command, FailJob) for command in commands)
    (answer,) = [command for command in commands if isinstance(command, AnswerSavepoint)]
    assert answer.failure.startswith("A part of the savepoint could not be written: no such folder")


def test_late_parts_of_a_savepoint_are_deleted_in_its_own_folder() -> None:
    job = Checkpoints(timeout_ms=10).run()
    asked(job)
    job.at(10)
    assert job.ack(S, 1, state("s")) == [DiscardFiles(FIRST, ("s",))]


@pytest.mark.spec("E33")
def test_only_a_savepoint_that_stops_the_job_may_advance_event_time_to_its_end() -> None:
    with pytest.raises(ValueError, match="Only synchronous savepoints are allowed to advance the watermark to MAX."):
        CheckpointProperties(stop=StopMode.DRAIN)
    with pytest.raises(ValueError, match="only a savepoint can stop a job"):
        CheckpointProperties(stop=StopMode.SUSPEND)
    job = Checkpoints().run()
    assert asked(job, StopMode.DRAIN) == triggered(1, 0, FIRST, StopMode.DRAIN)


@pytest.mark.spec("H31", "synchronous")
@pytest.mark.parametrize("stop", StopMode)
def test_a_job_is_stopped_with_a_savepoint_and_nothing_else_is_triggered_meanwhile(stop: StopMode) -> None:
    job = Checkpoints(max_concurrent=5).run()
    job.at(100)
    assert asked(job, stop) == [
        *sent(CheckpointAborted(1)),
        DiscardFiles(BASE, (), "chk-1"),
        *triggered(2, 100, FIRST, stop),
    ]
    assert job.at(1000) == job.it.trigger_now(1000) == []
    (again,) = asked(job)
    assert isinstance(again, AnswerSavepoint) and FIRST in again.failure
    job.ack_all(2)
    assert job.it.published(2, 1001) == sent(CheckpointComplete(2)), "the answer comes with the end of the job"
    assert job.it.latest is not None and job.it.latest.path == FIRST, "the sinks have committed what is in it"
    assert job.it.job_ended(JobStatus.FINISHED, 1100) == [
        AnswerSavepoint("r", FIRST),
        DiscardFiles(BASE, (), ""),
    ]


@pytest.mark.parametrize("stop", StopMode)
def test_a_stop_whose_savepoint_times_out_lets_the_job_go_on_unless_it_is_drained(
    stop: StopMode,
) -> None:
    job = Checkpoints(timeout_ms=50, tolerable_failures=0).run()
    asked(job, stop)
    commands = job.at(50)
    reason = "Checkpoint expired before completing: 3 of 3 tasks did not acknowledge within 50 ms"
    failed = FailJob(f"stop with savepoint {FIRST} failed: {reason}")
    stopped = [*sent(CheckpointAborted(1)), DiscardFiles(FIRST, (), ""), AnswerSavepoint("r", "", reason)]
    assert commands == stopped + ([failed] if stop is StopMode.DRAIN else [])
    assert job.at(149) == []
    assert job.at(150) == sent(TriggerCheckpoint(CheckpointBarrier(2, 150)), S)


def test_a_task_that_declines_to_stop_fails_the_job() -> None:
    job = Checkpoints().run()
    asked(job, StopMode.SUSPEND)
    assert isinstance(job.it.decline(CheckpointDeclined(S, 1, "full", True), 5)[-1], FailJob)


@pytest.mark.parametrize("how", ["starts again", "fails"])
def test_who_stops_a_job_that_does_not_stop_learns_where_the_savepoint_is(how: str) -> None:
    job = Checkpoints(retention=ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION).run()
    asked(job, StopMode.SUSPEND)
    job.complete(1)
    ended = job.it.suspend(9, "boom") if how == "starts again" else job.it.job_ended(JobStatus.FAILED, 9)
    (answer,) = ended
    assert isinstance(answer, AnswerSavepoint)
    assert answer.location == FIRST
    assert answer.failure.startswith(f"a savepoint has been created at {FIRST}, but the job did not")


def test_a_stop_of_a_job_that_fails_while_publishing_is_answered_when_decided() -> None:
    job = Checkpoints().run()
    asked(job, StopMode.SUSPEND)
    job.ack_all(1)
    assert job.it.suspend(9) == []
    *complete, answer = job.it.published(1, 10)
    assert complete == sent(CheckpointComplete(1))
    assert isinstance(answer, AnswerSavepoint) and "the job did not stop with it" in answer.failure


def manifest(number: int, kind: str = "checkpoint", job_id: str = JOB_ID) -> CheckpointManifest:
    assert kind in ("checkpoint", "savepoint")
    what = "savepoint" if kind == "savepoint" else "checkpoint"
    return CheckpointManifest(what, number, 1, job_id, "job", 0, 0, kind == "savepoint", ())  # type: ignore[arg-type]


@pytest.mark.spec("H28")
def test_a_coordinator_that_takes_over_goes_on_from_what_it_finds() -> None:
    job = Checkpoints(retained=2)
    found = [CompletedCheckpoint(BASE, manifest(number)) for number in (5, 7, 6)]
    job.it.restored(found, next_id=9)
    assert job.it.latest == CompletedCheckpoint(BASE, manifest(7))
    assert job.it.restore(40) == (job.it.latest, [])
    assert job.it.history.overview()["latest"]["restored"] == {
        "id": 7,
        "restore_timestamp": 40,
        "is_savepoint": False,
        "external_path": f"{BASE}/chk-7",
    }
    job.run()
    assert job.at(100) == sent(TriggerCheckpoint(CheckpointBarrier(9, 100)), S)
    gone = [DiscardFiles(BASE, (), f"chk-{number}") for number in (5, 6)]
    assert job.complete(9) == [*sent(CheckpointComplete(9)), *gone]


def test_what_another_job_made_is_started_from_and_never_deleted() -> None:
    job = Checkpoints()
    foreign = CompletedCheckpoint("/other", manifest(30, job_id="f" * 32), is_owned=False)
    job.it.restored([foreign])
    assert job.it.latest is foreign
    job.run()
    job.at(100)
    assert job.complete(31) == sent(CheckpointComplete(31))


@pytest.mark.spec("V15")
@pytest.mark.parametrize(
    ("retention", "deleted"),
    [
        ("NO_EXTERNALIZED_CHECKPOINTS", {"FINISHED", "CANCELED", "FAILED"}),
        ("DELETE_ON_CANCELLATION", {"FINISHED", "CANCELED"}),
        ("RETAIN_ON_CANCELLATION", {"FINISHED"}),
    ],
)
def test_what_becomes_of_checkpoints_at_the_end_of_the_job(retention: str, deleted: set[str]) -> None:
    for status in (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED):
        job = Checkpoints(retention=ExternalizedCheckpointRetention(retention)).run()
        job.at(100)
        job.complete(1)
        gone = status.value in deleted
        assert job.it.job_ended(status, 150) == ([DiscardFiles(BASE, (), "")] if gone else [])
        assert (job.it.latest is None) == gone
        assert [entry["discarded"] for entry in job.it.history.overview()["history"]] == [gone]
        assert job.it.left == (CheckpointsLeft("", 1, BASE) if gone else CheckpointsLeft(f"{BASE}/chk-1", 0, BASE))
        assert job.at(500) == []


def test_the_end_of_the_job_aborts_pending_checkpoints_and_answers_who_waits() -> None:
    job = Checkpoints(retention=ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION).run()
    job.at(100)
    asked(job)
    assert job.it.job_ended(JobStatus.CANCELED, 120) == [
        *sent(CheckpointAborted(1)),
        DiscardFiles(BASE, (), "chk-1"),
        *sent(CheckpointAborted(2)),
        DiscardFiles(FIRST, (), ""),
        AnswerSavepoint("r", "", "The job has ended: it is CANCELED"),
    ]
