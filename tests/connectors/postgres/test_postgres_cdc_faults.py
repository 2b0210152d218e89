"""Whatever fails between the server and a job that captures its changes is an error that says what to do, or heals."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator

import psycopg
import pytest

from benchmarks.servers.postgres_server import PostgresServer, running_server
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.snapshot_enumeration import LogSplit
from rayflink.connectors.postgres.postgres_chunks import PostgresTables
from rayflink.datastream.connectors.postgres_cdc import PostgresError, StartupOptions
from tests.connectors.postgres.change_jobs import (
    Writer,
    builder,
    collecting,
    derived,
    environment,
    eventually,
    table,
)
from tests.connectors.postgres.postgres_table import ask, execute
from tests.connectors.postgres.test_postgres_cdc import fill, is_ended, marker, running, server  # noqa: F401

pytestmark = pytest.mark.slow
RETRY = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "100",
         "restart-strategy.fixed-delay.delay": "100 ms"}  # fmt: skip


@pytest.fixture
def own() -> Iterator[PostgresServer]:
    """A server of its own, to be broken."""
    settings = {"wal_level": "logical", "max_slot_wal_keep_size": "1MB", "min_wal_size": "32MB", "max_wal_size": "32MB"}
    with running_server(**settings) as started:
        execute(started.dsn, "CREATE TABLE t (id int PRIMARY KEY, a text, n bigint)",
                "ALTER TABLE t REPLICA IDENTITY FULL")  # fmt: skip
        yield started


def test_a_server_that_crashes_and_comes_back_loses_and_repeats_nothing(own):
    execute(own.dsn, "ALTER SYSTEM SET max_slot_wal_keep_size = '-1'", "SELECT pg_reload_conf()")
    fill(own.dsn, 500)
    with collecting(environment(2, **RETRY), builder(own).split_size(50).build()) as job:
        for number in (signal.SIGQUIT, signal.SIGKILL, signal.SIGINT):
            before = len(job.records)
            writer = Writer(own.dsn, int(number), 600)
            job.wait(lambda records, before=before: len(records) > before + 200)
            writer.end()
            own.end(number)
            own.start()
        marker(own.dsn)
        records = job.wait(is_ended)
    assert derived(records) == table(own.dsn)


def test_a_connection_that_is_lost_is_opened_again_where_it_was(server):  # noqa: F811
    fill(server.dsn, 10)
    writer = Writer(server.dsn, 5, 50)
    with collecting(environment(), builder(server).build()) as job:
        for _ in range(4):
            before = len(job.records)
            job.wait(lambda records, before=before: len(records) > before + 100)
            execute(server.dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
        writer.end()
        marker(server.dsn)
        assert derived(job.wait(is_ended)) == table(server.dsn)


def test_a_large_transaction_is_resumed_in_its_middle(server):  # noqa: F811
    with collecting(environment(), builder(server).build()) as job:
        eventually(lambda: ask(server.dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(1,)])
        fill(server.dsn, 60_000)
        job.wait(lambda records: len(records) > 10_000)
        execute(server.dsn, "SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
        records = job.wait(lambda records: len(records) >= 60_000)
    assert len(records) == 60_000 and derived(records) == table(server.dsn)


def test_a_slot_whose_log_is_deleted_says_so(own):
    with collecting(environment(), builder(own).build()) as job:
        eventually(lambda: ask(own.dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(1,)])
    for _ in range(4):
        execute(own.dsn, "CREATE TABLE IF NOT EXISTS o (s text)", "INSERT INTO o SELECT repeat('x', 500) FROM "
                "generate_series(1, 20000)", "SELECT pg_switch_wal()", "CHECKPOINT")  # fmt: skip
    eventually(lambda: ask(own.dsn, "SELECT wal_status FROM pg_replication_slots") == [("lost",)])
    with collecting(environment(), builder(own).startup_options(StartupOptions.committed()).build()) as job:
        found = job.fails()
    assert "the server has deleted the log that replication slot 'slot' needs" in found
    assert "pg_drop_replication_slot('slot')" in found


def test_a_slot_that_is_dropped_ends_the_job_with_the_remedy(server):  # noqa: F811
    fill(server.dsn, 1)
    with collecting(environment(), builder(server).connect_max_retries(10).build()) as job:
        job.wait(len)

        def drop() -> bool:
            with psycopg.connect(server.dsn, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_replication")
                try:
                    connection.execute("SELECT pg_drop_replication_slot('slot')")
                except psycopg.errors.ObjectInUse:
                    return False
            return True

        eventually(drop)
        found = job.fails()
    assert "replication slot 'slot' is gone" in found and "start the job anew" in found


def checked(made: object) -> str:
    with pytest.raises(PostgresError) as raised:
        made.build().check()
    found = described(raised.value)
    assert "s3cret" not in found
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.table_list("public.nothing"), "no table matches 'public.nothing' in schema public; write"),
        (lambda made: made.schema_list("none").table_list(), "schema none has no tables"),
        (lambda made: made.split_key_column("a"), "the chunk key 'a' is no column of the primary key of public.t"),
        (lambda made: made.hostname("/nowhere"), "no connection to PostgreSQL at host='/nowhere'"),
        (lambda made: made.database("absent"), 'database "absent" does not exist'),
        (lambda made: made.username("guest"), "user 'guest' may not replicate; run ALTER ROLE"),
        (lambda made: made.username("stranger"), "user='stranger' may not read public.t; GRANT SELECT"),
    ],
)
def test_what_is_missing_is_found_before_the_job_starts(server, change: Callable, message: str):  # noqa: F811
    for name in ("guest", "stranger"):
        execute(server.dsn, f"DROP ROLE IF EXISTS {name}", f"CREATE ROLE {name} LOGIN")
    execute(server.dsn, "GRANT USAGE ON SCHEMA public TO stranger, guest", "GRANT SELECT ON t TO guest")
    try:
        assert message in checked(change(builder(server).password("s3cret")))
    finally:
        execute(server.dsn, "DROP OWNED BY guest, stranger", "DROP ROLE guest, stranger")


def test_replica_identities_that_do_not_do_are_found(server):  # noqa: F811
    execute(server.dsn, "ALTER TABLE t REPLICA IDENTITY NOTHING")
    assert "has the replica identity NOTHING" in checked(builder(server))
    execute(server.dsn, "ALTER TABLE t REPLICA IDENTITY DEFAULT", "ALTER TABLE t DROP CONSTRAINT t_pkey")
    assert "DEFAULT and no primary key" in checked(builder(server))


def test_a_wrong_password_is_not_shown(server):  # noqa: F811
    execute(server.dsn, "DROP ROLE IF EXISTS pw", "CREATE ROLE pw LOGIN REPLICATION PASSWORD 'right'")
    home = server.home / "data" / "pg_hba.conf"
    original = home.read_text()
    try:
        home.write_text("local all pw scram-sha-256\n" + original)
        execute(server.dsn, "SELECT pg_reload_conf()")
        rules = "SELECT count(*) FROM pg_hba_file_rules WHERE 'pw' = ANY (user_name)"
        eventually(lambda: ask(server.dsn, rules) == [(1,)])
        eventually(lambda: "password authentication failed" in _try(builder(server).username("pw").password("s3cret")))
        assert "s3cret" not in repr(builder(server).username("pw").password("s3cret").build())
    finally:
        home.write_text(original)
        execute(server.dsn, "SELECT pg_reload_conf()", "DROP ROLE pw")


def _try(made: object) -> str:
    try:
        made.build().check()
    except PostgresError as error:
        assert "s3cret" not in described(error)
        return described(error)
    return ""


def test_a_server_without_logical_decoding_is_refused():
    with running_server(wal_level="replica") as plain:
        execute(plain.dsn, "CREATE TABLE t (id int PRIMARY KEY)")
        found = checked(builder(plain))
        assert "wal_level = replica" in found and "set wal_level = logical" in found
        source = builder(plain).startup_options(StartupOptions.snapshot()).build()
        source.check()


def failing(server: PostgresServer, *statements: str, identity: str = "FULL") -> str:  # noqa: F811
    execute(server.dsn, f"ALTER TABLE t REPLICA IDENTITY {identity}", "ALTER TABLE t ALTER a SET STORAGE EXTERNAL",
            "INSERT INTO t VALUES (1, repeat('x', 10000), 1)")  # fmt: skip
    with collecting(environment(), builder(server).build()) as job:
        job.wait(len)
        execute(server.dsn, *statements)
        return job.fails()


def test_changes_of_the_table_that_do_not_fit_end_the_job(server):  # noqa: F811
    found = failing(server, "ALTER TABLE t DROP COLUMN n", "INSERT INTO t VALUES (2, 'b')")
    assert "column 'n' of public.t was dropped or renamed" in found and "start the job anew" in found


def test_another_type_ends_the_job(server):  # noqa: F811
    found = failing(server, "ALTER TABLE t ALTER n TYPE text", "INSERT INTO t VALUES (2, 'b', 'x')")
    assert "column 'n' of public.t is bigint no longer" in found


def test_a_truncated_table_ends_the_job(server):  # noqa: F811
    found = failing(server, "TRUNCATE t")
    assert "TRUNCATE was run on public.t" in found and "skip_truncates()" in found


def test_a_value_that_the_log_lacks_ends_the_job(server):  # noqa: F811
    found = failing(server, "UPDATE t SET n = 2", identity="DEFAULT")
    assert "left column 'a' as it was" in found and "REPLICA IDENTITY FULL" in found


def test_new_columns_truncates_to_skip_and_large_unchanged_values_do_no_harm(server):  # noqa: F811
    execute(server.dsn, "ALTER TABLE t ALTER a SET STORAGE EXTERNAL", "INSERT INTO t VALUES (1, repeat('x', 10000), 1)")
    with collecting(environment(), builder(server).skip_truncates().build()) as job:
        job.wait(len)
        execute(server.dsn, "UPDATE t SET n = 2", "ALTER TABLE t ADD COLUMN later int", "TRUNCATE t",
                "INSERT INTO t VALUES (5, 'five', 5, 5)")  # fmt: skip
        records = job.wait(lambda records: len(records) == 3)
    assert records[1]["after"] == {"id": 1, "a": "x" * 10000, "n": 2}
    assert records[2]["after"] == {"id": 5, "a": "five", "n": 5}


def test_a_checkpoint_that_is_older_than_the_slot_is_refused(server):  # noqa: F811
    fill(server.dsn, 1)
    with collecting(environment(), builder(server).build()) as job:
        job.wait(len)
    eventually(lambda: ask(server.dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(0,)])
    execute(server.dsn, "INSERT INTO t VALUES (7, 'lost', 7)")
    execute(server.dsn, "SELECT pg_replication_slot_advance('slot', pg_current_wal_lsn())")
    settings = builder(server).build()._settings
    with pytest.raises(PostgresError, match="is confirmed up to .*: the changes in between are gone; restore the new"):
        PostgresTables(settings).open_log(LogSplit({}, 1000), MetricGroup())


def test_a_publication_that_lacks_a_table_is_refused(server):  # noqa: F811
    execute(server.dsn, "CREATE TABLE u (k int PRIMARY KEY)", "CREATE PUBLICATION slot FOR TABLE u")
    with collecting(environment(), builder(server).build()) as job:
        assert 'run ALTER PUBLICATION "slot" ADD TABLE public.t' in job.fails()


def test_two_jobs_with_one_slot_are_refused(server, monkeypatch):  # noqa: F811
    monkeypatch.setattr("rayflink.connectors.postgres.replication_connection._ACTIVE_S", 0.5)
    fill(server.dsn, 1)
    with collecting(environment(), builder(server).build()) as job:
        job.wait(len)
        eventually(lambda: ask(server.dsn, "SELECT count(*) FROM pg_replication_slots WHERE active") == [(1,)])
        with collecting(environment(), builder(server).build()) as second:
            assert "has another reader" in second.fails()
