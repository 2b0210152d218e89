"""Checkpoints that are asked for, whatever the interval."""

from __future__ import annotations

from rayflink.actors.messages.commands import AnswerCheckpoint, CheckpointRequested, SavepointRequested
from rayflink.actors.messages.messages import CheckpointComplete, CheckpointDeclined
from rayflink.common.options.stop_mode import StopMode
from tests.actors.checkpoints.checkpointed_job import M0, Checkpoints, sent

REQUEST = CheckpointRequested("r")


def test_a_requested_checkpoint_begins_at_once_and_its_number_is_the_answer() -> None:
    job = Checkpoints(interval_ms=10**6).run()
    assert job.it.checkpoint(REQUEST, job.now) and job.it.pending == (1,)
    job.ack_all(1)
    assert job.it.published(1, 5) == [*sent(CheckpointComplete(1)), AnswerCheckpoint("r", 1)]
    assert job.it.latest is not None and job.it.latest.checkpoint_id == 1, "the job restarts from it"


def test_a_requested_checkpoint_that_fails_says_why() -> None:
    job = Checkpoints(interval_ms=10**6).run()
    job.it.checkpoint(REQUEST, job.now)
    answers = job.it.decline(CheckpointDeclined(M0, 1, "no room", is_failure=True), 5)
    (answer,) = [command for command in answers if isinstance(command, AnswerCheckpoint)]
    assert answer.checkpoint_id == 0 and "no room" in answer.failure


def test_a_job_that_restarts_or_is_being_stopped_takes_no_checkpoint() -> None:
    job = Checkpoints()
    (answer,) = job.it.checkpoint(REQUEST, 0)
    assert isinstance(answer, AnswerCheckpoint) and "does not run at the moment" in answer.failure
    job.run()
    job.it.savepoint(SavepointRequested("s", "/s", StopMode.SUSPEND), 1)
    (answer,) = job.it.checkpoint(REQUEST, 2)
    assert isinstance(answer, AnswerCheckpoint) and "is being stopped" in answer.failure
