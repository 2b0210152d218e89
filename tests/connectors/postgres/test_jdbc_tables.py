"""Tables of a real PostgreSQL server in SQL, with the options of Flink's connector `jdbc`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from rayflink.common import Row, RowKind, Types
from rayflink.datastream import StreamExecutionEnvironment
from rayflink.table import EnvironmentSettings, Schema, StreamTableEnvironment, TableEnvironment
from rayflink.table.errors import SqlError
from tests.connectors.postgres.postgres_table import ask, execute, url_of

slow = pytest.mark.slow
NOWHERE = "jdbc:postgresql://localhost:1/d?password=s3cret"
KEYED = "k INT, v STRING, PRIMARY KEY (k) NOT ENFORCED"


def environment(is_batch: bool = False) -> Any:
    settings = EnvironmentSettings.in_batch_mode() if is_batch else EnvironmentSettings.in_streaming_mode()
    t_env = TableEnvironment.create(settings)
    for key, value in {"execution.target": "local", "parallelism.default": "2"}.items():
        t_env.get_config().set(key, value)
    return t_env


def create(t_env: Any, url: str, name: str, columns: str, **options: str) -> None:
    known = {"connector": "jdbc", "url": url, "table-name": name, "username": "postgres"}
    known |= {key.replace("__", "-").replace("_", "."): value for key, value in options.items()}
    written = ", ".join(f"'{key}' = '{value}'" for key, value in known.items())
    t_env.execute_sql(f"CREATE TABLE {name} ({columns}) WITH ({written})")


def rows(t_env: Any, query: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in t_env.execute_sql(query).collect()]


@slow
def test_a_program_of_flink_reads_and_writes(database: str) -> None:
    execute(database, "CREATE TABLE sales (id int PRIMARY KEY, item text, price numeric(10,2))",
            "INSERT INTO sales SELECT i, 'w' || i % 3, i FROM generate_series(1, 300) i",
            "CREATE TABLE totals (item text PRIMARY KEY, total numeric(38,2), n bigint)", "ANALYZE",
            "INSERT INTO totals VALUES ('w0', 0, 0), ('other', 1, 1)")  # fmt: skip
    t_env = environment(is_batch=True)
    url = url_of(database)
    create(t_env, url, "sales", "id INT, item STRING, price DECIMAL(10, 2)", scan_partition_column="id",
           scan_partition_num="3", scan_partition_lower__bound="1", scan_partition_upper__bound="200",
           scan_fetch__size="50", scan_auto__commit="false", driver="org.postgresql.Driver")  # fmt: skip
    create(t_env, url, "totals", "item STRING, total DECIMAL(38, 2), n BIGINT, PRIMARY KEY (item) NOT ENFORCED",
           sink_buffer__flush_max__rows="2", sink_parallelism="2")  # fmt: skip
    t_env.execute_sql("INSERT INTO totals SELECT item, SUM(price), COUNT(*) FROM sales GROUP BY item").wait()
    assert ask(database, "SELECT * FROM totals ORDER BY item") == [
        ("other", Decimal(1), 1), ("w0", Decimal(6633), 66), ("w1", Decimal(6700), 67), ("w2", Decimal(6767), 67),
    ]  # fmt: skip
    assert sorted(rows(t_env, "SELECT id, item FROM sales WHERE item = 'w1' AND id > 190")) == [
        (193, "w1"), (196, "w1"), (199, "w1"),
    ]  # fmt: skip
    assert len(rows(t_env, "SELECT price FROM sales LIMIT 7")) == 7
    assert rows(t_env, "SELECT COUNT(*) FROM sales") == [(200,)]


@slow
@pytest.mark.parametrize("guarantee", ["at-least-once", "exactly-once"])
def test_a_changelog_is_applied(database: str, guarantee: str) -> None:
    execute(database, "CREATE TABLE t (k int PRIMARY KEY, v text)")
    env = StreamExecutionEnvironment({"execution.target": "local", "execution.checkpointing.interval": "50 ms"})
    t_env = StreamTableEnvironment.create(env)
    create(t_env, url_of(database), "t", KEYED, sink_delivery__guarantee=guarantee)
    kinds = [(RowKind.INSERT, 1, "a"), (RowKind.INSERT, 2, "b"), (RowKind.UPDATE_BEFORE, 1, "a"),
             (RowKind.UPDATE_AFTER, 1, "A"), (RowKind.DELETE, 2, "b"), (RowKind.INSERT, 3, "c")]  # fmt: skip
    changes = [Row.of_kind(kind, k, v) for kind, k, v in kinds]
    typed = env.from_collection(changes, Types.ROW_NAMED(["k", "v"], [Types.INT(), Types.STRING()]))
    schema = Schema.new_builder().column("k", "INT").column("v", "STRING").primary_key("k").build()
    t_env.create_temporary_view("changes", t_env.from_changelog_stream(typed, schema))
    t_env.execute_sql("INSERT INTO t SELECT * FROM changes").wait()
    assert ask(database, "SELECT * FROM t ORDER BY k") == [(1, "A"), (3, "c")]


@slow
def test_tables_that_do_not_fit_are_named_when_the_job_starts(database: str) -> None:
    execute(database, "CREATE TABLE t (k int, v text)", "CREATE TABLE words (v text)")
    t_env = environment()
    create(t_env, url_of(database), "t", KEYED, password="s3cret")
    create(t_env, url_of(database), "words", "v INT", password="s3cret")
    create(t_env, url_of(database), "missing", "k INT")
    create(t_env, url_of(database) + "none", "elsewhere", "k INT")
    expected = {
        "SELECT * FROM words": "column 'v' of public.words is of type text, not readable as int32",
        "SELECT * FROM missing": "table 'missing' is not there, found t",
        "SELECT * FROM elsewhere": 'database "postgresnone" does not exist',
        "INSERT INTO t VALUES (1, 'a')": r"has no unique index on exactly \(k\)",
    }
    for statement, message in expected.items():
        with pytest.raises(Exception, match=message) as raised:
            t_env.execute_sql(statement).wait() if "INSERT" in statement else rows(t_env, statement)
        assert "s3cret" not in str(raised.value)


def test_what_the_server_does_is_in_the_plan_and_secrets_are_not() -> None:
    t_env = environment()
    create(t_env, NOWHERE, "t", "k INT, v STRING, n BIGINT", password="s3cret")
    plan = t_env.explain_sql("SELECT v FROM t WHERE k > 3 AND v IN ('a', 'b') AND n + 1 > 2")
    assert "filter=[k > 3, v IN ('a', 'b')]]" in plan and "s3cret" not in plan
    assert "project=[v]" in t_env.explain_sql("SELECT v FROM t")
    assert "limit=[5]" in t_env.explain_sql("SELECT v FROM t LIMIT 5")
    (shown,) = rows(t_env, "SHOW CREATE TABLE t")[0]
    assert "?password=******" in shown and "s3cret" not in shown


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda t: create(t, "jdbc:mysql://h/d", "t", "k INT"), "JDBC for 'mysql', and only PostgreSQL is supported"),
        (lambda t: create(t, NOWHERE, "t", "k INT", scan_partition_num="2"), "no 'scan.partition.column'; give all of"),
        (lambda t: create(t, NOWHERE, "t", "k INT", lookup_cache="PARTIAL"), "'PARTIAL' without a limit; give one of"),
        (lambda t: create(t, NOWHERE, "t", "k INT", lookup_cache="SOME"), "expected NONE or PARTIAL or FULL"),
        (lambda t: create(t, NOWHERE, "t", "k INT", lookup_partial__cache_max__rows="3"), "'lookup.cache' = 'NONE'; "),
        (lambda t: create(t, NOWHERE, "t", "k INT", scan_fetch__size="-1"), "a whole number of at least 0"),
        (lambda t: create(t, NOWHERE, "t", "k INT", scan_fetchsize="1"), "did you mean scan.fetch-size"),
        (lambda t: create(t, NOWHERE, "t", "k INT", table__name="a.b.c"), "is no name of a table"),
    ],
)
def test_options_that_make_no_sense_are_refused(make: Callable[[Any], None], message: str) -> None:
    t_env = environment()
    with pytest.raises(SqlError, match=message) as raised:
        make(t_env)
        rows(t_env, "SELECT * FROM t")
    assert "s3cret" not in str(raised.value)


def test_changes_need_a_key() -> None:
    env = StreamExecutionEnvironment({"execution.target": "local"})
    t_env = StreamTableEnvironment.create(env)
    create(t_env, NOWHERE, "t", "k INT, v STRING")
    typed = env.from_collection([Row(1, "a")], Types.ROW_NAMED(["k", "v"], [Types.INT(), Types.STRING()]))
    changes = t_env.from_changelog_stream(typed)
    with pytest.raises(SqlError, match=r"declare PRIMARY KEY \(...\) NOT ENFORCED in the table"):
        changes.execute_insert("t")
