"""What becomes of checkpoints that fail, and of the job for it."""

from __future__ import annotations

import pytest

from rayflink.actors.checkpoints.coordinator import Decision
from rayflink.actors.checkpoints.failures import AbortCause, FailJob
from rayflink.actors.exchange.frames import TaskAddress
from rayflink.actors.messages.commands import DiscardFiles, PublishCheckpoint
from rayflink.actors.messages.messages import (
    CheckpointAborted,
    CheckpointAcknowledged,
    CheckpointComplete,
    CheckpointDeclined,
)
from rayflink.state.snapshots import StoredSnapshot
from tests.actors.checkpoints.checkpointed_job import BASE, M0, M1, Checkpoints, S, sent, state

GIVEN_UP = [*sent(CheckpointAborted(1)), DiscardFiles(BASE, (), "chk-1")]


def fails(commands: list[Decision]) -> list[str]:
    return [command.reason for command in commands if isinstance(command, FailJob)]


def said(job: Checkpoints) -> str:
    """Why the newest one failed."""
    return str(job.it.history.overview()["latest"]["failed"]["failure_message"])


def declined(job: Checkpoints, number: int, is_failure: bool = True) -> list[Decision]:
    return job.it.decline(CheckpointDeclined(M1, number, "disk full", is_failure), job.now)


def test_one_that_a_task_declines_is_given_up_everywhere() -> None:
    job = Checkpoints().run()
    job.at(100)
    assert declined(job, 1) == GIVEN_UP
    assert said(job) == "Checkpoint was declined: disk full (vertex vm, subtask 1)"
    assert declined(job, 1) == [], "it is decided"


def test_the_job_fails_with_one_failure_in_a_row_more_than_is_tolerable() -> None:
    job = Checkpoints(tolerable_failures=1).run()
    job.at(100)
    assert fails(declined(job, 1)) == []
    job.at(200)
    (reason,) = fails(declined(job, 2))
    assert reason.startswith(
        "Exceeded checkpoint tolerable failure threshold. The latest checkpoint failed due to Checkpoint was declined"
    )
    job.at(300)
    assert fails(declined(job, 3)) == [], "then it counts from the beginning"


def test_success_begins_the_count_anew() -> None:
    job = Checkpoints(tolerable_failures=1).run()
    job.at(100)
    declined(job, 1)
    job.at(200)
    job.complete(2)
    job.at(300)
    assert fails(declined(job, 3)) == []


@pytest.mark.parametrize("cause", AbortCause)
def test_which_causes_count(cause: AbortCause) -> None:
    counted = {AbortCause.EXPIRED, AbortCause.DECLINED, AbortCause.NOT_TRIGGERED, AbortCause.NOT_PUBLISHED}
    assert cause.counts == (cause in counted)


def test_a_task_that_was_not_there_yet_or_has_ended_costs_the_checkpoint_alone() -> None:
    job = Checkpoints(tolerable_failures=0).run()
    job.at(100)
    assert declined(job, 1, is_failure=False) == GIVEN_UP
    job.at(200)
    job.ack(S, 2)
    assert job.it.task_ended(S, 201) == [], "it has given its part"
    assert job.it.task_ended(M0, 201) == [*sent(CheckpointAborted(2)), DiscardFiles(BASE, (), "chk-2")]


def test_too_long_counts() -> None:
    job = Checkpoints(tolerable_failures=0, timeout_ms=10).run()
    job.at(100)
    job.ack(S, 1)
    commands = job.at(110)
    assert commands[:-1] == GIVEN_UP and len(fails(commands)) == 1
    assert said(job) == "Checkpoint expired before completing: 2 of 3 tasks did not acknowledge within 10 ms"


def test_one_that_takes_too_long_names_the_functions_that_hold_it_up() -> None:
    job = Checkpoints(tolerable_failures=0, timeout_ms=10).run()
    job.at(100)
    job.ack(S, 1)
    job.it.expire(110, {S: "of another task", M0: "'split' has not returned"}.get)
    held_up = "; 'split' has not returned"
    assert said(job) == f"Checkpoint expired before completing: 2 of 3 tasks did not acknowledge within 10 ms{held_up}"


def test_metadata_that_can_not_be_written_fails_the_checkpoint() -> None:
    job = Checkpoints(tolerable_failures=0).run()
    job.at(100)
    job.ack_all(1)
    commands = job.it.not_published(1, "read-only", 120)
    assert commands[:-1] == GIVEN_UP and len(fails(commands)) == 1
    assert job.it.latest is None


def test_what_another_coordinator_has_published_is_left_alone_and_the_job_fails() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.ack_all(1)
    commands = job.it.not_published(1, "it is there", 120, exists=True)
    ours = DiscardFiles(BASE, ("chk-1/m0", "chk-1/m1", "chk-1/s"))
    assert commands[:-1] == [*sent(CheckpointAborted(1)), ours]
    assert fails(commands) == ["This coordinator leads the job no more: it is there"]


