"""What two parts of a program have in common is computed once."""

from __future__ import annotations

import pytest

from rayflink.table import DataTypes, EnvironmentSettings, ExplainDetail, TableEnvironment
from rayflink.table.expressions import call, col
from rayflink.table.udf import udf
from tests.table.queries.golden_queries import FOLDER, GoldenQuery


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "UTC")
    found.create_temporary_view("t", found.from_elements([(n, n % 2) for n in range(6)], ["n", "w"]))
    return found


@pytest.mark.parametrize("drawn", ["RAND()", "RAND_INTEGER(1000000)", "UUID()"])
def test_two_uses_of_a_random_query_draw_for_themselves(t_env, drawn):
    query = f"WITH r AS (SELECT {drawn} AS x FROM t) SELECT x FROM r UNION ALL SELECT x FROM r"
    found = [row[0] for row in t_env.execute_sql(query).collect()]
    assert len(found) == 12 and len(set(found)) > 8


@pytest.mark.parametrize(
    ("options", "sources"),
    [
        ({}, 1),
        ({"table.optimizer.reuse-source-enabled": "false"}, 2),
        ({"table.optimizer.reuse-sub-plan-enabled": "false"}, 2),
    ],
)
def test_a_table_is_read_once_unless_that_is_switched_off(t_env, options, sources):
    for key, value in options.items():
        t_env.get_config().set_string(key, value)
    query = t_env.sql_query("SELECT n FROM t WHERE w = 1 UNION ALL SELECT w FROM t WHERE n = 1")
    assert query.explain(ExplainDetail.JSON_EXECUTION_PLAN).count('"Data Source"') == sources
    assert sorted(query.to_arrow().column(0).to_pylist()) == [1, 1, 3, 5]


def test_a_table_in_memory_that_is_shared_keeps_the_name_of_its_view(t_env):
    t_env.create_temporary_view("triples", t_env.from_elements([(1, 2, 3)], ["a", "b", "c"]))
    plan = t_env.explain_sql("SELECT a FROM triples UNION ALL SELECT b FROM triples")
    assert "Unregistered" not in plan and "triples, project=[a, b]" in plan


HOP = "TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
HOTTEST = f"""
SELECT counted.product, counted.num FROM (
  SELECT product, COUNT(*) AS num, window_start AS starts, window_end AS ends
  FROM {HOP} GROUP BY product, window_start, window_end
) AS counted JOIN (
  SELECT MAX(num) AS most, starts, ends FROM (
    SELECT COUNT(*) AS num, window_start AS starts, window_end AS ends
    FROM {HOP} GROUP BY product, window_start, window_end
  ) GROUP BY starts, ends
) AS most ON counted.starts = most.starts AND counted.ends = most.ends AND counted.num >= most.most
"""


def test_an_aggregate_that_is_read_in_two_ways_is_computed_once():
    """Query 5 of Nexmark."""
    plan = GoldenQuery(FOLDER / "project").environment().explain_sql(HOTTEST)
    run = plan.partition("== Optimized Execution Plan ==")[2]
    assert run.count("LocalWindowAggregate(groupBy=[product], window=[HOP(") == 1 and "Reused(reference_id=[1])" in run


def test_statements_of_a_set_read_a_table_once(capfd):
    t_env = GoldenQuery(FOLDER / "project").environment()
    t_env.execute_sql("CREATE TABLE one (w STRING) WITH ('connector' = 'print', 'print-identifier' = 'one')")
    t_env.execute_sql("CREATE TABLE two (n BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'two')")
    inserts = "INSERT INTO one SELECT product FROM orders WHERE id = 2; "
    inserts += "INSERT INTO two SELECT id FROM orders WHERE amount = 7"
    statements = f"EXECUTE STATEMENT SET BEGIN {inserts}; END"
    told = t_env.explain_sql(statements, ExplainDetail.JSON_EXECUTION_PLAN)
    assert told.count('"Data Source"') == 1
    t_env.execute_sql(statements).wait()
    assert sorted(line.partition("> ")[2] for line in capfd.readouterr().out.splitlines()) == ["+I[9]", "+I[cake]"]


def test_two_functions_of_one_name_are_not_one(t_env):
    def made(word):
        def same(given):
            return f"{given}{word}"

        return udf(same, result_type=DataTypes.STRING())

    table = t_env.from_path("t").where(col("n") == 3)
    both = table.select(call(made("x"), col("n"))).union_all(table.select(call(made("y"), col("n"))))
    assert sorted(both.to_arrow().column(0).to_pylist()) == ["3x", "3y"]
    own = made("z")
    one = table.select(call(own, col("n"))).union_all(table.select(call(own, col("n"))))
    assert "Reused" in one.explain() and one.to_arrow().column(0).to_pylist() == ["3z", "3z"]


def test_zeros_of_other_signs_are_two_queries(t_env):
    side = "SELECT n, {}0e0 AS zero FROM t WHERE n = 1"
    found = t_env.sql_query(f"{side.format('-')} UNION ALL {side.format('')}").to_arrow()
    assert sorted(map(str, found.column("zero").to_pylist())) == ["-0.0", "0.0"]
    found = t_env.sql_query("SELECT * FROM (VALUES -0e0) UNION ALL SELECT * FROM (VALUES 0e0)").to_arrow()
    assert sorted(map(str, found.column(0).to_pylist())) == ["-0.0", "0.0"]
