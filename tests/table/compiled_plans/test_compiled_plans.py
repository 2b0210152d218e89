"""Compiled plans in use: tables from plan or catalog, files, statements, and the state of their jobs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rayflink.actors.messages.states import JobStatus
from rayflink.connectors.collection import CollectSink
from rayflink.graph.job_graph import JobGraph
from rayflink.table import EnvironmentSettings, ExplainDetail, SqlError, TableEnvironment
from rayflink.table.compiled_plan import CompiledPlan
from rayflink.table.connectors.contract import Connected, Connector, TableSink
from rayflink.table.conversion.row_format import RowFormat
from rayflink.table.definitions import TableDefinition
from rayflink.table.physical.physical_planner import PhysicalPlanner
from rayflink.table.plan.changelog import changelog_modes
from rayflink.table.plan_reference import PlanReference
from rayflink.testing import SimulatedDisk, StopWithSavepoint, simulate
from tests.table.compiled_plans.golden_plans import compiled_query, golden_plans, stored_text, with_sink
from tests.table.compiled_plans.test_plan_documents import SUMS, environment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery, golden_queries
from tests.table.queries.paced_orders import PacedConnector
from tests.table.queries.test_stopped_queries import OPTIONS

COMPILE, RESTORE = "table.plan.compile.catalog-objects", "table.plan.restore.catalog-objects"
NUMBERS = "CREATE TABLE numbers (n INT, s STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '{}')"


def plan_text(t_env: TableEnvironment) -> str:
    return t_env.compile_plan_sql(SUMS).as_json_string()


def scan_of(text: str) -> Any:
    return next(node for node in json.loads(text)["nodes"] if node["type"] == "scan_1")["catalog_table"]


def rows_of_numbers(t_env: TableEnvironment, text: str) -> str:
    """How many rows the table has that a plan reads."""
    plan = t_env.load_plan(PlanReference.from_json_string(text))
    scan = next(node for node in plan._planned.sinks[0].walk() if not node.inputs)
    return scan.definition.options["number-of-rows"]


# tables


@pytest.mark.parametrize(("extent", "has"), [("ALL", "options"), ("SCHEMA", "columns"), ("IDENTIFIER", "nothing")])
def test_a_plan_has_what_the_option_says_of_tables(extent: str, has: str) -> None:
    table = scan_of(plan_text(environment((COMPILE, extent))))
    assert table["identifier"] == ["default_catalog", "default_database", "numbers"]
    assert ("options" in table.get("definition", {}), "columns" in table.get("definition", {})) == {
        "options": (True, True), "columns": (False, True), "nothing": (False, False)
    }[has]  # fmt: skip


@pytest.mark.parametrize(
    ("extent", "restore", "rows"),
    [("ALL", "ALL", "9"), ("ALL", "ALL_ENFORCED", "9"), ("ALL", "IDENTIFIER", "5"), ("SCHEMA", "ALL", "5"),
     ("IDENTIFIER", "IDENTIFIER", "5")],
)  # fmt: skip
def test_the_definition_of_the_plan_or_of_the_catalog_holds(extent: str, restore: str, rows: str) -> None:
    text, t_env = plan_text(environment((COMPILE, extent))), environment((RESTORE, restore))
    t_env.execute_sql("DROP TABLE numbers")
    t_env.execute_sql(NUMBERS.format(5))
    assert rows_of_numbers(t_env, text) == rows


def test_a_table_that_is_gone_is_read_from_the_plan_where_that_is_allowed() -> None:
    whole, short = plan_text(environment()), plan_text(environment((COMPILE, "SCHEMA")))
    t_env = environment()
    t_env.execute_sql("DROP TABLE numbers")
    assert rows_of_numbers(t_env, whole) == "9"
    with pytest.raises(SqlError, match="no table default_catalog.default_database.numbers in the catalog"):
        rows_of_numbers(t_env, short)
    t_env.get_config().set(RESTORE, "IDENTIFIER")
    with pytest.raises(SqlError, match="'IDENTIFIER'"):
        rows_of_numbers(t_env, whole)


def test_a_plan_without_definitions_is_refused_where_the_catalog_is_not_asked() -> None:
    with pytest.raises(SqlError, match="'ALL_ENFORCED'; set it to ALL"):
        rows_of_numbers(environment((RESTORE, "ALL_ENFORCED")), plan_text(environment((COMPILE, "SCHEMA"))))


def test_other_columns_are_refused() -> None:
    text, t_env = plan_text(environment()), environment()
    t_env.execute_sql("ALTER TABLE numbers ADD (more INT)")
    with pytest.raises(SqlError, match="`more` INT.* in the catalog, and in the plan"):
        rows_of_numbers(t_env, text)


def test_a_temporary_table_is_in_the_plan_by_its_name_alone() -> None:
    t_env = environment()
    t_env.execute_sql(NUMBERS.format(7).replace("TABLE", "TEMPORARY TABLE"))
    text = plan_text(t_env)
    assert set(scan_of(text)) == {"identifier"}
    assert rows_of_numbers(t_env, text) == "7"


def test_hints_are_in_the_plan() -> None:
    t_env = environment((COMPILE, "IDENTIFIER"))
    hinted = SUMS.replace("numbers", "numbers /*+ OPTIONS('number-of-rows' = '3') */")
    text = t_env.compile_plan_sql(hinted).as_json_string()
    assert scan_of(text)["hints"] == {"number-of-rows": "3"}
    assert rows_of_numbers(t_env, text) == "3"


def test_secrets_are_not_in_the_plan() -> None:
    def with_table(secret: str) -> TableEnvironment:
        t_env = environment()
        t_env.execute_sql(
            "CREATE TABLE people (n INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://nowhere/db', "
            f"'table-name' = 'people', 'username' = 'me', 'password' = '{secret}')"
        )
        return t_env

    text = with_table("abc-xyz").compile_plan_sql("INSERT INTO people SELECT n FROM numbers").as_json_string()
    assert "abc-xyz" not in text
    assert '"secrets": ["password"]' in text
    plan = with_table("other").load_plan(PlanReference.from_json_string(text))
    assert plan._planned.sinks[0].definition.options["password"] == "other"
    with pytest.raises(SqlError, match="needs the option 'password', a secret"):
        environment().load_plan(PlanReference.from_json_string(text))


# files and statements


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    t_env, file = environment(), tmp_path / "plans" / "sums.json"
    plan = t_env.compile_plan_sql(SUMS)
    plan.write_to_file(file)
    assert file.read_text() == plan.as_json_string()
    assert str(t_env.load_plan(PlanReference.from_file(str(file)))) == plan.explain()
    plan.write_to_file(file, ignore_if_exists=True)
    with pytest.raises(SqlError, match="already; remove it"):
        plan.write_to_file(file)
    with pytest.raises(SqlError, match="cannot be read"):
        t_env.load_plan(PlanReference.from_file(tmp_path / "none.json"))


def test_plans_are_compiled_in_sql(tmp_path: Path) -> None:
    t_env, file = environment(), tmp_path / "sums.json"
    t_env.execute_sql(f"COMPILE PLAN '{file}' FOR {SUMS}")
    first = file.read_text()
    t_env.execute_sql(f"COMPILE PLAN '{file}' IF NOT EXISTS FOR {SUMS.replace('> 0', '> 1')}")
    assert file.read_text() == first
    with pytest.raises(SqlError, match="already; remove it"):
        t_env.execute_sql(f"COMPILE PLAN '{file}' FOR {SUMS}")
    t_env.get_config().set("table.plan.force-recompile", "true")
    t_env.execute_sql(f"COMPILE PLAN 'file://{file}' FOR STATEMENT SET BEGIN {SUMS}; {SUMS}; END")
    assert file.read_text().count('"type": "sink_1"') == 2
    with pytest.raises(SqlError, match="file of a plan is wanted"):
        t_env.execute_sql(f"COMPILE PLAN FOR {SUMS}")


@pytest.mark.slow
def test_plans_are_run_in_sql(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    t_env = environment(("execution.target", "local"))
    t_env.execute_sql("CREATE TABLE copies (n INT, total BIGINT) WITH ('connector' = 'print')")
    insert = "INSERT INTO copies SELECT n, n * 2 FROM (VALUES ({})) AS t(n)"
    for number in (4, 5):  # the plan of the first is run again
        t_env.execute_sql(f"COMPILE AND EXECUTE PLAN '{tmp_path}/p.json' FOR {insert.format(number)}").wait()
    t_env.execute_sql(f"EXECUTE PLAN '{tmp_path}/p.json'").wait()
    assert capfd.readouterr().out.splitlines() == ["+I[4, 8]"] * 3


def test_the_options_of_the_plan_hold() -> None:
    text, t_env = plan_text(environment(("table.exec.state.ttl", "1 h"))), environment()
    plan = t_env.load_plan(PlanReference.from_json_string(text))
    assert plan._planned.settings.state_ttl_ms == 3_600_000
    edited = text.replace('"table.exec.state.ttl": "1 h"', '"table.exec.state.ttl": "2 h"')
    assert t_env.load_plan(PlanReference.from_json_string(edited))._planned.settings.state_ttl_ms == 7_200_000


def test_a_plan_is_explained() -> None:
    plan = environment().compile_plan_sql(SUMS)
    text = plan.explain(ExplainDetail.CHANGELOG_MODE, ExplainDetail.JSON_EXECUTION_PLAN)
    assert [line for line in text.splitlines() if line.startswith("==")] == [
        "== Optimized Physical Plan ==", "== Optimized Execution Plan ==", "== Physical Execution Plan =="
    ]  # fmt: skip
    assert plan.get_flink_version() == "2.3"


def test_a_plan_of_a_batch_is_loaded_in_batch_mode() -> None:
    t_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for kind, table in (("datagen', 'number-of-rows' = '9", "numbers"), ("print", "sums")):
        t_env.execute_sql(f"CREATE TABLE {table} (n INT, total BIGINT) WITH ('connector' = '{kind}')")
    text = t_env.compile_plan_sql(SUMS).as_json_string()
    assert t_env.load_plan(PlanReference.from_json_string(text))._planned.sinks
    with pytest.raises(SqlError, match="compiled in batch mode"):
        environment().load_plan(PlanReference.from_json_string(text))


# rows and state


def row_counts(lines: Iterable[str]) -> Counter[str]:
    """The rows that are left after changes that are written as "+I[1, a]"."""
    counts: Counter[str] = Counter()
    for line in lines:
        counts[line[2:]] += -1 if line.startswith("-") else 1
    return +counts


DAILY = set(golden_plans()[::8])


@pytest.mark.slow
@pytest.mark.parametrize("query", [
    pytest.param(query, marks=[pytest.mark.soak] * (query.folder.name not in DAILY)) for query in golden_queries()
], ids=lambda query: query.folder.name)  # fmt: skip
def test_a_plan_gives_the_rows_of_its_query(query: GoldenQuery) -> None:
    name, t_env = query.folder.name, with_sink(query)
    text = stored_text(name) if name in golden_plans() else compiled_query(query, t_env).as_json_string()
    planned, queries = CompiledPlan(t_env._queries, text)._planned, t_env._queries
    [rows_of] = [sink.input for sink in planned.sinks]
    with queries.apart():
        modes = changelog_modes([rows_of])
        planner = PhysicalPlanner(queries.env, planned.session, [rows_of], planned.settings, modes)
        found = list(planner.stream(rows_of).stream.execute_and_collect())
    line = RowFormat([column.type for column in rows_of.schema])
    expected = query.expected.partition("== Rows ==\n")[2].splitlines()
    assert row_counts(map(line, found)) == row_counts(expected)


class Collected(TableSink):
    """Collects rows."""

    is_append_only = False

    def attach(self, stream: Any, name: str) -> Any:
        return stream.sink_to(CollectSink())


class CollectedConnector(Connector):
    """A table whose rows are collected."""

    def sink(self, table: Connected) -> TableSink:
        return Collected()

    def parsed(self, table: str, options: Any) -> tuple[dict[str, Any], dict[str, str]]:
        return {}, {}


def paced(width: int, path: str = "") -> TableEnvironment:
    """Temporary tables: orders that come at a pace, and one that collects rows."""
    restored = {"execution.state-recovery.path": path} if path else {}
    t_env = GoldenQuery(FOLDER / "project").environment(**{"parallelism.default": str(width)}, **OPTIONS, **restored)
    catalogs = t_env._context.catalogs
    _, orders = catalogs.find(("orders",))
    assert isinstance(orders, TableDefinition)
    catalogs.create(("orders",), replace(orders, connected=PacedConnector(3)), temporary=True)
    columns = tuple(replace(column, name=name) for column, name in zip(orders.columns[2:5:2], "ab", strict=True))
    out = TableDefinition(columns, connected=CollectedConnector())
    catalogs.create(("results",), out, temporary=True)
    return t_env


def job(t_env: TableEnvironment, text: str) -> JobGraph:
    plan, queries = t_env.load_plan(PlanReference.from_json_string(text)), t_env._queries
    with queries.env.apart():
        queries.write_planned(plan._planned)
        return queries.env.get_job_graph()


def rows(*stories: Any) -> Counter[str]:
    """The rows that are left after all changes."""
    counts: Counter[str] = Counter()
    for row in (row for story in stories for row in story.collected()):
        counts[repr(list(row))] += -1 if row._is_retract_msg() else 1
    return +counts


@pytest.mark.slow
def test_a_plan_that_is_loaded_takes_the_state_of_its_job_at_another_parallelism() -> None:
    insert = "INSERT INTO results SELECT product, SUM(amount) FROM orders GROUP BY product"
    text = paced(2).compile_plan_sql(insert).as_json_string()
    whole = simulate(job(paced(2), text), 1)
    disk = SimulatedDisk()
    stopped = simulate(job(paced(2), text), 1, [StopWithSavepoint(move=whole.happenings[-1].move // 2)], disk)
    assert stopped.stopped_with
    rest = simulate(job(paced(3, stopped.stopped_with), text), 1, (), disk)
    assert rest.status is JobStatus.FINISHED, rest.describe(rest.failure)
    assert rows(rest) == rows(whole)
    assert rows(stopped) != rows(whole)


def test_ids_of_operators_are_those_of_the_plan() -> None:
    t_env = environment()
    text = plan_text(t_env)
    [group] = [node for node in json.loads(text)["nodes"] if node["type"] == "group-aggregate_1"]
    [operator] = group["operators"]
    ids = {str(one.operator_id) for vertex in job(t_env, text).vertices for one in vertex.operators}
    assert operator["id"] in ids
    edited = job(t_env, text.replace(operator["id"], "0" * 31 + "7"))
    assert {str(one.operator_id) for vertex in edited.vertices for one in vertex.operators} == (
        ids - {operator["id"]} | {"0" * 31 + "7"}
    )
