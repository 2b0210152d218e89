"""The PostgreSQL sink under faults: killed or cut off at every transaction, on changing parallelism, beside zombies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.connectors.postgres import postgres_session
from rayflink.connectors.postgres.postgres_session import Session
from rayflink.connectors.postgres.postgres_sink import PostgresSink
from rayflink.operators.base import UserCodeError
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from rayflink.testing.harness import Snapshots
from tests.connectors.postgres.postgres_table import execute, numbers_in, server, started

pytestmark = pytest.mark.slow
__all__ = ["server"]


class Killed(BaseException):
    """The process is gone."""


class Faults:
    """Counts the transactions of all sessions; at one of them something happens."""

    def __init__(self) -> None:
        self.done, self.at = 0, -1
        self.fault: str = ""

    def arm(self, fault: str, after: int) -> None:
        """fault: "before" or "after" a transaction: killed there; "lost": the connection is lost as it is committed,
        "cut": before.
        """
        self.fault, self.at = fault, self.done + after

    @contextmanager
    def transaction(self, connection: Any) -> Iterator[Any]:
        mine, fault = self.done == self.at, self.fault
        self.done += 1
        if mine and fault == "before":
            raise Killed
        with connection.transaction() as transaction:
            yield transaction
            if mine and fault == "cut":
                connection.close()
                raise psycopg.OperationalError("cut")
        if mine and fault == "after":
            raise Killed
        if mine and fault == "lost":
            connection.close()
            raise psycopg.OperationalError("lost")

    @contextmanager
    def installed(self) -> Iterator[None]:
        patch, connected = pytest.MonkeyPatch(), Session._connected
        faults = self

        class Watched:
            def __init__(self, session: Session) -> None:
                self.real = connected(session)

            def transaction(self) -> Any:
                return faults.transaction(self.real)

            def cursor(self) -> Any:
                return self.real.cursor()

        patch.setattr(Session, "_connected", lambda session: Watched(session))
        patch.setattr(postgres_session, "time", SimpleNamespace(sleep=lambda seconds: None))
        try:
            yield
        finally:
            patch.undo()


class Model:
    """Subtasks of one sink, fed with 0, 1, 2, ..., of which a checkpoint knows how far it came."""

    def __init__(self, dsn: str, parallelism: int, keys: tuple[str, ...] = ()) -> None:
        self.dsn, self.keys = dsn, keys
        self.next, self.number, self.attempt = 0, 0, -1
        self.last: tuple[int, list[Snapshots]] = (0, [])
        self.subtasks: list[OperatorHarness] = []
        self.zombies: list[OperatorHarness] = []
        self.start(parallelism)

    def start(self, parallelism: int) -> None:
        self.zombies += self.subtasks
        self.subtasks = []
        self.attempt += 1
        self.next, taken = self.last
        snapshots = rescaled_snapshots(taken, parallelism) if taken else [{}] * parallelism
        for subtask in range(parallelism):
            sink = PostgresSink(self.dsn, "t", keys=self.keys)
            place = Place(subtask, parallelism)
            self.subtasks.append(started(sink, [snapshots[subtask]], place, self.attempt))

    def write(self, count: int) -> None:
        for _ in range(count):
            self.subtasks[self.next % len(self.subtasks)].process((self.next, ""))
            self.next += 1

    def checkpoint(self, how: str) -> None:
        self.number += 1
        taken = [harness.snapshot(self.number) for harness in self.subtasks]
        if how != "aborted":
            self.last = (self.next, taken)
        if how == "complete":
            for harness in self.subtasks:
                harness.notify_checkpoint_complete(self.number)

    def check(self) -> None:
        seen = numbers_in(self.dsn)
        assert len(set(seen)) == len(seen), "rows twice"
        assert all(number < self.last[0] for number in seen), "seen before its checkpoint was complete"

    def haunt(self) -> None:
        """Attempts that should be dead go on."""
        for zombie in self.zombies:
            with suppress(UserCodeError, AssertionError, Killed):
                zombie.process((10**6, "zombie"))
                zombie.snapshot(10**6)

    def finish(self) -> None:
        for harness in self.subtasks:
            harness.end_input()
            harness.close()
        for zombie in self.zombies:
            zombie.close()
        self.check_all()

    def check_all(self) -> None:
        assert numbers_in(self.dsn) == list(range(self.next))


STORY: list[tuple[str, Any]] = [
    ("write", 3), ("checkpoint", "complete"), ("write", 3), ("checkpoint", "unheard"), ("write", 2),
    ("checkpoint", "aborted"), ("write", 2), ("checkpoint", "complete"),
]  # fmt: skip


@pytest.mark.spec("H24")
@pytest.mark.parametrize("fault", ["before", "after", "lost", "cut"])
def test_a_kill_or_a_lost_connection_at_any_transaction_leaves_each_row_once(server: str, fault: str) -> None:
    at, was_hit = 0, True
    while was_hit:
        faults = Faults()
        execute(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
        with faults.installed():
            model = Model(server, 2)
            faults.arm(fault, at)
            is_killed = False
            try:
                for step, argument in STORY:
                    getattr(model, step)(argument)
            except Killed:
                is_killed = True
            was_hit, faults.at = faults.done > faults.at, -1
            if is_killed:
                model.start(1 + at % 3)
            model.check()
            model.haunt()
            model.write(12 - model.next)
            model.last = (12, model.last[1])
            model.finish()
        at += 1
    assert at > 10


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_kill_while_the_restore_commits_is_made_good_by_the_next_one(server: str, fault: str) -> None:
    for at in range(12):
        faults = Faults()
        execute(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
        with faults.installed():
            model = Model(server, 3)
            for step, argument in [*STORY[:-1], ("checkpoint", "unheard"), ("write", 2)]:
                getattr(model, step)(argument)
            faults.arm(fault, at)
            with suppress(Killed):
                model.start(2)
            faults.at = -1
            model.check()
            model.start(1 + at % 4)
            model.write(14 - model.next)
            model.finish()


histories = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(1, 6)),
        st.tuples(st.just("checkpoint"), st.sampled_from(["complete", "unheard", "aborted"])),
        st.tuples(st.just("start"), st.integers(1, 3)),
        st.tuples(st.just("fault"), st.tuples(st.sampled_from(["before", "after", "lost", "cut"]), st.integers(0, 6))),
    ),
    max_size=12,
)


@pytest.mark.spec("H24")
@pytest.mark.parametrize("keys", [(), pytest.param(("n",), marks=pytest.mark.soak)])
@settings(max_examples=25)
@given(parallelism=st.integers(1, 3), history=histories)
def test_whatever_happens_each_row_is_written_once(
    server: str, keys: tuple[str, ...], parallelism: int, history: list[tuple[str, Any]]
) -> None:
    faults = Faults()
    execute(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int UNIQUE, word text)")
    with faults.installed():
        model = Model(server, parallelism, keys)
        for step, argument in history:
            try:
                if step == "fault":
                    faults.arm(*argument)
                else:
                    getattr(model, step)(argument)
            except Killed:
                faults.at = -1
                model.start(parallelism)
            model.check()
            model.haunt()
        faults.at = -1
        model.finish()
