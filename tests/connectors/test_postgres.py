"""Records into PostgreSQL, each once: against a real server, killed at every transaction, on changing parallelism."""

from __future__ import annotations

import doctest
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rayflink.common import Row
from rayflink.common.batches import RowBatch
from rayflink.connectors import postgres_moving, postgres_writing
from rayflink.connectors.postgres import PostgresError, PostgresSink
from rayflink.connectors.postgres_session import Session
from rayflink.connectors.postgres_staged import discard_staged_rows, staged_rows
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness, Place, rescaled_snapshots
from rayflink.testing.harness import Snapshots
from tests.connectors.postgres_server import postgres_server

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[2] / "docs" / "postgres.md"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as dsn:
        yield dsn


@pytest.fixture
def dsn(server: str) -> Iterator[str]:
    """A server with an empty table `t (n int, word text)`."""
    _do(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
    yield server
    assert _ask(server, "SELECT count(*) FROM pg_prepared_xacts") == [(0,)]


def _do(dsn: str, *statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def _ask(dsn: str, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(dsn) as connection:
        return list(connection.execute(query).fetchall())


def _numbers(dsn: str) -> list[int]:
    return [n for (n,) in _ask(dsn, "SELECT n FROM t ORDER BY n")]


def _harness(
    sink: PostgresSink, restore: Sequence[Snapshots] = (), place: Place | None = None, attempt: int = 0
) -> OperatorHarness:
    class Numbered(SinkOperator):
        def setup(self, ctx: Any) -> None:
            ctx.attempt = attempt
            super().setup(ctx)

    return OperatorHarness(lambda: Numbered(sink), restore=restore, place=place)


@pytest.mark.spec("H24")
def test_rows_are_seen_when_their_checkpoint_is_complete_and_each_once(dsn: str) -> None:
    harness = _harness(PostgresSink(dsn, "t"))
    harness.process_batch(RowBatch([(1, "a"), (2, "b")]))
    taken = harness.snapshot(1)
    harness.process((3, "lost"))
    assert _numbers(dsn) == [] and [staged.rows for staged in staged_rows(dsn)] == [2]
    harness.notify_checkpoint_complete(1)
    assert _ask(dsn, "SELECT * FROM t") == [(1, "a"), (2, "b")]
    restored = harness.restore(lambda: SinkOperator(PostgresSink(dsn, "t")), taken)
    counted = restored.metrics.snapshot()
    assert [count for name, count in counted.items() if name.endswith("alreadyCommittedCommittables")] == [1]
    restored.process((3, "c"))
    restored.end_input()
    restored.close()
    assert _ask(dsn, "SELECT * FROM t") == [(1, "a"), (2, "b"), (3, "c")]
    assert staged_rows(dsn) == []


def test_records_of_any_form_become_rows_of_a_job(dsn: str) -> None:
    _do(dsn, "CREATE TABLE things (id serial PRIMARY KEY, n int CHECK (n >= 0), tags text[], about jsonb, twice int "
             "GENERATED ALWAYS AS (n * 2) STORED)")  # fmt: skip
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    sink = partial(PostgresSink, dsn, "public.things")
    columns = ["n", "tags", "about"]
    env.from_collection([Row(about={"a": [1]}, tags=["x"], n=1)]).sink_to(sink(columns))
    env.from_collection([{"n": 2, "tags": [], "about": None}]).sink_to(sink(columns))
    env.from_collection([(3, None, {})]).sink_to(sink(columns))
    env.from_collection([4]).sink_to(sink(["n"]))
    env.from_collection(["5"]).sink_to(sink(["n"], values=lambda text: [int(text)]))
    env.execute()
    found = _ask(dsn, "SELECT n, tags, about, twice FROM things ORDER BY n")
    assert found[:3] == [(1, ["x"], {"a": [1]}, 2), (2, [], None, 4), (3, None, {}, 6)]
    assert found[3:] == [(4, None, None, 8), (5, None, None, 10)]


def test_rows_with_keys_replace_each_other_in_order(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX ON t (word)")
    for exactly_once in (True, False):
        with _harness(PostgresSink(dsn, "t", keys=["word"], exactly_once=exactly_once)) as harness:
            harness.process_batch(RowBatch([(1, "a"), (2, "b"), (3, "a")]))
            harness.snapshot(1)
            harness.process_batch(RowBatch([(4, "b")]))
            harness.end_input()
        assert _ask(dsn, "SELECT word, n FROM t ORDER BY word") == [("a", 3), ("b", 4)]
        _do(dsn, "TRUNCATE t")
    _do(dsn, "CREATE TABLE words (word text PRIMARY KEY)")
    with _harness(PostgresSink(dsn, "words", keys=["word"])) as harness:
        harness.process_batch(RowBatch(["a", "a"]))
        harness.end_input()
    assert _ask(dsn, "SELECT * FROM words") == [("a",)]


def test_an_index_that_covers_more_than_its_keys_is_one_on_the_keys(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX ON t (word) INCLUDE (n)")
    with _harness(PostgresSink(dsn, "t", keys=["word"])) as harness:
        harness.process_batch(RowBatch([(1, "a"), (2, "a")]))
        harness.end_input()
    assert _numbers(dsn) == [2]


def test_a_row_without_a_key_is_refused_for_it_would_replace_none(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX ON t (word)")
    for exactly_once in (True, False):
        harness = _harness(PostgresSink(dsn, "t", keys=["word"], exactly_once=exactly_once))
        with pytest.raises(UserCodeError, match=r"\(1, None\): PostgresError: key 'word' is NULL, which equals"):
            harness.process((1, None))
        harness.close()


def test_restored_rows_with_keys_replace_each_other_in_order_whoever_moves_them(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX ON t (word)")
    sink = PostgresSink(dsn, "t", keys=["word"])
    harness = _harness(sink)
    for number in range(4):
        harness.process((number, "a"))
        taken = harness.snapshot(number)
    harness.close()
    dealt = rescaled_snapshots([taken], 3)
    for subtask in (2, 1, 0):  # the newest is moved first
        _harness(sink, [dealt[subtask]], Place(subtask, 3)).close()
    assert _ask(dsn, "SELECT n, word FROM t") == [(3, "a")]


def test_without_exactly_once_rows_are_seen_at_each_checkpoint_and_may_be_repeated(dsn: str) -> None:
    harness = _harness(PostgresSink(dsn, "t", exactly_once=False))
    harness.process((1, "a"))
    taken = harness.snapshot(1)
    harness.process((2, "b"))
    harness.snapshot(2)
    assert _numbers(dsn) == [1, 2]
    restored = harness.restore(lambda: SinkOperator(PostgresSink(dsn, "t", exactly_once=False)), taken)
    restored.process((2, "b"))
    restored.end_input()
    restored.close()
    assert _numbers(dsn) == [1, 2, 2]


def test_without_exactly_once_rows_of_a_slow_stream_are_seen_after_a_second(dsn: str) -> None:
    with _harness(PostgresSink(dsn, "t", exactly_once=False)) as harness:
        harness.process((1, "a"))
        harness.set_processing_time(999)
        harness.process((2, "b"))
        assert _numbers(dsn) == []
        harness.set_processing_time(1_000)
        assert _numbers(dsn) == [1, 2] and harness.operators[0].next_processing_time() is None
        harness.process((3, "c"))
        harness.set_processing_time(2_000)
        assert _numbers(dsn) == [1, 2, 3]


def test_many_rows_are_staged_as_they_come_and_moved_in_several_transactions(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writing, "BATCH_ROWS", 4)
    monkeypatch.setattr(postgres_writing, "CHUNK_ROWS", 10)
    with _harness(PostgresSink(dsn, "t")) as harness:
        harness.process_batch(RowBatch([(n, "") for n in range(30)]))
        assert [staged.rows for staged in staged_rows(dsn)] == [12, 12, 4]
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    assert _numbers(dsn) == list(range(30))


# what does not fit


def _opening(sink: PostgresSink) -> UserCodeError:
    with pytest.raises(UserCodeError) as failure:
        _harness(sink)
    return failure.value


def test_what_is_wrong_with_the_sink_is_told_with_the_remedy_before_the_first_record(dsn: str) -> None:
    with pytest.raises(PostgresError, match="no connection string of PostgreSQL: .*give 'postgresql://user:password@"):
        PostgresSink("not a dsn", "t")
    with pytest.raises(TypeError, match=r"keys is a list of names, found 'n'; write \['n'\]"):
        PostgresSink(dsn, "t", keys="n")
    lost = PostgresSink("host=/nowhere dbname=x user=me password=secret", "t")
    told = str(_opening(lost))
    assert "no connection to PostgreSQL at host='/nowhere' dbname='x' user='me'" in told and "secret" not in told
    assert "secret" not in repr(lost)
    assert "table 'x' is not there, found t; create it, or correct the name" in str(_opening(PostgresSink(dsn, "x")))
    missing = "column 'x' is not in table 't', which has n, word; correct columns="
    assert missing in str(_opening(PostgresSink(dsn, "t", ["n", "x"])))
    assert missing in str(_opening(PostgresSink(dsn, "t", keys=["x"])))
    no_index = "table 't' has no unique index on exactly (word) that is valid and not deferrable; CREATE UNIQUE INDEX"
    assert no_index + ' ON "t" (word)' in str(_opening(PostgresSink(dsn, "t", keys=["word"])))
    _do(dsn, "ALTER TABLE t ADD UNIQUE (word) DEFERRABLE")
    assert no_index in str(_opening(PostgresSink(dsn, "t", keys=["word"])))
    assert "key 'word' is not among the columns n" in str(_opening(PostgresSink(dsn, "t", ["n"], keys=["word"])))


def test_without_the_right_to_make_tables_the_remedy_is_told(dsn: str) -> None:
    _do(dsn, "DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN", "GRANT USAGE ON SCHEMA public TO poor",
        "GRANT INSERT, SELECT ON t TO poor", "CREATE SCHEMA mine AUTHORIZATION poor")  # fmt: skip
    poor = dsn.replace("user=postgres", "user=poor")
    try:
        remedy = "grant CREATE on schema 'public', or give with_staging_schema() another"
        assert remedy in str(_opening(PostgresSink(poor, "t")))
        with _harness(PostgresSink(poor, "t").with_staging_schema("mine")) as harness:
            harness.process((1, "a"))
            harness.end_input()
        assert _numbers(dsn) == [1]
    finally:
        _do(dsn, "DROP SCHEMA mine CASCADE", "DROP OWNED BY poor", "DROP ROLE poor")


REFUSED = [
    ((1, "a", 2), "found 3 values, wanted 2 for columns n, word; give columns=, values= or a map"),
    ({"n": 1}, "KeyError: 'word'"),
    (("x", "a"), "column 'n' of table 'public.t' refuses the row: invalid input syntax for type integer: \"x\""),
    ((2**40, "a"), "column 'n' of table 'public.t' refuses the row: value \"1099511627776\" is out of range"),
    ((None, "a"), "table 'public.t' refuses the row: null value in column \"n\""),
    ((-1, "a"), "refuses the row: new row for relation .* violates check constraint"),
    ((1, "\0"), "table 'public.t' refuses the row: "),
    ((1, object()), "table 'public.t' refuses the row: cannot adapt type 'object'"),
]


@pytest.mark.parametrize("exactly_once", [True, False])
@pytest.mark.parametrize(("record", "told"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_a_row_that_does_not_fit_is_named_before_it_is_committed(
    dsn: str, record: Any, told: str, exactly_once: bool
) -> None:
    _do(dsn, "ALTER TABLE t ALTER n SET NOT NULL, ADD CHECK (n >= 0)")
    harness = _harness(PostgresSink(dsn, "t", exactly_once=exactly_once))
    with pytest.raises(UserCodeError, match=told) as failure:
        harness.process_batch(RowBatch([(7, "fits"), record, (8, "fits")]))
        harness.snapshot(1)
    assert failure.value.record == repr(tuple(record) if isinstance(record, tuple) else record)
    harness.close()
    assert _numbers(dsn) == []


def test_a_row_that_a_function_of_the_table_refuses_is_named(dsn: str) -> None:
    body = "LANGUAGE plpgsql AS $$ BEGIN\n\n\n\n IF n = 1 THEN RAISE EXCEPTION 'no ones'; END IF; RETURN true; END $$"
    _do(dsn, f"CREATE FUNCTION fits(n int) RETURNS bool {body}", "ALTER TABLE t ADD CHECK (fits(n))")
    for exactly_once in (True, False):
        harness = _harness(PostgresSink(dsn, "t", exactly_once=exactly_once))
        with pytest.raises(UserCodeError, match="table 'public.t' refuses the row: no ones") as failure:
            harness.process_batch(RowBatch([(0, ""), (1, "bad"), (2, "")]))
            harness.snapshot(1)
        harness.close()
        assert failure.value.record == "(1, 'bad')"


def test_rows_are_staged_by_the_checks_that_the_table_has_now(dsn: str) -> None:
    _do(dsn, "ALTER TABLE t ALTER n SET NOT NULL, ADD CONSTRAINT small CHECK (n < 10)")
    harness = _harness(PostgresSink(dsn, "t"))
    harness.process((1, "before"))
    taken = harness.snapshot(1)
    harness.close()
    _do(dsn, "ALTER TABLE t ALTER n DROP NOT NULL, DROP CONSTRAINT small")
    with _harness(PostgresSink(dsn, "t"), [taken]) as harness:
        harness.process_batch(RowBatch([(None, "none"), (10, "ten")]))
        harness.end_input()
    assert _ask(dsn, "SELECT n, word FROM t ORDER BY n") == [(1, "before"), (10, "ten"), (None, "none")]


def test_rows_the_table_refuses_when_they_are_moved_fail_the_task_and_are_moved_when_there_is_room(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX once ON t (n)", "INSERT INTO t VALUES (1, 'there')")
    harness = _harness(PostgresSink(dsn, "t"))
    harness.process((1, "new"))
    taken = harness.snapshot(1)
    with pytest.raises(UserCodeError, match=r"1 rows cannot be moved to table 'public.t': duplicate key .*give keys="):
        harness.notify_checkpoint_complete(1)
    harness.close()
    _do(dsn, "DELETE FROM t")
    _harness(PostgresSink(dsn, "t"), [taken]).close()
    assert _ask(dsn, "SELECT * FROM t") == [(1, "new")]


def test_staged_rows_that_somebody_deleted_are_an_error_and_not_forgotten(dsn: str) -> None:
    for damage in ("DELETE FROM {staging}", "DELETE FROM rayflink_ledger"):
        harness = _harness(PostgresSink(dsn, "t"))
        harness.process((1, "a"))
        harness.snapshot(1)
        staging = _staging(dsn)
        _do(dsn, damage.format(staging=staging))
        with pytest.raises(UserCodeError, match=r"0 rows of chunk .*put its rows back|are not in the ledger 'public"):
            harness.notify_checkpoint_complete(1)
        harness.close()
        _do(dsn, "DELETE FROM rayflink_ledger", f"DELETE FROM {staging}")


# what is left by the dead


def test_what_a_dead_attempt_staged_after_the_checkpoint_is_deleted_and_it_cannot_stage_more(dsn: str) -> None:
    sink = PostgresSink(dsn, "t")
    dead = _harness(sink)
    dead.process((1, "a"))
    taken = dead.snapshot(1)
    dead.process((2, "lost"))
    dead.snapshot(2)
    dead.process((3, "lost"))
    dead.operators[0]._flush(False)  # type: ignore[attr-defined]
    dead.process((4, "late"))
    assert [staged.rows for staged in staged_rows(dsn)] == [1, 1, 1]
    alive = _harness(PostgresSink(dsn, "t"), [taken], attempt=1)
    assert staged_rows(dsn) == [] and _numbers(dsn) == [1]
    with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows of subtask 0; this one was"):
        dead.snapshot(4)
    assert staged_rows(dsn) == []
    alive.process((2, "b"))
    alive.end_input()
    alive.close()
    dead.close()
    assert _numbers(dsn) == [1, 2]


def test_an_attempt_that_opens_when_a_later_one_has_is_refused_and_deletes_nothing(dsn: str) -> None:
    taken = _harness(PostgresSink(dsn, "t")).snapshot(1)
    alive = _harness(PostgresSink(dsn, "t"), [taken], attempt=2)
    alive.process((1, "a"))
    alive.snapshot(2)
    with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows of subtask 0"):
        _harness(PostgresSink(dsn, "t"), [taken], attempt=1)
    alive.notify_checkpoint_complete(2)
    alive.close()
    assert _numbers(dsn) == [1]


def test_what_a_zombie_of_a_subtask_that_is_no_more_would_stage_is_refused_too(dsn: str) -> None:
    _do(dsn, "CREATE UNIQUE INDEX ON t (n)")
    zombies = [_harness(PostgresSink(dsn, "t", keys=["n"]), place=Place(subtask, 2)) for subtask in (0, 1)]
    taken = rescaled_snapshots([zombie.snapshot(1) for zombie in zombies], 1)
    alive = _harness(PostgresSink(dsn, "t", keys=["n"]), taken, attempt=1)
    for zombie in zombies:
        zombie.process((10**6, "zombie"))
        with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows"):
            zombie.snapshot(2)
        zombie.close()
    for number in range(2):
        alive.process((number, ""))
        taken = [alive.snapshot(number + 2)]
    _harness(PostgresSink(dsn, "t", keys=["n"]), taken, attempt=2).close()  # moves all that was staged before, in order
    alive.close()
    assert _numbers(dsn) == [0, 1]


def test_a_zombie_in_the_middle_of_a_chunk_is_told_that_it_is_one(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writing, "BATCH_ROWS", 1)
    dead = _harness(PostgresSink(dsn, "t"))
    taken = dead.snapshot(1)
    dead.process((1, "a"))
    _harness(PostgresSink(dsn, "t"), [taken]).close()
    with pytest.raises(UserCodeError, match="is no longer in the ledger; a newer attempt of the job has taken over"):
        dead.process((2, "b"))
    dead.close()
    assert _ask(dsn, f"SELECT count(*) FROM {_staging(dsn)}") == [(0,)]


def _staging(dsn: str) -> str:
    ((name,),) = _ask(dsn, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'rayflink_staged_%'")
    return str(name)


def test_rows_that_wait_over_two_restores_are_not_taken_for_leftovers(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(cursor: Any, chunk: Any) -> None:
        raise psycopg.errors.LockNotAvailable("busy")

    moved = postgres_moving._moved
    first = _harness(PostgresSink(dsn, "t"))
    for number in range(3):
        first.process((number, ""))
        taken = first.snapshot(number)
    first.close()
    monkeypatch.setattr(postgres_moving, "_moved", busy)
    second = _harness(PostgresSink(dsn, "t"), [taken])
    second.process((3, ""))
    taken = second.snapshot(3)
    second.close()
    dealt = rescaled_snapshots([taken], 2)
    third = [_harness(PostgresSink(dsn, "t"), [dealt[subtask]], Place(subtask, 2)) for subtask in (0, 1)]
    assert len(staged_rows(dsn)) == 4
    monkeypatch.setattr(postgres_moving, "_moved", moved)
    for harness in third:
        harness.end_input()
        harness.close()
    assert _numbers(dsn) == [0, 1, 2, 3]


def test_staged_rows_of_a_job_that_is_gone_can_be_listed_and_discarded(dsn: str) -> None:
    assert staged_rows(dsn) == [] and discard_staged_rows(dsn, "f" * 32) == 0
    harness = _harness(PostgresSink(dsn, "t"))
    harness.process_batch(RowBatch([(1, "a"), (2, "b")]))
    harness.snapshot(1)
    harness.close()
    (staged,) = staged_rows(dsn)
    assert (staged.target, staged.rows, staged.subtask) == ("public.t", 2, 0)
    assert discard_staged_rows(dsn, "f" * 32) == 0 and discard_staged_rows(dsn, staged.job_id) == 2
    assert staged_rows(dsn) == [] and _ask(dsn, f"SELECT count(*) FROM {_staging(dsn)}") == [(0,)]


def test_the_ledger_forgets_what_was_committed_long_ago(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_moving, "_PRUNED_EVERY", 2)
    with _harness(PostgresSink(dsn, "t")) as harness:
        for number in range(3):
            harness.process((number, ""))
            harness.snapshot(number)
            harness.notify_checkpoint_complete(number)
            _do(dsn, "UPDATE rayflink_ledger SET committed_at = now() - interval '2 days' WHERE number < 2")
    assert _ask(dsn, "SELECT number FROM rayflink_ledger WHERE staging <> ''") == [(2,)]


# faults


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
        patch.setattr(time, "sleep", lambda seconds: None)
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
            self.subtasks.append(_harness(sink, [snapshots[subtask]], place, self.attempt))

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
        seen = _numbers(self.dsn)
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
        assert _numbers(self.dsn) == list(range(self.next))


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
        _do(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
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
        _do(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int, word text)")
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
@pytest.mark.parametrize("keys", [(), ("n",)])
@settings(max_examples=25)
@given(parallelism=st.integers(1, 3), history=histories)
def test_whatever_happens_each_row_is_written_once(
    server: str, keys: tuple[str, ...], parallelism: int, history: list[tuple[str, Any]]
) -> None:
    faults = Faults()
    _do(server, "DROP SCHEMA public CASCADE", "CREATE SCHEMA public", "CREATE TABLE t (n int UNIQUE, word text)")
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


def test_a_connection_that_was_lost_is_opened_again_and_counted(dsn: str) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = "
    with _harness(PostgresSink(dsn, "t")) as harness:
        harness.process((1, "a"))
        _ask(dsn, end + "'client backend'")
        harness.snapshot(1)
        _ask(dsn, end + "'client backend'")
        harness.notify_checkpoint_complete(1)
        assert _numbers(dsn) == [1]
        assert [n for name, n in harness.metrics.snapshot().items() if name.endswith("numReconnects")] == [2]


def test_while_the_server_is_away_commits_are_tried_again_between_other_work(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: Callable[[Session], Any] = Session._connected

    def away(session: Session) -> Any:
        raise psycopg.OperationalError("the server is away")

    with _harness(PostgresSink(dsn, "t")) as harness:
        harness.process((1, "a"))
        harness.snapshot(1)
        monkeypatch.setattr(Session, "_connected", away)
        harness.operators[0]._sink._held.close()  # type: ignore[attr-defined]
        harness.notify_checkpoint_complete(1)
        assert harness.operators[0].next_upkeep_ms() == 100
        monkeypatch.setattr(Session, "_connected", connected)
        assert _numbers(dsn) == []
        harness.set_processing_time(100)
        assert _numbers(dsn) == [1]


def test_a_move_waits_for_a_lock_only_so_long_and_is_tried_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_moving, "LOCK_S", 1)
    with _harness(PostgresSink(dsn, "t")) as harness, psycopg.connect(dsn) as other:
        harness.process((1, "a"))
        harness.snapshot(1)
        other.execute("LOCK TABLE t")
        free = threading.Timer(30, other.close)  # where nothing ends the wait
        free.start()
        harness.notify_checkpoint_complete(1)
        assert harness.operators[0].next_upkeep_ms() == 100, "it waited for the lock"
        free.cancel()
        other.rollback()
        harness.set_processing_time(100)
        assert _numbers(dsn) == [1]


def test_a_server_that_is_gone_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def connect(**given: Any) -> Any:
        seen.append(given)
        raise psycopg.OperationalError("the server is away")

    monkeypatch.setattr(psycopg, "connect", connect)
    for dsn in ("host=db", "postgresql://me@db?connect_timeout=3&keepalives_idle=60"):
        with pytest.raises(PostgresError):
            Session(dsn).run(lambda cursor: None)
    asked = [(one["connect_timeout"], one["keepalives_idle"], one["tcp_user_timeout"]) for one in seen]
    assert asked == [(10, 10, 30_000), ("3", "60", 30_000)]


def test_the_examples_of_the_page_run(dsn: str) -> None:
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS, globs={"dsn": dsn})
    assert found.attempted >= 10
    assert found.failed == 0