def test_an_enumerator_that_raises_fails_the_checkpoint_before_a_task_hears_of_it() -> None:
    job = Checkpoints(tolerable_failures=1).run()
    job.broken = ValueError("no connection")
    assert job.at(100) == []
    assert said(job) == "Failure to prepare the checkpoint: ValueError: no connection"
    assert len(fails(job.at(200))) == 1, "it counts"
    job.broken = None
    assert job.at(300) != []
    assert job.it.pending == (3,)


def test_parts_of_strangers_and_of_what_is_decided_are_deleted() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.complete(1, "shared/x")
    job.at(200)
    stranger = {"om": state("chk-2/q", "shared/x", "shared/q")}
    ours = [DiscardFiles(BASE, ("chk-2/q",))]
    assert job.it.acknowledge(CheckpointAcknowledged(TaskAddress("old"), 2, stranger), 201) == ours, (
        "shared/q waits for number 2"
    )
    assert job.it.history.under_way(2).subtasks == {}
    assert job.complete(2, "shared/x")[-1] == DiscardFiles(BASE, ("shared/q",)), "it waited for number 2"
    unknown = {"om": state("chk-77/q", "shared/x")}
    assert job.it.acknowledge(CheckpointAcknowledged(S, 77, unknown), 202) == [DiscardFiles(BASE, ("chk-77/q",))]


def test_a_part_that_is_built_on_what_is_deleted_fails_its_checkpoint() -> None:
    job = Checkpoints(tolerable_failures=0).run()
    for number, shared in ((1, "shared/x"), (2, "shared/y")):
        job.at(100 * number)
        job.complete(number, shared)
    job.at(300)
    assert job.ack(M0, 3, state("", "shared/x")) == [*sent(CheckpointAborted(3)), DiscardFiles(BASE, (), "chk-3")]
    assert said(job).startswith("A task has built its part on a checkpoint that is kept no more")


def test_shared_files_stay_while_one_is_under_way_that_may_refer_to_them() -> None:
    job = Checkpoints(max_concurrent=2).run()
    job.at(100)
    job.complete(1, "shared/x")
    job.at(200)
    job.at(300)
    kept = job.complete(2, "shared/y")
    assert kept == [*sent(CheckpointComplete(2)), DiscardFiles(BASE, (), "chk-1")], "number 3 may have built on 1"
    assert job.complete(3, "shared/x") == [
        *sent(CheckpointComplete(3)),
        DiscardFiles(BASE, (), "chk-2"),
        DiscardFiles(BASE, ("shared/y",)),
    ]


def test_a_shared_file_stays_that_a_part_of_a_later_one_was_built_on() -> None:
    job = Checkpoints(max_concurrent=3).run()
    job.at(100)
    job.complete(1, "shared/x")
    job.at(200)
    job.at(300)
    job.complete(2, "shared/y")
    job.at(400)
    job.ack(M0, 4, state("chk-4/m0", "shared/x"))
    assert not any(isinstance(c, DiscardFiles) and c.paths for c in job.complete(3, "shared/y")), "4 refers to x"
    assert DiscardFiles(BASE, ("shared/y",)) in job.complete(4, "shared/x")


def test_a_restart_of_tasks_aborts_pending_checkpoints_but_for_those_being_published() -> None:
    job = Checkpoints(max_concurrent=2, tolerable_failures=0).run()
    job.at(100)
    job.at(200)
    job.ack_all(1)
    job.ack(S, 2, state("chk-2/s"))
    assert job.it.suspend(210, "Map failed") == [*sent(CheckpointAborted(2)), DiscardFiles(BASE, (), "chk-2")]
    assert job.it.undecided == (1,)
    assert job.it.published(1, 220) == sent(CheckpointComplete(1))
    found, commands = job.it.restore(230)
    assert found is job.it.latest and commands == []
    assert job.ack(M0, 2, StoredSnapshot({0: b"x"})) == []


def test_what_is_not_decided_when_the_job_starts_again_is_never_used() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.ack_all(1)
    job.it.suspend(110)
    assert job.it.restore(120) == (None, sent(CheckpointAborted(1)))
    assert job.it.published(1, 130) == [DiscardFiles(BASE, (), "chk-1")]
    assert job.it.latest is None


def test_a_storage_that_does_not_answer_holds_up_nothing_for_ever() -> None:
    """Nobody knows whether the metadata will appear: no file of that checkpoint is deleted, and it never counts."""
    job = Checkpoints(timeout_ms=500, interval_ms=1_000).run()
    job.at(1_000)
    job.now = 1_400
    assert isinstance(job.ack_all(1)[-1], PublishCheckpoint)
    assert job.at(1_899) == [] and job.it.undecided == (1,)
    assert job.it.next_tick_ms == 1_900
    job.it.suspend(1_899)
    assert job.it.undecided == (1,), "a restart waits for what the storage says"
    assert job.it.expire(1_900) == sent(CheckpointAborted(1))
    assert job.it.undecided == () and job.it.latest is None
    assert "the storage did not answer within 500 ms" in said(job)
    assert job.it.published(1, 2_000) == [], "what it says later does not count"
    assert job.it.latest is None
