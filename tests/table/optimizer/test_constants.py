"""What is constant is computed once, and errors stay where rows are."""

from __future__ import annotations

import pytest

from rayflink.common.errors import JobFailed
from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.udf import udf


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    found.get_config().set_string("execution.target", "local").set_string("table.local-time-zone", "Asia/Tokyo")
    rows = [(n, f"w{n}", n % 2 == 0, n / 2) for n in range(1, 7)]
    found.create_temporary_view("t", found.from_elements(rows, ["n", "w", "b", "d"]))
    return found


def plan(t_env: TableEnvironment, query: str) -> str:
    return t_env.explain_sql(query).partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("2 * 3 + n", "6 + n"),
        ("CAST('2020-01-02' AS DATE)", "2020-01-02"),
        ("CAST(1.5 AS DECIMAL(4, 2))", "1.50"),
        ("UPPER('a') || LOWER('B')", "'Ab'"),
        ("CASE WHEN b THEN 1 WHEN 1 = 1 THEN 2 ELSE 3 END", "CASE(b, 1, 2)"),
        ("CASE WHEN 1 > 1 THEN 1 / 0 ELSE n END", "n"),
        ("IF(NULL, n, n + 1)", "n + 1"),
        ("NOT (NOT b)", "b"),
        ("b AND (TRUE OR d > 1)", "b"),
        ("b OR 1 = 2", "b"),
        ("b AND 2 < 1", "false"),
        ("COALESCE(CAST(NULL AS INT), 7)", "7"),
        ("DATE_FORMAT(TO_TIMESTAMP_LTZ(0, 3), 'HH:mm')", "'09:00'"),
        ("1 / 0", "1 / 0"),
        ("CAST('x' AS INT) + n", "CAST('x') + n"),
    ],
)
def test_a_constant_part_of_an_expression_is_its_value(t_env, written, folded):
    shown = plan(t_env, f"SELECT {written} AS x FROM t").splitlines()[0]
    assert shown == f"Calc(select=[{folded} AS x])" or shown == f"Calc(select=[{folded}])"


@pytest.mark.parametrize("called", ["RAND()", "UUID()", "CURRENT_TIMESTAMP", "own(1)"])
def test_what_differs_each_time_and_the_own_functions_are_called_when_rows_come(t_env, called):
    asked = []
    t_env.create_temporary_function("own", udf(lambda n: asked.append(n) or n, result_type=DataTypes.BIGINT()))
    assert "select=[2020" not in plan(t_env, f"SELECT {called} AS x FROM t")
    assert called.partition("(")[0].upper() in plan(t_env, f"SELECT {called} AS x FROM t")
    assert not asked


def test_an_error_of_a_constant_is_one_of_the_rows(t_env):
    assert t_env.explain_sql("SELECT 1 / 0 FROM t")
    assert list(t_env.execute_sql("SELECT 1 / 0 FROM t WHERE n > 100").collect()) == []
    with pytest.raises(JobFailed, match="ivision by zero"):
        list(t_env.execute_sql("SELECT 1 / 0 FROM t").collect())


@pytest.mark.parametrize(
    "condition",
    ["1 = 2", "CAST(NULL AS BOOLEAN)", "n > 5 AND n < 3", "n = 5 AND n = 3", "n > 5 AND n <= 5",
     "n IS NULL AND n > 1", "5 < n AND w = 'w1' AND 2.5 >= n", "n = 1 AND FALSE"],
)  # fmt: skip
def test_a_filter_that_nothing_passes_reads_nothing(t_env, condition):
    assert plan(t_env, f"SELECT w FROM t WHERE {condition}") == "Values(tuples=[[]])"
    assert list(t_env.execute_sql(f"SELECT w FROM t WHERE {condition}").collect()) == []


@pytest.mark.parametrize(
    ("condition", "count"),
    [("n > 5 OR n < 3", 3), ("n >= 5 AND n <= 5", 1), ("n > 4 AND n < 6", 1), ("n <> 1 AND n = 2", 1),
     ("d > 2 AND d < 3", 1), ("w = 'w1' AND w < 'w2'", 1), ("n IS NULL OR n > 1", 5), ("n > 2 AND d < 2", 1)],
)  # fmt: skip
def test_a_filter_that_something_may_pass_is_asked(t_env, condition, count):
    assert "Scan" in plan(t_env, f"SELECT w FROM t WHERE {condition}")
    assert len(list(t_env.execute_sql(f"SELECT w FROM t WHERE {condition}").collect())) == count


def test_values_are_computed_while_planning(t_env):
    query = "SELECT n + 1 AS m, UPPER(w) AS u FROM (VALUES (1, 'a'), (2, 'bb')) AS v(n, w) WHERE TRUE"
    assert "Values(tuples=[[{ 2, A }, { 3, BB }]])" in plan(t_env, query)
    assert plan(t_env, "SELECT 1 + 1 AS two") == "Values(tuples=[[{ 2 }]])"
    assert [tuple(row) for row in t_env.execute_sql(query).collect()] == [(2, "A"), (3, "BB")]
