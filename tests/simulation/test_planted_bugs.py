"""Each bug that would break exactly-once, planted into the engine, is found by the seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.exchange.alignment import BarrierAligner
from rayflink.actors.exchange.writer import RecordWriter
from rayflink.actors.task.snapshot_writing import SnapshotWriting
from rayflink.actors.task.task_checkpoints import TaskCheckpoints
from rayflink.common.connector_base.commits import CommitRequest
from rayflink.common.records.batches import CheckpointBarrier, Event
from rayflink.operators import rescaling
from rayflink.operators.async_io.async_operator import AsyncOperator
from rayflink.operators.commits import Commits
from rayflink.operators.sinks import SinkOperator
from rayflink.state.grouped_backend import GroupedBackend
from rayflink.state.keys.key_groups import key_group_range
from rayflink.state.snapshots import OperatorSnapshot
from rayflink.state.storage.ledger import Fenced, Ledger
from rayflink.testing import committed_sink, sources
from tests.simulation.exactly_once import expected, run
from tests.simulation.topologies import BY_NAME

pytestmark = pytest.mark.slow

MOST_SEEDS = 60
Plant = Callable[[pytest.MonkeyPatch], None]


def skipped_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first barrier is taken for all of them."""
    monkeypatch.setattr(BarrierAligner, "_complete", lambda self: True)


def lost_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers are not restored."""
    owned = GroupedBackend._owned
    lost: dict[str, Any] = {"timers": {}}
    monkeypatch.setattr(GroupedBackend, "_owned", lambda self, parts: [{**one, **lost} for one in owned(self, parts)])


def early_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink commits when its snapshot is taken, not when the checkpoint is complete."""
    add = Commits.add

    def and_commit(self: Commits, checkpoint_id: int, committables: Iterable[Any]) -> None:
        add(self, checkpoint_id, committables)
        self.complete(checkpoint_id)
        self.run()

    monkeypatch.setattr(Commits, "add", and_commit)


def missing_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator that leads no more goes on completing checkpoints."""
    record = Ledger.record

    def unfenced(self: Ledger, checkpoint_id: int, path: str) -> None:
        try:
            record(self, checkpoint_id, path)
        except Fenced:
            pass

    monkeypatch.setattr(Ledger, "record", unfenced)


def overtaking_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    """A barrier is sent before the records of the open batch, which came first."""
    broadcast = RecordWriter.broadcast

    def at_once(self: RecordWriter, event: Event) -> None:
        if not isinstance(event, CheckpointBarrier):
            return broadcast(self, event)
        for sub in self.partition.subpartitions:
            sub.add(event)

    monkeypatch.setattr(RecordWriter, "broadcast", at_once)


def offset_before_emit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source saves the offset behind the record that it gives next."""
    position = sources._Cursor.position

    def ahead(self: Any) -> sources.ScriptPosition:
        split = position(self)
        return replace(split, position=min(split.position + 1, len(self._script)))

    monkeypatch.setattr(sources._Cursor, "position", ahead)


def late_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """State is captured when it is written, with the effects of records behind the barrier."""
    make, write = TaskCheckpoints.__init__, SnapshotWriting._write
    operators: dict[SnapshotWriting, list[Any]] = {}

    def remember(self: TaskCheckpoints, *given: Any) -> None:
        make(self, *given)
        operators[self._writing] = [link.operator for link in self._chain.links]

    def late(self: SnapshotWriting, barrier: CheckpointBarrier, captured: Any, *more: Any) -> Any:
        again = dict(captured)
        for operator in operators[self]:
            if operator.ctx.operator_id in captured and not isinstance(operator, SinkOperator):
                again[operator.ctx.operator_id] = operator.snapshot_state(barrier.checkpoint_id)
        return write(self, barrier, again, *more)

    monkeypatch.setattr(TaskCheckpoints, "__init__", remember)
    monkeypatch.setattr(SnapshotWriting, "_write", late)


def lost_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records whose answers are awaited are in no snapshot."""
    monkeypatch.setattr(AsyncOperator, "snapshot_state", lambda self, checkpoint_id: OperatorSnapshot())


def double_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was committed before a failure is committed again."""

    def commit(self: Any, requests: Sequence[CommitRequest[str]]) -> None:
        committed = self._outside.committed
        for request in requests:
            rows = self._outside.prepared[request.get_committable()]
            committed[f"{request.get_committable()}, time {len(committed)}"] = rows

    monkeypatch.setattr(committed_sink._Committer, "commit", commit)


def wrong_key_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another parallelism, each subtask is given the key groups of one place further."""

    def shifted(subtask: int, parallelism: int, max_parallelism: int) -> range:
        right = key_group_range(subtask, parallelism, max_parallelism)
        return right if parallelism == 1 else range(right.start + 1, right.stop + 1)

    monkeypatch.setattr(rescaling, "key_group_range", shifted)


BUGS: tuple[tuple[Plant, str], ...] = (
    (skipped_alignment, "window"),
    (lost_timer, "broadcast"),
    (early_commit, "two phases"),
    (missing_fence, "two phases"),
    (overtaking_barrier, "two phases"),
    (offset_before_emit, "connect"),
    (late_snapshot, "connect"),
    (lost_in_flight, "asynchronous"),
    (double_commit, "two phases"),
    (wrong_key_groups, "connect"),
)


def seeds_until_found(name: str) -> int | None:
    """How many seeds it takes until one fails; None: too many."""
    expected(BY_NAME[name])
    for seed in range(MOST_SEEDS):
        try:
            run(name, seed)
        except AssertionError:
            return seed + 1
    return None


@pytest.mark.parametrize(("plant", "name"), BUGS, ids=[plant.__name__ for plant, _ in BUGS])
def test_a_planted_bug_is_found(monkeypatch: pytest.MonkeyPatch, plant: Plant, name: str) -> None:
    expected(BY_NAME[name])
    plant(monkeypatch)
    found = seeds_until_found(name)
    assert found is not None, f"{MOST_SEEDS} seeds of {name!r} do not find it: the simulation is too tame"
    monkeypatch.undo()
    run(name, found - 1)  # it is the bug that this seed finds, and nothing else
    print(f"{plant.__name__}: found by seed {found - 1} of {name!r}")
