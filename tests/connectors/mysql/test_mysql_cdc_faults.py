"""Whatever fails between the server and a job that captures its changes is an error that says what to do, or heals."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pymysql
import pytest

from benchmarks.servers.mysql_server import MySqlServer
from rayflink.common.errors import described
from rayflink.common.metrics.metric_group import MetricGroup
from rayflink.connectors.cdc.snapshot_enumeration import LogSplit
from rayflink.connectors.mysql import mysql_cdc_preparation
from rayflink.connectors.mysql.binlog_positions import LogToken
from rayflink.connectors.mysql.mysql_cdc_preparation import MySqlDatabase
from rayflink.connectors.mysql.mysql_chunks import MySqlTables
from rayflink.datastream.connectors.mysql_cdc import MySqlError, StartupOptions
from tests.connectors.cdc.collected_changes import collecting, derived, environment, eventually
from tests.connectors.mysql.change_jobs import Writer, builder, fill, is_ended, marker, table

pytestmark = pytest.mark.slow
RETRY = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.attempts": "100",
         "restart-strategy.fixed-delay.delay": "100 ms"}  # fmt: skip
DUMPS = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"


def cut(server: MySqlServer) -> None:
    """End the connections that read the log."""
    eventually(lambda: server.ask(DUMPS))
    for (number,) in server.ask(DUMPS):
        try:
            server.execute(f"KILL {number}")
        except pymysql.err.MySQLError:
            continue


def test_a_server_that_crashes_and_comes_back_loses_and_repeats_nothing(server):
    fill(server, 500)
    with collecting(environment(2, **RETRY), builder(server).split_size(50).build()) as job:
        for number in (signal.SIGTERM, signal.SIGKILL):
            before = len(job.records)
            writer = Writer(server, int(number), 600)
            job.wait(lambda records, before=before: len(records) > before + 200)
            writer.end()
            server.end(number)
            server.start()
        marker(server)
        records = job.wait(is_ended)
    assert derived(records) == table(server)


def test_a_connection_that_is_lost_is_opened_again_where_it_was(server):
    fill(server, 10)
    writer = Writer(server, 5, 50)
    with collecting(environment(), builder(server).build()) as job:
        for _ in range(3):
            before = len(job.records)
            job.wait(lambda records, before=before: len(records) > before + 100)
            cut(server)
        writer.end()
        marker(server)
        assert derived(job.wait(is_ended)) == table(server)


def test_a_large_transaction_is_resumed_in_its_middle(server):
    with collecting(environment(), builder(server).startup_options(StartupOptions.latest()).build()) as job:
        eventually(lambda: server.ask(DUMPS))
        fill(server, 60_000)
        job.wait(lambda records: len(records) > 10_000)
        cut(server)
        records = job.wait(lambda records: len(records) >= 60_000)
    assert len(records) == 60_000 and derived(records) == table(server)


def test_a_heartbeat_behind_rows_that_are_pending_moves_no_position(server):
    """They would be lost with the connection."""
    settings = replace(builder(server).build()._settings, startup="latest")
    prepared = MySqlDatabase(settings).prepare()
    server.execute("INSERT INTO t VALUES (1, 'a', 1)")
    split = LogSplit(prepared.tables, prepared.start, token=prepared.token)
    log: Any = MySqlTables(settings, 0, MetricGroup()).open_log(split, MetricGroup())
    try:
        while not log._pending or log._begin >= 0:
            log._take(log._stream.next_event())
        before = log._position
        log._take(SimpleNamespace(event_type=27, packet=SimpleNamespace(log_pos=0, event_size=0)))
        assert (log._position, len(log._pending)) == (before, 1)
        item = log.read(0.1)
        assert item.changes.rows.num_rows == 1 and item.position > before
    finally:
        log.close()


def test_another_server_is_read_from_the_same_gtid_on_in_the_middle_of_a_transaction(server):
    settings = replace(builder(server).build()._settings, startup="latest")
    prepared = MySqlDatabase(settings).prepare()
    server.execute("BEGIN", "INSERT INTO t VALUES (1, 'a', 1)", "INSERT INTO t VALUES (2, 'b', 1)", "COMMIT",
                   "INSERT INTO t VALUES (3, 'c', 1)")  # fmt: skip
    ((gtid,),) = server.ask("SELECT @@gtid_binlog_pos")
    domain, origin, number = gtid.split("-")
    token = replace(LogToken.decode(prepared.token), server="another", partial=f"{domain}-{origin}-{int(number) - 1}")
    position = prepared.start + 1000
    split = LogSplit(prepared.tables, position, position, 1, token=token.encode())
    cursor = MySqlTables(settings, 0, MetricGroup()).open_log(split, MetricGroup())
    try:
        found: list[int] = []
        while len(found) < 2:
            item = cursor.read(0.1)
            if item is not None and item.changes is not None:
                found += item.changes.rows.column(0).to_pylist()
    finally:
        cursor.close()
    assert found == [2, 3] and item.skip == 0 and LogToken.decode(item.token).gtids == gtid


def test_another_server_without_gtids_is_refused(server):
    settings = builder(server).build()._settings
    split = LogSplit({}, 1000, token=LogToken("another", "binlog").encode())
    with pytest.raises(MySqlError, match="another server answers .* switch GTIDs on"):
        MySqlTables(settings, 0, MetricGroup()).open_log(split, MetricGroup())


def test_a_log_that_is_deleted_says_so(server):
    server.execute("FLUSH BINARY LOGS")

    def oldest() -> str:
        server.execute("PURGE BINARY LOGS BEFORE NOW() + INTERVAL 1 DAY")
        return str(server.ask("SHOW BINARY LOGS")[0][0])

    eventually(lambda: oldest() != "binlog.000001")
    file = oldest()
    settings = builder(server).build()._settings
    position = mysql_cdc_preparation.position_in(file, 4) - (1 << 36)
    split = LogSplit({}, position, token=LogToken("", file.rpartition(".")[0]).encode())
    with pytest.raises(MySqlError, match="the server does not have the log from binlog.* on: .*start the job anew"):
        MySqlTables(settings, 0, MetricGroup()).open_log(split, MetricGroup())


def checked(made: object) -> str:
    with pytest.raises(MySqlError) as raised:
        made.build().check()
    found = described(raised.value)
    assert "s3cret" not in found
    return found


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda made: made.table_list("shop.nothing"), "no table matches 'shop.nothing'; write database.table"),
        (lambda made: made.database_list("none").table_list(), "database none has no tables"),
        (lambda made: made.chunk_key_column("a"), "the chunk key 'a' is no column of the primary key of shop.t"),
        (lambda made: made.port(1), "no connection to MySQL at rayflink@127.0.0.1:1"),
        (lambda made: made.password("s3cret"), "Access denied for user 'rayflink'"),
        (lambda made: made.username("guest").password("g"), "for this operation (1227); GRANT REPLICATION CLIENT"),
        (lambda made: made.username("viewer").password("g"), "may not read the log; GRANT SELECT, REPLICATION SLAVE"),
    ],
)
def test_what_is_missing_is_found_before_the_job_starts(server, change: Callable, message: str):
    for name in ("guest", "viewer"):
        server.execute(f"CREATE OR REPLACE USER {name}@'%' IDENTIFIED BY 'g'", f"GRANT SELECT ON *.* TO {name}@'%'")
    server.execute("GRANT REPLICATION CLIENT ON *.* TO viewer@'%'")
    assert message in checked(change(builder(server)))


@pytest.mark.parametrize(("name", "value"), [("binlog_format", "STATEMENT"), ("binlog_row_image", "MINIMAL"),
                                             ("log_bin_compress", "ON")])  # fmt: skip
def test_settings_of_the_server_that_do_not_do_are_found(server, name, value):
    ((_, before),) = server.ask(f"SHOW GLOBAL VARIABLES LIKE '{name}'")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        assert f"the server has {name} = {value}" in checked(builder(server))
        builder(server).startup_options(StartupOptions.snapshot()).build().check()
    finally:
        server.execute(f"SET GLOBAL {name} = {before}")


def test_a_table_without_snapshots_is_refused(server):
    server.execute("ALTER TABLE t ENGINE = MyISAM")
    assert "has the engine MyISAM, which has no snapshots" in checked(builder(server))
    builder(server).startup_options(StartupOptions.latest()).build().check()


def failing(server: MySqlServer, *statements: str) -> str:
    server.execute("INSERT INTO t VALUES (1, 'one', 1)")
    with collecting(environment(), builder(server).build()) as job:
        job.wait(len)
        server.execute(*statements)
        return job.fails()


CHANGES = {
    "column 'n' of shop.t was dropped or renamed": ["ALTER TABLE t DROP COLUMN n", "INSERT INTO t VALUES (2, 'b')"],
    "'n' of shop.t is bigint(20) no": ["ALTER TABLE t MODIFY n varchar(9)", "INSERT INTO t VALUES (2, 'b', 'x')"],
    "is bigint(20) no longer": ["ALTER TABLE t MODIFY n bigint unsigned", "INSERT INTO t VALUES (2, 'b', 2)"],
    "TRUNCATE was run on shop.t": ["TRUNCATE t"],
    "table shop.t was dropped (DROP TABLE": ["DROP TABLE t"],
    "table shop.t was renamed": ["RENAME TABLE t TO u"],
    "by a statement whose rows are not in the log": ["SET binlog_format = STATEMENT", "UPDATE t SET n = 5"],
    "the log lacks columns of shop.t": ["SET binlog_row_image = MINIMAL", "UPDATE t SET n = 6"],
    "in an XA transaction": ["XA START 'x'", "UPDATE t SET n = 7", "XA END 'x'", "XA PREPARE 'x'", "XA ROLLBACK 'x'"],
}


@pytest.mark.parametrize("message", CHANGES)
def test_changes_of_the_table_that_do_not_fit_end_the_job(server, message):
    found = failing(server, *CHANGES[message])
    assert message in found, found


def test_columns_that_change_without_their_names_in_the_log_end_the_job(server):
    server.execute("SET GLOBAL binlog_row_metadata = NO_LOG")
    try:
        found = failing(server, "CREATE INDEX i ON t (n)", "ALTER TABLE t ADD INDEX j (n)", "ALTER TABLE t ADD x int")
    finally:
        server.execute("SET GLOBAL binlog_row_metadata = FULL")
    assert "shop.t was altered" in found and "set binlog_row_metadata = FULL" in found


def test_new_columns_and_tables_that_are_swapped_and_truncates_to_skip_do_no_harm(server):
    server.execute("INSERT INTO t VALUES (1, 'one', 1)")
    with collecting(environment(), builder(server).skip_truncates().build()) as job:
        job.wait(len)
        server.execute("ALTER TABLE t ADD COLUMN later int FIRST", "UPDATE t SET n = 2", "TRUNCATE t",
                       "CREATE TABLE new_t (id int PRIMARY KEY, more text, n bigint, a varchar(200))",
                       "RENAME TABLE t TO old_t, new_t TO t", "INSERT INTO t VALUES (5, '', 6, 'five')")  # fmt: skip
        records = job.wait(lambda records: len(records) == 3)
    assert records[1]["after"] == {"id": 1, "a": "one", "n": 2}
    assert records[2]["after"] == {"id": 5, "a": "five", "n": 6}


def test_two_jobs_with_one_server_id_are_refused(server, monkeypatch):
    monkeypatch.setattr("rayflink.connectors.mysql.binlog_stream._LOCK_S", 0)
    fill(server, 1)
    with collecting(environment(), builder(server).server_id("4711").build()) as job:
        job.wait(len)
        eventually(lambda: server.ask(DUMPS))
        with collecting(environment(), builder(server).server_id("4711").build()) as second:
            assert "another reader of the log has the server id 4711" in second.fails()
