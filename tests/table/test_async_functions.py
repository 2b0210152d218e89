"""Asynchronous functions in queries, and where they may stand."""

from __future__ import annotations

import asyncio

import pytest

from rayflink.table import AsyncTableFunction, DataTypes, EnvironmentSettings, TableEnvironment
from rayflink.table.expressions import col
from rayflink.table.udf import udf, udtf


@udf(result_type=DataTypes.BIGINT())
async def plus(*numbers):
    await asyncio.sleep(0)
    return sum(numbers)


class Letters(AsyncTableFunction):
    async def eval(self, word, times):
        for number in range(times):
            await asyncio.sleep(0)
            yield word, number


@pytest.fixture(scope="module", params=["streaming", "batch"])
def t_env(request) -> TableEnvironment:
    settings = EnvironmentSettings.new_instance()
    mode = settings.in_batch_mode() if request.param == "batch" else settings.in_streaming_mode()
    environment = TableEnvironment.create(mode.build())
    config = environment.get_config().set("execution.target", "local")
    config.set("table.exec.async-scalar.max-concurrent-operations", "2")
    rows = [(number, "abc"[number % 3]) for number in range(4)]
    environment.create_temporary_view("t", environment.from_elements(rows, ["n", "w"]))
    environment.create_temporary_function("plus", plus)
    letters = udtf(Letters(), result_types=[DataTypes.STRING(), DataTypes.BIGINT()])
    environment.create_temporary_function("letters", letters)
    return environment


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT n, plus(n, plus(n, 1)) FROM t WHERE plus(n, 1) > 1 AND n < 3", [(1, 3), (2, 5)]),
        ("SELECT IF(n > 2, plus(n, n), 0) FROM t", [(0,), (0,), (0,), (6,)]),
        ("SELECT n, l, i FROM t LEFT JOIN LATERAL TABLE(letters(w, plus(n, -1))) AS f(l, i) ON TRUE WHERE n > 0",
         [(1, None, None), (2, "c", 0), (3, "a", 0), (3, "a", 1)]),
        ("SELECT l.n, r.n FROM t AS l JOIN t AS r ON plus(l.n, 2) = r.n AND plus(l.n, r.n) > 2", [(1, 3)]),
    ],
)  # fmt: skip
def test_results_are_awaited_wherever_they_are_wanted(t_env, query, rows):
    assert [tuple(row) for row in t_env.execute_sql(query).collect()] == rows
    assert "AsyncCalc(" in t_env.explain_sql(query)


def test_expressions_await_functions_too(t_env):
    table = t_env.from_path("t").where(plus(col("n"), 1) > 2).select(plus(col("n"), col("n")).alias("twice"))
    with table.execute().collect() as rows:
        assert [row[0] for row in rows] == [4, 6]


def test_functions_of_whole_rows_are_awaited(t_env):
    @udf(result_type="ROW<a BIGINT, b STRING>")
    async def mapped(row):
        await asyncio.sleep(0)
        return row.n + 1, row.w * 2

    @udtf(result_types=[DataTypes.STRING(), DataTypes.BIGINT()])
    async def spread(row):
        for number in range(row.n):
            await asyncio.sleep(0)
            yield row.w, number

    t = t_env.from_path("t").where(col("n") < 3)
    assert [tuple(row) for row in t.map(mapped).execute().collect()] == [(1, "aa"), (2, "bb"), (3, "cc")]
    assert [tuple(row) for row in t.flat_map(spread).execute().collect()] == [("b", 0), ("c", 0), ("c", 1)]


@pytest.mark.parametrize("kind", ["pandas", "arrow"])
def test_functions_of_columns_are_not_asynchronous(kind):
    with pytest.raises(ValueError, match=f"Async scalar functions do not support {kind} func_type"):
        udf(plus.function, result_type=DataTypes.BIGINT(), func_type=kind)
