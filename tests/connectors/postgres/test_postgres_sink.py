"""Records into a table of a real PostgreSQL server, each once, and what does not fit there."""

from __future__ import annotations

import doctest
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rayflink.common import Row
from rayflink.common.records.batches import RowBatch
from rayflink.connectors.postgres import postgres_moving, postgres_writing
from rayflink.connectors.postgres.postgres_session import Session
from rayflink.connectors.postgres.postgres_sink import PostgresError, PostgresSink
from rayflink.connectors.postgres.postgres_staged import discard_staged_rows, staged_rows
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.operators.base import UserCodeError
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import Place, rescaled_snapshots
from tests.connectors.postgres.postgres_table import ask, dsn, execute, numbers_in, server, started, url_of

pytestmark = pytest.mark.slow
__all__ = ["dsn", "server"]
PAGE = Path(__file__).parents[3] / "docs" / "postgres.md"


@pytest.mark.spec("H24")
def test_rows_are_seen_when_their_checkpoint_is_complete_and_each_once(dsn: str) -> None:
    harness = started(PostgresSink(dsn, "t"))
    harness.process_batch(RowBatch([(1, "a"), (2, "b")]))
    taken = harness.snapshot(1)
    harness.process((3, "lost"))
    assert numbers_in(dsn) == [] and [staged.rows for staged in staged_rows(dsn)] == [2]
    harness.notify_checkpoint_complete(1)
    assert ask(dsn, "SELECT * FROM t") == [(1, "a"), (2, "b")]
    restored = harness.restore(lambda: SinkOperator(PostgresSink(dsn, "t")), taken)
    counted = restored.metrics.snapshot()
    assert [count for name, count in counted.items() if name.endswith("alreadyCommittedCommittables")] == [1]
    restored.process((3, "c"))
    restored.end_input()
    restored.close()
    assert ask(dsn, "SELECT * FROM t") == [(1, "a"), (2, "b"), (3, "c")]
    assert staged_rows(dsn) == []


def test_records_of_any_form_become_rows_of_a_job(dsn: str) -> None:
    columns = "n int CHECK (n >= 0), tags text[], about jsonb, twice int GENERATED ALWAYS AS (n * 2) STORED"
    execute(dsn, f"CREATE TABLE things (id serial PRIMARY KEY, {columns})")
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 2})
    sink = partial(PostgresSink, dsn, "public.things")
    wanted = ["n", "tags", "about"]
    env.from_collection([Row(about={"a": [1]}, tags=["x"], n=1)]).sink_to(sink(wanted))
    env.from_collection([{"n": 2, "tags": [], "about": None}]).sink_to(sink(wanted))
    env.from_collection([(3, None, {})]).sink_to(sink(wanted))
    env.from_collection([4]).sink_to(sink(["n"]))
    env.from_collection(["5"]).sink_to(sink(["n"], values=lambda text: [int(text)]))
    env.execute()
    found = ask(dsn, "SELECT n, tags, about, twice FROM things ORDER BY n")
    assert found[:3] == [(1, ["x"], {"a": [1]}, 2), (2, [], None, 4), (3, None, {}, 6)]
    assert found[3:] == [(4, None, None, 8), (5, None, None, 10)]


