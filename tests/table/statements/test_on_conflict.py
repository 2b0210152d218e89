"""INSERT INTO ... ON CONFLICT: what is parsed, planned and refused, and what is written."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.table import EnvironmentSettings, InsertConflictStrategy, SqlError, TableEnvironment
from rayflink.table.connectors.contract import Connected, Connector, TableSink
from rayflink.table.parsing.statement_parser import parse_statement
from rayflink.table.plan.conflicts import OnConflict
from rayflink.table.statements.statement_runner import StatementRunner
from rayflink.testing import simulate
from tests.table.physical.test_keyed_shuffle import Upserts

JOIN = "SELECT p.name, o.id FROM orders AS o JOIN products AS p ON o.product = p.name"


@pytest.fixture
def t_env(tmp_path) -> TableEnvironment:
    """Tables orders and products with watermarks, plain without, and upserts, which replaces rows by name."""
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "2"}.items():
        t_env.get_config().set_string(key, value)
    tables = {
        "orders": [{"id": 1, "product": "Laptop"}, {"id": 2, "product": "Phone"}, {"id": 3, "product": "Laptop"}],
        "products": [{"name": "Laptop"}, {"name": "Phone"}],
    }
    columns = {"orders": "id BIGINT, product STRING", "products": "name STRING", "plain": "name STRING"}
    for name, kinds in columns.items():
        (tmp_path / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in tables.get(name, [])))
        path = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/{name}.json'"
        time = "" if name == "plain" else ", ts AS TO_TIMESTAMP_LTZ(1, 3), WATERMARK FOR ts AS ts"
        t_env.execute_sql(f"CREATE TABLE {name} ({kinds}{time}) WITH ({path})")
    kafka = "'connector' = 'upsert-kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'host:1'"
    formats = "'key.format' = 'json', 'value.format' = 'json'"
    keyed = "name STRING, id BIGINT, PRIMARY KEY (name) NOT ENFORCED"
    t_env.execute_sql(f"CREATE TABLE upserts ({keyed}) WITH ({kafka}, {formats})")
    t_env.execute_sql("CREATE TABLE printed (name STRING, id BIGINT) WITH ('connector' = 'print')")
    return t_env


@pytest.mark.parametrize("action", OnConflict)
@pytest.mark.parametrize("query", [JOIN, "SELECT * FROM a CROSS JOIN b", "VALUES (1, 2)", "SELECT a FROM t WHERE b"])
def test_the_clause_is_parsed_behind_any_query(query, action):
    statement = parse_statement(f"INSERT INTO t {query} ON CONFLICT {action.value}")
    assert statement.on_conflict is action
    assert statement.query == parse_statement(f"INSERT INTO t {query}").query


@pytest.mark.parametrize("condition", ["conflict.id = a.id", "conflict AND x = y", "conflict(a.id) = 1"])
def test_conflict_is_a_name_in_the_condition_of_a_join(condition):
    query = f"SELECT a.x FROM a JOIN conflict ON {condition}"
    inserts = [parse_statement(f"INSERT INTO t {query}{clause}") for clause in ("", " ON CONFLICT DO ERROR")]
    assert [insert.on_conflict for insert in inserts] == [None, OnConflict.ERROR]
    assert [insert.query for insert in inserts] == [parse_statement(query).tree] * 2


def test_each_insert_of_a_set_has_its_own():
    body = "INSERT INTO a SELECT * FROM b JOIN c ON x = y; INSERT INTO a SELECT * FROM b ON CONFLICT DO ERROR;"
    inserts = parse_statement(f"EXECUTE STATEMENT SET BEGIN {body} END").inserts
    assert [insert.on_conflict for insert in inserts] == [None, OnConflict.ERROR]


@pytest.mark.spec("R27", "watermarks")
@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (f"INSERT INTO upserts {JOIN} ON CONFLICT DO UPDATE", "'DO' is no action of ON CONFLICT; write ON CONFLICT DO"),
        (f"INSERT INTO upserts {JOIN} ON CONFLICT", "ON CONFLICT has no action"),
        (f"INSERT INTO upserts {JOIN} ON CONFLICT (name) DO NOTHING", r"'\(' is no action of ON CONFLICT; write ON"),
        (f"INSERT INTO printed {JOIN} ON CONFLICT DO ERROR", "printed has no PRIMARY KEY by which rows replace others"),
        ("INSERT INTO upserts SELECT name, 1 FROM plain ON CONFLICT DO NOTHING", "watermark, and 'plain' has none"),
    ],
)
def test_what_cannot_be_done_is_an_error_before_anything_starts(t_env, statement, problem):
    with pytest.raises(SqlError, match=problem):
        t_env.explain_sql(statement)


def test_a_clause_that_would_be_ignored_is_an_error(t_env):
    t_env.get_config().set_string("table.exec.sink.upsert-materialize", "NONE")
    with pytest.raises(SqlError, match="DO NOTHING would be ignored, since 'table.exec.sink.upsert-materialize'"):
        t_env.explain_sql(f"INSERT INTO upserts {JOIN} ON CONFLICT DO NOTHING")


@pytest.mark.spec("R27", "required")
def test_a_clause_is_asked_for_where_rows_may_conflict(t_env):
    t_env.get_config().set_string("table.exec.sink.require-on-conflict", "true")
    with pytest.raises(SqlError, match="upserts has the primary key name, and the query no such key"):
        t_env.explain_sql(f"INSERT INTO upserts {JOIN}")
    assert t_env.explain_sql("INSERT INTO upserts SELECT product, COUNT(*) FROM orders GROUP BY product")
    assert t_env.explain_sql(f"INSERT INTO upserts {JOIN} ON CONFLICT DO DEDUPLICATE")


@pytest.mark.parametrize(
    ("query", "action", "shown"),
    [
        (JOIN, "NOTHING", "UpsertMaterialize(key=[name], conflictStrategy=[NOTHING])"),
        (JOIN, "ERROR", "UpsertMaterialize(key=[name], conflictStrategy=[ERROR])"),
        (JOIN, "DEDUPLICATE", ""),
        (JOIN.replace("JOIN", "LEFT JOIN"), "DEDUPLICATE", "UpsertMaterialize(key=[name])"),
        ("SELECT product AS name, COUNT(*) AS id FROM orders GROUP BY product", "ERROR", ""),
    ],
)
def test_rows_are_stored_where_they_may_conflict(t_env, query, action, shown):
    plan = t_env.explain_sql(f"INSERT INTO upserts {query} ON CONFLICT DO {action}")
    assert f"fields=[name, id], conflictStrategy=[{action}])" in plan
    assert (shown in plan) if shown else "UpsertMaterialize" not in plan


@pytest.mark.parametrize("name", ["nothing", "error", "deduplicate"])
def test_the_table_api_says_it_as_the_clause_does(t_env, name):
    strategy: InsertConflictStrategy = getattr(InsertConflictStrategy, name)()
    plan = t_env.explain_sql(f"INSERT INTO upserts {JOIN} ON CONFLICT DO {name.upper()}")
    table = t_env.sql_query(JOIN)
    assert table.insert_into("upserts", conflict_strategy=strategy).explain() == plan
    statements = t_env.create_statement_set().add_insert("upserts", table, conflict_strategy=strategy)
    assert statements.explain() == plan


class CollectedUpserts(Connector):
    """A table whose changes a test reads."""

    prefixes = ("",)

    def __init__(self) -> None:
        self.sinks: list[Upserts] = []

    def sink(self, table: Connected) -> TableSink:
        self.sinks.append(Upserts(row_key=("name",), key=("name",)))
        return self.sinks[-1]


def story_of(t_env: TableEnvironment, action: str, seed: int) -> Any:
    """What a simulated cluster writes of the join of orders and products."""
    found_path, table = t_env._context.catalogs.find(("upserts",))
    t_env._context.catalogs.replace(found_path, replace(table, connected=CollectedUpserts()))
    text = f"INSERT INTO upserts {JOIN} ON CONFLICT DO {action}"
    sink = StatementRunner(t_env._queries, text).sink(parse_statement(text))
    with t_env._queries.env.apart():
        t_env._queries.add_inserts([sink])
        return simulate(t_env._queries.env.get_job_graph(), seed)


@pytest.mark.slow
@pytest.mark.parametrize(("action", "laptop"), [("NOTHING", {1, 3}), ("DEDUPLICATE", {1, 3})])
def test_one_of_several_rows_is_written(t_env, action, laptop):
    for seed in range(3):
        story = story_of(t_env, action, seed)
        assert story.status is JobStatus.FINISHED, story.describe(story.failure)
        rows = [tuple(row) for row in story.collected()]
        assert dict(rows).keys() == {"Laptop", "Phone"} and dict(rows)["Laptop"] in laptop
        assert action == "DEDUPLICATE" or len(rows) == 2, "the second row is dropped, not written"


@pytest.mark.slow
def test_several_rows_fail_the_job_where_that_is_an_error(t_env):
    story = story_of(t_env, "ERROR", 1)
    assert story.status is JobStatus.FAILED
    assert "have the primary key name='Laptop' of default_catalog.default_database.upserts" in str(story.failure)
