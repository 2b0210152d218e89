"""Functions of a program that find rows by key: frames and single keys, plain and async, and wrong ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rayflink.common.errors import JobFailed
from rayflink.common.types import Row
from rayflink.datastream.connectors.postgres import LookupCache
from rayflink.table import DataTypes, EnvironmentSettings, LookupFunction, LookupRows, TableEnvironment

SCHEMA = DataTypes.ROW([DataTypes.FIELD("n", DataTypes.BIGINT()), DataTypes.FIELD("twice", DataTypes.BIGINT())])


def by_arrow(keys: pa.RecordBatch) -> pa.Table:
    small = keys.filter(pc.less(keys.column("n"), 5))
    return pa.table({"twice": pc.multiply(small.column("n"), 2), "n": small.column("n")})


def by_pandas(keys: pandas.DataFrame) -> pandas.DataFrame:
    return keys[keys.n < 5].assign(twice=keys.n * 2)


async def by_awaiting(keys: pa.RecordBatch) -> pa.Table:
    await asyncio.sleep(0)
    return by_arrow(keys)


def by_key(n: int) -> dict[str, int] | None:
    return {"twice": 2 * n} if n < 5 else None


async def by_awaited_key(n: int) -> list[Any]:
    await asyncio.sleep(0)
    return [Row(twice=2 * n)] if n < 5 else []


class ByFunction(LookupFunction):
    def look_up(self, keys: pa.RecordBatch) -> LookupRows:
        return LookupRows(by_arrow(keys))


def joined(function: Any, form: str | None = None, numbers: tuple[int | None, ...] = (1, 7, None, 4, 1),
           cache: LookupCache | None = None) -> list[tuple[Any, ...]]:  # fmt: skip
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set("execution.target", "local").set("parallelism.default", "1")
    t_env.create_temporary_view("numbers", t_env.from_arrow(pa.table({"n": pa.array(numbers, pa.int64())})))
    t_env.create_temporary_view("twice", t_env.from_lookup(function, SCHEMA, form, cache, 0))
    query = """SELECT o.n, t.twice FROM (SELECT n, PROCTIME() AS clock FROM numbers) AS o
        LEFT JOIN twice FOR SYSTEM_TIME AS OF o.clock AS t ON o.n = t.n"""
    return [tuple(row) for row in t_env.execute_sql(query).collect()]


@pytest.mark.parametrize(
    ("function", "form"),
    [(by_arrow, None), (by_pandas, None), (by_awaiting, None), (by_key, "key"), (by_awaited_key, "key"),
     (ByFunction(), None)],
    ids=["arrow", "pandas", "async", "key", "async key", "class"],
)  # fmt: skip
def test_a_function_finds_rows(function, form):
    wanted = [(1, 2), (7, None), (None, None), (4, 8), (1, 2)]
    assert joined(function, form) == wanted == joined(function, form, cache=LookupCache(max_rows=5))


@pytest.mark.parametrize(
    ("function", "form", "problem"),
    [
        (lambda keys: pa.table({"twice": [1]}), None, "have no column 'n', only twice"),
        (lambda n: 3, "key", "returned 3 for the key {'n': 1}; return a dict"),
        (lambda n: {"twce": 1}, "key", "returned a field 'twce' (did you mean twice?)"),
        (lambda n: {"twice": 1 // 0}, "key", "ZeroDivisionError"),
    ],
)
def test_what_a_function_does_wrong_fails_the_job(function, form, problem):
    with pytest.raises(JobFailed) as raised:
        joined(function, form, (1,))
    assert problem in str(raised.value)


def test_constants_are_conditions_where_there_is_another_key():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.create_temporary_view("twice", t_env.from_lookup(by_key, SCHEMA, "key"))
    query = """SELECT 1 FROM (SELECT n, PROCTIME() AS clock FROM (VALUES (1)) AS v(n)) AS o
        JOIN twice FOR SYSTEM_TIME AS OF o.clock AS t ON {} t.twice = 4"""
    assert "lookup=[n=CAST(n)], where=[twice = 4]" in t_env.explain_sql(query.format("o.n = t.n AND"))
    assert "lookup=[twice=4]" in t_env.explain_sql(query.format(""))


def test_an_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form must be one of arrow, table, polars, pandas, key, found 'rows'"):
        joined(by_key, "rows")
