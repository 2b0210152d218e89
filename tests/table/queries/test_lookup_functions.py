"""Functions of a program that find rows by key: frames and single keys, plain and async, and wrong ones."""

from __future__ import annotations

import asyncio
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from rayflink.common.errors import JobFailed
from rayflink.common.types import Row, RowKind
from rayflink.datastream.connectors.postgres import LookupCache
from rayflink.table import DataTypes, EnvironmentSettings, LookupFunction, LookupRows, TableEnvironment
from rayflink.table.plan.changelog_fold import materialized

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


class Counted(LookupFunction):
    """Finds another number each time."""

    calls = 0

    def look_up(self, keys: pa.RecordBatch) -> LookupRows:
        self.calls += 1
        rows = [n for n in keys.column("n").to_pylist() if n < 5 for _ in range(2)]
        numbers = [100 * self.calls + place for place in range(len(rows))]
        return LookupRows(pa.table({"n": pa.array(rows, pa.int64()), "twice": pa.array(numbers, pa.int64())}))


@pytest.mark.parametrize(("kind", "times"), [("JOIN", 1), ("LEFT JOIN", 1), ("JOIN", 2), ("LEFT JOIN", 2)])
def test_what_was_found_is_what_is_taken_back(kind, times):
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    options = {"execution.target": "local", "parallelism.default": "2", "rayflink.batch.max-rows": "1",
               "table.optimizer.non-deterministic-update.strategy": "TRY_RESOLVE"}  # fmt: skip
    for key, value in options.items():
        t_env.get_config().set(key, value)
    t_env.create_temporary_view("numbers", t_env.from_arrow(pa.table({"n": pa.array([1, 7, 1, 4, 1, 7], pa.int64())})))
    t_env.create_temporary_view("twice", t_env.from_lookup(Counted(), SCHEMA))
    counts = " UNION ALL ".join(["SELECT n, COUNT(*) AS c FROM numbers GROUP BY n"] * times)  # of two no key is left
    counted = f"SELECT n, c, PROCTIME() AS clock FROM ({counts})"
    joined_rows = f"({counted}) AS o {kind} twice FOR SYSTEM_TIME AS OF o.clock AS t ON o.n = t.n AND t.twice > o.c"
    query = f"SELECT o.n, o.c, t.twice FROM {joined_rows}"
    plan = t_env.explain_sql(query)
    assert "upsertMaterialize=[true]" in plan and ("NumberCopies(select=[n, c, $copy])" in plan) == (times == 2)
    changes = list(t_env.execute_sql(query).collect())
    assert any(row.get_row_kind() is RowKind.UPDATE_BEFORE for row in changes)
    left = sorted((row[0], row[1]) for row in materialized(changes))
    expected = [(1, 3), (1, 3), (4, 1), (4, 1), *([(7, 2)] if kind == "LEFT JOIN" else [])]
    assert left == sorted(expected * times)


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
