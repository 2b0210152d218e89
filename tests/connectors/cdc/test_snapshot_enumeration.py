"""Chunks go to the readers that ask, and the log to one of them when all chunks are reported."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from rayflink.connectors.cdc.chunks import FinishedChunk, chunks_between
from rayflink.connectors.cdc.snapshot_enumeration import (
    ChunksFinished,
    ChunkSplit,
    Database,
    LogSplit,
    Prepared,
    SnapshotEnumerator,
)
from tests.connectors.cdc.test_chunks import Mark

MARK = Mark(frozenset(), 7)


class Context:
    """Collects what the enumerator does, and runs its calls at once."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, Any]] = []

    def assign_splits(self, assignment: Any) -> None:
        self.sent += [(subtask, split) for subtask, splits in assignment.items() for split in splits]

    def signal_no_more_splits(self, subtask: int) -> None:
        self.sent.append((subtask, None))

    def current_parallelism(self) -> int:
        return 2

    def call_async(self, work: Any, then: Any, period_ms: int | None = None) -> None:
        try:
            answer = work()
        except RuntimeError as error:
            then(None, error)
        else:
            then(answer, None)


class Tables(Database[str]):
    def __init__(self, error: str = "") -> None:
        self.error = error

    def prepare(self) -> Prepared[str]:
        return Prepared({"t": "table t"}, tuple(chunks_between("t", ["5"])), 3)

    def resume(self, prepared: Prepared[str]) -> None:
        if self.error:
            raise RuntimeError(self.error)


def started(reads_log: bool = True, progress: Any = None, tables: Tables | None = None) -> tuple[Context, Any]:
    context = Context()
    enumerator = SnapshotEnumerator(context, tables or Tables(), reads_log, progress)
    enumerator.start()
    return context, enumerator


def report(enumerator: Any, subtask: int, number: int) -> None:
    enumerator.handle_source_event(
        subtask, ChunksFinished((FinishedChunk(chunks_between("t", ["5"])[number], MARK),))
    )


def test_the_log_is_assigned_once_when_all_chunks_are_reported():
    context, enumerator = started()
    for subtask in (0, 1, 0, 1):
        enumerator.handle_split_request(subtask)
    assert [(to, split.split_id) for to, split in context.sent] == [(0, "t:0"), (1, "t:1")]
    report(enumerator, 0, 0)
    report(enumerator, 0, 0)
    assert len(context.sent) == 2
    report(enumerator, 1, 1)
    (to, log), = context.sent[2:]
    assert to == 0 and isinstance(log, LogSplit) and log.position == 3 and len(log.finished) == 2
    enumerator.handle_split_request(1)
    assert len(context.sent) == 3
    assert log.at(6, 9, 2).finished and not log.at(7).finished


def test_a_snapshot_alone_ends():
    context, enumerator = started(reads_log=False)
    for subtask in (0, 1, 0, 1):
        enumerator.handle_split_request(subtask)
    assert context.sent[2:] == [(0, None), (1, None)]


def test_a_restored_enumerator_goes_on_with_the_chunks_that_are_left():
    context, enumerator = started()
    enumerator.handle_split_request(0)
    report(enumerator, 0, 0)
    progress = pickle.loads(pickle.dumps(enumerator.snapshot_state()))
    context, enumerator = started(progress=progress)
    enumerator.handle_split_request(1)
    enumerator.handle_split_request(0)
    assert [split.split_id for _, split in context.sent] == ["t:1"]
    report(enumerator, 1, 1)
    assert [split.split_id for _, split in context.sent] == ["t:1", "log"]
    context, enumerator = started(progress=pickle.loads(pickle.dumps(enumerator.snapshot_state())))
    enumerator.handle_split_request(0)
    assert not context.sent, "a reader has the log"


def test_splits_of_a_failed_reader_are_assigned_again():
    context, enumerator = started()
    enumerator.handle_split_request(0)
    enumerator.handle_split_request(0)
    report(enumerator, 0, 0)
    enumerator.add_splits_back([split for _, split in context.sent], 0)
    enumerator.handle_split_request(0)
    enumerator.handle_split_request(0)
    assert sorted(split.split_id for _, split in context.sent[2:]) == ["t:0", "t:1"]
    enumerator.handle_split_request(0)
    report(enumerator, 0, 0)
    report(enumerator, 0, 1)
    log = context.sent[-1][1]
    enumerator.add_splits_back([log], 0)
    enumerator.handle_split_request(1)
    assert context.sent[-1] == (1, log)
    assert all(isinstance(split, ChunkSplit) for _, split in context.sent[:4])


def test_a_database_that_cannot_be_resumed_fails_the_job():
    _, enumerator = started()
    with pytest.raises(RuntimeError, match="the slot is gone"):
        started(progress=enumerator.snapshot_state(), tables=Tables("the slot is gone"))
