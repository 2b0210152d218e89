"""The coordinator's decisions about checkpoints: triggers, acknowledgements, completion."""

from __future__ import annotations

import pytest

from rayflink.actors.messages.commands import DiscardFiles, PublishCheckpoint, Tick
from rayflink.actors.messages.messages import CheckpointAborted, CheckpointComplete, TriggerCheckpoint
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.connectors.collection import CollectSink
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.state.snapshots import StoredSnapshot
from rayflink.state.storage.manifest import CheckpointManifest, OperatorManifest
from tests.actors.checkpoints.checkpointed_job import BASE, JOB_ID, M0, M1, Checkpoints, S, sent, state
from tests.actors.job.job_events import Job


def barrier(number: int, now: int) -> TriggerCheckpoint:
    return TriggerCheckpoint(CheckpointBarrier(number, now))


@pytest.mark.spec("H26", "H28", "H37")
def test_sources_are_triggered_at_the_interval_with_numbers_from_1() -> None:
    job = Checkpoints().run()
    assert job.at(99) == []
    assert job.at(100) == sent(barrier(1, 100), S)
    job.complete(1)
    assert job.at(199) == []
    assert job.at(200) == sent(barrier(2, 200), S)


@pytest.mark.spec("H10", "H31", "checkpoint")
def test_every_subtask_of_every_source_is_triggered_and_nobody_else() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"execution.checkpointing.interval": "100 ms"})
    one, other = (env.from_sequence(1, 9).name(name).set_parallelism(width) for name, width in (("A", 2), ("B", 1)))
    one.union(other).key_by(lambda n: n).sum().set_parallelism(2).sink_to(CollectSink("out"))
    job = Job(env.get_job_graph())
    job.all_run()
    wanted = dict.fromkeys([f"Source: {name}" for name in ("A (1/2)", "A (2/2)", "B (1/1)")], barrier(1, 100))
    assert job.sent(job.on(Tick(), 100)) == wanted


@pytest.mark.spec("H28", "H43", "H44", "H15", "complete", "S11")
def test_it_is_complete_when_all_have_acknowledged_and_its_metadata_is_written() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.now = 130
    assert job.ack(S, 1, state("chk-1/a")) == []
    assert job.ack(M1, 1, state("chk-1/b")) == []
    source = OperatorManifest("os", "", "Source", 1, 128, (state("chk-1/a"),), coordinator=b"splits")
    mapped = OperatorManifest("om", "map", "Map", 2, 128, (state("chk-1/c"), state("chk-1/b")))
    manifest = CheckpointManifest("checkpoint", 1, 3, JOB_ID, "job", 100, 130, False, (source, mapped))
    assert job.ack(M0, 1, state("chk-1/c")) == [PublishCheckpoint(1, BASE, "chk-1/_metadata", manifest)]
    assert (job.it.latest, job.it.undecided) == (None, (1,))
    assert job.it.published(1, 140) == sent(CheckpointComplete(1))
    latest = job.it.latest
    assert latest is not None and (latest.manifest, latest.path) == (manifest, f"{BASE}/chk-1")


@pytest.mark.spec("H25", "V14")
def test_the_newest_ones_are_kept_and_the_folder_of_an_older_one_goes() -> None:
    job = Checkpoints().run()
    job.at(100)
    job.complete(1, "shared/x", "shared/y")
    job.at(200)
    assert job.complete(2, "shared/y") == [
        *sent(CheckpointComplete(2)),
        DiscardFiles(BASE, (), "chk-1"),
        DiscardFiles(BASE, ("shared/x",)),
    ]
    assert [kept.checkpoint_id for kept in job.it.completed] == [2]


@pytest.mark.spec("H25")
def test_so_many_are_kept_as_the_option_says_and_their_shared_files_with_them() -> None:
    job = Checkpoints(retained=3).run()
    for number in (1, 2, 3):
        job.at(number * 100)
        assert job.complete(number, f"shared/{number}", "shared/of-all") == sent(CheckpointComplete(number))
    job.at(400)
    assert job.complete(4, "shared/4", "shared/of-all") == [
        *sent(CheckpointComplete(4)),
        DiscardFiles(BASE, (), "chk-1"),
        DiscardFiles(BASE, ("shared/1",)),
    ]
    assert [kept.checkpoint_id for kept in job.it.completed] == [2, 3, 4]


def test_a_second_acknowledgement_changes_nothing_and_costs_no_file() -> None:
    job = Checkpoints().run()
    job.at(100)
    assert job.ack(S, 1, state("chk-1/a")) == job.ack(S, 1, state("chk-1/a")) == []
    job.complete(1)
    assert job.ack(S, 1, state("chk-1/a")) == [], "nor does it when the checkpoint is complete"


@pytest.mark.spec("H29")
def test_what_takes_too_long_is_given_up_and_what_comes_later_is_deleted() -> None:
    job = Checkpoints(timeout_ms=50).run()
    job.at(100)
    assert job.ack(S, 1, state("chk-1/a")) == []
    assert job.at(149) == []
    assert job.at(150) == [*sent(CheckpointAborted(1)), DiscardFiles(BASE, (), "chk-1")]
    assert job.ack(M0, 1, state("chk-1/b", "shared/n")) == [
        DiscardFiles(BASE, ("chk-1/b",)),
        DiscardFiles(BASE, ("shared/n",)),
    ]
    assert job.ack(M1, 1, StoredSnapshot({0: b"small"})) == []
