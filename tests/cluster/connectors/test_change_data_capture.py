"""Change data capture on Ray, with readers in several processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.servers.mysql_server import running_server as running_mysql
from benchmarks.servers.postgres_server import PostgresServer, running_server
from rayflink.datastream import StreamExecutionEnvironment
from tests.connectors.mysql import change_jobs as mysql_jobs
from tests.connectors.postgres.change_jobs import Writer, builder, collecting, derived, table
from tests.connectors.postgres.postgres_table import execute
from tests.connectors.postgres.test_postgres_cdc import fill, is_ended, marker

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.usefixtures("cluster")]


@pytest.fixture
def database() -> Iterator[PostgresServer]:
    with running_server(wal_level="logical") as server:
        execute(server.dsn, "CREATE TABLE t (id int PRIMARY KEY, a text, n bigint)",
                "ALTER TABLE t REPLICA IDENTITY FULL")  # fmt: skip
        yield server


def test_a_parallel_snapshot_and_the_changes_are_the_table(database: PostgresServer) -> None:
    fill(database.dsn, 3000)
    writer = Writer(database.dsn, 11, 4000)
    options = {"parallelism.default": 2, "execution.checkpointing.interval": "200 ms"}
    env = StreamExecutionEnvironment(options)
    with collecting(env, builder(database).split_size(100).build()) as job:
        job.wait(lambda records: sum(record["op"] != "r" for record in records) > 300)
        writer.end()
        marker(database.dsn)
        records = job.wait(is_ended)
    assert derived(records) == table(database.dsn)


@pytest.mark.soak
def test_a_parallel_snapshot_and_the_changes_of_mysql_are_the_table() -> None:
    with running_mysql() as server:
        columns = "id int PRIMARY KEY, a varchar(99), n bigint"
        server.execute("CREATE DATABASE shop", "USE shop", f"CREATE TABLE t ({columns})", database=None)
        mysql_jobs.fill(server, 2000)
        writer = mysql_jobs.Writer(server, 3, 2500)
        env = StreamExecutionEnvironment({"parallelism.default": 2, "execution.checkpointing.interval": "200 ms"})
        with collecting(env, mysql_jobs.builder(server).split_size(100).build()) as job:
            job.wait(mysql_jobs.has_changes(200))
            writer.end()
            mysql_jobs.marker(server)
            records = job.wait(mysql_jobs.is_ended)
        assert derived(records) == mysql_jobs.table(server)
