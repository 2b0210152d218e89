"""Small sides of joins are sent to all subtasks, and groups are aggregated in one phase, where the sizes say so."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from rayflink.table import DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.udf import udf

BIG = pa.table({"id": range(3000), "k": [n % 10 for n in range(3000)]})
SMALL = pa.table({"k": range(12), "w": [f"w{n}" for n in range(12)]})


@pytest.fixture
def t_env() -> TableEnvironment:
    found = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    for key, value in {"execution.target": "local", "parallelism.default": "3"}.items():
        found.get_config().set_string(key, value)
    for name, table in (("big", BIG), ("small", SMALL)):
        found.create_temporary_view(name, found.from_arrow(table))
    return found


def plan(t_env: TableEnvironment, query: str, **options: str) -> str:
    for key, value in options.items():
        t_env.get_config().set_string(f"table.optimizer.{key}", value)
    return t_env.explain_sql(query).partition("== Optimized Physical Plan ==\n")[2].partition("\n\n")[0]


def rows(t_env: TableEnvironment, query: str) -> list[tuple[object, ...]]:
    return sorted(tuple(row) for row in t_env.execute_sql(query).collect())


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("query", "build"),
    [
        ("SELECT id, w FROM big JOIN small ON big.k = small.k", "right"),
        ("SELECT id, w FROM small JOIN big ON big.k = small.k", "left"),
        ("SELECT id, COALESCE(w, '') FROM big LEFT JOIN small ON big.k + 5 = small.k", "right"),
        ("SELECT id, COALESCE(w, '') FROM small RIGHT JOIN big ON big.k + 5 = small.k", "left"),
        ("SELECT id FROM big WHERE k IN (SELECT k FROM small WHERE w < 'w3')", "right"),
        ("SELECT id FROM big WHERE k NOT IN (SELECT k FROM small WHERE w < 'w3')", "right"),
        ("SELECT id, w FROM big, small WHERE id < small.k", "right"),
    ],
)
@pytest.mark.slow
def test_the_small_side_is_sent_to_all_and_the_other_stays(t_env, query, build):
    told = plan(t_env, query, **{"join.broadcast-threshold": "1000"})
    assert f"isBroadcast=[true], build=[{build}]" in told and told.count("Exchange(") == 1
    assert "Exchange(distribution=[broadcast])" in told
    found = rows(t_env, query)
    assert "isBroadcast" not in plan(t_env, query, **{"join.broadcast-threshold": "-1"})
    assert rows(t_env, query) == found and len(found) > 10


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, w FROM small LEFT JOIN big ON big.k = small.k",
        "SELECT id, w FROM big FULL JOIN small ON big.k = small.k",
        "SELECT w FROM small WHERE k IN (SELECT k FROM big)",
        "SELECT a.id FROM big AS a JOIN big AS b ON a.id = b.id",
    ],
)
def test_a_side_that_is_large_or_kept_whole_is_not(t_env, query):
    assert "isBroadcast" not in plan(t_env, query, **{"join.broadcast-threshold": "1000"})


def test_a_table_that_tells_nothing_is_not_sent(t_env):
    t_env.execute_sql("CREATE TABLE made (k BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '5')")
    assert "build=[left]" in plan(t_env, "SELECT w FROM small JOIN made ON made.k = small.k")


@pytest.mark.parametrize("fails_in", ["the small side", "the other side", "the condition"])
def test_a_join_that_fails_starts_anew(t_env, tmp_path, fails_in):
    failed = str(tmp_path / "failed")

    @udf(result_type=DataTypes.BOOLEAN())
    def passes(n):
        if n == 7 and not os.path.exists(failed):
            os.mkdir(failed)
            raise OSError("once more")
        return True

    t_env.create_temporary_function("passes", passes)
    for key, value in {"type": "fixed-delay", "fixed-delay.attempts": "3", "fixed-delay.delay": "1 ms"}.items():
        t_env.get_config().set_string(f"restart-strategy.{key}", value)
    sides = {"the small side": ("", " WHERE passes(k)", ""), "the other side": (" WHERE passes(id)", "", ""),
             "the condition": ("", "", " AND passes(small.k + big.k - big.k)")}  # fmt: skip
    big, small, on = sides[fails_in]
    query = f"SELECT COUNT(*), SUM(id) FROM (SELECT * FROM big{big}) AS big JOIN (SELECT * FROM small{small}) AS small "
    query += f"ON big.k = small.k{on}"
    assert "isBroadcast" in plan(t_env, query)
    assert rows(t_env, query) == [(3000, sum(range(3000)))] and os.path.exists(failed)


@pytest.mark.spec("R10")
def test_many_groups_are_aggregated_in_one_phase(t_env):
    many, few = "SELECT id, COUNT(*), MAX(k) FROM big GROUP BY id", "SELECT k, COUNT(*), MAX(id) FROM big GROUP BY k"
    assert "Local" not in plan(t_env, many) and "GroupAggregate(groupBy=[id]" in plan(t_env, many)
    assert "LocalGroupAggregate(groupBy=[k]" in plan(t_env, few)
    assert rows(t_env, many) == [(at, 1, at % 10) for at in range(3000)]


@pytest.mark.parametrize(
    "query", ["SELECT k, SUM(id), COUNT(DISTINCT id) FROM big GROUP BY k", "SELECT AVG(id) FROM big"]
)
def test_the_strategy_may_be_said(t_env, query):
    wanted = rows(t_env, query)
    assert "Local" not in plan(t_env, query, **{"agg-phase-strategy": "ONE_PHASE"})
    assert rows(t_env, query) == wanted
    assert "Local" in plan(t_env, "SELECT id, COUNT(*) FROM big GROUP BY id", **{"agg-phase-strategy": "TWO_PHASE"})