def test_rows_with_keys_replace_each_other_in_order(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX ON t (word)")
    for exactly_once in (True, False):
        with started(PostgresSink(dsn, "t", keys=["word"], exactly_once=exactly_once)) as harness:
            harness.process_batch(RowBatch([(1, "a"), (2, "b"), (3, "a")]))
            harness.snapshot(1)
            harness.process_batch(RowBatch([(4, "b")]))
            harness.end_input()
        assert ask(dsn, "SELECT word, n FROM t ORDER BY word") == [("a", 3), ("b", 4)]
        execute(dsn, "TRUNCATE t")
    execute(dsn, "CREATE TABLE words (word text PRIMARY KEY)")
    with started(PostgresSink(dsn, "words", keys=["word"])) as harness:
        harness.process_batch(RowBatch(["a", "a"]))
        harness.end_input()
    assert ask(dsn, "SELECT * FROM words") == [("a",)]


def test_an_index_that_covers_more_than_its_keys_is_one_on_the_keys(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX ON t (word) INCLUDE (n)")
    with started(PostgresSink(dsn, "t", keys=["word"])) as harness:
        harness.process_batch(RowBatch([(1, "a"), (2, "a")]))
        harness.end_input()
    assert numbers_in(dsn) == [2]


def test_a_row_without_a_key_is_refused_for_it_would_replace_none(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX ON t (word)")
    for exactly_once in (True, False):
        harness = started(PostgresSink(dsn, "t", keys=["word"], exactly_once=exactly_once))
        with pytest.raises(UserCodeError, match=r"\(1, None\): PostgresError: key 'word' is NULL, which equals"):
            harness.process((1, None))
        harness.close()


def test_restored_rows_with_keys_replace_each_other_in_order_whoever_moves_them(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX ON t (word)")
    sink = PostgresSink(dsn, "t", keys=["word"])
    harness = started(sink)
    for number in range(4):
        harness.process((number, "a"))
        taken = harness.snapshot(number)
    harness.close()
    dealt = rescaled_snapshots([taken], 3)
    for subtask in (2, 1, 0):  # the newest is moved first
        started(sink, [dealt[subtask]], Place(subtask, 3)).close()
    assert ask(dsn, "SELECT n, word FROM t") == [(3, "a")]


def test_without_exactly_once_rows_are_seen_at_each_checkpoint_and_may_be_repeated(dsn: str) -> None:
    harness = started(PostgresSink(dsn, "t", exactly_once=False))
    harness.process((1, "a"))
    taken = harness.snapshot(1)
    harness.process((2, "b"))
    harness.snapshot(2)
    assert numbers_in(dsn) == [1, 2]
    restored = harness.restore(lambda: SinkOperator(PostgresSink(dsn, "t", exactly_once=False)), taken)
    restored.process((2, "b"))
    restored.end_input()
    restored.close()
    assert numbers_in(dsn) == [1, 2, 2]


def test_without_exactly_once_rows_of_a_slow_stream_are_seen_after_a_second(dsn: str) -> None:
    with started(PostgresSink(dsn, "t", exactly_once=False)) as harness:
        harness.process((1, "a"))
        harness.set_processing_time(999)
        harness.process((2, "b"))
        assert numbers_in(dsn) == []
        harness.set_processing_time(1_000)
        assert numbers_in(dsn) == [1, 2] and harness.operators[0].next_processing_time() is None
        harness.process((3, "c"))
        harness.set_processing_time(2_000)
        assert numbers_in(dsn) == [1, 2, 3]


def test_many_rows_are_staged_as_they_come_and_moved_in_several_transactions(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writing, "BATCH_ROWS", 4)
    monkeypatch.setattr(postgres_writing, "CHUNK_ROWS", 10)
    with started(PostgresSink(dsn, "t")) as harness:
        harness.process_batch(RowBatch([(n, "") for n in range(30)]))
        assert [staged.rows for staged in staged_rows(dsn)] == [12, 12, 4]
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)
    assert numbers_in(dsn) == list(range(30))


# what does not fit


def _opening(sink: PostgresSink) -> UserCodeError:
    with pytest.raises(UserCodeError) as failure:
        started(sink)
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
    assert no_index + ' ON "t" ("word")' in str(_opening(PostgresSink(dsn, "t", keys=["word"])))
    execute(dsn, "ALTER TABLE t ADD UNIQUE (word) DEFERRABLE")
    assert no_index in str(_opening(PostgresSink(dsn, "t", keys=["word"])))
    assert "key 'word' is not among the columns n" in str(_opening(PostgresSink(dsn, "t", ["n"], keys=["word"])))


def test_without_the_right_to_make_tables_the_remedy_is_told(dsn: str) -> None:
    execute(dsn, "DROP ROLE IF EXISTS poor", "CREATE ROLE poor LOGIN", "GRANT USAGE ON SCHEMA public TO poor",
        "GRANT INSERT, SELECT ON t TO poor", "CREATE SCHEMA mine AUTHORIZATION poor")  # fmt: skip
    poor = dsn.replace("user=postgres", "user=poor")
    try:
        remedy = "grant CREATE on schema 'public', or give with_staging_schema() another"
        assert remedy in str(_opening(PostgresSink(poor, "t")))
        with started(PostgresSink(poor, "t").with_staging_schema("mine")) as harness:
            harness.process((1, "a"))
            harness.end_input()
        assert numbers_in(dsn) == [1]
    finally:
        execute(dsn, "DROP SCHEMA mine CASCADE", "DROP OWNED BY poor", "DROP ROLE poor")


def test_rows_are_staged_while_older_ones_are_moved(dsn: str) -> None:
    moved = threading.Event()
    with started(PostgresSink(dsn, "t"), place=Place(wake=moved.set)) as harness, psycopg.connect(dsn) as reader:
        reader.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        harness.process((1, "a"))
        harness.snapshot(1)
        harness.notify_checkpoint_complete(1)  # the move of the first row waits for the lock
        harness.process((2, "b"))
        harness.snapshot(2)
        assert not moved.is_set()
        reader.rollback()
        assert moved.wait(30)
        harness.end_input()
    assert numbers_in(dsn) == [1, 2]


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
    execute(dsn, "ALTER TABLE t ALTER n SET NOT NULL, ADD CHECK (n >= 0)")
    harness = started(PostgresSink(dsn, "t", exactly_once=exactly_once))
    with pytest.raises(UserCodeError, match=told) as failure:
        harness.process_batch(RowBatch([(7, "fits"), record, (8, "fits")]))
        harness.snapshot(1)
    assert failure.value.record == repr(tuple(record) if isinstance(record, tuple) else record)
    harness.close()
    assert numbers_in(dsn) == []


def test_a_row_that_a_function_of_the_table_refuses_is_named(dsn: str) -> None:
    body = "LANGUAGE plpgsql AS $$ BEGIN\n\n\n\n IF n = 1 THEN RAISE EXCEPTION 'no ones'; END IF; RETURN true; END $$"
    execute(dsn, f"CREATE FUNCTION fits(n int) RETURNS bool {body}", "ALTER TABLE t ADD CHECK (fits(n))")
    for exactly_once in (True, False):
        harness = started(PostgresSink(dsn, "t", exactly_once=exactly_once))
        with pytest.raises(UserCodeError, match="table 'public.t' refuses the row: no ones") as failure:
            harness.process_batch(RowBatch([(0, ""), (1, "bad"), (2, "")]))
            harness.snapshot(1)
        harness.close()
        assert failure.value.record == "(1, 'bad')"


def test_rows_are_staged_by_the_checks_that_the_table_has_now(dsn: str) -> None:
    execute(dsn, "ALTER TABLE t ALTER n SET NOT NULL, ADD CONSTRAINT small CHECK (n < 10)")
    harness = started(PostgresSink(dsn, "t"))
    harness.process((1, "before"))
    taken = harness.snapshot(1)
    harness.close()
    execute(dsn, "ALTER TABLE t ALTER n DROP NOT NULL, DROP CONSTRAINT small")
    with started(PostgresSink(dsn, "t"), [taken]) as harness:
        harness.process_batch(RowBatch([(None, "none"), (10, "ten")]))
        harness.end_input()
    assert ask(dsn, "SELECT n, word FROM t ORDER BY n") == [(1, "before"), (10, "ten"), (None, "none")]


def test_rows_the_table_refuses_fail_the_task_and_are_moved_when_there_is_room(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX once ON t (n)", "INSERT INTO t VALUES (1, 'there')")
    harness = started(PostgresSink(dsn, "t"))
    harness.process((1, "new"))
    taken = harness.snapshot(1)
    told = r"1 rows for table 'public.t' .*: 1 rows cannot be moved to table 'public.t': duplicate key .*give keys="
    with pytest.raises(UserCodeError, match=told):
        harness.notify_checkpoint_complete(1)
    harness.close()
    execute(dsn, "DELETE FROM t")
    started(PostgresSink(dsn, "t"), [taken]).close()
    assert ask(dsn, "SELECT * FROM t") == [(1, "new")]


def test_a_table_that_is_gone_fails_the_task_and_gets_its_rows_when_it_is_back(dsn: str) -> None:
    harness = started(PostgresSink(dsn, "t"))
    harness.process((1, "a"))
    taken = harness.snapshot(1)
    execute(dsn, "ALTER TABLE t RENAME TO gone")
    with pytest.raises(UserCodeError, match=r"relation .* does not exist.*; make the table as it was when they"):
        harness.notify_checkpoint_complete(1)
    harness.close()
    execute(dsn, "ALTER TABLE gone RENAME TO t")
    started(PostgresSink(dsn, "t"), [taken]).close()
    assert numbers_in(dsn) == [1]


def test_staged_rows_that_somebody_deleted_are_an_error_and_not_forgotten(dsn: str) -> None:
    for damage in ("DELETE FROM {staging}", "DELETE FROM rayflink_ledger"):
        harness = started(PostgresSink(dsn, "t"))
        harness.process((1, "a"))
        harness.snapshot(1)
        staging = _staging(dsn)
        execute(dsn, damage.format(staging=staging))
        with pytest.raises(UserCodeError, match=r"0 rows of chunk .*put its rows back|are not in the ledger 'public"):
            harness.notify_checkpoint_complete(1)
        harness.close()
        execute(dsn, "DELETE FROM rayflink_ledger", f"DELETE FROM {staging}")


# what is left by the dead


def test_what_a_dead_attempt_staged_later_is_deleted_and_it_cannot_stage_more(dsn: str) -> None:
    sink = PostgresSink(dsn, "t")
    dead = started(sink)
    dead.process((1, "a"))
    taken = dead.snapshot(1)
    dead.process((2, "lost"))
    dead.snapshot(2)
    dead.process((3, "lost"))
    dead.operators[0]._flush(False)  # type: ignore[attr-defined]
    dead.process((4, "late"))
    assert [staged.rows for staged in staged_rows(dsn)] == [1, 1, 1]
    alive = started(PostgresSink(dsn, "t"), [taken], attempt=1)
    assert staged_rows(dsn) == [] and numbers_in(dsn) == [1]
    with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows of subtask 0; this one was"):
        dead.snapshot(4)
    assert staged_rows(dsn) == []
    alive.process((2, "b"))
    alive.end_input()
    alive.close()
    dead.close()
    assert numbers_in(dsn) == [1, 2]


def test_an_attempt_that_opens_when_a_later_one_has_is_refused_and_deletes_nothing(dsn: str) -> None:
    taken = started(PostgresSink(dsn, "t")).snapshot(1)
    alive = started(PostgresSink(dsn, "t"), [taken], attempt=2)
    alive.process((1, "a"))
    alive.snapshot(2)
    with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows of subtask 0"):
        started(PostgresSink(dsn, "t"), [taken], attempt=1)
    alive.notify_checkpoint_complete(2)
    alive.close()
    assert numbers_in(dsn) == [1]


def test_what_a_zombie_of_a_subtask_that_is_no_more_would_stage_is_refused_too(dsn: str) -> None:
    execute(dsn, "CREATE UNIQUE INDEX ON t (n)")
    zombies = [started(PostgresSink(dsn, "t", keys=["n"]), place=Place(subtask, 2)) for subtask in (0, 1)]
    taken = rescaled_snapshots([zombie.snapshot(1) for zombie in zombies], 1)
    alive = started(PostgresSink(dsn, "t", keys=["n"]), taken, attempt=1)
    for zombie in zombies:
        zombie.process((10**6, "zombie"))
        with pytest.raises(UserCodeError, match="a later attempt of the job stages the rows"):
            zombie.snapshot(2)
        zombie.close()
    for number in range(2):
        alive.process((number, ""))
        taken = [alive.snapshot(number + 2)]
    started(PostgresSink(dsn, "t", keys=["n"]), taken, attempt=2).close()  # moves all that was staged before, in order
    alive.close()
    assert numbers_in(dsn) == [0, 1]


def test_a_zombie_in_the_middle_of_a_chunk_is_told_that_it_is_one(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_writing, "BATCH_ROWS", 1)
    dead = started(PostgresSink(dsn, "t"))
    taken = dead.snapshot(1)
    dead.process((1, "a"))
    started(PostgresSink(dsn, "t"), [taken]).close()
    with pytest.raises(UserCodeError, match="is no longer in the ledger; a newer attempt of the job has taken over"):
        dead.process((2, "b"))
    dead.close()
    assert ask(dsn, f"SELECT count(*) FROM {_staging(dsn)}") == [(0,)]


def _staging(dsn: str) -> str:
    ((name,),) = ask(dsn, "SELECT tablename FROM pg_tables WHERE tablename LIKE 'rayflink_staged_%'")
    return str(name)


def test_rows_that_wait_over_two_restores_are_not_taken_for_leftovers(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(cursor: Any, chunk: Any) -> None:
        raise psycopg.errors.LockNotAvailable("busy")

    moved = postgres_moving._moved
    first = started(PostgresSink(dsn, "t"))
    for number in range(3):
        first.process((number, ""))
        taken = first.snapshot(number)
    first.close()
    monkeypatch.setattr(postgres_moving, "_moved", busy)
    second = started(PostgresSink(dsn, "t"), [taken])
    second.process((3, ""))
    taken = second.snapshot(3)
    second.close()
    dealt = rescaled_snapshots([taken], 2)
    third = [started(PostgresSink(dsn, "t"), [dealt[subtask]], Place(subtask, 2)) for subtask in (0, 1)]
    assert len(staged_rows(dsn)) == 4
    monkeypatch.setattr(postgres_moving, "_moved", moved)
    for harness in third:
        harness.end_input()
        harness.close()
    assert numbers_in(dsn) == [0, 1, 2, 3]


def test_staged_rows_of_a_job_that_is_gone_can_be_listed_and_discarded(dsn: str) -> None:
    assert staged_rows(dsn) == [] and discard_staged_rows(dsn, "f" * 32) == 0
    harness = started(PostgresSink(dsn, "t"))
    harness.process_batch(RowBatch([(1, "a"), (2, "b")]))
    harness.snapshot(1)
    harness.close()
    (staged,) = staged_rows(dsn)
    assert (staged.target, staged.rows, staged.subtask) == ("public.t", 2, 0)
    assert discard_staged_rows(dsn, "f" * 32) == 0 and discard_staged_rows(dsn, staged.job_id) == 2
    assert staged_rows(dsn) == [] and ask(dsn, f"SELECT count(*) FROM {_staging(dsn)}") == [(0,)]


def test_the_ledger_forgets_what_was_committed_long_ago(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_moving, "_PRUNED_EVERY", 2)
    with started(PostgresSink(dsn, "t")) as harness:
        for number in range(3):
            harness.process((number, ""))
            harness.snapshot(number)
            harness.notify_checkpoint_complete(number)
            execute(dsn, "UPDATE rayflink_ledger SET committed_at = now() - interval '2 days' WHERE number < 2")
    assert ask(dsn, "SELECT number FROM rayflink_ledger WHERE staging <> ''") == [(2,)]


def test_a_connection_that_was_lost_is_opened_again_and_counted(dsn: str) -> None:
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = "
    with started(PostgresSink(dsn, "t")) as harness:
        for number in (1, 2):
            harness.process((number, "a"))
            harness.snapshot(number)
            harness.notify_checkpoint_complete(number)
            ask(dsn, end + "'client backend'")
        assert numbers_in(dsn) == [1, 2]
        assert [n for name, n in harness.metrics.snapshot().items() if name.endswith("numReconnects")] == [2]


def test_while_the_server_is_away_commits_are_tried_again_between_other_work(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: Callable[[Session], Any] = Session._connected

    def away(session: Session) -> Any:
        raise psycopg.OperationalError("the server is away")

    with started(PostgresSink(dsn, "t")) as harness:
        harness.process((1, "a"))
        harness.snapshot(1)
        monkeypatch.setattr(Session, "_connected", away)
        harness.notify_checkpoint_complete(1)
        assert harness.operators[0].next_upkeep_ms() == 100
        monkeypatch.setattr(Session, "_connected", connected)
        assert numbers_in(dsn) == []
        harness.set_processing_time(100)
        assert numbers_in(dsn) == [1]


def test_a_move_waits_for_a_lock_only_so_long_and_is_tried_again(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_moving, "LOCK_S", 1)
    with started(PostgresSink(dsn, "t")) as harness, psycopg.connect(dsn) as other:
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
        assert numbers_in(dsn) == [1]


def test_an_attempt_waits_only_so_long_for_one_that_hangs_in_a_transaction(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_writing, "TAKE_OVER_S", 1)
    dead = started(PostgresSink(dsn, "t"))
    taken = dead.snapshot(1)
    with psycopg.connect(dsn) as other:
        other.execute("SELECT * FROM rayflink_ledger FOR UPDATE")  # as one whose node was lost as it staged
        free = threading.Timer(30, other.close)  # where nothing ends the wait
        free.start()
        with pytest.raises(UserCodeError, match="failed in open: LockNotAvailable"):
            started(PostgresSink(dsn, "t"), [taken], attempt=1)
        free.cancel()
    started(PostgresSink(dsn, "t"), [taken], attempt=1).close()
    dead.close()


def test_the_server_is_asked_to_notice_a_node_that_is_lost(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    execute_there = psycopg.Connection.execute

    def execute(self: Any, query: Any, given: Any = None, **more: Any) -> Any:
        cursor = execute_there(self, query, given, **more)
        asked.append((given, cursor.fetchall()))
        return cursor

    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    session = Session(dsn)
    session.run(lambda cursor: None)
    session.close()
    (((names, _), set_there),) = asked
    assert "tcp_keepalives_idle" in names and len(set_there) == len(names) == 4


def test_a_server_that_is_gone_without_a_word_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def connect(**given: Any) -> Any:
        seen.append(given)
        raise psycopg.OperationalError("the server is away")

    monkeypatch.setattr(psycopg, "connect", connect)
    for given in ("host=db", "postgresql://me@db?connect_timeout=3&keepalives_idle=60"):
        with pytest.raises(PostgresError):
            Session(given).run(lambda cursor: None)
    asked = [(one["connect_timeout"], one["keepalives_idle"], one["tcp_user_timeout"]) for one in seen]
    assert asked == [(10, 10, 30_000), ("3", "60", 30_000)]


def test_the_examples_of_the_page_run(dsn: str) -> None:
    names = {"dsn": dsn, "url": url_of(dsn)}
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS, globs=names)
    assert found.attempted >= 10
    assert found.failed == 0
