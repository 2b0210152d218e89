"""PyFlink's `JdbcSink` on a real PostgreSQL server."""

from __future__ import annotations

import doctest

import pytest

from rayflink.common import Row, Types
from rayflink.common.errors import described
from rayflink.connectors.jdbc import jdbc_options, jdbc_sink
from rayflink.connectors.jdbc.jdbc_sink import statement_of
from rayflink.connectors.postgres.postgres_session import PostgresError
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.datastream.connectors.jdbc import JdbcConnectionOptions, JdbcExecutionOptions, JdbcSink
from rayflink.operators.base import UserCodeError
from tests.connectors.postgres.postgres_table import ask, execute, started, url_of

slow = pytest.mark.slow
ROW = Types.ROW_NAMED(["id", "title"], [Types.INT(), Types.STRING()])
UPSERT = "INSERT INTO books VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET title = excluded.title -- why?"


def options(url: str) -> JdbcConnectionOptions:
    builder = JdbcConnectionOptions.JdbcConnectionOptionsBuilder().with_url(url)
    return builder.with_driver_name("org.postgresql.Driver").with_user_name("postgres").with_password("s3cret").build()


@slow
def test_a_program_of_pyflink_writes_its_records(database: str) -> None:
    execute(database, "CREATE TABLE books (id int PRIMARY KEY, title text)", "INSERT INTO books VALUES (1, 'old')")
    env = StreamExecutionEnvironment({"execution.target": "local", "parallelism.default": 1})
    books = env.from_collection([Row(1, "50% off"), Row(2, None), Row(3, "c"), Row(3, "d")], ROW)
    execution = JdbcExecutionOptions.builder().with_batch_size(2).with_batch_interval_ms(200).with_max_retries(5)
    books.add_sink(JdbcSink.sink(UPSERT, ROW, options(url_of(database)), execution.build()))
    env.execute()
    assert ask(database, "SELECT * FROM books ORDER BY id") == [(1, "50% off"), (2, None), (3, "d")]


@slow
def test_a_refused_record_is_named_and_a_lost_connection_repeated(database: str) -> None:
    execute(database, "CREATE TABLE books (id int PRIMARY KEY, title varchar(3))")
    sink = JdbcSink.sink(UPSERT, ROW, options(url_of(database)))
    with started(sink) as harness:
        harness.process(Row(1, "a"))
        harness.snapshot(1)
        execute(database, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
                "AND backend_type = 'client backend'")  # fmt: skip
        harness.process(Row(2, "b"))
        harness.snapshot(2)
        assert ask(database, "SELECT id FROM books ORDER BY id") == [(1,), (2,)]
        harness.process(Row(3, "c"))
        harness.process(Row(4, "long"))
        with pytest.raises(UserCodeError) as raised:
            harness.snapshot(3)
    shown = described(raised.value)
    assert "(4, 'long')" in shown and "value too long for type character varying(3)" in shown
    assert "s3cret" not in shown + repr(sink) and ask(database, "SELECT count(*) FROM books") == [(2,)]


def test_statements_and_options_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PostgresError, match="the statement has 1 question marks, and the records have 2 fields"):
        JdbcSink.sink("DELETE FROM t WHERE id = ?", ROW, options("jdbc:postgresql://h/d"))
    with pytest.raises(PostgresError, match="JDBC for 'mysql', and only PostgreSQL is supported"):
        JdbcSink.sink(UPSERT, ROW, options("jdbc:mysql://h/d"))
    with pytest.raises(ValueError, match=r"the URL is missing; call with_url"):
        JdbcConnectionOptions.JdbcConnectionOptionsBuilder().build()
    with pytest.raises(ValueError, match="size 0"):
        JdbcExecutionOptions.builder().with_batch_size(0).build()
    defaults = JdbcExecutionOptions.defaults()
    assert (defaults.get_batch_interval_ms(), defaults.get_batch_size(), defaults.get_max_retries()) == (0, 5000, 3)


def test_question_marks_of_jdbc_become_parameters() -> None:
    assert statement_of("""SELECT ?, "a?" || $$?$$ /* ? */, x ?? 'k', ? % 5""") == (
        """SELECT %s, "a?" || $$?$$ /* ? */, x ? 'k', %s %% 5""",
        2,
    )
    for module in (jdbc_sink, jdbc_options):
        found = doctest.testmod(module)
        assert found.attempted > 0 and found.failed == 0
