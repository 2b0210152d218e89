"""Two coordinators of one job: what the shell tells the decider, and what it writes and deletes."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from rayflink.actors.checkpoints.failures import FailJob
from rayflink.actors.checkpoints.files import CheckpointFiles
from rayflink.actors.job.history.history_files import store_history
from rayflink.actors.job.history.job_history import JobHistory
from rayflink.actors.job.job_master import JobMaster
from rayflink.actors.job.recovery import recover_or_start
from rayflink.actors.local.in_process import InProcessCluster
from rayflink.actors.messages.commands import (
    CheckpointNotPublished,
    CheckpointPublished,
    DiscardFiles,
    PublishCheckpoint,
)
from rayflink.actors.messages.executions import ExceptionEntry
from rayflink.actors.messages.messages import CheckpointAborted, TaskFailure
from rayflink.actors.messages.states import JobStatus
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.graph.job_graph import JobGraph
from rayflink.state.clock import SystemClock
from rayflink.state.errors import DamagedFileError
from rayflink.state.storage.ledger import NUMBERS, Ledger, LedgerEnded
from rayflink.state.storage.manifest import CheckpointManifest, metadata_path
from rayflink.state.storage.manifest_format import encode_manifest
from rayflink.state.storage.memory_storage import MemoryStorage
from rayflink.state.storage.storage import Storage, StorageError
from rayflink.state.storage.storage_schemes import open_storage
from rayflink.state.storage.stored_checkpoints import NoCheckpointError
from tests.actors.checkpoints.checkpointed_job import Checkpoints

A, B = "a" * 32, "b" * 32


def manifest(number: int, epoch: int = 1) -> CheckpointManifest:
    return CheckpointManifest("checkpoint", number, epoch, "0" * 32, "job", 1, 2, False, ())


def wanted(number: int, base: str = "base", epoch: int = 1) -> PublishCheckpoint:
    return PublishCheckpoint(number, base, metadata_path(number), manifest(number, epoch))


class Lossy(MemoryStorage):
    """Loses the answers of writes below a path, which do arrive or not; then nothing can be read there for once."""

    def __init__(self) -> None:
        super().__init__()
        self.below = self.arrives = None
        self.deaf = False

    def lose(self, below: str, arrives: bool) -> None:
        self.below, self.arrives = below, arrives

    def put_if_absent(self, path: str, data: bytes) -> bool:
        if self.below is None or not path.startswith(self.below):
            return super().put_if_absent(path, data)
        if self.arrives:
            super().put_if_absent(path, data)
        self.below, self.deaf = None, True
        raise StorageError("write", self.url, "no answer")

    def read(self, path: str, offset: int = 0, length: int | None = None) -> bytes:
        if self.deaf:
            self.deaf = False
            raise StorageError("read", self.url, "no answer")
        return super().read(path, offset, length)


def files_of(storage: Storage, leader: str) -> CheckpointFiles:
    return CheckpointFiles(lambda url: storage, "base", Ledger.claim(storage, leader, retained=1))


def test_who_is_not_the_leader_publishes_nothing_and_leaves_nothing():
    storage = MemoryStorage()
    first = files_of(storage, A)
    assert first.publish(wanted(1)) == CheckpointPublished(1)
    second = files_of(storage, B)
    result = first.publish(wanted(2))
    assert isinstance(result, CheckpointNotPublished)
    assert result.exists and "epoch 2 has begun" in result.reason
    assert storage.list("chk-2") == []
    assert second.publish(wanted(NUMBERS + 2, epoch=2)) == CheckpointPublished(NUMBERS + 2)


def test_a_savepoint_of_who_is_not_the_leader_is_none():
    storage = MemoryStorage()
    first = files_of(storage, A)
    files_of(storage, B)
    result = first.publish(PublishCheckpoint(1, "elsewhere", "_metadata", manifest(1), counts=False))
    assert isinstance(result, CheckpointNotPublished) and result.exists
    assert "_metadata" not in storage.list()


def test_who_is_not_the_leader_deletes_no_checkpoint():
    storage = MemoryStorage()
    first = files_of(storage, A)
    second = files_of(storage, B)
    second.publish(wanted(NUMBERS + 1, epoch=2))
    before = storage.read(metadata_path(NUMBERS + 1))
    assert first.discard(DiscardFiles("base", (), "")) == 1  # its job has been cancelled
    assert first.discard(DiscardFiles("base", (), f"chk-{NUMBERS + 1}")) == 1
    assert storage.read(metadata_path(NUMBERS + 1)) == before
    assert Ledger.claim(storage, A, 1).epoch == 3


def test_folders_of_checkpoints_that_never_completed_go_however_many_there_were():
    storage = MemoryStorage()
    files = files_of(storage, A)
    for number in (1, NUMBERS + 1, 3 * NUMBERS):
        storage.put_if_absent(f"chk-{number}/part", b"x")
        assert files.discard(DiscardFiles("base", (), f"chk-{number}")) == 0
    assert [path for path in storage.list() if path.startswith("chk-")] == []
    assert Ledger.claim(storage, B, 1).next_number > 3 * NUMBERS, "nobody uses those numbers again"


def test_the_last_coordinator_leaves_nothing():
    storage = MemoryStorage()
    files = files_of(storage, A)
    files.publish(wanted(1))
    assert files.discard(DiscardFiles("base", (), "")) == 0
    assert storage.list() == []


class Odd(MemoryStorage):
    """Raises what no storage should, where files are deleted."""

    def delete(self, path: str) -> None:
        raise RuntimeError(f"cannot delete {path}")


def test_what_cannot_be_deleted_for_whatever_reason_is_left_behind_and_no_failure():
    storage = Odd()
    files = files_of(storage, A)
    files.publish(wanted(1))
    assert files.discard(DiscardFiles("base", (), "chk-1")) == 1
    for path in storage.list("ledger"):  # damaged behind its leader's back
        MemoryStorage.delete(storage, path)
    storage.put_if_absent("ledger/000000003", b"nothing")
    assert files.discard(DiscardFiles("base", (), f"chk-{NUMBERS + 200}")) == 1
    assert storage.list("chk-1") == ["chk-1/_metadata"]


def test_numbers_are_reserved_before_their_files_are_written():
    storage = MemoryStorage()
    files = files_of(storage, A)
    assert files.publish(wanted(5 * NUMBERS)) == CheckpointPublished(5 * NUMBERS)
    assert Ledger.claim(storage, B, 1).next_number > 5 * NUMBERS


@pytest.mark.parametrize("arrives", [True, False])
def test_where_the_answer_was_lost_the_checkpoint_failed_and_its_files_stay(arrives: bool):
    storage = Lossy()
    files = files_of(storage, A)
    storage.lose("ledger", arrives)
    result = files.publish(wanted(1))
    assert result == CheckpointNotPublished(1, result.reason, in_doubt=True)
    assert storage.list("chk-1") == ["chk-1/_metadata"]
    assert files.publish(wanted(2)) == CheckpointPublished(2)
    assert 2 in [one.checkpoint_id for one in Ledger.claim(storage, B, 1).checkpoints]


def test_a_checkpoint_in_doubt_counts_as_failed_and_is_not_deleted():
    job = Checkpoints().run()
    job.at(100)
    job.ack_all(1)
    commands = job.it.not_published(1, "no answer", 120, in_doubt=True)
    assert [c for c in commands if isinstance(c, DiscardFiles)] == []
    assert CheckpointAborted(1) in [getattr(c, "message", None) for c in commands]
    assert job.it.latest is None


def test_a_fenced_job_does_not_start_again():
    job = Checkpoints().run()
    job.at(100)
    job.ack_all(1)
    (failed,) = [c for c in job.it.not_published(1, "epoch 2", 120, exists=True) if isinstance(c, FailJob)]
    assert failed.is_final


# a job and its successor


def graph_of(folder: str, retained: int = 2) -> JobGraph:
    env = StreamExecutionEnvironment(
        {
            "execution.checkpointing.dir": folder,
            "execution.checkpointing.interval": "50 ms",
            "execution.checkpointing.num-retained": retained,
            "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 1000,
            "restart-strategy.fixed-delay.delay": "0 ms",
        }
    )
    env.from_sequence(1, 200).key_by(lambda number: number % 3).sum(0).add_sink(lambda number: None)
    return env.get_job_graph()


@pytest.mark.slow
def test_a_zombie_ends_with_a_clear_error_when_its_successor_has_begun(tmp_path: Path):
    graph = graph_of(str(tmp_path))
    zombie = InProcessCluster(graph, SystemClock(), lambda ms: None)
    successor = recover_or_start(graph, lambda: B, open_storage)
    assert successor.start.epoch == 2 and successor.recovered
    result = zombie.run()
    assert result.status is JobStatus.FAILED
    assert result.failure is not None
    assert result.failure.kind == "Fenced"
    assert "epoch 2 has begun" in result.failure.message
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["000000002"]


@pytest.mark.slow
def test_a_job_that_has_ended_leaves_nothing(tmp_path: Path):
    graph = graph_of(str(tmp_path))
    assert InProcessCluster(graph, SystemClock(), lambda ms: None).run().status is JobStatus.FINISHED
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_job_whose_savepoint_is_not_there_leaves_nothing(tmp_path: Path):
    graph = graph_of(str(tmp_path / "checkpoints"))
    graph.configuration["execution.state-recovery.path"] = str(tmp_path / "savepoint")
    kept: list[str] = []
    with pytest.raises(NoCheckpointError, match="check the address"):
        recover_or_start(graph, lambda: A, open_storage, lambda named: kept.append("submission"))
    assert kept == [] and list(tmp_path.iterdir()) == []


def test_a_job_whose_folder_is_deleted_while_it_runs_is_told_so(tmp_path: Path):
    graph = graph_of(str(tmp_path))
    base = f"{tmp_path}/{graph.id}"
    files = recover_or_start(graph, lambda: A, open_storage).files
    assert files.publish(wanted(101, base)) == CheckpointPublished(101)
    shutil.rmtree(base)
    result = files.publish(wanted(102, base))
    assert isinstance(result, CheckpointNotPublished)
    assert result.exists and "somebody has deleted that folder while the job ran" in result.reason


def with_checkpoints(*numbers: int) -> tuple[JobGraph, MemoryStorage]:
    """What a coordinator leaves that was killed."""
    graph, storage = graph_of("/c"), MemoryStorage()
    files = CheckpointFiles(lambda url: storage, f"/c/{graph.id}", Ledger.claim(storage, A, retained=2))
    for number in numbers:
        files.publish(wanted(number, f"/c/{graph.id}"))
    return graph, storage


def damage(storage: MemoryStorage, path: str) -> None:
    data = bytearray(storage.read(path))
    data[len(data) // 2] ^= 1
    storage.delete(path)
    storage.put_if_absent(path, bytes(data))


def test_a_successor_begins_with_the_newest_checkpoints_that_count():
    graph, storage = with_checkpoints(1, 2, 3, 4)
    storage.put_if_absent("chk-5/_metadata", storage.read("chk-4/_metadata"))  # published, but it does not count
    begun = recover_or_start(graph, lambda: B, lambda url: storage)
    assert [one.checkpoint_id for one in begun.start.completed] == [4, 3]
    assert (begun.start.epoch, begun.start.next_number) == (2, 5 + NUMBERS)
    assert begun.damaged == ()
    assert (begun.start.past.restarts, begun.start.past.attempt) == (1, 1)
    (lost,) = begun.start.past.exceptions
    assert lost.failure.message == "the job's coordinator was lost (epoch 1); another goes on from checkpoint 4"


def test_a_damaged_checkpoint_is_left_out_and_an_older_one_is_taken():
    graph, storage = with_checkpoints(1, 2, 3)
    damage(storage, "chk-3/_metadata")
    begun = recover_or_start(graph, lambda: B, lambda url: storage)
    assert [one.checkpoint_id for one in begun.start.completed] == [2, 1]
    assert len(begun.damaged) == 1 and "chk-3/_metadata is damaged" in begun.damaged[0]


def test_where_no_checkpoint_can_be_read_the_job_does_not_begin_from_nothing():
    graph, storage = with_checkpoints(1, 2)
    for number in (1, 2):
        damage(storage, f"chk-{number}/_metadata")
    with pytest.raises(NoCheckpointError, match="none that can be read of those that count"):
        recover_or_start(graph, lambda: B, lambda url: storage)


def test_a_damaged_ledger_is_an_error():
    graph, storage = with_checkpoints(1)
    damage(storage, storage.list("ledger")[-1])
    with pytest.raises(DamagedFileError, match="ledger"):
        recover_or_start(graph, lambda: B, lambda url: storage)


def test_a_job_that_was_about_to_be_deleted_is_not_begun_again():
    graph, storage = graph_of("/c"), MemoryStorage()
    Ledger.claim(storage, A, 1).end()
    with pytest.raises(LedgerEnded):
        recover_or_start(graph, lambda: B, lambda url: storage)


def test_a_successor_deletes_what_was_being_written():
    graph, storage = with_checkpoints(1)
    for path in ("chk-2/4f", "shared/5a", "notes.txt"):
        storage.put_if_absent(path, b"half")
    recover_or_start(graph, lambda: B, lambda url: storage)
    assert storage.list() == ["chk-1/_metadata", "ledger/000000003", "notes.txt"]


def test_the_numbers_of_a_job_go_on_under_another_coordinator():
    graph, storage = with_checkpoints(1)
    failed = ExceptionEntry(7, "Map (1/2)", TaskFailure("ValueError", "no", "Traceback ...", "Map", "job.py:3"))
    assert store_history(storage, JobHistory(3, 5, (failed,)))
    pauses = {"pauses_ms": [700, 900], "scalings": 2}
    assert store_history(storage, JobHistory(4, 6, (failed, failed), pauses))
    assert storage.list("job") == ["job/past-000000000-000000001", "job/past-000000000-000000002"]
    start = recover_or_start(graph, lambda: B, lambda url: storage).start
    job = JobMaster(graph, lambda: os.urandom(16).hex(), {}, start=start)
    result = job.report.describe()
    assert result["metrics"]["numRestarts"] == 5
    assert {subtask["attempt"] for vertex in result["vertices"] for subtask in vertex["subtasks"]} == {7}
    assert [one["exception"] for one in result["exceptions"][:2]] == ["no", "no"]
    assert job.report.past.attempt == 7
    assert (job.autoscaler.restart_s, job.autoscaler.history.scalings) == (0.9, 2)


@pytest.mark.parametrize("number", [5, 106, 100_000])
def test_no_two_coordinators_use_one_number_where_the_job_starts_from_a_savepoint(tmp_path: Path, number: int):
    savepoint = open_storage(str(tmp_path / "savepoint"))
    assert savepoint.put_if_absent("_metadata", encode_manifest(replace(manifest(number), own_base=True)))
    graph = graph_of(str(tmp_path / "checkpoints"))
    graph.configuration["execution.state-recovery.path"] = str(tmp_path / "savepoint")
    first, second = (recover_or_start(graph, lambda leader=leader: leader, open_storage).start for leader in (A, B))
    of_first, of_second = (
        JobMaster(graph, lambda: os.urandom(16).hex(), {}, start=start).checkpoints.next_id for start in (first, second)
    )
    assert (of_first, of_second) == (number + 1, number + 1 + NUMBERS)
    assert [one.checkpoint_id for one in second.completed] == [number]


def test_a_history_that_cannot_be_read_stops_nobody():
    graph, storage = with_checkpoints(1)
    storage.put_if_absent("job/past-000000001", b"{")
    assert recover_or_start(graph, lambda: B, lambda url: storage).start.past.restarts == 1
