"""EXPLAIN has Flink's headings, and tells what it is asked."""

from __future__ import annotations

import json
import re

import pytest

from rayflink.table import ExplainDetail, SqlError, TableEnvironment
from tests.table.queries.golden_queries import FOLDER, GoldenQuery


@pytest.fixture
def t_env() -> TableEnvironment:
    found = GoldenQuery(FOLDER / "project").environment()
    found.execute_sql("CREATE TABLE pr (product STRING, n BIGINT) WITH ('connector' = 'print')")
    found.execute_sql("CREATE TABLE pr2 (product STRING) WITH ('connector' = 'print')")
    return found


SAME = "SELECT product FROM orders WHERE id > 5"
WINDOWS = (
    "SELECT product, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) "
    "GROUP BY product, window_start, window_end"
)


def section(text: str, heading: str) -> str:
    """A part of what EXPLAIN tells."""
    return text.partition(f"== {heading} ==\n")[2].partition("\n\n==")[0].rstrip("\n")


@pytest.mark.spec("R06", "logical", "physical", "execution")
def test_the_headings_are_those_of_flink(t_env):
    details = "ESTIMATED_COST, CHANGELOG_MODE, JSON_EXECUTION_PLAN"
    [row] = t_env.execute_sql(f"EXPLAIN {details} {SAME}").collect()
    assert re.findall("== (.*) ==", row[0]) == [
        "Abstract Syntax Tree", "Optimized Physical Plan", "Optimized Execution Plan", "Physical Execution Plan",
        "Statistics",
    ]  # fmt: skip
    assert re.findall("== (.*) ==", t_env.explain_sql(SAME)) == [
        "Abstract Syntax Tree", "Optimized Physical Plan", "Optimized Execution Plan"
    ]  # fmt: skip


def test_modes_and_costs_are_described_as_flink_estimates_them(t_env):
    query = "SELECT product, price * 2 AS twice FROM orders WHERE id > 3 AND amount < 4"
    told = t_env.explain_sql(query, ExplainDetail.CHANGELOG_MODE, ExplainDetail.ESTIMATED_COST)
    lines = section(told, "Optimized Physical Plan").splitlines()
    assert lines[0].endswith(
        "changelogMode=[I]): rowcount = 3.0, cumulative cost = {15.0 rows, 15.0 cpu, 480.0 io, 0.0 network, 0.0 memory}"
    )
    assert section(told, "Statistics") == "default_catalog.default_database.orders: 12 rows (lines by their length)"
    assert all("changelogMode=[I]" in line for line in lines)
    sink = t_env.explain_sql(f"INSERT INTO pr2 {SAME}", ExplainDetail.CHANGELOG_MODE)
    assert "Sink(table=[default_catalog.default_database.pr2], fields=[product], changelogMode=[NONE])" in sink
    assert "changelogMode" not in section(told, "Optimized Execution Plan")


def test_a_table_that_tells_nothing_of_its_rows_has_as_many_as_flink_guesses(t_env):
    t_env.execute_sql("CREATE TABLE endless (n INT) WITH ('connector' = 'datagen')")
    told = t_env.explain_sql("SELECT n FROM endless", ExplainDetail.ESTIMATED_COST)
    assert "rowcount = 1.0E8" in told
    assert section(told, "Statistics") == "default_catalog.default_database.endless: nothing is known"


@pytest.mark.spec("R06", "execution", "R08", "translated")
def test_operators_are_described_in_json(t_env):
    told = t_env.sql_query(WINDOWS).explain(ExplainDetail.JSON_EXECUTION_PLAN)
    nodes = json.loads(section(told, "Physical Execution Plan"))["nodes"]
    assert [one["pact"] for one in nodes] == ["Data Source", *["Operator"] * (len(nodes) - 1)]
    assert nodes[0]["contents"].startswith("TableSourceScan(") and nodes[-1]["contents"].startswith("Calc(")
    assert "HASH" in [edge["ship_strategy"] for one in nodes for edge in one.get("predecessors", ())]


def test_what_is_there_twice_is_shown_once(t_env):
    told = t_env.explain_sql(f"{SAME} UNION ALL {SAME}")
    assert "Reused" not in section(told, "Optimized Physical Plan")
    assert section(told, "Optimized Execution Plan").splitlines()[1:] == [
        ":- Calc(select=[product], where=[id > 5])(reuse_id=[1])",
        ":  +- TableSourceScan(table=[[default_catalog, default_database, orders, project=[id, product]]], "
        "fields=[id, product])",
        "+- Reused(reference_id=[1])",
    ]  # fmt: skip


def test_what_several_statements_have_in_common_stands_before_them(t_env):
    told = t_env.explain_sql(
        f"EXECUTE STATEMENT SET BEGIN INSERT INTO pr2 {SAME}; INSERT INTO pr2 {SAME} AND product LIKE 'x%'; "
        f"INSERT INTO pr2 {SAME}; END"
    )
    [read, calc, *sinks] = section(told, "Optimized Execution Plan").split("\n\n")
    assert read.startswith("TableSourceScan(") and read.endswith("fields=[id, product])(reuse_id=[2])")
    assert calc == "Calc(select=[product], where=[id > 5])(reuse_id=[1])\n+- Reused(reference_id=[2])"
    assert [re.findall(r"Reused\(reference_id=\[(\d)\]\)", one) for one in sinks] == [["1"], ["2"], ["1"]]


@pytest.mark.spec("R06", "physical")
def test_aggregates_are_described_in_their_phases(t_env):
    lines = [
        line.lstrip(" +-:") for line in section(t_env.explain_sql(WINDOWS), "Optimized Physical Plan").splitlines()
    ]
    assert [line.partition("(")[0] for line in lines] == [
        "Calc", "GlobalWindowAggregate", "Exchange", "LocalWindowAggregate", "WatermarkAssigner", "TableSourceScan"
    ]  # fmt: skip
    assert lines[2] == "Exchange(distribution=[hash[product]])"
    t_env.get_config().set_string("table.optimizer.agg-phase-strategy", "ONE_PHASE")
    told = t_env.explain_sql(WINDOWS, ExplainDetail.PLAN_ADVICE)
    assert "LocalWindowAggregate" not in told and "advice[1]: [ADVICE]" in told
    assert "== Optimized Physical Plan With Advice ==" in told
    t_env.get_config().set_string("table.optimizer.agg-phase-strategy", "AUTO")
    assert "No available advice..." in t_env.explain_sql(WINDOWS, ExplainDetail.PLAN_ADVICE)


def test_create_table_as_is_explained_and_creates_no_table(t_env):
    create = "CREATE TABLE totals WITH ('connector' = 'print') AS SELECT product, SUM(amount) AS total FROM orders "
    text = t_env.explain_sql(f"{create}GROUP BY product")
    assert "Sink(table=[default_catalog.default_database.totals], fields=[product, total])" in text
    assert "totals" not in t_env.list_tables()


def test_nothing_else_is_explained(t_env):
    with pytest.raises(SqlError, match="cannot be explained"):
        t_env.explain_sql("SHOW TABLES")
