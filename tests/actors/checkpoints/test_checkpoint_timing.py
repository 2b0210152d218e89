"""When the coordinator begins a checkpoint by itself, and when not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rayflink.actors.checkpoints.coordinator import Decision
from rayflink.actors.messages.checkpoint_settings import CheckpointSettings
from rayflink.actors.messages.commands import DiscardFiles, SendToTask
from rayflink.actors.messages.messages import (
    CheckpointAborted,
    CheckpointComplete,
    CheckpointDeclined,
    TriggerCheckpoint,
)
from rayflink.common.errors import ConfigError
from rayflink.common.records.batches import CheckpointBarrier
from tests.actors.checkpoints.checkpointed_job import BASE, PLAN, Checkpoints, S, sent


def begun(commands: list[Decision]) -> list[int]:
    """Numbers of the checkpoints that are triggered."""
    messages = [command.message for command in commands if isinstance(command, SendToTask)]
    return [message.barrier.checkpoint_id for message in messages if isinstance(message, TriggerCheckpoint)]


@pytest.mark.spec("H27")
def test_none_is_triggered_where_periodic_checkpoints_are_off() -> None:
    job = Checkpoints(interval_ms=None).run()
    assert job.at(10**9) == []
    assert job.it.next_tick_ms is None


@pytest.mark.spec("H27")
def test_none_is_triggered_before_the_pause_since_the_last_one_is_over() -> None:
    job = Checkpoints(min_pause_ms=80).run()
    assert begun(job.at(100)) == [1]
    job.now = 150
    job.complete(1)
    assert begun(job.at(200)) == []
    assert job.it.next_tick_ms == 230
    assert begun(job.at(229)) == []
    assert begun(job.at(230)) == [2]


@pytest.mark.spec("H27", "H32")
def test_no_checkpoint_is_triggered_until_all_tasks_run_and_it_is_retried_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    job = Checkpoints().run()
    job.plan = "not all required tasks are running: Map (1/2) is DEPLOYING"
    with caplog.at_level("INFO", logger="rayflink"):
        assert job.at(100) == []
    assert [line.getMessage() for line in caplog.records] == [f"no checkpoint was triggered: {job.plan}"]
    assert job.it.history.overview()["not_triggered"] == job.plan
    assert job.it.history.counts()["total"] == 0
    job.plan = PLAN
    assert job.at(150) == []
    assert begun(job.at(200)) == [1]
    assert job.it.history.overview()["not_triggered"] is None


def test_no_more_run_at_a_time_than_allowed_and_a_due_one_begins_when_there_is_room() -> None:
    job = Checkpoints(max_concurrent=2).run()
    assert [begun(job.at(now)) for now in (100, 200, 300)] == [[1], [2], []]
    job.ack_all(1)
    assert begun(job.it.published(1, 310)) == [3]
    assert job.it.pending == (2, 3)


def test_a_moment_that_was_missed_is_not_made_up_for() -> None:
    job = Checkpoints(max_concurrent=9).run()
    assert [begun(job.at(now)) for now in (450, 499, 500, 501)] == [[1], [], [2], []]


def test_the_interval_begins_anew_when_the_job_does() -> None:
    job = Checkpoints().run()
    job.it.suspend(60)
    assert job.at(1000) == []
    job.run()
    assert begun(job.at(1099)) == []
    assert begun(job.at(1100)) == [1]


def test_one_that_is_wanted_at_once_heeds_neither_interval_nor_pause() -> None:
    job = Checkpoints(min_pause_ms=1000).run()
    job.at(100)
    job.complete(1)
    assert begun(job.it.trigger_now(101)) == [2]
    assert begun(job.it.tick(102)) == [], "it is under way"
    job.complete(2)
    assert begun(job.at(103)) == [], "it was had"


def test_one_that_is_wanted_begins_after_the_call_however_many_are_under_way() -> None:
    job = Checkpoints(interval_ms=None).run()
    assert begun(job.it.trigger_now(5)) == [1]
    assert begun(job.it.trigger_now(6)) == [], "there is no room"
    job.ack_all(1)
    assert begun(job.it.published(1, 7)) == [2]


def test_one_that_is_wanted_is_tried_again_until_it_is_complete() -> None:
    job = Checkpoints(interval_ms=None).run()
    job.plan = "not yet"
    assert job.it.trigger_now(5) == []
    job.plan = PLAN
    assert begun(job.at(6)) == [1]
    job.it.decline(CheckpointDeclined(S, 1, "no", True), 7)
    assert begun(job.at(8)) == [2]
    job.complete(2)
    assert begun(job.at(9)) == []


@pytest.mark.spec("H29")
def test_the_next_tick_is_when_something_is_due_or_takes_too_long() -> None:
    job = Checkpoints(timeout_ms=30).run()
    assert job.it.next_tick_ms == 100
    job.at(100)
    assert job.it.next_tick_ms == 130
    job.now = 120
    job.ack_all(1)
    assert job.it.next_tick_ms == 150, "the storage has as long for its metadata as the tasks had"
    assert job.at(149) == []


def test_a_newer_one_that_is_complete_subsumes_older_ones() -> None:
    job = Checkpoints(max_concurrent=3).run()
    for now in (100, 200, 300):
        job.at(now)
    assert job.complete(2) == [
        *sent(CheckpointComplete(2)),
        *sent(CheckpointAborted(1)),
        DiscardFiles(BASE, (), "chk-1"),
    ]
    assert job.it.pending == (3,)


def test_an_older_one_that_was_being_published_goes_when_it_appears() -> None:
    job = Checkpoints(max_concurrent=2).run()
    job.at(100)
    job.at(200)
    job.ack_all(1)
    job.ack_all(2)
    assert job.it.published(2, 210) == [*sent(CheckpointComplete(2)), *sent(CheckpointAborted(1))]
    assert job.it.published(1, 211) == [DiscardFiles(BASE, (), "chk-1")]
    assert job.it.latest is not None and job.it.latest.checkpoint_id == 2


@pytest.mark.parametrize("timeout_ms", [0, 40])
def test_an_unaligned_barrier_is_sent_where_it_begins_unaligned(timeout_ms: int) -> None:
    job = Checkpoints(unaligned=True, aligned_timeout_ms=timeout_ms).run()
    until = 100 + timeout_ms if timeout_ms else None
    barrier = CheckpointBarrier(1, 100, aligned=timeout_ms > 0, aligned_until_ms=until)
    assert job.at(100) == sent(TriggerCheckpoint(barrier), S)


def test_without_a_directory_a_checkpoint_is_complete_with_the_last_acknowledgement() -> None:
    job = Checkpoints(directory="").run()
    job.at(100)
    assert job.ack_all(1) == sent(CheckpointComplete(1))
    assert job.it.latest is not None and job.it.latest.path == ""


def test_where_nobody_has_state_any_more_it_is_complete_at_once() -> None:
    job = Checkpoints(directory="", plan=replace(PLAN, trigger=(), acknowledge={}, commit_to=())).run()
    assert job.at(100) == []
    assert job.it.latest is not None and job.it.latest.checkpoint_id == 1


def test_settings_are_read_under_flinks_names() -> None:
    given = {
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.min-pause": "20 s",
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.num-retained": "3",
        "execution.checkpointing.dir": "/c",
        "state.storage.fs.memory-threshold": "1 kb",
        "web.checkpoints.history": "4",
    }
    found = CheckpointSettings.of(given)
    assert found == CheckpointSettings(
        interval_ms=20_000,
        min_pause_ms=20_000,
        unaligned=True,
        retained=3,
        directory="/c",
        inline_threshold_bytes=1024,
        history=4,
    )
    assert CheckpointSettings.of({}) == CheckpointSettings()
    assert not CheckpointSettings.of({**given, "execution.checkpointing.mode": "AT_LEAST_ONCE"}).unaligned
    with pytest.raises(ConfigError, match="max-concurrent-checkpoints"):
        CheckpointSettings.of({**given, "execution.checkpointing.max-concurrent-checkpoints": "2"})
