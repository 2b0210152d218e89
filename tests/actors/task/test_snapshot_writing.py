"""Snapshots that are written beside their task: what fails there, and what comes when nobody wants it any more."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from rayflink.actors.messages.checkpoint_statistics import CheckpointMetrics
from rayflink.actors.task.services import TaskServices
from rayflink.actors.task.snapshot_storage import InMessages
from rayflink.actors.task.snapshot_writing import SnapshotWriting, SnapshotWritten
from rayflink.common.records.batches import CheckpointBarrier
from rayflink.state.clock import ManualClock
from rayflink.state.snapshots import KeyedParts, OperatorSnapshot


@dataclass
class _Captured:
    """Keyed state whose writing may raise."""

    raises: BaseException | None = None
    released: bool = False

    def write(self, writer: Any) -> KeyedParts:
        if self.raises is not None:
            raise self.raises
        return KeyedParts({0: writer.put(b"state")})

    def release(self) -> None:
        self.released = True


@dataclass
class _Writing:
    """A `SnapshotWriting`, the work it leaves for other threads, and its mail."""

    work: list[Callable[[], None]] = field(default_factory=list)
    mail: list[SnapshotWritten] = field(default_factory=list)
    in_background: bool = True

    def __post_init__(self) -> None:
        services = TaskServices(background=self.work.append if self.in_background else None)
        make = lambda barrier: InMessages(barrier.checkpoint_id, 1000)  # noqa: E731
        self.it = SnapshotWriting(services, ManualClock(), make, self.mail.append)

    def begin(self, captured: _Captured) -> None:
        self.it.begin(CheckpointBarrier(7, 0), {"op": OperatorSnapshot(capture=captured)}, CheckpointMetrics())


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_class_that_exits_while_it_is_pickled_is_a_failure_of_the_snapshot(raised: type[BaseException]):
    captured, writing = _Captured(raised("enough")), _Writing()
    writing.begin(captured)
    writing.work[0]()
    assert [(mail.snapshots, mail.failure) for mail in writing.mail] == [({}, f"{raised.__name__}: enough")]
    assert captured.released


def test_where_nobody_writes_beside_the_task_ctrl_c_is_that_of_the_program():
    captured, writing = _Captured(KeyboardInterrupt()), _Writing(in_background=False)
    with pytest.raises(KeyboardInterrupt):
        writing.begin(captured)
    assert captured.released and not writing.mail


def test_what_is_given_up_before_it_is_written_has_no_files():
    captured, writing = _Captured(), _Writing()
    writing.begin(captured)
    writing.it.give_up(7)
    writing.work[0]()
    assert [mail.snapshots for mail in writing.mail] == [{}]
    assert not writing.it.take(writing.mail[0]) and captured.released


def test_what_is_given_up_after_it_was_written_is_told_all_the_same():
    writing = _Writing()
    writing.begin(_Captured())
    writing.work[0]()
    writing.it.give_up(7)
    assert not writing.it.take(writing.mail[0])
    assert list(writing.mail[0].snapshots) == ["op"]


def test_the_time_of_the_asynchronous_part_includes_the_wait_for_a_thread():
    writing = _Writing()
    writing.begin(_Captured())
    writing.it.clock.advance(2_000)
    writing.work[0]()
    assert writing.mail[0].metrics.async_ms == 2_000
