"""Names of tables, schemas and columns in the statements of PostgreSQL sinks: no name becomes more than a name."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql

from rayflink.connectors.postgres.postgres_sink import PostgresError, PostgresSink
from rayflink.connectors.postgres.postgres_staged import discard_staged_rows, drop_staging_tables, staged_rows
from rayflink.connectors.postgres.postgres_tables import Tables, parts_of
from rayflink.operators.sinks import SinkOperator
from rayflink.testing import OperatorHarness
from tests.connectors.postgres.postgres_table import dsn, server

__all__ = ["dsn", "server"]
NASTY = ['x"; DROP TABLE t; --', "a'b\\c", "two\nlines", "größe 表 🙂", "50%", "%s", "%(a)s", "{target}", "select", " "]
DSN = "postgresql://u@localhost/db"


def tables(*names: str) -> Tables:
    first, *rest = names
    return Tables((first, first), names, (names[-1],) if rest else (), first, "rayflink_staged_0")


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_quoted_in_every_statement(name):
    made = tables(name, name + "2", name + "3")
    copy = made.statement("COPY {target} ({columns}) FROM STDIN").as_string(None)
    columns = ", ".join(quoted(one) for one in made.columns)
    assert copy == f"COPY {quoted(name)}.{quoted(name)} ({columns}) FROM STDIN"
    conflict = made.on_conflict().as_string(None)
    sets = ", ".join(f"{quoted(one)} = excluded.{quoted(one)}" for one in made.columns[:2])
    assert conflict == f"ON CONFLICT ({quoted(name + '3')}) DO UPDATE SET {sets}"


@pytest.mark.parametrize("name", NASTY)
def test_a_name_with_percent_signs_is_no_parameter(name):
    """psycopg reads placeholders in all of a statement that has parameters, also in quoted names."""
    made = tables(name, name + "2", name + "3")
    text = made.move().as_string(None)
    assert text.replace("%%", "").count("%s") == 1
    assert text.replace("%%", "").count("%") == 1
    assert f"INSERT INTO {quoted(name)}.{quoted(name)} ({quoted(name)}, " in text.replace("%%", "%")


@pytest.mark.parametrize("table, parts", [
    ("orders", ("orders",)), ("sales.Orders", ("sales", "Orders")), ('"a.b"', ("a.b",)), ('s."a.b"', ("s", "a.b")),
    ('"x.y"."a "" b"', ("x.y", 'a " b')), ('x"; DROP TABLE t', ('x"; DROP TABLE t',)), ("two\nlines", ("two\nlines",)),
    ("é" * 31, ("é" * 31,)),
])  # fmt: skip
def test_a_table_is_named_with_or_without_its_schema(table, parts):
    assert parts_of(table) == parts


NO_NAMES = ["", ".", "a.", ".a", "a.b.c", '"a', 'a."b', "a\0b", "é" * 32, "s." + "a" * 64, "\ud800"]


@pytest.mark.parametrize("table", NO_NAMES)
def test_what_is_no_name_is_refused_before_anything_runs(table):
    with pytest.raises(PostgresError, match="name"):
        PostgresSink(DSN, table)


@pytest.mark.parametrize("name", ["", "a\0", "a" * 64])
def test_so_are_columns_keys_and_schemas(name):
    for wrong in (lambda: PostgresSink(DSN, "t", columns=[name]), lambda: PostgresSink(DSN, "t", keys=[name]),
                  lambda: PostgresSink(DSN, "t").with_staging_schema(name)):  # fmt: skip
        with pytest.raises(PostgresError, match="name"):
            wrong()


@pytest.mark.slow
def test_rows_go_into_tables_with_any_names(dsn):
    name, key, value = sql.Identifier(NASTY[0] + "%s"), sql.Identifier("50%"), sql.Identifier('%s "v"; --')
    schema = sql.Identifier("my.%s")
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
        db.execute(sql.SQL("CREATE TABLE {}.{} ({} int PRIMARY KEY, {} text)").format(schema, name, key, value))
        table = '"my.%s"."' + (NASTY[0] + "%s").replace('"', '""') + '"'
        with OperatorHarness(lambda: SinkOperator(PostgresSink(dsn, table, keys=["50%"]))) as job:
            job.process((1, "a"))
            job.process((1, "b"))
            job.snapshot(1)
            job.notify_checkpoint_complete(1)
            assert db.execute(sql.SQL("SELECT * FROM {}.{}").format(schema, name)).fetchall() == [(1, "b")]
            job.process((2, "c"))
            job.snapshot(2)
        [left] = staged_rows(dsn, "my.%s")
        assert drop_staging_tables(dsn, "my.%s") == []  # a row waits there
        assert discard_staged_rows(dsn, left.job_id, "my.%s") == 1
        assert len(drop_staging_tables(dsn, "my.%s")) == 1 and drop_staging_tables(dsn, "my.%s") == []
        assert db.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'my.%s'").fetchone() == (2,)
