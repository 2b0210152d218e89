"""A hypothesis state machine: a job with a keyed table against a dict; hypothesis must be installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from rayflink.state.clock import ManualClock
from rayflink.state.snapshots import OperatorSnapshot, StoredSnapshot
from rayflink.table.runtime.keyed_state.stored_table import StoredTable
from rayflink.table.runtime.keyed_state.table_capture import TableCapture

from ..backend_laws.subject import same
from .subject import Job, JobCheckpoints, MakeTable, Row, restored

TTL_MS = 1000
keys = st.tuples(st.one_of(st.none(), st.integers(0, 12)), st.sampled_from([None, "", "a", "b"]))
values = st.tuples(
    st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
    st.one_of(st.none(), st.text(max_size=3)),
    st.one_of(st.none(), st.booleans()),
    st.one_of(st.none(), st.integers(-(10**9), 10**9)),
    st.one_of(st.none(), st.lists(st.integers(0, 9), max_size=2).map(tuple)),
)


class StoredJob(Protocol):
    """Subtasks with a table each."""

    clock: ManualClock
    subtasks: list[StoredTable]

    def sweep(self) -> None:
        """Sweep the slices that are due."""


class StoredHistory(RuleBasedStateMachine):
    """Rows of a few keys in up to three subtasks, with checkpoints of which several may be under way.

    A subclass has a rule `begin`, which calls `start` with a job of `new_job`.
    """

    model: dict[Any, Any]
    """What the job's rows are, in values that are replaced and never changed."""

    def new_job(self, parallelism: int, snapshots: Sequence[Sequence[OperatorSnapshot]]) -> StoredJob:
        """Return a job with the rows of snapshots."""
        raise NotImplementedError(type(self).__name__)

    def start(self, job: StoredJob) -> None:
        """Begin with a job that has no rows."""
        self.stored_job = job
        self.model = {}
        self.checkpoints = JobCheckpoints()
        self.captures: list[tuple[int, list[TableCapture], dict[Any, Any]]] = []
        self.written: list[tuple[int, list[StoredSnapshot], dict[Any, Any]]] = []
        self.complete: tuple[list[StoredSnapshot], dict[Any, Any]] | None = None

    @rule(wait=st.sampled_from([1, 300, TTL_MS]), sweeps=st.booleans())
    def wait(self, wait: int, sweeps: bool) -> None:
        self.stored_job.clock.advance(wait)
        if sweeps:
            self.stored_job.sweep()

    @rule()
    def capture(self) -> None:
        number = self.checkpoints.next_number()
        captures = [subtask.capture(number) for subtask in self.stored_job.subtasks]
        self.captures.append((number, captures, dict(self.model)))

    @precondition(lambda self: self.captures)
    @rule(which=st.integers(0, 3))
    def write(self, which: int) -> None:
        number, captures, model = self.captures.pop(which % len(self.captures))
        self.written.append((number, self.checkpoints.write(number, captures), model))

    @precondition(lambda self: self.written)
    @rule(which=st.integers(0, 3), is_complete=st.booleans())
    def end_checkpoint(self, which: int, is_complete: bool) -> None:
        number, snapshots, model = self.written.pop(which % len(self.written))
        for subtask in self.stored_job.subtasks:
            (subtask.confirm if is_complete else subtask.abort)(number)
        if not is_complete:
            self.checkpoints.abort(number)
            return
        self.checkpoints.complete(number, snapshots)
        self.complete = snapshots, model
        self.written = [later for later in self.written if later[0] > number]
        for earlier in [earlier for earlier in self.captures if earlier[0] < number]:
            self.captures.remove(earlier)
            _release(earlier[1])

    @rule()
    def checkpoint(self) -> None:
        """Take a whole checkpoint, so that many follow one another."""
        self.capture()
        self.write(len(self.captures) - 1)
        self.end_checkpoint(len(self.written) - 1, True)

    @precondition(lambda self: self.complete)
    @rule(parallelism=st.integers(1, 3), claims=st.booleans())
    def kill(self, parallelism: int, claims: bool) -> None:
        assert self.complete is not None
        snapshots, model = self.complete
        self._restore(restored(self.checkpoints.storage, snapshots, parallelism, claims), parallelism, model)

    @rule(parallelism=st.integers(1, 3))
    def restore_savepoint(self, parallelism: int) -> None:
        number = self.checkpoints.next_number()
        captures = [subtask.capture(number) for subtask in self.stored_job.subtasks]
        storage, snapshots = self.checkpoints.savepoint(captures)
        self._restore(restored(storage, snapshots, parallelism, False), parallelism, self.model)

    def _restore(self, snapshots: list[list[OperatorSnapshot]], parallelism: int, model: dict[Any, Any]) -> None:
        for _, captures, _ in self.captures:
            _release(captures)
        self.captures, self.written = [], []
        self.stored_job = self.new_job(parallelism, snapshots)
        self.model = dict(model)


class TableHistory(StoredHistory):
    """Rows of a keyed table."""

    make_table: ClassVar[MakeTable]

    @initialize(parallelism=st.integers(1, 3), expires=st.booleans())
    def begin(self, parallelism: int, expires: bool) -> None:
        self.ttl_ms = TTL_MS if expires else 0
        self.clock = ManualClock(0)
        self.known: set[Row] = set()
        self.start(self.new_job(parallelism, ()))

    def new_job(self, parallelism: int, snapshots: Sequence[Sequence[OperatorSnapshot]]) -> Job:
        self.job = Job(self.make_table, parallelism, self.ttl_ms, self.clock, snapshots)
        return self.job

    @rule(rows=st.dictionaries(keys, values, min_size=1, max_size=30))
    def upsert(self, rows: dict[Row, Row]) -> None:
        self.job.upsert(rows)
        self.model.update((key, (self.clock.now_ms(), row)) for key, row in rows.items())
        self.known.update(rows)

    @rule(some=st.lists(keys, max_size=20, unique=True))
    def remove(self, some: list[Row]) -> None:
        self.job.remove(some)
        for key in some:
            self.model.pop(key, None)

    @rule()
    def compare_all(self) -> None:
        now = self.clock.now_ms()
        alive = {
            key: row for key, (time, row) in self.model.items() if not self.ttl_ms or time + self.ttl_ms > now
        }  # fmt: skip
        same("all rows", self.job.rows(sorted(self.known, key=repr)), alive)
        same("the number of rows", self.job.count(), len(alive))


def _release(captures: list[TableCapture]) -> None:
    for capture in captures:
        capture.release()


__all__ = ["TTL_MS", "StoredHistory", "TableHistory"]
