"""Statements that are nested deeply are run, or refused with a remedy."""

from __future__ import annotations

import functools
import operator
from typing import Any

import pytest

from rayflink.table import EnvironmentSettings, TableEnvironment
from rayflink.table.errors import SqlError
from rayflink.table.expressions import col


def rows(query: str) -> Any:
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local")
    t_env.create_temporary_view("t", t_env.from_elements([(1,), (2,)], ["n"]))
    return t_env.sql_query(query).to_arrow()["n"].to_pylist()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT {open}n{close} AS n FROM t",
        "SELECT n FROM {subqueries}t{close}",
        "SELECT n FROM t WHERE {nots}(n > 5)",
        "SELECT n FROM t WHERE {open}n{close} < 3",
    ],
)
def test_deep_statements_are_run(query):
    depth = 200
    named = {"open": "(" * depth, "close": ")" * depth, "subqueries": "(SELECT n FROM " * depth, "nots": "NOT " * 201}
    assert rows(query.format(**named)) == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (" OR ".join(f"n = {at}" for at in range(2, 1200)), [2]),
        (" AND ".join(f"n <> {at}" for at in range(2, 1200)), [1]),
        (" OR ".join(f"n = {at} AND n > 0" for at in range(2, 1200)), [2]),
        (f"NOT ({' OR '.join(f'n = {at} OR n IS NULL' for at in range(2, 1200))})", [1]),
        (f"n IN ({', '.join(map(str, range(2, 20_000)))})", [2]),
        (f"n NOT IN ({', '.join(map(str, range(2, 20_000)))})", [1]),
        (f"n NOT IN (NULL, {', '.join(map(str, range(2, 1200)))})", []),
    ],
    ids=["OR", "AND", "AND in OR", "NOT OR", "IN", "NOT IN", "NOT IN NULL"],
)
def test_long_conditions_are_run(condition, expected):
    assert rows(f"SELECT n FROM t WHERE {condition}") == expected


@pytest.mark.slow
def test_long_conditions_of_programs_are_run():
    t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    t_env.get_config().set_string("execution.target", "local")
    numbers = t_env.from_elements([(1,), (2,)], ["n"])
    for join, expected in ((operator.or_, [2]), (operator.and_, [])):
        condition = functools.reduce(join, [col("n") == at for at in range(2, 1000)])
        assert numbers.where(condition).to_arrow()["n"].to_pylist() == expected


@pytest.mark.parametrize("depth", [600, 3000])
def test_what_is_too_deep_is_an_error_with_its_remedy(depth):
    with pytest.raises(SqlError, match="nested too deeply; split it"):
        rows(f"SELECT {'ABS(' * depth}n{')' * depth} AS n FROM t")


def test_an_error_in_a_deep_statement_has_its_place():
    with pytest.raises(SqlError, match="line 1, column 310: expecting \\)"):
        rows(f"SELECT {'(' * 300}n FROM t")
