"""How a filter and a projection with asynchronous functions are divided into steps: the calls of each, and for whom."""

from __future__ import annotations

import pytest

from rayflink.table import DataTypes, EnvironmentSettings, SqlError, TableEnvironment
from rayflink.table.physical.async_steps import async_steps
from rayflink.table.plan.async_steps import AsyncSteps
from rayflink.table.plan.logical import Filter, Project
from rayflink.table.table import plan_of
from rayflink.table.udf import udf

BIGINT = DataTypes.BIGINT()


async def plus(*numbers):
    return sum(numbers)


@pytest.fixture(scope="module")
def t_env() -> TableEnvironment:
    environment = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    environment.create_temporary_view("t", environment.from_elements([(1, 2)], ["a", "b"]))
    environment.create_temporary_function("f", udf(plus, result_type=BIGINT))
    environment.create_temporary_function("chance", udf(plus, result_type=BIGINT, deterministic=False))
    environment.create_temporary_function("g", udf(lambda n: n, result_type=BIGINT))
    return environment


def steps(t_env: TableEnvironment, query: str) -> AsyncSteps:
    plan, condition = plan_of(t_env.sql_query(query)), None
    assert isinstance(plan, Project)
    if isinstance(plan.input, Filter):
        condition = plan.input.condition
    return async_steps(condition, plan.exprs, 2)


def described(t_env: TableEnvironment, query: str) -> list[list[str]]:
    """Return the calls of each stage, with the rows that they are for."""
    return [
        [f"{call.call}" if call.guard is None else f"{call.call} for {call.guard}" for call in stage.calls]
        for stage in steps(t_env, query).stages
    ]


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("SELECT f(a), f(b) FROM t", [["F(a)", "F(b)"]]),
        ("SELECT f(a), f(a) + 1 FROM t", [["F(a)"]]),
        ("SELECT chance(a), chance(a) FROM t", [["CHANCE(a)", "CHANCE(a)"]]),
        ("SELECT f(g(f(a)), f(b)) FROM t", [["F(a)", "F(b)"], ["F(G(F(a)), F(b))"]]),
        ("SELECT f(b) FROM t WHERE f(a) = 1 AND a > 0", [["F(a)"], ["F(b)"]]),
        ("SELECT f(a) FROM t WHERE f(a) = 1", [["F(a)"]]),
    ],
)
def test_calls_are_made_once_and_as_soon_as_their_arguments_are_there(t_env, query, stages):
    assert described(t_env, query) == stages


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("SELECT CASE WHEN a > 0 THEN f(a) ELSE f(b) END FROM t",
         [["F(a) for CASE(a > 0, true, false)", "F(b) for CASE(a > 0, false, true)"]]),
        ("SELECT IF(f(a) = 1, f(b), 0) FROM t", [["F(a)"], ["F(b) for CASE(F(a) = 1, true, false)"]]),
        ("SELECT CASE WHEN a > 0 THEN f(a) END, f(a) FROM t", [["F(a)"]]),
        ("SELECT COALESCE(a, f(b)) FROM t", [["F(b) for IS NULL(a)"]]),
        ("SELECT a > 0 OR f(a) = 1 FROM t", [["F(a) for CASE(a > 0, false, true)"]]),
        ("SELECT CASE WHEN chance(a) > 0 THEN 1 ELSE f(b) END FROM t",
         [["CHANCE(a)"], ["F(b) for CASE(CHANCE(a) > 0, false, true)"]]),
        ("SELECT CASE WHEN RAND() > 0.5 THEN f(a) END FROM t", [["F(a)"]]),
    ],
)  # fmt: skip
def test_a_branch_is_asked_for_the_rows_that_need_it_unless_chance_decides(t_env, query, stages):
    assert described(t_env, query) == stages


def test_rows_that_other_conditions_drop_are_not_asked_for(t_env):
    divided = steps(t_env, "SELECT f(b) FROM t WHERE f(a) = 1 AND a > 0")
    assert str(divided.first) == "a > 0"
    assert [str(stage.condition) for stage in divided.stages] == ["F(a) = 1", "None"]


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("SELECT l.a FROM t AS l LEFT JOIN t AS r ON l.a = r.a AND f(l.b, r.b) > 1", "F is asynchronous, and Join"),
        ("SELECT f(CAST(CURRENT_WATERMARK(ts) IS NULL AS INT)) FROM timed", "CURRENT_WATERMARK is in an argument or"),
    ],
)
def test_a_step_that_can_not_await_is_refused(t_env, query, problem):
    columns = "ts AS TO_TIMESTAMP_LTZ(n, 3), n BIGINT, WATERMARK FOR ts AS ts"
    t_env.execute_sql(f"CREATE TEMPORARY TABLE IF NOT EXISTS timed ({columns}) WITH ('connector' = 'datagen')")
    with pytest.raises(SqlError, match=problem):
        t_env.explain_sql(query)
