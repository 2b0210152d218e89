"""Sinks with one committer for all writers: one commit a checkpoint, also after failures, restores and rescales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.connector_base.sink import (
    CommitterContext,
    GlobalCommitter,
    Sink,
    SinkWriter,
    WriterContext,
)  # fmt: skip
from rayflink.common.records.batches import Batch, RowBatch, rows_of
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.global_commits import GlobalCommitterOperator, SinkWriterOperator
from rayflink.testing import OperatorHarness

SHELF: list[tuple[str, int, list[Any]]] = []


@pytest.fixture(autouse=True)
def _empty_shelf() -> None:
    SHELF.clear()


class Packer(SinkWriter):
    def __init__(self) -> None:
        self.box: list[Any] = []

    def write(self, batch: Batch) -> None:
        self.box += rows_of(batch)

    def flush(self, end_of_input: bool) -> None:
        pass

    def prepare_commit(self) -> Sequence[Any]:
        box, self.box = self.box, []
        return [box] if box else []

    def close(self) -> None:
        pass


class Shelver(GlobalCommitter):
    """Puts one box a checkpoint on the shelf."""

    def __init__(self, ctx: CommitterContext) -> None:
        self.job_id, self.failures = ctx.job_id, 0

    def combine(self, checkpoint_id: int, committables: Sequence[Any]) -> Any:
        return self.job_id, checkpoint_id, sorted(record for box in committables for record in box)

    def commit(self, requests: Sequence[CommitRequest[Any]]) -> None:
        for request in requests:
            box = request.get_committable()
            if box in SHELF:
                request.signal_already_committed()
            else:
                SHELF.append(box)


class Boxes(Sink[Any]):
    def create_writer(self, ctx: WriterContext) -> SinkWriter:
        return Packer()

    def create_global_committer(self, ctx: CommitterContext) -> GlobalCommitter:
        return Shelver(ctx)


def committer(restore: Sequence[Any] = ()) -> OperatorHarness:
    return OperatorHarness(lambda: GlobalCommitterOperator(Boxes().create_global_committer), restore=restore)


def shelved() -> list[list[Any]]:
    return [box for _, _, box in SHELF]


def test_a_writer_emits_what_it_prepared_before_the_barrier_and_at_the_end() -> None:
    with OperatorHarness(lambda: SinkWriterOperator(Boxes())) as writer:
        writer.process(1)
        writer.process(2)
        writer.snapshot()
        assert writer.output_values() == [[1, 2]]
        writer.process(3)
        writer.end_input()
        assert writer.output_values() == [[1, 2], [3]]


def test_all_that_was_prepared_for_a_checkpoint_is_one_commit_once_it_is_complete() -> None:
    with committer() as harness:
        harness.process_batch(RowBatch([[1], [4]]))
        harness.process([2, 3])
        harness.snapshot(7)
        assert not SHELF
        harness.notify_checkpoint_complete(7)
        assert SHELF == [("0" * 32, 7, [1, 2, 3, 4])]
        harness.snapshot(8)
        harness.notify_checkpoint_complete(8)
        assert len(SHELF) == 1, "a checkpoint without records makes no commit"


def test_a_restored_committer_commits_again_and_what_was_committed_is_recognized() -> None:
    harness = committer()
    harness.process([1])
    taken = harness.snapshot(1)
    harness.notify_checkpoint_complete(1)
    with committer([taken]):
        assert shelved() == [[1]]
    SHELF.clear()
    with committer([taken]):
        assert shelved() == [[1]], "the commit was lost with the attempt"


def test_the_box_of_an_aborted_checkpoint_waits_for_the_next_one() -> None:
    with committer() as harness:
        harness.process([1])
        harness.snapshot(1)
        harness.process([2])
        harness.snapshot(2)
        harness.notify_checkpoint_complete(2)
        assert [(number, box) for _, number, box in SHELF] == [(1, [1]), (2, [2])]


def test_a_job_without_checkpoints_commits_once_at_its_end() -> None:
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 3})
    env.from_sequence(1, 20).sink_to(Boxes()).uid("boxes").name("boxes")
    env.execute()
    assert shelved() == [list(range(1, 21))]


def test_a_job_with_checkpoints_commits_each_record_once() -> None:
    options = {"execution.target": "local", "execution.checkpointing.interval": "1 ms", "parallelism.default": 2}
    env = StreamExecutionEnvironment(options)
    env.from_sequence(1, 5000).rebalance().sink_to(Boxes())
    env.execute()
    assert sorted(record for box in shelved() for record in box) == list(range(1, 5001))
    ids = [number for _, number, _ in SHELF]
    assert len(set(ids)) == len(ids), "one commit a checkpoint"
